import copy
import math
import warnings
from importlib.util import find_spec
from itertools import permutations

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import null_space, orthogonal_procrustes
from sklearn.base import BaseEstimator, ClusterMixin

from privclust.core.grassmann import random_bases
from privclust.metrics.subspaces import wasserstein_distance
from privclust.privacy import WeakGuaranteeWarning
from privclust.segmentation import LSR, SSC
from privclust.subspaces import (
    KPlanes,
    SampleAggregateSubspaceClustering,
    canonical_subspaces,
    result_distances,
)
from privclust.subspaces._smooth_sensitivity import exact_calibration, lemma_calibration
from privclust.subspaces._subset_results import subset_results

pytestmark = pytest.mark.filterwarnings("ignore:epsilon=:UserWarning")


class Fixed(ClusterMixin, BaseEstimator):
    """Finds what it is told to find, in another order and with other bases each time."""

    def __init__(self, n_clusters=2, bases=None, random_state=None):
        self.n_clusters = n_clusters
        self.bases = bases
        self.random_state = random_state

    def fit(self, X, y=None):
        rng = np.random.default_rng(self.random_state)
        k, _, q = self.bases.shape
        turned = self.bases @ random_bases(k, q, q, rng) if q > 1 else self.bases
        self.subspaces_ = turned[rng.permutation(k)]
        return self


class Fussy(ClusterMixin, BaseEstimator):
    """Labels by sign, noisy; fails on subsets that hold a row above 5."""

    def __init__(self, n_clusters=2, error=ValueError, warns=False, random_state=None):
        self.n_clusters = n_clusters
        self.error = error
        self.warns = warns
        self.random_state = random_state

    def fit(self, X, y=None):
        if self.warns:
            warnings.warn(f"a row of {X[0]}", UserWarning, stacklevel=1)
        if X.max() > 5:
            raise self.error
        rng = np.random.default_rng(self.random_state)
        self.labels_ = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
        return self


def planes(n, d, k, q, seed=0, noise=0.0):
    rng = np.random.default_rng(seed)
    bases = random_bases(k, d, q, rng)
    rows = np.einsum("ndq,nq->nd", bases[rng.integers(k, size=n)], rng.standard_normal((n, q)))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows + noise * rng.standard_normal((n, d)), bases


def model(base=None, q=1, **params):
    return SampleAggregateSubspaceClustering(
        base or KPlanes(2, q, n_init=2), q, **({"random_state": 0} | params)
    )


# --- distances of results --------------------------------------------------------------------


def distance_by_search(bases, others):
    """Least Euclidean distance of the lists of bases over orders and rotations."""
    best = np.inf
    for order in permutations(range(len(bases))):
        squared = 0.0
        for basis, other in zip(bases, others[list(order)], strict=True):
            rotation, _ = orthogonal_procrustes(other, basis)
            squared += ((basis - other @ rotation) ** 2).sum()
        best = min(best, squared)
    return math.sqrt(best)


@pytest.mark.parametrize(("k", "d", "q"), [(1, 3, 1), (2, 5, 2), (3, 7, 3), (3, 4, 1), (6, 5, 2)])
def test_distances(k, d, q):
    rng = np.random.default_rng(k)
    results = np.stack([random_bases(k, d, q, rng) for _ in range(7)])
    results[1] = results[0, ::-1]
    results[2] = results[0] @ random_bases(k, q, q, rng)
    projection = result_distances(results, "projection")
    procrustes = result_distances(results, "procrustes")
    for found in (projection, procrustes):
        np.testing.assert_array_equal(found, found.T)
        np.testing.assert_array_equal(np.diag(found), 0.0)
        assert found[:3, :3].max() < 1e-6
    for i in range(7):
        for j in range(i):
            expected = wasserstein_distance(results[i], results[j])
            assert projection[i, j] == pytest.approx(expected, abs=1e-6)
    pairs = [(0, 3), (4, 6)] if k == 6 else [(i, j) for i in range(7) for j in range(i)]
    for i, j in pairs:
        expected = distance_by_search(results[i], results[j])
        assert procrustes[i, j] == pytest.approx(expected, abs=1e-6)
    # noise scaled to eq. (2) would do as well, but for a factor of up to root 2
    assert (procrustes <= projection + 1e-6).all()
    assert (projection <= math.sqrt(2) * procrustes + 1e-6).all()


def test_distances_do_not_depend_on_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    results = np.stack([random_bases(2, 6, 3, rng) for _ in range(23)])
    whole = [result_distances(results, metric) for metric in ("procrustes", "projection")]
    monkeypatch.setattr("privclust.subspaces._sample_aggregate._BLOCK_ENTRIES", 23 * 36 * 5)
    for metric, expected in zip(("procrustes", "projection"), whole, strict=True):
        np.testing.assert_allclose(result_distances(results, metric), expected, atol=1e-7)


def test_distances_are_at_most_the_diameter():
    for k, d, q in ((2, 2, 1), (3, 4, 2), (3, 5, 3)):
        axes, width = np.eye(d), min(q, d - q)
        frames = np.stack([np.stack([axes[:, :width]] * k), np.stack([axes[:, -width:]] * k)])
        for metric in ("procrustes", "projection"):
            found = result_distances(frames, metric)[0, 1]
            assert found == pytest.approx(math.sqrt(2 * k * width))


def test_complements_have_the_same_distances():
    rng = np.random.default_rng(3)
    results = np.stack([random_bases(2, 5, 3, rng) for _ in range(6)])
    frames = np.stack([[null_space(basis.T) for basis in result] for result in results])
    for metric in ("procrustes", "projection"):
        np.testing.assert_allclose(
            result_distances(frames, metric), result_distances(results, metric), atol=1e-6
        )


# --- what is released ------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "q"), [(5, 2), (5, 3), (3, 1), (4, 2)])
def test_released_subspaces_depend_on_the_set_of_spans_alone(d, q):
    """Order and rotation of the noisy results leave no trace, in bases or in their order."""
    rng = np.random.default_rng(0)
    width = min(q, d - q)
    noisy = random_bases(4, d, width, rng) + 0.3 * rng.standard_normal((4, d, width))
    found = canonical_subspaces(noisy, q)
    np.testing.assert_allclose(
        found.transpose(0, 2, 1) @ found, np.broadcast_to(np.eye(q), (4, q, q)), atol=1e-12
    )
    again = canonical_subspaces((noisy @ random_bases(4, width, width, rng))[[2, 0, 3, 1]], q)
    np.testing.assert_allclose(again, found, atol=1e-10)
    spans = [null_space(basis.T) for basis in found] if q != width else found
    for basis in noisy:
        one = np.linalg.qr(basis)[0][None]
        assert min(wasserstein_distance(one, span[None]) for span in spans) < 1e-10


@pytest.mark.parametrize(("d", "k", "q"), [(5, 2, 1), (5, 2, 3)])
def test_noise_is_calibrated(d, k, q):
    """Where all results agree: S in closed form, and the noise's variance; false alarms 1e-4.

    To first order a released subspace is off by normal noise on q (d - q) coordinates of each, and
    ||P - P'||_F^2 is twice its square.
    """
    bases = random_bases(k, d, q, np.random.default_rng(1))
    X = np.zeros((400, d))
    epsilon, m, trials = 60.0, 20, 60
    width = min(q, d - q)
    alpha, beta = exact_calibration(epsilon, 1e-6, k * d * width)
    # t0 = 11: 9 results may change before fewer than t0 agree
    S = math.sqrt(2 * k * width) * math.exp(-9 * beta) + 1e-6
    squares = []
    for seed in range(trials):
        found = model(Fixed(k, bases), q, epsilon=epsilon, n_subsets=m, random_state=seed).fit(X)
        assert found.smooth_sensitivity_ == pytest.approx(S, rel=1e-4)
        assert found.noise_scale_ == pytest.approx(found.smooth_sensitivity_ / alpha)
        squares.append(wasserstein_distance(found.subspaces_, bases) ** 2 / 2)
        squares[-1] /= found.noise_scale_**2
    law = stats.chi2(trials * k * q * (d - q))
    assert 5e-5 < law.cdf(sum(squares)) < 1 - 5e-5


def test_printed_noise_is_calibrated():
    """Line 6 on bases as they are: here q = 1, all results agree but for S(B); alarms 1e-4."""
    d, k, m, epsilon, trials = 4, 2, 100, 200.0, 40
    bases = random_bases(k, d, 1, np.random.default_rng(1))
    X = np.zeros((2000, d))
    alpha, beta = lemma_calibration(epsilon, 1e-6, k * d)
    # s = 10, t0 = 56, and t0 + (k + 1) 10 exceeds 100 from k = 4 on
    S = 2 * math.sqrt(2 * k) * math.exp(-4 * beta)
    squares = []
    for seed in range(trials):
        found = model(
            Fixed(k, bases), epsilon=epsilon, n_subsets=m, variant="paper", random_state=seed
        ).fit(X)
        assert found.smooth_sensitivity_ == pytest.approx(S, rel=1e-6)
        assert found.noise_scale_ == pytest.approx(S / alpha, rel=1e-6)
        squares.append(wasserstein_distance(found.subspaces_, bases) ** 2 / 2)
        squares[-1] /= found.noise_scale_**2
    law = stats.chi2(trials * k * (d - 1))
    assert 5e-5 < law.cdf(sum(squares)) < 1 - 5e-5


def test_subspaces_are_found():
    X, bases = planes(3000, 3, 2, 1, noise=0.01)
    for base in (KPlanes(2, 1, n_init=3), LSR(2)):
        found = model(base, epsilon=8.0, n_subsets=100).fit(X)
        assert wasserstein_distance(found.subspaces_, bases) < 0.25
        assert np.bincount(found.labels_).min() > 1250
        np.testing.assert_array_equal(found.predict(X), found.labels_)
    printed = model(epsilon=1000.0, n_subsets=100, variant="paper").fit(X)
    assert wasserstein_distance(printed.subspaces_, bases) < 0.25


def test_more_budget_less_noise():
    X, _ = planes(2000, 4, 2, 2, noise=0.05)
    scales = [
        model(q=2, epsilon=epsilon, n_subsets=60).fit(X).noise_scale_
        for epsilon in (0.1, 1.0, 10.0, 100.0)
    ]
    assert (np.diff(scales) < 0).all()


# --- subsets and their results ---------------------------------------------------------------


def subsets_of(n, m, seed=0, variant="corrected"):
    """The numbers of the rows in each subset, as a base sees them."""
    seen = []

    class Noting(Fixed):
        def fit(self, X, y=None):
            seen.append(X[:, 0])
            return super().fit(X)

    X = np.column_stack([np.arange(n), np.zeros((n, 2))])
    bases = random_bases(2, 3, 1, np.random.default_rng(seed))
    model(Noting(2, bases), n_subsets=m, variant=variant, random_state=seed).fit(X)
    assert len(seen) == m + 1
    return [numbers.astype(int) for numbers in seen[1:]]  # the first are random rows, a trial


def test_partition():
    parts, others = (subsets_of(103, 10, seed) for seed in (0, 1))
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(103))
    assert {len(part) for part in parts} == {10, 11}
    assert set(parts[0]) != set(others[0])


@pytest.mark.parametrize(("n", "m"), [(1000, 55), (100, 3), (100, 1), (300, 16), (500, 100)])
def test_printed_subsets(n, m):
    for seed in range(5):
        subsets = subsets_of(n, m, seed, "paper")
        assert [len(np.unique(subset)) for subset in subsets] == [n // m] * m
        assert np.bincount(np.concatenate(subsets)).max() <= math.isqrt(m)


def test_printed_subsets_out_of_reach():
    X, _ = planes(2000, 3, 2, 1)
    with pytest.raises(ValueError, match="n_subsets=5: in 200 draws"):
        model(n_subsets=5, variant="paper").fit(X)


@pytest.mark.parametrize("base", [Fussy(2), KPlanes(2, 1, n_init=1)])
@pytest.mark.parametrize("value", [0.3, 9.0])
def test_a_row_changes_one_result(base, value):
    """Also with a base that draws as it likes, or fails."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    Y = X.copy()
    Y[7] = value * np.array([1.0, -1.0, 0.5])
    results = []
    for rows in (X, Y):
        subsets, rng = np.split(np.arange(60), 10), np.random.default_rng(5)
        results.append(subset_results(base, rows, subsets, (2, 3, 1), rng)[0])
    is_changed = (results[0] != results[1]).any(axis=(1, 2, 3))
    assert is_changed.sum() == 1


@pytest.mark.parametrize(
    "error",
    [ValueError("9.0 is too large"), RuntimeError, np.linalg.LinAlgError, KeyError, AssertionError],
)
def test_a_failing_base_leaves_what_was_drawn_beforehand(error):
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[[3, 4, 5]] = 9.0
    base = Fussy(2, error=error)
    with warnings.catch_warnings():
        warnings.simplefilter("error", category=UserWarning)
        warnings.filterwarnings("ignore", "epsilon=")
        fitted = model(base, n_subsets=60 // 3).fit(X)
    assert 1 <= fitted.n_failed_ <= 3
    assert not hasattr(copy.copy(fitted), "n_failed_")
    rng = np.random.default_rng(1)
    subsets = [np.array([0, 3]), np.array([1, 2]), np.array([4, 5])]
    results, n_failed = subset_results(base, X, subsets, (2, 3, 1), rng)
    assert n_failed == 2
    np.testing.assert_array_equal(results[0], results[2])
    np.testing.assert_array_equal(results[0], random_bases(2, 3, 1, np.random.default_rng(1)))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_is_no_failure_of_the_base_passes(error):
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[3] = 9.0
    with pytest.raises(error):
        model(Fussy(2, error=error), n_subsets=20).fit(X)


def test_warnings_of_the_base_are_silenced():
    X = np.random.default_rng(0).normal(size=(60, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "epsilon=")
        fitted = model(Fussy(2, warns=True), n_subsets=20).fit(X)
    assert fitted.n_failed_ == 0


@pytest.mark.parametrize(
    "bases",
    [np.zeros((2, 4, 1)), np.full((2, 3, 1), np.nan), np.zeros((3, 3, 1)), "text", None],
)
def test_results_that_are_no_subspaces_count_as_failures(bases):
    """Of some subsets; a base that always fails is refused before the rows are looked at."""
    X = np.random.default_rng(0).normal(size=(40, 3))

    class Wrong(Fixed):
        def fit(self, X, y=None):
            self.subspaces_ = bases if X.max() > self.bases else np.eye(3)[:2, :, None]
            return self

    X[:2] = 9.0
    found = model(Wrong(2, bases=5.0), n_subsets=10).fit(X)
    assert np.isfinite(found.subspaces_).all()
    assert 1 <= found.n_failed_ <= 2
    for rows in (X, np.zeros((40, 3))):
        with pytest.raises(ValueError, match=r"base fails on random rows of shape \(4, 3\)"):
            model(Wrong(2, bases=-5.0), n_subsets=10).fit(rows)


def test_a_fit_is_charged_before_the_base_sees_rows(monkeypatch):
    def refuse(guarantee):
        assert (guarantee.epsilon, guarantee.definition) == (2.0, "approximate")
        raise RuntimeError("spent")

    def never(*_):
        raise AssertionError

    monkeypatch.setattr("privclust.subspaces._sample_aggregate.charge", refuse)
    monkeypatch.setattr("privclust.subspaces._sample_aggregate.subset_results", never)
    with pytest.raises(RuntimeError, match="spent"):
        model(epsilon=2.0).fit(planes(300, 3, 2, 1)[0])


@pytest.mark.parametrize("entry", [np.nan, np.inf, 1e300])
@pytest.mark.parametrize("variant", ["corrected", "paper"])
def test_any_row_is_drawn_in(entry, variant):
    X, _ = planes(300, 3, 2, 1)
    X[5, 1] = entry
    with pytest.warns(UserWarning, match="clipped"):
        found = model(norm_bound=1.0, variant=variant).fit(X)
    assert np.isfinite(found.subspaces_).all()
    assert found.labels_.shape == (300,)
    with pytest.raises(ValueError, match=r"NaN|infinity|magnitude") as error:
        model(variant=variant).fit(X)
    assert "e+300" not in str(error.value)


def test_what_is_not_released_is_left_out():
    found = model().fit(planes(300, 3, 2, 1)[0])
    for name in ("labels_", "smooth_sensitivity_", "noise_scale_", "n_failed_"):
        assert hasattr(found, name)
        assert not hasattr(copy.copy(found), name)


@pytest.mark.filterwarnings("ignore::privclust.privacy.WeakGuaranteeWarning")
def test_norm_bound():
    """Rows are clipped one by one; without a bound they stay, and nothing is read off them."""
    X, _ = planes(300, 3, 2, 1)
    X *= np.linspace(0.1, 4, 300)[:, None]
    with pytest.warns(UserWarning, match="clipped"):
        found = model(epsilon=50.0, norm_bound=2.0).fit(X)
    short = X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True) / 2)
    same = model(epsilon=50.0, norm_bound=2.0).fit(short)
    np.testing.assert_allclose(found.subspaces_, same.subspaces_, atol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error", category=UserWarning)
        warnings.simplefilter("ignore", category=WeakGuaranteeWarning)
        free = model(epsilon=50.0).fit(X)
    assert free.guarantee_.definition == "approximate"


# --- what is promised ------------------------------------------------------------------------


def test_guarantee():
    X, _ = planes(300, 3, 2, 1)
    found = model(epsilon=2.0, delta=1e-5).fit(X)
    guarantee = found.guarantee_
    assert (guarantee.definition, guarantee.relation) == ("approximate", "replace-one")
    assert (guarantee.epsilon, guarantee.delta, guarantee.seeded) == (2.0, 1e-5, True)
    alpha, beta = exact_calibration(2.0, 1e-5, 6)
    assert f"scale S / {alpha:.4g}, beta {beta:.4g}, 6 coordinates" in str(guarantee)
    assert "(2, 1e-05)-differential privacy (replace-one neighbours)" in str(guarantee)
    assert "smooth_sensitivity_ and noise_scale_ are not private" in str(guarantee)
    # what depends on the rows is not in the statement: other rows, the same statement
    assert model(epsilon=2.0, delta=1e-5).fit(X[::-1] ** 2).guarantee_ == guarantee


def test_printed_has_no_guarantee():
    X, _ = planes(300, 3, 2, 1)
    guarantee = model(epsilon=2.0, variant="paper").fit(X).guarantee_
    assert guarantee.definition == "none"
    assert math.isinf(guarantee.epsilon_at(1e-3))
    assert "not a smooth bound" in str(guarantee)
    assert "order of the subspaces" in str(guarantee)
    assert "admissible" not in str(guarantee)
    guarantee = model(epsilon=500.0, variant="paper").fit(X).guarantee_
    assert "not admissible for so large an epsilon" in str(guarantee)


@pytest.mark.skipif(find_spec("opendp") is None, reason="noise for release is OpenDP's")
def test_release_is_not_seeded():
    X, bases = planes(2000, 3, 2, 1, noise=0.01)
    found = model(epsilon=30.0, n_subsets=100, random_state=None).fit(X)
    assert not found.guarantee_.seeded
    assert wasserstein_distance(found.subspaces_, bases) < 0.3
    again = model(epsilon=30.0, n_subsets=100, random_state=None).fit(X)
    assert np.abs(found.subspaces_ - again.subspaces_).max() > 0


@pytest.mark.filterwarnings("default:epsilon=:UserWarning")
def test_condition_of_the_theorem():
    """Theorem 3.1 asks for epsilon > 2 D / sqrt(m); in the complement D is smaller."""
    X, _ = planes(600, 5, 2, 3)
    base = KPlanes(2, 3, n_init=1)
    for variant, n_coordinates in (("corrected", 2 * 5 * 2), ("paper", 2 * 5 * 3)):
        least = 2 * n_coordinates / math.sqrt(36)
        estimator = model(base, 3, n_subsets=36, variant=variant, epsilon=least)
        with pytest.warns(UserWarning, match=r"at most 2 D / sqrt\(m\)"):
            found = estimator.fit(X)
        assert found.condition_ == pytest.approx(least)
        assert found.n_subsets_ == 36
        with warnings.catch_warnings():
            warnings.simplefilter("error", category=UserWarning)
            estimator.set_params(epsilon=least * 1.001).fit(X)


def test_default_number_of_subsets():
    X, _ = planes(600, 5, 2, 3)
    assert model(KPlanes(2, 3, n_init=1), 3).fit(X).n_subsets_ == 50
    assert model(KPlanes(2, 3, n_init=1), 3).fit(X[:7]).n_subsets_ == 1


def test_seeds():
    X, _ = planes(300, 3, 2, 1)
    first, second, other = (model(random_state=seed).fit(X) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.subspaces_, second.subspaces_)
    assert np.abs(first.subspaces_ - other.subspaces_).max() > 0


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"variant": "printed"}, "variant must be one of corrected, paper"),
        ({"epsilon": 0}, "epsilon must be a finite number greater than 0"),
        ({"epsilon": math.inf}, "epsilon must be a finite number"),
        ({"delta": 1.0}, r"delta must lie in \(0, 1\)"),
        ({"delta": 0.0}, "delta must be"),
        ({"dimension": 0}, "dimension must be an integer of at least 1"),
        ({"dimension": 3}, "dimension must be less than the number of features"),
        ({"dimension": 2}, "base must have the same dimension"),
        ({"n_subsets": 0}, "n_subsets must be an integer of at least 1"),
        ({"n_subsets": 2.5}, "n_subsets must be an integer of at least 1"),
        ({"n_subsets": 31}, "n_subsets must leave 2 rows a subset"),
        ({"norm_bound": -1.0}, "norm_bound must be a finite number greater than 0"),
        ({"random_state": "x"}, "random_state must be"),
        ({"base": KPlanes}, "base must be a clusterer"),
        ({"base": "kplanes"}, "base must be a clusterer"),
        ({"base": SSC()}, "n_clusters of base must be an integer"),
        ({"base": KPlanes(61)}, "n_clusters of base must be at most the number of samples"),
    ],
)
def test_bad_parameters(params, message):
    X, _ = planes(60, 3, 2, 1)
    with pytest.raises(ValueError, match=message):
        model().set_params(**params).fit(X)


@pytest.mark.parametrize("X", [np.full((20, 3), np.nan), np.full((20, 3), 1e200), np.ones((20, 1))])
def test_bad_rows(X):
    with pytest.raises(ValueError, match=r"NaN|magnitude|n_features"):
        model().fit(X)


@pytest.mark.parametrize("variant", ["corrected", "paper"])
def test_odd_rows(variant):
    """All zero, all equal, as few as clusters, tiny and huge: finite subspaces."""
    ones = np.ones((12, 3))
    for X in (0 * ones, ones, ones[:2], 1e-150 * ones, 1e99 * ones):
        found = model(variant=variant).fit(X)
        assert np.isfinite(found.subspaces_).all()
        squares = found.subspaces_.transpose(0, 2, 1) @ found.subspaces_
        np.testing.assert_allclose(squares, np.ones((2, 1, 1)), atol=1e-12)
