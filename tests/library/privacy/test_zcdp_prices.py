"""Prices of pure releases in zCDP against Renyi divergences at many orders."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from privclust.core.fixed_point import FixedPoint
from privclust.privacy.accounting import (
    LAPLACE_STEP,
    bounded_range_rho,
    laplace_rho,
    pure_rho,
)
from privclust.privacy.noise import SystemEntropy


def renyi(alpha, log_p, log_q):
    """Renyi divergence of two laws on the same points, by their log probabilities."""
    return logsumexp(alpha * log_p + (1.0 - alpha) * log_q) / (alpha - 1.0)


ORDERS = 1.0 + np.logspace(-3, 3, 40)


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 100), min_size=1, max_size=4).filter(any),
    st.sampled_from([0.02, 0.1, 0.5]),
)
def test_discrete_laplace_noise_costs_no_more_than_its_price(changes, step):
    # on multiples of `step` scales, of which each entry moves by a number; a release has smaller
    # steps, and its price holds the little that they add
    points = np.arange(-round(60.0 / step), round(60.0 / step) + 101)
    epsilon, mu = step * sum(changes), step * np.linalg.norm(changes)
    log_p = -step * np.abs(points)
    losses = np.zeros(len(ORDERS))
    for change in changes:
        log_q = -step * np.abs(points - change)
        losses += [
            renyi(order, log_p - logsumexp(log_p), log_q - logsumexp(log_q)) for order in ORDERS
        ]
    price = laplace_rho(epsilon, min(mu, epsilon)) if epsilon <= 16.0 else pure_rho(epsilon)
    assert (losses / ORDERS <= price + epsilon * step**2 / 6.0 + 1e-9).all()


@settings(deadline=None)
@given(st.lists(st.floats(0.01, 5.0), min_size=1, max_size=6))
def test_laplace_noise_costs_no_more_than_its_price(changes):
    losses = sum(continuous_laplace(ORDERS, change) for change in changes)
    epsilon = sum(changes)
    price = laplace_rho(epsilon, min(float(np.linalg.norm(changes)), epsilon))
    assert (losses / ORDERS <= price * (1.0 + 1e-6)).all()


def continuous_laplace(orders, x):
    """Renyi divergence of Laplace noise of scale 1 for a change x (Mironov 2017, Table II)."""
    first, last = np.log(orders) + (orders - 1.0) * x, np.log(orders - 1.0) - orders * x
    return (np.logaddexp(first, last) - np.log(2.0 * orders - 1.0)) / (orders - 1.0)


def test_the_price_of_laplace_noise_is_exact_for_one_entry():
    for epsilon in (0.01, 0.1, 1.0, 5.0):
        exact = epsilon + np.expm1(-epsilon)
        assert laplace_rho(epsilon, epsilon) == pytest.approx(exact, rel=1e-6)
        assert laplace_rho(epsilon, epsilon) < pure_rho(epsilon) < epsilon**2 / 2.0
    assert laplace_rho(1.0, 0.5) == pytest.approx(4 * laplace_rho(0.25, 0.25), rel=1e-6)


@given(st.floats(1e-300, 1e300), st.floats(0.0, 1.0, exclude_min=True))
def test_prices_are_positive_and_below_those_of_weaker_theorems(epsilon, part):
    mu = epsilon * part
    assume(mu > 1e-150)
    price = laplace_rho(epsilon, mu)
    assert 0.0 < price <= pure_rho(epsilon) * (1.0 + 1e-9)
    assert price <= mu * mu / 2.0 * (1.0 + 1e-9)
    if epsilon < 1e150:
        assert 0.0 < bounded_range_rho(epsilon) <= epsilon**2 / 8.0 * (1.0 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 4.0])
def test_bounded_range_costs_its_price_at_most(epsilon):
    # the extreme laws have two log ratios, t and t - epsilon
    worst = 0.0
    for t in np.linspace(0.0, epsilon, 101)[1:-1]:
        q = np.expm1(t) / (np.exp(t) - np.exp(t - epsilon))  # p = q e^(t - epsilon) on the first
        log_q = np.log([q, 1.0 - q])
        log_p = log_q + np.array([t - epsilon, t])
        assert np.exp(log_p).sum() == pytest.approx(1.0)
        worst = max(worst, *(renyi(order, log_p, log_q) / order for order in ORDERS))
    assert 0.99 * bounded_range_rho(epsilon) < worst <= bounded_range_rho(epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 4.0])
def test_pure_privacy_costs_no_more_than_its_price_at_any_order(epsilon):
    log_p = np.array([epsilon, 0.0]) - np.logaddexp(epsilon, 0.0)  # randomized response
    worst = max(renyi(order, log_p, log_p[::-1]) / order for order in ORDERS)
    assert 0.99 * pure_rho(epsilon) < worst <= pure_rho(epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("bits", [0, 3, 30])
def test_laplace_noise_has_steps_far_below_its_scale(bits):
    # counts would else have noise in whole numbers, which costs more
    sums = FixedPoint(np.full(400, 5 << bits), bits)
    noisy = np.asarray(SystemEntropy().add_laplace(sums, 2.0))
    assert abs(np.median(noisy) - 5.0) < 1.0  # six standard errors
    assert np.unique(noisy * 2.0**17 % 4).size > 3


@given(st.integers(1, 2**24), st.floats(1e-6, 1.0), st.integers(1, 400))
def test_prices_are_not_below_exact_ones_in_their_last_digits(steps, part, entries):
    # the loss of noise in the widest steps, of as many entries that change alike: to 60 digits
    with localcontext() as context:
        context.prec = 60
        step = Decimal(part) * Decimal(LAPLACE_STEP)
        x = steps * step
        sinh = (step.exp() - (-step).exp()) / 2
        exact = entries * (x - (1 - (-x).exp()) * step / sinh)
    epsilon = float(entries * x)
    mu = float(Decimal(entries).sqrt() * x)
    assume(mu <= epsilon)
    assert Decimal(laplace_rho(epsilon * (1 + 1e-15), mu * (1 + 1e-15))) >= exact


@given(st.floats(1e-9, 50.0))
def test_prices_of_selections_and_pure_releases_are_rounded_up(epsilon):
    with localcontext() as context:
        context.prec = 80
        e = Decimal(epsilon)
        s = e / (1 - (-e).exp())
        assert Decimal(bounded_range_rho(epsilon)) >= s - 1 - s.ln()
        assert Decimal(pure_rho(epsilon)) >= e * (1 - (-e).exp()) / (1 + (-e).exp())
