"""Sums of random Fourier features: their values, that they are exact, and the masks."""

import itertools

import numpy as np
import pytest
from scipy import stats

from privclust.sketches import FeatureSums, _feature_sums
from privclust.sketches._kernels import draw_subset

LARGEST_MODULUS = 1.0 + 2.0**-20  # of a rounded feature
FALSE_ALARM = 1e-4  # of each statistical test here


def problem(n=1500, d=3, m=40, seed=0):
    """Return records and frequencies with phases of a few turns."""
    rng = np.random.default_rng(seed)
    return 2.0 * rng.standard_normal((n, d)), 2.0 * rng.standard_normal((d, m))


def assert_same(a, b):
    """Assert that two sums have the same bytes."""
    assert {k: v.tolist() for k, v in a.state().items()} == {
        k: v.tolist() for k, v in b.state().items()
    }
    assert a.values.tobytes() == b.values.tobytes()


@pytest.mark.parametrize("d", [1, 4, 5, 9, 12, 21])
@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 1e-6), (np.float64, 1e-12)])
def test_means_of_features(d, dtype, error):
    X, frequencies = problem(d=d)
    X, frequencies = X.astype(dtype), frequencies / np.sqrt(d)
    sums = FeatureSums(frequencies).add(X)
    expected = np.exp(1j * X.astype(np.float64) @ frequencies).mean(axis=0)
    assert np.abs(sums.values / len(X) - expected).max() < error
    assert sums.n_samples == sums.next_record == len(X)


@pytest.mark.parametrize(
    ("one", "error"), [(np.float32(1), 9e-7), (np.float64(1), 1e-12)], ids=["float32", "float64"]
)
def test_every_feature_is_accurate_and_bounded(one, error):
    """With the record x = 1, the sums are the features at the phases omega."""
    near = np.concatenate([[0.0], np.logspace(-30, -3, 2000)])
    turns = np.concatenate([np.linspace(-0.6, 0.6, 100_001), near, 0.5 - near, 0.25 + near, -near])
    turns = turns.astype(one.dtype).astype(np.float64)
    features = FeatureSums([2.0 * np.pi * turns]).add(one.reshape(1, 1)).values
    assert np.abs(features - np.exp(2j * np.pi * turns)).max() < error
    assert np.abs(features).max() <= LARGEST_MODULUS


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_of_huge_records_are_bounded(dtype):
    X = np.array([[1e30, -1e25], [1e-40, 1e30], [-3e6, 1e8]], dtype=dtype)
    frequencies = np.random.default_rng(0).standard_normal((2, 500))
    for row in X:
        assert np.abs(FeatureSums(frequencies).add(row[None]).values).max() <= LARGEST_MODULUS
    with pytest.raises(ValueError, match=r"at most .* which row 1 is not"):
        FeatureSums(frequencies).add(np.array([[0.0, 1.0], [np.finfo(dtype).max, 0.0]], dtype))


@pytest.mark.parametrize("n_measurements", [None, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_depend_on_nothing_but_the_records(n_measurements, dtype, monkeypatch):
    X, frequencies = problem()
    X = X.astype(dtype)
    expected = FeatureSums(frequencies, n_measurements=n_measurements, mask_seed=5).add(X)
    monkeypatch.setattr(_feature_sums, "_CHUNK_VALUES", 1)  # chunks of 256 records
    wide = np.zeros((2 * len(X), 8), dtype)
    wide[::2, ::3] = X
    reversed_view = np.ascontiguousarray(X[::-1])[::-1]
    read_only = X.copy()
    read_only.flags.writeable = False
    for other in (wide[::2, ::3], np.asfortranarray(X), reversed_view, read_only):
        for size in (len(X), 1, 400):
            sums = FeatureSums(frequencies, n_measurements=n_measurements, mask_seed=5)
            for start in range(0, len(X), size):
                sums.add(other[start : start + size])
            assert_same(sums, expected)
    assert sums.next_record == len(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_order_of_records_does_not_matter(dtype):
    X, frequencies = problem()
    X = (1e3 * X).astype(dtype)
    shuffled = np.random.default_rng(1).permutation(X)
    assert_same(FeatureSums(frequencies).add(X), FeatureSums(frequencies).add(shuffled))


@pytest.mark.parametrize("n_measurements", [None, 7])
def test_parts_merge_exactly(n_measurements):
    X, frequencies = problem()
    options = {"n_measurements": n_measurements, "mask_seed": 2**64 - 1}
    expected = FeatureSums(frequencies, **options).add(X)
    parts = [
        FeatureSums(frequencies, first_record=start, **options).add(X[start : start + 500])
        for start in (1000, 0, 500)
    ]
    states = [part.state() for part in parts]
    added = {name: sum(state[name] for state in states) for name in states[0]}
    sums = FeatureSums.from_state(added, frequencies, first_record=1500, **options)
    assert_same(sums, expected)
    assert sums.next_record == 1500
    assert_same(sums.add(X), expected.add(X))


def test_sums_may_be_large_and_negative():
    """cos(pi) = -1 and sin(pi) = 0, with room beyond 2^52."""
    sums = FeatureSums([[np.pi]]).add(np.ones((3, 1)))
    assert sums.values == -3.0
    state = {"whole": [[-(2**60), 5]], "fraction": [[-1, 3 << 40]], "n_samples": [2**61]}
    state = {name: np.array(value) for name, value in state.items()}
    large = FeatureSums.from_state(state, [[np.pi]])
    assert large.values[0] == -(2.0**60) + 8j
    assert large.state()["fraction"].tolist() == [[2**40 - 1, 0]]
    assert large.add(np.ones((3, 1))).state()["whole"].tolist() == [[-(2**60) - 1 - 3, 8]]
    assert large.n_samples == 2**61 + 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 4, 6, 9])
def test_masked_record_has_r_of_its_features(d, dtype):
    X, frequencies = problem(n=30, d=d, m=23)
    X = X.astype(dtype)
    for r in (1, 2, 5, 22):
        sums = FeatureSums(frequencies, n_measurements=r)
        before = sums.values
        for x in X:
            values = sums.add(x[None]).values
            features = values - before
            chosen = np.flatnonzero(features)
            assert len(chosen) == r
            expected = np.exp(1j * (x.astype(np.float64) @ frequencies))[chosen]
            scale = 10.0 if dtype == np.float64 else 1e7  # rounding of phases of up to 30 radians
            assert np.abs(features[chosen] - expected).max() < 1e-12 * scale
            before = values


@pytest.mark.parametrize("r", [1, 30, 199])
def test_masks_select_all_frequencies_alike(r):
    """With omega = 0 the sums count the masks; masks without replacement have one constraint."""
    n, m = 600_000 // r, 200
    counts = FeatureSums(np.zeros((1, m)), n_measurements=r, mask_seed=3).add(np.zeros((n, 1)))
    counts = counts.values.real
    assert counts.sum() == n * r
    variance = n * (r / m) * (1.0 - r / m) * m / (m - 1)
    statistic = ((counts - n * r / m) ** 2).sum() / variance
    assert FALSE_ALARM / 2 < stats.chi2(m - 1).cdf(statistic) < 1.0 - FALSE_ALARM / 2


def masks(n, m, r, seed=0):
    """Return the masks of n records."""
    sums = FeatureSums(np.zeros((1, m)), n_measurements=r, mask_seed=seed)
    record = np.zeros((1, 1))
    return np.diff([sums.values.real] + [sums.add(record).values.real for _ in range(n)], axis=0)


def test_masks_are_uniform_and_independent():
    """All 20 subsets, and the 400 pairs of those of consecutive records, are equally likely."""
    drawn = masks(8000, 6, 3) @ 2 ** np.arange(6)
    subsets = np.unique(drawn)
    assert len(subsets) == 20
    index = np.searchsorted(subsets, drawn)
    assert stats.chisquare(np.bincount(index)).pvalue > FALSE_ALARM
    pairs = np.bincount(20 * index[::2] + index[1::2], minlength=400)
    assert stats.chisquare(pairs).pvalue > FALSE_ALARM


@pytest.mark.parametrize("lag", [-1, 0, 1])
def test_masks_of_different_seeds_are_independent(lag):
    """Also those of records whose index and seed have the same sum."""
    n, m, r = 2000, 40, 10
    first, second = masks(n, m, r, seed=1), masks(n, m, r, seed=2)
    common = (first * np.roll(second, lag, axis=0)).sum()
    overlap = stats.hypergeom(m, r, r)
    z = (common - n * overlap.mean()) / np.sqrt(n * overlap.var())
    assert abs(z) < stats.norm.isf(FALSE_ALARM / 2)


def test_rejected_numbers_are_drawn_again():
    """Half of all numbers are rejected here; the subsets stay uniform."""
    m, r = 7, 3
    limits = np.full(r, 2**31, dtype=np.uint64)
    subset, counts = np.zeros(r, dtype=np.uint32), {}
    for record in range(7000):
        seen = np.zeros(m, dtype=np.uint8)
        draw_subset(np.uint64(0), np.uint64(record), limits, np.uint8(1), seen, subset)
        key = tuple(sorted(subset.tolist()))
        counts[key] = counts.get(key, 0) + 1
    assert set(counts) == set(itertools.combinations(range(m), r))
    assert stats.chisquare(list(counts.values())).pvalue > FALSE_ALARM


def test_masked_sums_are_unbiased():
    """E sum = alpha_r times the unmasked one; the squared moduli of the errors add up."""
    X, frequencies = problem(n=20_000, m=100)
    r = 20
    masked = FeatureSums(frequencies, n_measurements=r, mask_seed=9).add(X).values
    alpha = r / 100
    errors = masked - alpha * FeatureSums(frequencies).add(X).values
    # real and imaginary errors are sums of independent terms, nearly normal of these variances
    waves = np.exp(1j * X @ frequencies)
    for part, terms in ((errors.real, waves.real), (errors.imag, waves.imag)):
        z = part / np.sqrt(alpha * (1.0 - alpha) * (terms**2).sum(axis=0))
        assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / 100)


def test_kinds_of_records():
    frequencies = np.ones((2, 3))
    expected = FeatureSums(frequencies).add([[1.0, 2.0], [0.0, 1.0]])
    for X in ([[1, 2], [0, 1]], np.array([[1, 2], [0, 1]], np.uint8), np.float16([[1, 2], [0, 1]])):
        assert_same(FeatureSums(frequencies).add(X), expected)
    assert_same(expected.add(np.empty((0, 2))), expected)


def test_bad_records_change_nothing(monkeypatch):
    monkeypatch.setattr(_feature_sums, "_CHUNK_VALUES", 1)
    X, frequencies = problem()
    sums = FeatureSums(frequencies).add(X)
    before = FeatureSums(frequencies).add(X)
    for value in (np.nan, np.inf, -np.inf):
        bad = X.copy()
        bad[1234, 1] = value
        with pytest.raises(ValueError, match=r"X must be finite .* which row 1234 is not"):
            sums.add(bad)
        assert_same(sums, before)
    for bad, message in (
        (X[:, :2], r"shape \(n_samples, 3\).*got \(1500, 2\)"),
        (X[0], r"got \(3,\)"),
        (X * 1j, "real numbers, got an array of complex128"),
        ([["a"] * 3], "real numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            sums.add(bad)


@pytest.mark.parametrize(
    ("frequencies", "parameters", "message"),
    [
        (np.ones(3), {}, r"frequencies must have shape .* got an array of shape \(3,\)"),
        (np.ones((3, 0)), {}, "neither of them 0"),
        ([[1.0, np.nan]], {}, "finite and at most 1e\\+30 in magnitude, got nan"),
        ([[1e31]], {}, "got 1e\\+31"),
        ([[1j]], {}, "frequencies must be real numbers"),
        (np.ones((1, 4)), {"n_measurements": 5}, "at most the number of frequencies, 4, got 5"),
        (np.ones((1, 4)), {"n_measurements": 0}, "n_measurements must be an integer of at least 1"),
        (np.ones((1, 4)), {"n_measurements": 2.0}, "n_measurements must be an integer"),
        (np.ones((1, 4)), {"mask_seed": -1}, "mask_seed must be an integer of at least 0"),
        (np.ones((1, 4)), {"mask_seed": 2**64}, "mask_seed must be less than 2\\^64"),
        (np.ones((1, 4)), {"first_record": -1}, "first_record"),
        (np.ones((1, 4)), {"first_record": 2**62}, "first_record must be less than 2\\^62"),
    ],
)
def test_bad_parameters(frequencies, parameters, message):
    with pytest.raises(ValueError, match=message):
        FeatureSums(frequencies, **parameters)


def test_bad_states():
    X, frequencies = problem()
    state = FeatureSums(frequencies).add(X).state()
    for name, value, message in (
        ("whole", state["whole"][:3], r"state\['whole'\] must be integers of shape \(40, 2\)"),
        ("fraction", state["fraction"] / 2.0, "got float64"),
        ("n_samples", np.array([-1]), "n_samples must not be negative, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            FeatureSums.from_state({**state, name: value}, frequencies)
    del state["whole"]
    with pytest.raises(ValueError, match="got nothing"):
        FeatureSums.from_state(state, frequencies)


# --- records of any numbers ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e30])
def test_records_of_any_numbers_are_drawn_in(dtype, scale):
    """Entry by entry, whatever the others are, and as little as need be."""
    sums = FeatureSums(scale * np.array([[1.0, -0.3], [0.2, 0.7]]))
    largest, middle = np.finfo(dtype).max, np.array([1e99, 0.25])
    X = np.array(
        [[np.nan, 0.5], [np.inf, np.nan], [-np.inf, largest], [1.0, -2.0], [largest, 1.0]], dtype
    )
    clipped = sums.clipped(X, middle)
    assert clipped.dtype == dtype
    limit = sums._turns_in(np.dtype(dtype))[1]
    assert (np.abs(clipped) <= limit).all()
    np.testing.assert_array_equal(clipped[3], X[3])
    assert clipped[1, 1] == dtype(0.25)
    for row, alone in zip(clipped, X, strict=True):
        np.testing.assert_array_equal(sums.clipped(alone[None], middle)[0], row)
    assert np.isfinite(sums.add(clipped).values).all()
    assert sums.clipped(X[3:4], middle) is not None
    usual = X[3:4].copy()
    assert sums.clipped(usual, middle) is usual
    assert sums.clipped(np.empty((0, 2), dtype), middle).shape == (0, 2)
