"""Three Gaussians in the unit disc.

Statistical bounds are five standard errors: a false alarm in fewer than 1 of 10^5 runs each.
"""

import numpy as np
import pytest

from privclust.synthetic import planar
from privclust.synthetic.planar import MEANS, STANDARD_DEVIATIONS, WEIGHTS, three_gaussians

SE = 5.0


@pytest.mark.parametrize("name", ["apart", "close"])
def test_moments_are_those_of_the_geometry(name):
    X, labels = three_gaussians(60_000, np.random.default_rng(1), geometry=name)
    assert X.shape == (60_000, 2)
    assert labels.dtype == np.int64
    assert np.linalg.norm(X, axis=1).max() <= 1
    for k in range(3):
        points = X[labels == k]
        weight, spread = WEIGHTS[k], STANDARD_DEVIATIONS[k]
        assert len(points) / len(X) == pytest.approx(
            weight, abs=SE * np.sqrt(weight * (1 - weight) / len(X))
        )
        error = spread / np.sqrt(len(points))
        np.testing.assert_allclose(points.mean(axis=0), MEANS[name][k], atol=SE * error)
        np.testing.assert_allclose(points.std(axis=0), spread, atol=SE * error / np.sqrt(2))
        correlation = np.corrcoef(points.T)[0, 1]
        assert abs(correlation) < SE / np.sqrt(len(points))


def test_weights_sum_to_one_and_hardly_any_mass_is_cut_off():
    assert sum(WEIGHTS) == pytest.approx(1)
    for means in MEANS.values():
        room = 1 - np.linalg.norm(means, axis=1)
        assert (room > 3.9 * np.array(STANDARD_DEVIATIONS)).all()


def test_close_geometry_is_harder():
    """Measured by the error of the Bayes rule, the best there is."""

    def error(name):
        X, labels = three_gaussians(20_000, np.random.default_rng(2), geometry=name)
        squared = ((X[:, None] - np.array(MEANS[name])) ** 2).sum(axis=2)
        variance = np.array(STANDARD_DEVIATIONS) ** 2
        best = (-squared / (2 * variance) - np.log(variance)).argmax(axis=1)  # Bayes rule
        return (best != labels).mean()

    assert error("apart") < 0.002
    assert 0.02 < error("close") < 0.2


def test_points_outside_the_disc_are_drawn_again(monkeypatch):
    monkeypatch.setattr(planar, "MEANS", {"wide": ((0.9, 0.0),) * 3})
    monkeypatch.setattr(planar, "STANDARD_DEVIATIONS", (0.3,) * 3)
    monkeypatch.setattr(planar, "WEIGHTS", (0.2, 0.3, 0.5))
    X, labels = three_gaussians(20_000, np.random.default_rng(3), geometry="wide")
    assert np.linalg.norm(X, axis=1).max() <= 1
    shares = np.bincount(labels) / len(labels)  # not changed by the truncation
    np.testing.assert_allclose(shares, planar.WEIGHTS, atol=SE * 0.5 / np.sqrt(len(labels)))
    assert abs(X[:, 1].mean()) < SE * 0.3 / np.sqrt(len(X))  # symmetric still


def test_a_stream_decides_everything():
    first, again, other = (
        three_gaussians(50, np.random.default_rng(seed))[0] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("n", [0, -1, 2.5, True])
def test_numbers_out_of_range(n):
    with pytest.raises(ValueError, match="n must be an integer of at least 1, got"):
        three_gaussians(n, np.random.default_rng(0))


def test_unknown_geometry_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match="geometry must be one of apart, close, got 'far'"):
        three_gaussians(5, np.random.default_rng(0), geometry="far")
