"""Budget rules, conversions and calibration against closed forms and each other."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as distributions
from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon
from scipy.stats import norm

from privclust.privacy import accounting
from privclust.privacy.accounting import Loss
from privclust.privacy.measurements import largest_share


def gaussian_delta(sigma, epsilon):
    """delta of the Gaussian mechanism of sensitivity 1 (Balle and Wang 2018, Theorem 8)."""
    a, b = 1 / (2 * sigma), epsilon * sigma
    return norm.cdf(a - b) - math.exp(epsilon) * norm.cdf(-a - b)


@pytest.mark.parametrize("n_iter", [1, 10])
@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("epsilon", [0.01, 0.9, 5.0])
def test_cdp_share_spends_the_whole_budget(n_iter, k, epsilon):
    share = accounting.cdp_share(epsilon, n_pure=n_iter * (2 * k + 1))
    assert n_iter * (2 * k + 1) * share**2 / 2 == pytest.approx(epsilon, rel=1e-12)
    # Section 5: the deviation of the same composition is sqrt(2 epsilon)
    assert math.sqrt(n_iter * (2 * k + 1)) * share == pytest.approx(math.sqrt(2 * epsilon))
    c = accounting.gaussian_constant(0.001)
    gaussian = accounting.cdp_share(epsilon, n_iter * (k + 1), n_iter * k, c)
    assert gaussian == pytest.approx(math.sqrt(2 * epsilon / (n_iter * (k / c**2 + k + 1))))
    assert gaussian > share


def test_advanced_share_composes_to_the_budget():
    for epsilon in (0.05, 0.9):
        for n in (7, 70):
            share = accounting.advanced_share(epsilon, 0.01, n)
            composed = math.sqrt(-2 * n * math.log(0.01)) * share + n * share * math.expm1(share)
            assert composed <= epsilon  # Dwork and Roth, Theorem 3.20


@pytest.mark.parametrize("rho", [0.002, 0.05, 0.9, 10.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-8])
def test_zcdp_round_trip_and_bounds(rho, delta):
    epsilon = accounting.zcdp_epsilon(rho, delta)
    assert accounting.zcdp_rho(epsilon, delta) == pytest.approx(rho, rel=1e-3)
    # never above the plain conversion (Bun and Steinke 2016, Proposition 1.3)
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta)) + 1e-9
    # nor below what a Gaussian of that rho truly has
    assert gaussian_delta(1 / math.sqrt(2 * rho), epsilon) <= delta * (1 + 1e-6)


@pytest.mark.parametrize(
    ("epsilon", "expected"), [(0.01, 0.46), (0.1, 1.66), (0.5, 4.2), (0.9, 5.9), (1.0, 6.3)]
)
def test_what_the_cdp_budget_buys(epsilon, expected):
    assert accounting.zcdp_epsilon(epsilon, 1e-4) == pytest.approx(expected, rel=0.015)


@pytest.mark.parametrize("count", [1, 10])
@pytest.mark.parametrize("delta", [1e-2, 1e-6])
def test_gaussian_releases_compose_exactly(count, delta):
    epsilon = accounting.pld_epsilon([Loss(0.02, count=count)], delta)
    assert gaussian_delta(1 / math.sqrt(2 * 0.02 * count), epsilon) == pytest.approx(delta)


def test_pure_releases_dominate_by_randomised_response():
    # k-fold randomised response is the worst case: Kairouz, Oh, Viswanath 2015, Theorem 3.3
    share, count, delta = 0.1, 20, 1e-3
    pure = Loss(share**2 / 2, epsilon=share, count=count)
    epsilon = accounting.pld_epsilon([pure], delta)

    def worst_delta(at):
        total = 0.0
        for i in range(count + 1):
            gap = math.exp((count - 2 * i) * share) - math.exp(at)
            if gap > 0:
                total += math.comb(count, i) * math.exp(i * share) * gap
        return total / (1 + math.exp(share)) ** count

    rounded_up = count * share / accounting.PLD_STEPS
    assert worst_delta(epsilon) <= delta <= worst_delta(epsilon - rounded_up)
    assert epsilon <= share * count
    assert accounting.composed_epsilon([pure], 1e-12) <= share * count


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0, 0.1), (-1, 0.1), (math.nan, 0.1), (1, 0), (1, 1), (1, 1.5), ("1", 0.1)],
)
def test_bad_budgets_are_named(epsilon, delta):
    with pytest.raises(ValueError, match=r"epsilon|delta"):
        accounting.advanced_share(epsilon, delta, 3)


def calibrated(epsilon, delta):
    """The share of one release of a loss of half its square."""
    return largest_share(
        lambda share: [SimpleNamespace(claimed=Loss(share * share / 2))], epsilon, delta
    )


@pytest.mark.parametrize(("epsilon", "delta"), [(math.inf, 0.1), (math.nan, 0.1), (1.0, 0.0)])
def test_no_share_is_calibrated_to_a_bad_budget(epsilon, delta):
    with pytest.raises(ValueError, match=r"epsilon|delta"):
        calibrated(epsilon, delta)


def test_large_and_unequal_losses_have_a_number():
    pure, fine, gaussian = Loss(5e11, 1e6, 3), Loss(5e-19, 1e-9), Loss(0.1)
    assert accounting.pld_epsilon([pure], 1e-6) == 3e6
    together = accounting.pld_epsilon([pure, gaussian], 1e-6)
    assert together == 3e6 + accounting.pld_epsilon([gaussian], 1e-6)
    # a grid as fine as the small loss would have 10^12 steps
    assert accounting.pld_epsilon([fine, Loss(50.0, 10.0)], 1e-6) == pytest.approx(10.0, rel=1e-4)
    assert accounting.pld_epsilon([Loss(1e300)], 1e-6) >= 1e300
    assert accounting.pld_epsilon([Loss(1e-300)], 1e-6) == 0.0
    assert accounting.pld_epsilon([], 1e-6) == 0.0
    assert accounting.pld_epsilon([Loss(0.005, 0.1), gaussian], 1e-11) == math.inf


def test_privacy_loss_distributions_are_rounded_up():
    """Of 3 responses of epsilon 0.1 and a Gaussian of rho 0.02, on the same grid."""
    epsilon, delta = 0.1, 1e-4
    grid = {"value_discretization_interval": epsilon / accounting.PLD_STEPS}
    responses = distributions.from_randomized_response(2.0 / (1.0 + math.exp(epsilon)), 2, **grid)
    gaussian = distributions.from_gaussian_mechanism(5.0, **grid)
    exact = responses.self_compose(3).compose(gaussian).get_epsilon_for_delta(delta)
    found = accounting.pld_epsilon([Loss(epsilon**2 / 2, epsilon, 3), Loss(0.02)], delta)
    assert exact < found < exact * (1.0 + 1e-6)


@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-12, 1e-5, 0.3, 1 - 1e-16])
def test_few_orders_convert_to_the_same_bytes_as_all(delta):
    shorter = delta * (1 - accounting._ROUNDING)
    for rho in [5e-324, 1e-300, 1e300, *np.logspace(-25, 12, 38)]:
        with np.errstate(over="ignore"):
            curve = accounting._ORDERS * rho
        everything, _ = compute_epsilon(accounting._ORDERS, curve, shorter)
        assert accounting.zcdp_epsilon(rho, delta) == everything * (1 + accounting._ROUNDING)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-12, 1e6, 1e300, 1.7e308])
@pytest.mark.parametrize("delta", [5e-324, 1e-15, 1 - 2.0**-53])
def test_every_budget_has_a_number_or_is_refused(epsilon, delta):
    losses = [Loss(min(epsilon, 1e150) ** 2 / 2, epsilon, 3), Loss(0.1)]
    values = [
        accounting.gaussian_constant(delta),
        accounting.advanced_share(epsilon, delta, 10),
        accounting.zcdp_epsilon(epsilon, delta),
        accounting.zcdp_rho(epsilon, delta),
        accounting.composed_epsilon(losses, delta),
    ]
    assert all(value >= 0 for value in values)
    if epsilon == delta == 5e-324:
        with pytest.raises(ValueError, match="need more noise than the largest float"):
            calibrated(epsilon, delta)
        with pytest.raises(ValueError, match="a budget below the range of floats"):
            calibrated(1e-200, delta)
        return
    share = calibrated(epsilon, delta)
    assert accounting.composed_epsilon([Loss(share * share / 2)], delta) <= epsilon
