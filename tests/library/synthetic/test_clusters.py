"""Gaussian mixtures drawn chunk by chunk."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from privclust.synthetic import clusters
from privclust.synthetic.clusters import SHAPES, MixtureRows, draw_mixture

CENTERS = np.array([[0.0, 0.0, 0.0], [50.0, 0.0, 0.0], [0.0, 50.0, 0.0]])


def joined(rows, start=0, stop=None, **params):
    return np.concatenate(list(rows.chunks(start, stop, **params)))


@pytest.mark.parametrize("shape", SHAPES)
def test_any_range_is_the_same_bytes(shape, monkeypatch):
    monkeypatch.setattr(clusters, "_CHUNK", 64)
    rows = draw_mixture(shape, 1000, 4, 3, seed=5)
    whole = rows.to_array()
    assert whole.shape == (1000, 3)
    for start, stop in ((0, 1000), (0, 64), (63, 65), (64, 128), (100, 101), (959, 1000)):
        assert joined(rows, start, stop).tobytes() == whole[start:stop].tobytes()
    assert list(rows.chunks(70, 70)) == []
    longer = draw_mixture(shape, 10**9, 4, 3, seed=5)
    assert joined(longer, 0, 1000).tobytes() == whole.tobytes()
    assert joined(rows, dtype=np.float32).tobytes() == whole.astype(np.float32).tobytes()
    assert rows.to_array(np.float32).tobytes() == whole.astype(np.float32).tobytes()


def test_rows_in_another_process_are_the_same_bytes():
    code = (
        "from privclust.synthetic.clusters import draw_mixture; import sys;"
        "rows = draw_mixture('elongated', 10**9, 4, 3, seed=5);"
        "sys.stdout.buffer.write(next(rows.chunks(999_990_000, 999_990_100)).tobytes())"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    rows = draw_mixture("elongated", 10**9, 4, 3, seed=5)
    assert other == next(rows.chunks(999_990_000, 999_990_100)).tobytes()


def test_chunks_and_seeds_are_independent(monkeypatch):
    """No row comes twice, within a chunk, in another or under another seed."""
    monkeypatch.setattr(clusters, "_CHUNK", 1000)
    first = draw_mixture("paper", 3000, 2, 2, seed=1).to_array()
    second = draw_mixture("paper", 3000, 2, 2, seed=2).to_array()
    both = np.concatenate([first, second]).ravel()
    assert len(np.unique(both)) == both.size


def test_components_have_the_stated_laws():
    """Kolmogorov-Smirnov and chi-square tests, false-alarm rate 1e-4 each."""
    matrix = np.array([[2.0, 0.0, 0.0], [1.0, 0.5, 0.0], [0.0, 0.3, 0.1]])
    for factors, covariances in (
        (None, [np.eye(3)] * 3),
        ([0.5, 1.0, 2.0], [0.25 * np.eye(3), np.eye(3), 4.0 * np.eye(3)]),
        ([matrix] * 3, [matrix @ matrix.T] * 3),
    ):
        X = MixtureRows(30_000, CENTERS, 3, factors=factors, weights=[1, 2, 3]).to_array()
        labels = np.linalg.norm(X[:, None] - CENTERS, axis=2).argmin(axis=1)  # they are far apart
        counts = np.bincount(labels)
        assert stats.chisquare(counts, len(X) * np.array([1, 2, 3]) / 6).pvalue > 1e-4
        for k in range(3):
            whitener = np.linalg.inv(np.linalg.cholesky(covariances[k]))
            normal = (X[labels == k] - CENTERS[k]) @ whitener.T
            for column in normal.T:
                assert stats.kstest(column, "norm").pvalue > 1e-4
            # off-diagonal correlations have the standard error 1 / sqrt(n): 5 of them
            correlations = np.corrcoef(normal.T)[np.triu_indices(3, 1)]
            assert np.abs(correlations).max() < 5 / np.sqrt(counts[k])


def test_shapes():
    k, d = 6, 4
    drawn = {shape: draw_mixture(shape, 10, k, d, seed=9) for shape in SHAPES}
    for rows in drawn.values():
        np.testing.assert_array_equal(rows.centers, drawn["paper"].centers)
    np.testing.assert_array_equal(drawn["paper"]._factors, np.ones(k))
    ratios = np.diff(np.log(drawn["unequal"]._factors ** 2))
    np.testing.assert_allclose(ratios, np.log(16) / (k - 1), rtol=1e-12)
    np.testing.assert_allclose(drawn["unequal"]._factors[[0, -1]] ** 2, [0.25, 4.0], rtol=1e-12)
    np.testing.assert_allclose(drawn["unbalanced"]._edges, np.cumsum(np.arange(1, k)) / 21)
    for factor in drawn["elongated"]._factors:
        spreads = np.linalg.svd(factor, compute_uv=False)
        assert np.mean(spreads**2) == pytest.approx(1.0)
        assert 1.0 < spreads[0] / spreads[-1] <= 5.0


@pytest.mark.parametrize(("k", "d"), [(10, 10), (50, 2)])
def test_means_have_the_printed_spread(k, d):
    """Section 5: N(0, (1.5 k^(1/d))^2 I); Kolmogorov-Smirnov test, false-alarm rate 1e-4."""
    means = np.concatenate(
        [draw_mixture("paper", 1, k, d, seed=s).centers.ravel() for s in range(60)]
    )
    assert stats.kstest(means, stats.norm(scale=1.5 * k ** (1 / d)).cdf).pvalue > 1e-4


def test_smallest_mixtures():
    for shape in SHAPES:
        rows = draw_mixture(shape, 1, 1, 1, seed=0)
        assert rows.to_array().shape == (1, 1)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_samples": 0}, "n_samples must be an integer of at least 1, got 0"),
        ({"n_samples": 1e6}, "n_samples must be an integer"),
        ({"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"centers": [1.0, 2.0]}, r"centers must be finite of shape .* got shape \(2,\)"),
        ({"centers": [[np.nan, 2.0]]}, "centers must be finite"),
        ({"factors": [1.0]}, r"factors must be .* got shape \(1,\)"),
        ({"factors": [1.0, 0.0, 1.0]}, "factors must be finite, positive"),
        ({"factors": np.ones((3, 3))}, "factors"),
        ({"weights": [1.0, 2.0]}, "weights must be 3 positive numbers, got"),
        ({"weights": [1.0, 2.0, 0.0]}, "weights"),
    ],
)
def test_bad_arguments(params, message):
    with pytest.raises(ValueError, match=message):
        MixtureRows(**({"n_samples": 5, "centers": CENTERS, "seed": 0} | params))


def test_bad_ranges_and_shapes():
    rows = MixtureRows(100, CENTERS, 0)
    for start, stop in ((-1, 5), (0, 101), (5, 4), (0.5, 4)):
        with pytest.raises(ValueError, match=r"start|stop"):
            list(rows.chunks(start, stop))
    with pytest.raises(ValueError, match="shape must be one of paper, unequal"):
        draw_mixture("round", 10, 2, 2, 0)
    with pytest.raises(ValueError, match="n_clusters"):
        draw_mixture("paper", 10, 0, 2, 0)
