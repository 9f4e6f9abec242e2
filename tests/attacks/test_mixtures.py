"""Attacks on private mixtures: what rounding, starts and records tell beyond the noise."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

from privclust.mixtures import (
    AdaptiveGaussianMixture,
    MixtureParameters,
    PlanSettings,
    PrivateGaussianMixture,
    exact_statistics,
    perturbations,
)
from privclust.mixtures._frames import clipped_moments, statistic_weights
from privclust.privacy import NoiseWarning

K, D = 10, 10


def flat(exact):
    """Whole numbers (k, 1 + d + d (d + 1) / 2) of a release, and the squares of their weights."""
    rows, columns = np.triu_indices(exact.sums.shape[1])
    seconds = exact.second_moments.integers[:, rows, columns]
    numbers = np.hstack([exact.counts.integers[:, None], exact.sums.integers, seconds])
    squares = [*[1] * (1 + exact.sums.shape[1]), *np.where(rows == columns, 1, 2).tolist()]
    return numbers, squares


def mixture(k=K, d=D, seed=0, variance=0.1):
    """Components that overlap, in the unit ball."""
    rng = np.random.default_rng(seed)
    means = 0.5 * rng.standard_normal((k, d)) / math.sqrt(d)
    return MixtureParameters(
        rng.dirichlet(np.ones(k)), means, np.tile(variance * np.eye(d), (k, 1, 1)), "full"
    )


def on_the_sphere(n, d, seed=0):
    """Rows of norm 1."""
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.attack(
    claim="PrivateGaussianMixture: one row changes a round by at most sqrt 6.",
    before="With a start at a distance of 10^10 times the norm bound, one row changed a round by "
    "5 x 10^7; the audit gave epsilon of at least 4.78 for a claim of (1, 1e-6).",
    now="The start is clipped to the ball with a warning, and the bound holds.",
)
def test_start_in_other_units():
    X = 0.3 * on_the_sphere(1000, 2)
    other = X.copy()
    other[0] = [1.0, 0.0]

    def fit(rows):
        return PrivateGaussianMixture(
            1, epsilon=1e6, accounting="cdp", norm_bound=1.0, max_iter=1,
            means_init=[[1e10, 0.0]], random_state=0,
        ).fit(rows)  # fmt: skip

    with pytest.warns(UserWarning, match="means_init lies outside the ball"):
        one, two = fit(X), fit(other)
    moved = np.linalg.norm(one.means_ - two.means_) * len(X)
    assert moved == pytest.approx(np.linalg.norm(X[0] - other[0]), rel=1e-3)


@pytest.mark.attack(
    claim="PrivateGaussianMixture: starts may have any covariances.",
    before="Any positive variances, up to 10^300 times the squared norm bound, entered the "
    "densities.",
    now="Variances are clipped to those of the ball with a warning, and results are finite.",
)
@pytest.mark.parametrize("variance", [1e-280, 1e280])
def test_start_of_extreme_variance(variance):
    model = PrivateGaussianMixture(
        2, covariance_type="diag", norm_bound=1.0, epsilon=100.0, random_state=0,
        covariances_init=np.full((2, 3), variance), max_iter=2,
    )  # fmt: skip
    with pytest.warns(UserWarning, match="covariances_init lies outside the ball"):
        fitted = model.fit(on_the_sphere(5000, 3))
    assert np.isfinite(fitted.means_).all()
    assert np.isfinite(fitted.covariances_).all()


@pytest.mark.attack(
    claim="PrivateGaussianMixture: a round, as represented in the computer, changes by at most "
    "its stated sensitivity.",
    before="A margin of 1e-6 was not checked; at 1.3e8 rows, the change was 2.2e-4 too large.",
    now="In whole numbers, none of 400 pairs of rows of norm 1 exceeds it, for any data around "
    "them.",
)
def test_rows_in_whole_numbers():
    p = mixture()
    X = on_the_sphere(400, D)
    X[:20] = np.vstack([np.eye(D), -np.eye(D)])
    every = [flat(exact_statistics(row[None], 1.0, p)) for row in X]
    noise = perturbations(PlanSettings(D, K, 1, "full", "joint", "corrected", 1e-3), 1.0)["joint"]
    bits = exact_statistics(X, 1.0, p).sums.bits
    bound = Fraction(noise.sensitivity.value) ** 2 * Fraction(4) ** bits
    squares = np.array(every[0][1], dtype=object)
    rows = np.array([numbers for numbers, _ in every])
    approximate = (rows / 2.0**bits * np.sqrt(squares.astype(float))).reshape(len(X), -1)
    gram = approximate @ approximate.T
    distances = np.diag(gram)[:, None] + np.diag(gram) - 2.0 * gram
    for pair in np.argsort(-distances, axis=None)[:20]:
        i, j = np.unravel_index(pair, distances.shape)
        change = (rows[i] - rows[j]).astype(object)
        assert sum((change**2 * squares).ravel().tolist()) <= bound
    # coordinates that are used are in the ball, not a little beyond it
    alone = MixtureParameters(np.ones(1), np.zeros((1, D)), np.ones(1), "spherical")
    for row in X:
        assert exact_statistics(row[None], 1.0, alone).second_moments.integers[0] <= 2**bits


@pytest.mark.attack(
    claim="PrivateGaussianMixture, AdaptiveGaussianMixture: a row's contribution depends only on "
    "that row.",
    before="Floating-point sums: the order of rows, and the rows before, changed the last bits.",
    now="The same integers for any order, chunks and memory; a further row adds its own numbers.",
)
@pytest.mark.parametrize("n", [1, 1023, 1025, 3001])
def test_order_and_other_rows(n):
    p, X = mixture(4, 3), 0.9 * on_the_sphere(n + 1, 3, seed=1)

    def numbers(rows):
        return flat(exact_statistics(rows, 1.0, p))[0]

    def framed(rows):
        return flat(clipped_moments(rows, p, 2.0))[0]

    for of in (numbers, framed):
        whole = of(X)
        np.testing.assert_array_equal(whole, of(X[np.random.default_rng(0).permutation(n + 1)]))
        np.testing.assert_array_equal(whole, of(np.asfortranarray(X)))
        np.testing.assert_array_equal(whole - of(X[:n]), of(X[n:]))
        np.testing.assert_array_equal(whole - of(X[1:]), of(X[:1]))
        cut = n // 3
        np.testing.assert_array_equal(whole, of(X[:cut]) + of(X[cut:]))


@pytest.mark.attack(
    claim="AdaptiveGaussianMixture: frames clip rows to the unit ball, however narrow the frames "
    "are.",
    before="Sums of clipped rows were rounded to the size of the sum.",
    now="In whole numbers, no row is longer than 1, in frames with variances of at least 1e-14.",
)
@pytest.mark.parametrize("narrow", [1.0, 1e-9, 1e-14])
def test_narrow_frames(narrow):
    covariance = np.diag([1.0, narrow, 0.5])
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    covariance = turn @ covariance @ turn.T
    p = MixtureParameters(
        np.ones(1), np.zeros((1, 3)), 0.5 * (covariance + covariance.T)[None], "full"
    )
    for scale in (1e-6, 1.0, 1e100):
        for row in scale * on_the_sphere(300, 3):
            exact = clipped_moments(row[None], p, 2.0)
            squares = exact.sums.integers[0].astype(object) ** 2
            assert squares.sum() <= 4**exact.sums.bits
            assert np.trace(exact.second_moments.integers[0]) <= 2**exact.second_moments.bits


@pytest.mark.attack(
    claim="PrivateGaussianMixture, AdaptiveGaussianMixture, with a norm_bound: no record "
    "decides between a result and an error.",
    before="NaN, infinity and rows too large to square raised ValueError.",
    now="Rows are clipped, or left out if they have NaN, by a rule that depends only on the row. "
    "The fit has the same form.",
)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300, 1e-320])
@pytest.mark.parametrize("kind", ["full", "zero", "adaptive"])
def test_any_record(kind, bad):
    X = 0.5 * on_the_sphere(500, 2)
    X[3] = [bad, 0.1]
    if kind == "adaptive":
        model = AdaptiveGaussianMixture(2, norm_bound=1.0, max_iter=2, random_state=0)
    else:
        model = PrivateGaussianMixture(
            2, covariance_type=kind, norm_bound=1.0, max_iter=2, random_state=0
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model.fit(X)
    assert np.isfinite(fitted.means_).all()
    assert np.isfinite(fitted.covariances_).all()


@pytest.mark.attack(
    claim="PrivateGaussianMixture, AdaptiveGaussianMixture: a fit returns components of the data.",
    before="Components of pure noise were returned without a warning.",
    now="A NoiseWarning, and is_detected_ says which. Both are computed only from noisy counts.",
)
@pytest.mark.parametrize(("n", "epsilon"), [(1, 1.0), (2000, 1e-9)])
def test_noise_that_hides_the_result(n, epsilon):
    X = 0.5 * on_the_sphere(n, 2)
    for model in (
        PrivateGaussianMixture(1, epsilon=epsilon, norm_bound=1.0, random_state=0),
        AdaptiveGaussianMixture(1, epsilon=epsilon, norm_bound=1.0, random_state=0),
    ):
        with pytest.warns(NoiseWarning, match="cannot be distinguished from noise"):
            fitted = model.fit(X)
        assert not fitted.is_detected_.any()


@pytest.mark.attack(
    claim="PrivateGaussianMixture, AdaptiveGaussianMixture: a statistic has several parts "
    "(counts, sums, second moments) with weights. The weights leave no trace in the release.",
    before="Parts were multiplied by irrational weights in floating point before the noise was "
    "added.",
    now="Parts are integers when noise is added; the weights divide the scale of the noise.",
)
def test_parts_reach_the_noise_as_integers(monkeypatch):
    caught = []

    def catch(value, sigma, source):
        caught.append(value)
        return np.asarray(value)

    monkeypatch.setattr("privclust.privacy.noise.add_gaussian", catch)
    X = 0.5 * on_the_sphere(300, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        how = {"norm_bound": 1.0, "max_iter": 1, "missing": "middle", "random_state": 0}
        PrivateGaussianMixture(2, **how).fit(X)
        AdaptiveGaussianMixture(2, **how).fit(X)
    assert len(caught) == 1 + 2 + 1
    assert all(value.integers.dtype == np.int64 for value in caught)
    assert statistic_weights("full", 2, 2.0).sums % 1.0 != 0.0
