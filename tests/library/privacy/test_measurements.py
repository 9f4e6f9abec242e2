"""Measurements: laws of the noise, prices, statements, calibrations, and what is refused.

Distribution tests use fixed seeds and reject at 1 %. Those on the operating system's entropy are
unseeded and fail by chance with a probability of at most SYSTEM_ALPHA each.
"""

import json
import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy import stats

from privclust.privacy import Guarantee, pld_epsilon
from privclust.privacy.accounting import Loss, pure_rho
from privclust.privacy.measurements import (
    Exponential,
    Gamma,
    Gaussian,
    Laplace,
    SmoothGaussian,
    SymmetricGaussian,
    Wishart,
    analytic_gaussian_sigma,
    claimed_rho,
    gaussian_part,
    gaussian_share,
    largest_share,
    second_moment_noise,
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


MEASUREMENTS = [
    (Laplace, "l1", np.zeros(3)),
    (Gaussian, "l2", np.zeros(3)),
    (SymmetricGaussian, "l2", np.zeros((4, 2, 2))),
    (Gamma, "l1", np.zeros(3)),
    (Wishart, "trace", np.zeros((4, 2, 2))),
    (Exponential, "range", np.zeros(5)),
]
IDS = [kind.__name__ for kind, _, _ in MEASUREMENTS]
each = pytest.mark.parametrize(("kind", "norm", "value"), MEASUREMENTS, ids=IDS)


# --- what all have in common -----------------------------------------------------------------


@each
def test_a_generator_s_state_decides_everything(kind, norm, value):
    noise = kind(bound(2.0, norm), 0.5)
    runs = [
        [np.asarray(noise.release(value, rng)) for _ in range(20)]
        for rng in (seeded(3), seeded(3), seeded(4))
    ]
    assert [a.tobytes() for a in runs[0]] == [b.tobytes() for b in runs[1]]
    assert [a.tobytes() for a in runs[0]] != [c.tobytes() for c in runs[2]]


@each
def test_values_are_not_changed_and_shapes_are_kept(kind, norm, value):
    before, noise = value.copy(), kind(bound(2.0, norm), 0.5)
    result = noise.release(value, seeded())
    np.testing.assert_array_equal(value, before)
    if kind is Exponential:
        assert type(result) is int
    else:
        assert result.shape == value.shape
        assert result.dtype == value.dtype
        np.testing.assert_array_equal(result, noise.release(value.tolist(), seeded()))


@each
def test_bad_arguments_are_named(kind, norm, value):
    good = bound(2.0, norm)
    wrong = bound(2.0, "l2" if norm == "l1" else "l1")
    with pytest.raises(ValueError, match=f"norm '{norm}', got '{wrong.norm}'"):
        kind(wrong, 0.5)
    with pytest.raises(ValueError, match=r"sensitivity must be a Sensitivity, got 2.0"):
        kind(2.0, 0.5)
    for strength in (0.0, -1.0, np.inf, np.nan, "1", None, True):
        with pytest.raises(ValueError, match=r"(epsilon|sigma) must be .*got"):
            kind(good, strength)
    for count in (0, 1.5, None):
        with pytest.raises(ValueError, match="count must be"):
            kind(good, 0.5, count)
    for entry in (np.nan, np.inf, -np.inf):
        spoiled = value.copy()
        spoiled.flat[-1] = entry
        with pytest.raises(ValueError, match=r"must be finite, got \(?(nan|-?inf)"):
            kind(good, 0.5).release(spoiled, seeded())
    with pytest.raises(ValueError, match="source must be"):
        kind(good, 0.5).release(value, 0)
    if kind is not SymmetricGaussian:  # which multiplies the entries first
        with pytest.raises(ValueError, match="must hold real numbers, got dtype"):
            kind(good, 0.5).release(np.full(value.shape, "a"), seeded())


@pytest.mark.parametrize("kind", [Laplace, Gaussian, Gamma])
def test_complex_values_are_refused(kind):
    norm = "l2" if kind is Gaussian else "l1"
    with pytest.raises(ValueError, match="real numbers, got dtype complex128"):
        kind(bound(1.0, norm), 1.0).release(np.ones(2) * 1j, seeded())


@pytest.mark.parametrize(("value", "epsilon"), [(1e-300, 1e300), (1e300, 1e-300)])
@pytest.mark.parametrize(
    ("kind", "norm"), [case[:2] for case in MEASUREMENTS if not issubclass(case[0], Gaussian)]
)
def test_scales_that_vanish_or_overflow_are_refused(kind, norm, value, epsilon):
    """A scale of 0 would release the statistic itself."""
    with pytest.raises(ValueError, match="not representable"):
        kind(bound(value, norm), epsilon)


# --- prices and statements -------------------------------------------------------------------

RHO = 0.7**2 / 2


def of_laplace(change, entries=1.0):
    """The price of a change by so many scales in each of so many entries."""
    return entries * (change + math.exp(-change) - 1.0)


PRICES = [
    (Laplace(bound(3.0, "l1"), 0.7, 4), Loss(of_laplace(0.7), 0.7, 4)),
    (Laplace(bound(3.0, "l1"), 0.7, entries=5.0), Loss(of_laplace(0.14, 5.0), 0.7)),
    (Laplace(bound(3.0, "l1"), 0.7, mu=0.35), Loss(of_laplace(0.175, 4.0), 0.7)),
    (Gaussian(bound(3.0, "l2"), 2.0, 4), Loss(9.0 / 8.0, count=4)),
    (Gaussian.of_share(bound(3.0, "l2"), 0.7, 4), Loss(RHO, count=4)),
    (
        Gaussian.classical(bound(3.0, "l2"), 0.7, 1e-3, 2),
        Loss(RHO / (2 * math.log(1250.0)), count=2),
    ),
    (Gaussian(bound(3.0, "l2"), 2.0).against(bound(1.0, "l2")), Loss(0.125)),
    (Gaussian.of_share(bound(3.0, "l2"), 0.7).for_rows(5), Loss(5 * RHO)),
    (SymmetricGaussian(bound(3.0, "l2"), 2.0, 4), Loss(9.0 / 8.0, count=4)),
    (SmoothGaussian(0.5, 2.0, 0.1, 3, 0.7, 1e-6), Loss(epsilon=0.7, delta=1e-6)),
    (
        Exponential(bound(3.0, "range"), 0.7, 2),
        Loss(0.7 / (1 - math.exp(-0.7)) - 1 - math.log(0.7 / (1 - math.exp(-0.7))), 0.7, 2),
    ),
]
FLAWED = [Gamma(bound(3.0, "l1"), 0.7, 4), Wishart(bound(3.0, "trace"), 0.7, 4)]


@pytest.mark.parametrize(("noise", "price"), PRICES, ids=lambda case: type(case).__name__)
def test_prices_by_closed_forms(noise, price):
    loss = noise.loss
    assert loss.rho == pytest.approx(price.rho, rel=1e-10)  # that of steps is 5e-13 more
    assert (loss.epsilon, loss.delta, loss.count) == (price.epsilon, price.delta, price.count)
    assert noise.claimed == loss
    assert not noise.flaw


@pytest.mark.parametrize("noise", FLAWED, ids=lambda noise: noise.mechanism)
def test_flawed_noise_has_no_price_but_the_claimed_one(noise):
    assert noise.loss is None
    assert noise.claimed == Loss(pure_rho(0.7), 0.7, 4)
    stated = noise.statement("variances")
    assert (stated.loss, stated.flaw) == (None, noise.flaw)
    assert Guarantee.of([stated], "approximate", "replace-one", delta=0.1).definition == "none"


@pytest.mark.parametrize(
    "noise", [noise for noise, _ in PRICES] + FLAWED, ids=lambda case: type(case).__name__
)
def test_statements_say_what_the_noise_is(noise):
    stated = noise.statement("sums", noise="{scale:.17g}", units="units")
    number, _, units = stated.noise.partition(", ")
    assert (float(number), units) == (noise.scale, "units")
    assert (stated.name, stated.proof, stated.loss) == ("sums", noise.proof, noise.loss)
    assert stated.mechanism == noise.mechanism
    flawed = noise.statement("sums", mechanism="other", flaw="by hand")
    assert (flawed.loss, flawed.flaw, flawed.mechanism) == (None, "by hand", "other")
    assert flawed.noise == noise.statement("sums").noise


@pytest.mark.parametrize(
    "noise", [noise for noise, _ in PRICES] + FLAWED, ids=lambda case: type(case).__name__
)
def test_losses_follow_from_the_stated_sensitivity_and_scale(noise):
    """To 12 digits, from the statement as a file holds it, for added and for replaced rows."""
    stated = Guarantee.of([noise.statement("sums")], "approximate", "add-remove", delta=1e-5)
    for steps, guarantee in ((1, stated), (2, stated.to_replace_one())):
        written = json.dumps(guarantee.as_dict())
        assert Guarantee.from_dict(json.loads(written)) == guarantee
        line = json.loads(written)["releases"][0]
        if isinstance(noise, SmoothGaussian):  # its scale depends on the data: it stays secret
            assert not {"sensitivity", "scale", "norm"} & set(line)
            continue
        assert line["norm"] == noise.sensitivity.norm
        assert line["scale"] == noise.scale
        ratio, loss = line["sensitivity"] / line["scale"], line["loss"]
        if loss is None:
            assert ratio == pytest.approx(steps * noise.claimed.epsilon, rel=1e-12)
        elif isinstance(noise, Gaussian):
            assert ratio**2 / 2 == pytest.approx(loss["rho"], rel=1e-12)
        else:
            assert ratio == pytest.approx(loss["epsilon"], rel=1e-12)


ADDITIVE = [
    (Laplace, "l1", lambda s: stats.laplace(scale=s)),
    (Gaussian, "l2", lambda s: stats.norm(scale=s)),
    (Gamma, "l1", lambda s: stats.expon(scale=s)),
]


@pytest.mark.parametrize(("kind", "norm", "law"), ADDITIVE, ids=["Laplace", "Gaussian", "Gamma"])
def test_noise_has_the_scale_that_is_stated(kind, norm, law):
    """Read back from the statement, not from the measurement."""
    noise = kind(bound(3.0, norm), 0.7)
    stated = float(noise.statement("x", noise="{scale:.17g}").noise)
    drawn = noise.release(np.zeros(N_DRAWS), seeded(11))
    assert stats.kstest(drawn, law(stated).cdf).pvalue > ALPHA


def test_prices_that_are_not_the_noise_s_are_refused():
    with pytest.raises(ValueError, match=r"rho must be that of the noise, 1\.125, got 1\.0"):
        Gaussian(bound(3.0, "l2"), 2.0, rho=1.0)
    priced = Gaussian.of_share(bound(3.0, "l2"), 0.7)
    for change in ({"sigma": 2.0}, {"sensitivity": bound(4.0, "l2")}):
        with pytest.raises(ValueError, match="rho must be"):
            replace(priced, **change)
    with pytest.raises(ValueError, match=r"mu must be at most epsilon=0\.7"):
        Laplace(bound(3.0, "l1"), 0.7, mu=0.8)
    with pytest.raises(ValueError, match="entries must be"):
        Laplace(bound(3.0, "l1"), 0.7, entries=0.5)


def test_smooth_noise_of_no_sensitivity_is_a_flaw():
    """Printed S may be 0, and then nothing is added; a corrected bound may not."""
    args = (2.0, 0.1, 3, 0.7, 1e-6)
    with pytest.raises(ValueError, match="bound must be"):
        SmoothGaussian(0.0, *args)
    printed = SmoothGaussian(0.0, *args, flaw="printed")
    np.testing.assert_array_equal(printed.release([1.0, 2.0], seeded()), [1.0, 2.0])
    assert printed.loss is None
    drawn = SmoothGaussian(3.0, *args).release(np.zeros(N_DRAWS), seeded(12))
    assert stats.kstest(drawn, stats.norm(scale=1.5).cdf).pvalue > ALPHA


# --- laws ------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.zeros(3), np.zeros((2, 3)), 1.0])
def test_wishart_wants_square_matrices(value):
    with pytest.raises(ValueError, match=r"value must have shape \(\.\.\., d, d\), got"):
        Wishart(bound(1.0, "trace"), 1.0).release(value, seeded())


@pytest.mark.parametrize("scores", [[], [[1.0, 2.0]], 3.0])
def test_exponential_wants_a_vector_of_scores(scores):
    with pytest.raises(ValueError, match=r"scores must have shape \(n_candidates,\).*got"):
        Exponential(bound(1.0, "range"), 1.0).release(scores, seeded())


@pytest.mark.parametrize(("delta", "epsilon"), [(1.0, 0.5), (0.02, 3.0)])
def test_laplace_scale_is_sensitivity_over_epsilon(delta, epsilon, system):
    truth, noise = stats.laplace(7.0, delta / epsilon).cdf, Laplace(bound(delta, "l1"), epsilon)
    drawn = noise.release(np.full(N_DRAWS, 7.0), seeded(1))
    assert stats.kstest(drawn, truth).pvalue > ALPHA
    drawn = noise.release(np.full(5000, 7.0), system)
    assert stats.kstest(drawn, truth).pvalue > SYSTEM_ALPHA


def test_gaussian_deviation_is_sigma_whatever_the_sensitivity(system):
    truth, noise = stats.norm(-2.0, 0.7).cdf, Gaussian(bound(5.0, "l2"), 0.7)
    drawn = noise.release(np.full(N_DRAWS, -2), seeded(2))
    assert stats.kstest(drawn, truth).pvalue > ALPHA
    drawn = noise.release(np.full(5000, -2), system)
    assert stats.kstest(drawn, truth).pvalue > SYSTEM_ALPHA


@pytest.mark.parametrize(("m", "r", "n0", "epsilon"), [(40, 40, 100, 1.0), (60, 6, 1000, 0.1)])
def test_laplace_noise_on_parts_is_the_sketch_s_noise(m, r, n0, epsilon):
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
    drawn = Laplace(sensitivity, epsilon).release(np.zeros((50_000, 2)), seeded(5))
    for part in drawn.T:
        assert stats.kstest(part, stats.laplace(0, parts_scale).cdf).pvalue > ALPHA
    assert sensitivity.value / epsilon == pytest.approx(parts_scale, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_classical_sigma(epsilon):
    sigma = Gaussian.classical(bound(3.0, "l2"), epsilon, 1e-4).sigma
    assert sigma == pytest.approx(3.0 * math.sqrt(2 * math.log(1.25e4)) / epsilon, rel=1e-14)
    assert sigma > analytic_gaussian_sigma(bound(3.0, "l2"), epsilon, 1e-4)


@pytest.mark.parametrize("share", [0.0, -1.0, math.nan, math.inf])
def test_a_share_of_nothing_has_no_noise(share):
    with pytest.raises(ValueError, match="share must be"):
        Gaussian.of_share(bound(1.0, "l2"), share)


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


@pytest.mark.parametrize("calibrate", [Gaussian.classical, analytic_gaussian_sigma])
def test_calibrations_refuse_bad_arguments(calibrate):
    good = bound(1.0, "l2")
    for delta in (0.0, 1.0, -0.1, 2.0, np.nan, None):
        with pytest.raises(ValueError, match=r"delta must (be|lie) .*got"):
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
    noise = Gamma(bound(delta, "l1"), epsilon)
    low = noise.release(np.zeros(N_DRAWS), source)
    high = noise.release(np.full(N_DRAWS, delta), source)
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
    noise = Wishart(bound(delta, "trace"), epsilon)
    low = noise.release(np.zeros((n, d, d)), seeded(7))
    high = noise.release(np.broadcast_to(record, (n, d, d)), seeded(8))
    assert np.array_equal(low, np.swapaxes(low, -1, -2))
    hits = int((np.linalg.eigvalsh(low - record)[:, 0] < 0).sum())
    assert stats.binomtest(hits, n, -math.expm1(-epsilon)).pvalue > ALPHA
    assert np.linalg.eigvalsh(high - record)[:, 0].min() > -1e-14
    # lambda = Delta / (2 epsilon) and d + 1 degrees of freedom: the trace over lambda is chi-square
    traces = np.trace(low, axis1=-2, axis2=-1) / (delta / (2 * epsilon))
    assert stats.kstest(traces, stats.chi2(d * (d + 1)).cdf).pvalue > ALPHA


def test_wishart_draws_without_a_seed(system):
    first, second = (Wishart(bound(1.0, "trace"), 1.0).release(np.eye(2), system) for _ in range(2))
    assert not np.array_equal(first, second)
    assert np.linalg.eigvalsh(first - np.eye(2)).min() > -1e-12


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("unseeded", [False, True])
def test_exponential_weights(unseeded, one_sided):
    """Chi-square of the frequencies against exp(epsilon score / (2 Delta)), or twice that."""
    if unseeded:
        pytest.importorskip("opendp")
    n = 3000 if unseeded else 20_000
    source = SystemEntropy() if unseeded else seeded(9)
    scores = np.array([10.0, 12.0, 9.0, 12.5])
    noise = Exponential(bound(0.5, "range"), 0.7, one_sided=one_sided)
    weights = np.exp(0.7 * scores / ((1 if one_sided else 2) * 0.5))
    assert noise.factor == pytest.approx(0.7 if not one_sided else 1.4)
    drawn = [noise.release(scores, source) for _ in range(n)]
    observed = np.bincount(drawn, minlength=4)
    test = stats.chisquare(observed, n * weights / weights.sum())
    assert test.pvalue > (SYSTEM_ALPHA if unseeded else ALPHA)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("offset", [0.0, 1e9, -1e15])
def test_exponential_does_not_depend_on_a_common_offset(offset):
    """Offsets that leave the scores exact change nothing, nor do they overflow."""
    scores = np.array([0.0, 8.0, 4.0])
    noise = Exponential(bound(1.0, "range"), 1.0)
    plain = [noise.release(scores, rng) for rng in map(seeded, range(50))]
    moved = [noise.release(scores + offset, rng) for rng in map(seeded, range(50))]
    assert plain == moved
    assert len(set(plain)) > 1


@pytest.mark.filterwarnings("error")
def test_exponential_with_scores_near_overflow(system):
    for source in (seeded(), system):
        assert Exponential(bound(1e-3, "range"), 10.0).release([-1e308, 1e308, 0.0], source) == 1
        assert Exponential(bound(1.0, "range"), 1.0).release([5], source) == 0


# --- symmetric matrices, and shares of a budget ------------------------------------------------

MOVED = Sensitivity(1.0, "l2", "add-remove", "|xx'| = |x|^2 <= 1")


def test_frobenius_noise_is_the_one_stated():
    """Standard deviations with weight sqrt 2, Kolmogorov-Smirnov, false alarms 1e-4 each.

    Rotating a symmetric matrix does not change its law: u'Nu has variance sigma^2 for all unit u.
    """
    noise = SymmetricGaussian(MOVED, 3.0)
    drawn = noise.release(np.zeros((4000, 4, 4)), np.random.default_rng(1))
    np.testing.assert_array_equal(drawn, drawn.transpose(0, 2, 1))
    u = np.array([0.5, 0.5, 0.1, -0.7])
    along = np.einsum("i,kij,j->k", u, drawn, u) / (u @ u)
    for values, scale in (
        (drawn[:, 2, 2], 3.0),
        (drawn[:, 1, 3], 3.0 / math.sqrt(2)),
        (along, 3.0),
    ):
        assert stats.kstest(values, stats.norm(scale=scale).cdf).pvalue > 1e-4
    shifted = noise.release(np.full((4000, 4, 4), 7.0), np.random.default_rng(1))
    np.testing.assert_allclose(shifted - 7.0, drawn, atol=1e-12)


def test_noise_of_the_triangle_is_the_same_on_every_entry():
    """Weight 1; false alarms 1e-4 each."""
    noise = SymmetricGaussian(MOVED, 0.5, 3, weight=1.0)
    drawn = noise.release(np.zeros((4000, 3, 3)), seeded(2))
    for i, j in ((0, 0), (2, 2), (0, 1), (1, 2)):
        assert stats.kstest(drawn[:, i, j], stats.norm(scale=0.5).cdf).pvalue > 1e-4


@pytest.mark.parametrize("n_rounds", [1, 30])
@pytest.mark.parametrize("epsilon", [0.1, 3.0])
def test_all_rounds_together_spend_the_budget(epsilon, n_rounds):
    share = gaussian_share(epsilon, 1e-5, n_rounds)
    whole = pld_epsilon([Loss(n_rounds * share**2 / 2)], 1e-5)
    assert epsilon * (1 - 1e-3) < whole <= epsilon * (1 + 1e-6)


def mod_sulq_scale(n_features, epsilon, delta):
    return second_moment_noise(n_features, "add_remove", epsilon, delta, mod_sulq=True).sigma


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: SymmetricGaussian(MOVED, 0.0), "sigma must be"),
        (lambda: SymmetricGaussian(MOVED, 1.0, weight=math.nan), "weight must be"),
        (lambda: SymmetricGaussian(MOVED, 1.0, 0), "count must be"),
        (lambda: gaussian_share(0.0, 1e-5, 1), "epsilon must be"),
        (lambda: gaussian_share(1.0, 1.0, 1), "delta must lie"),
        (lambda: gaussian_share(1.0, 1e-5, 0), "count must be"),
        (lambda: gaussian_part(1e-3, 0.01, 0.1), "use a smaller delta"),
        (lambda: mod_sulq_scale(0, 1.0, 1e-5), "n_features must be"),
        (lambda: mod_sulq_scale(3, 1.0, 0.0), "delta must be"),
        (lambda: mod_sulq_scale(1, 1.0, 0.5), "delta must be less than 0.399"),
    ],
)
def test_bad_input(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_the_largest_share_spends_the_budget_on_mixed_noise():
    """The statement of what was calibrated gives back the budget."""

    def plan(share):
        return [Laplace(bound(2.0, "l1"), share, 3), Gaussian.of_share(bound(1.0, "l2"), share, 5)]

    share = largest_share(plan, 1.0, 1e-5)
    promise = Guarantee.of(
        [noise.statement("x") for noise in plan(share)], "approximate", "replace-one", delta=1e-5
    )
    assert 0.99 < promise.epsilon <= 1.0
    assert (
        promise.total_rho
        == claimed_rho(plan(share))
        == pytest.approx(3 * of_laplace(share) + 5 * share**2 / 2)
    )


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5])
@pytest.mark.parametrize("part", [0.01, 0.5])
def test_parts_of_a_budget_add_up_to_it(epsilon, delta, part):
    """Each part is calibrated by itself, to all of delta, and both together cost what was asked."""
    lines = []
    for one, count in ((part, 3), (1.0 - part, 2)):
        share = gaussian_share(gaussian_part(epsilon, delta, one), delta, count)
        lines.append(Gaussian.of_share(bound(1.0, "l2"), share, count).statement("x"))
    whole = Guarantee.of(lines, "approximate", "replace-one", delta=delta)
    assert epsilon * (1.0 - 1e-5) < whole.epsilon <= epsilon
