"""Mechanisms: distributions, calibrations, supports, and what is refused.

Distribution tests use fixed seeds and reject at 1 %. Those on the operating system's entropy are
unseeded and fail by chance with a probability of at most SYSTEM_ALPHA each.
"""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from privclust.privacy.mechanisms import (
    analytic_gaussian_sigma,
    classical_gaussian_sigma,
    complex_laplace,
    exponential,
    gamma,
    gaussian,
    laplace,
    wishart,
)
from privclust.privacy.noise import SystemEntropy
from privclust.privacy.sensitivity import Sensitivity

ALPHA = 0.01
SYSTEM_ALPHA = 1e-8
N_DRAWS = 100_000


def bound(value, norm):
    return Sensitivity(value, norm, "replace-one", "by hand")


def seeded(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def system():
    pytest.importorskip("opendp")
    return SystemEntropy()


MECHANISMS = [
    (laplace, "l1", np.zeros(3)),
    (complex_laplace, "l1", np.zeros(3, complex)),
    (gaussian, "l2", np.zeros(3)),
    (gamma, "l1", np.zeros(3)),
    (wishart, "trace", np.zeros((4, 2, 2))),
    (exponential, "range", np.zeros(5)),
]
IDS = ["laplace", "complex_laplace", "gaussian", "gamma", "wishart", "exponential"]
each = pytest.mark.parametrize(("mechanism", "norm", "value"), MECHANISMS, ids=IDS)


@each
def test_a_generator_s_state_decides_everything(mechanism, norm, value):
    runs = [
        [np.asarray(mechanism(value, bound(2.0, norm), 0.5, rng)) for _ in range(20)]
        for rng in (seeded(3), seeded(3), seeded(4))
    ]
    assert [a.tobytes() for a in runs[0]] == [b.tobytes() for b in runs[1]]
    assert [a.tobytes() for a in runs[0]] != [c.tobytes() for c in runs[2]]


@each
def test_values_are_not_changed_and_shapes_are_kept(mechanism, norm, value):
    before = value.copy()
    result = mechanism(value, bound(2.0, norm), 0.5, seeded())
    np.testing.assert_array_equal(value, before)
    if mechanism is exponential:
        assert type(result) is int
    else:
        assert result.shape == value.shape
        assert result.dtype == value.dtype
        as_lists = mechanism(value.tolist(), bound(2.0, norm), 0.5, seeded())
        np.testing.assert_array_equal(result, as_lists)


@each
def test_bad_arguments_are_named(mechanism, norm, value):
    good = bound(2.0, norm)
    wrong = bound(2.0, "l2" if norm == "l1" else "l1")
    with pytest.raises(ValueError, match=f"norm '{norm}', got '{wrong.norm}'"):
        mechanism(value, wrong, 0.5, seeded())
    with pytest.raises(ValueError, match=r"sensitivity must be a Sensitivity, got 2.0"):
        mechanism(value, 2.0, 0.5, seeded())
    for epsilon in (0.0, -1.0, np.inf, np.nan, "1", None, True):
        with pytest.raises(ValueError, match=r"(epsilon|sigma) must be .*got"):
            mechanism(value, good, epsilon, seeded())
    for entry in (np.nan, np.inf, -np.inf):
        spoiled = value.copy()
        spoiled.flat[-1] = entry
        with pytest.raises(ValueError, match=r"must be finite, got \(?(nan|-?inf)"):
            mechanism(spoiled, good, 0.5, seeded())
    with pytest.raises(ValueError, match=r"must hold (real|complex) numbers, got dtype"):
        mechanism(np.full(value.shape, "a"), good, 0.5, seeded())
    with pytest.raises(ValueError, match="source must be"):
        mechanism(value, good, 0.5, 0)


@pytest.mark.parametrize("mechanism", [laplace, gaussian, gamma], ids=lambda m: m.__name__)
def test_complex_values_are_refused_where_they_would_lose_a_part(mechanism):
    norm = "l2" if mechanism is gaussian else "l1"
    with pytest.raises(ValueError, match="real numbers, got dtype complex128"):
        mechanism(np.ones(2) * 1j, bound(1.0, norm), 1.0, seeded())


@pytest.mark.parametrize(("value", "epsilon"), [(1e-300, 1e300), (1e300, 1e-300)])
@pytest.mark.parametrize(
    ("mechanism", "norm", "statistic"),
    [case for name, case in zip(IDS, MECHANISMS, strict=True) if name != "gaussian"],
)
def test_scales_that_vanish_or_overflow_are_refused(mechanism, norm, statistic, value, epsilon):
    """A scale of 0 would release the statistic itself."""
    with pytest.raises(ValueError, match="not representable"):
        mechanism(statistic, bound(value, norm), epsilon, seeded())


@pytest.mark.parametrize("value", [np.zeros(3), np.zeros((2, 3)), 1.0])
def test_wishart_wants_square_matrices(value):
    with pytest.raises(ValueError, match=r"value must have shape \(\.\.\., d, d\), got"):
        wishart(value, bound(1.0, "trace"), 1.0, seeded())


@pytest.mark.parametrize("scores", [[], [[1.0, 2.0]], 3.0])
def test_exponential_wants_a_vector_of_scores(scores):
    with pytest.raises(ValueError, match=r"scores must have shape \(n_candidates,\).*got"):
        exponential(scores, bound(1.0, "range"), 1.0, seeded())


@pytest.mark.parametrize(("delta", "epsilon"), [(1.0, 0.5), (0.02, 3.0)])
def test_laplace_scale_is_sensitivity_over_epsilon(delta, epsilon, system):
    truth = stats.laplace(7.0, delta / epsilon).cdf
    drawn = laplace(np.full(N_DRAWS, 7.0), bound(delta, "l1"), epsilon, seeded(1))
    assert stats.kstest(drawn, truth).pvalue > ALPHA
    drawn = laplace(np.full(5000, 7.0), bound(delta, "l1"), epsilon, system)
    assert stats.kstest(drawn, truth).pvalue > SYSTEM_ALPHA


def test_gaussian_deviation_is_sigma_whatever_the_sensitivity(system):
    truth = stats.norm(-2.0, 0.7).cdf
    drawn = gaussian(np.full(N_DRAWS, -2), bound(5.0, "l2"), 0.7, seeded(2))
    assert stats.kstest(drawn, truth).pvalue > ALPHA
    drawn = gaussian(np.full(5000, -2), bound(5.0, "l2"), 0.7, system)
    assert stats.kstest(drawn, truth).pvalue > SYSTEM_ALPHA


def test_complex_laplace_parts_are_independent_laplace(system):
    """Magnitudes correlate, if at all, by less than five standard errors (5.7e-7 by chance)."""
    for source, n, alpha in ((seeded(3), N_DRAWS, ALPHA), (system, 5000, SYSTEM_ALPHA)):
        drawn = complex_laplace(np.full((2, n // 2), 3.0 - 1.0j), bound(0.6, "l1"), 2.0, source)
        assert stats.kstest(drawn.real.ravel(), stats.laplace(3.0, 0.3).cdf).pvalue > alpha
        assert stats.kstest(drawn.imag.ravel(), stats.laplace(-1.0, 0.3).cdf).pvalue > alpha
        magnitudes = np.abs(drawn.real.ravel() - 3.0), np.abs(drawn.imag.ravel() + 1.0)
        if source is not system:
            assert abs(np.corrcoef(magnitudes)[0, 1]) * math.sqrt(n) < 5


def test_complex_scalars_and_real_input():
    """A real array is a complex one whose imaginary parts, 0, are protected too."""
    scalar = complex_laplace(1.0, bound(1.0, "l1"), 1.0, seeded())
    assert isinstance(scalar, complex)
    assert scalar.imag != 0.0


@pytest.mark.parametrize(("m", "r", "n0", "epsilon"), [(40, 40, 100, 1.0), (60, 6, 1000, 0.1)])
def test_complex_laplace_is_the_sketch_s_noise(m, r, n0, epsilon):
    """The l1 sensitivity of eq. (4) by search over phases gives sigma_xi = 4 sqrt(2 a) m / ...

    The largest l1 change of exp(i t) is at t = pi / 4, where the search's grid of 64 angles has a
    point; r features of modulus 1 / sqrt(m) change so, and the sum is divided by alpha_r n_0.
    """
    alpha_r = r / m
    phases = np.exp(2j * np.pi * np.arange(64) / 64)
    changes = phases[:, None] - phases
    worst = (np.abs(changes.real) + np.abs(changes.imag)).max()
    sensitivity = bound(worst * r / math.sqrt(m) / (alpha_r * n0), "l1")
    sigma_xi = 4 * math.sqrt(2 * alpha_r) * m / (math.sqrt(n0) * epsilon)
    parts_scale = sigma_xi / 2 / math.sqrt(alpha_r * m * n0)  # L^C(sigma_xi / sqrt(2)), Def. 2, 3
    drawn = complex_laplace(np.zeros(50_000), sensitivity, epsilon, seeded(5))
    assert stats.kstest(drawn.real, stats.laplace(0, parts_scale).cdf).pvalue > ALPHA
    assert stats.kstest(drawn.imag, stats.laplace(0, parts_scale).cdf).pvalue > ALPHA
    assert sensitivity.value / epsilon == pytest.approx(parts_scale, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_classical_sigma(epsilon):
    sigma = classical_gaussian_sigma(bound(3.0, "l2"), epsilon, 1e-4)
    assert sigma == pytest.approx(3.0 * math.sqrt(2 * math.log(1.25e4)) / epsilon, rel=1e-14)
    assert sigma > analytic_gaussian_sigma(bound(3.0, "l2"), epsilon, 1e-4)


def test_classical_sigma_warns_where_it_is_not_proved():
    with pytest.warns(UserWarning, match="at most 1, got 2"):
        sigma = classical_gaussian_sigma(bound(1.0, "l2"), 2.0, 1e-5)
    assert sigma == pytest.approx(math.sqrt(2 * math.log(1.25e5)) / 2, rel=1e-14)


def exact_delta(sigma, epsilon):
    """Least delta of the Gaussian mechanism of sensitivity 1, to sixty digits."""
    with mpmath.workdps(60):
        sigma, epsilon = mpmath.mpf(sigma), mpmath.mpf(epsilon)

        def cdf(x):
            return mpmath.erfc(-x / mpmath.sqrt(2)) / 2

        half = 1 / (2 * sigma)
        return cdf(half - epsilon * sigma) - mpmath.exp(epsilon) * cdf(-half - epsilon * sigma)


@pytest.mark.parametrize("epsilon", [1e-4, 1e-3, 0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-5, 0.1, 0.9])
def test_analytic_sigma_is_least(epsilon, delta):
    """It gives at most delta, and one part in 10^8 less noise already gives more."""
    sigma = analytic_gaussian_sigma(bound(1.0, "l2"), epsilon, delta)
    assert exact_delta(sigma, epsilon) <= delta
    assert exact_delta(sigma * (1 - 1e-8), epsilon) > delta
    scaled = analytic_gaussian_sigma(bound(0.01, "l2"), epsilon, delta)
    assert scaled == pytest.approx(0.01 * sigma, rel=1e-14)


@pytest.mark.parametrize("calibrate", [classical_gaussian_sigma, analytic_gaussian_sigma])
def test_calibrations_refuse_bad_arguments(calibrate):
    good = bound(1.0, "l2")
    for delta in (0.0, 1.0, -0.1, 2.0, np.nan, None):
        with pytest.raises(ValueError, match=r"delta must be .*got"):
            calibrate(good, 1.0, delta)
    for epsilon in (0.0, -1.0, np.inf, np.nan, None):
        with pytest.raises(ValueError, match=r"epsilon must be .*got"):
            calibrate(good, epsilon, 1e-5)
    with pytest.raises(ValueError, match="norm 'l2', got 'l1'"):
        calibrate(bound(1.0, "l1"), 1.0, 1e-5)


@pytest.mark.parametrize("unseeded", [False, True])
def test_gamma_noise_is_exponential_and_one_sided(unseeded):
    """Value 0 gives outputs below Delta with probability 1 - exp(-epsilon), value Delta never.

    So (epsilon', delta)-privacy fails for every epsilon' and every delta below that.
    """
    if unseeded:
        pytest.importorskip("opendp")
    alpha = SYSTEM_ALPHA if unseeded else ALPHA
    source = SystemEntropy() if unseeded else seeded(6)
    delta, epsilon = 0.25, 0.8
    low = gamma(np.zeros(N_DRAWS), bound(delta, "l1"), epsilon, source)
    high = gamma(np.full(N_DRAWS, delta), bound(delta, "l1"), epsilon, source)
    assert stats.kstest(low, stats.expon(scale=delta / epsilon).cdf).pvalue > alpha
    assert (high >= delta).all()
    below = int((low < delta).sum())
    assert stats.binomtest(below, N_DRAWS, -math.expm1(-epsilon)).pvalue > alpha


@pytest.mark.parametrize("d", [1, 2, 5])
def test_wishart_noise_is_one_sided_in_any_dimension(d):
    """Subtracting Delta x x' from outputs for 0 leaves a negative eigenvalue in 1 - exp(-epsilon).

    Outputs for Delta x x' itself never do (up to rounding).
    """
    n, delta, epsilon = 20_000, 0.25, 0.8
    x = np.random.default_rng(d).standard_normal(d)
    x /= np.linalg.norm(x)
    record = delta * np.outer(x, x)
    sensitivity = bound(delta, "trace")
    low = wishart(np.zeros((n, d, d)), sensitivity, epsilon, seeded(7))
    high = wishart(np.broadcast_to(record, (n, d, d)), sensitivity, epsilon, seeded(8))
    assert np.array_equal(low, np.swapaxes(low, -1, -2))
    hits = int((np.linalg.eigvalsh(low - record)[:, 0] < 0).sum())
    assert stats.binomtest(hits, n, -math.expm1(-epsilon)).pvalue > ALPHA
    assert np.linalg.eigvalsh(high - record)[:, 0].min() > -1e-14
    # lambda = Delta / (2 epsilon) and d + 1 degrees of freedom: the trace over lambda is chi-square
    traces = np.trace(low, axis1=-2, axis2=-1) / (delta / (2 * epsilon))
    assert stats.kstest(traces, stats.chi2(d * (d + 1)).cdf).pvalue > ALPHA


def test_wishart_draws_without_a_seed(system):
    first, second = (wishart(np.eye(2), bound(1.0, "trace"), 1.0, system) for _ in range(2))
    assert not np.array_equal(first, second)
    assert np.linalg.eigvalsh(first - np.eye(2)).min() > -1e-12


@pytest.mark.parametrize("unseeded", [False, True])
def test_exponential_weights(unseeded):
    """Chi-square of the frequencies against exp(epsilon score / (2 Delta))."""
    if unseeded:
        pytest.importorskip("opendp")
    n = 3000 if unseeded else 20_000
    source = SystemEntropy() if unseeded else seeded(9)
    scores = np.array([10.0, 12.0, 9.0, 12.5])
    weights = np.exp(0.7 * scores / (2 * 0.5))
    drawn = [exponential(scores, bound(0.5, "range"), 0.7, source) for _ in range(n)]
    observed = np.bincount(drawn, minlength=4)
    test = stats.chisquare(observed, n * weights / weights.sum())
    assert test.pvalue > (SYSTEM_ALPHA if unseeded else ALPHA)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("offset", [0.0, 1e9, -1e15])
def test_exponential_does_not_depend_on_a_common_offset(offset):
    """Offsets that leave the scores exact change nothing, nor do they overflow."""
    scores = np.array([0.0, 8.0, 4.0])
    args = bound(1.0, "range"), 1.0
    plain = [exponential(scores, *args, rng) for rng in map(seeded, range(50))]
    moved = [exponential(scores + offset, *args, rng) for rng in map(seeded, range(50))]
    assert plain == moved
    assert len(set(plain)) > 1


@pytest.mark.filterwarnings("error")
def test_exponential_with_scores_near_overflow(system):
    for source in (seeded(), system):
        assert exponential([-1e308, 1e308, 0.0], bound(1e-3, "range"), 10.0, source) == 1
        assert exponential([5], bound(1.0, "range"), 1.0, source) == 0
