"""Lower bounds on Renyi divergences: exact coverage, limits, and what audits find of them."""

import math

import numpy as np
import pytest
from scipy import stats

from privclust_audit.black_box import audit_mechanism, likelihood_ratio, renyi_bound_from_counts
from privclust_audit.faults import batched


def divergence(p, q, order):
    return math.log(sum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))) / (
        order - 1
    )


def larger(p, q, order):
    """Of both directions between two events' probabilities."""
    first, second = (p, 1 - p), (q, 1 - q)
    return max(divergence(first, second, order), divergence(second, first, order))


def identity(output):
    return output


identity.many = identity


@pytest.mark.parametrize("order", [1.5, 2.0, 16.0])
@pytest.mark.parametrize(("p", "q"), [(0.8, 0.2), (0.5, 0.3), (0.4, 0.4)])
def test_the_bound_is_right_with_the_stated_probability(order, p, q):
    """All pairs of counts, exactly; at equal probabilities anything above 0 is wrong."""
    n = 25
    truth = larger(p, q, order)
    hits = np.arange(n + 1)
    weights = np.outer(stats.binom.pmf(hits, n, p), stats.binom.pmf(hits, n, q))
    wrong = sum(
        weights[one, other]
        for one, other in np.ndindex(weights.shape)
        if renyi_bound_from_counts(one, n, other, n, order=order, confidence=0.8) > truth + 1e-12
    )
    assert 0 < wrong <= 0.2


@pytest.mark.parametrize("order", [1.01, 2.0, 50.0])
def test_the_bound_is_the_divergence_of_probabilities(order):
    low = stats.beta.ppf(0.0125, 900, 101)
    high = stats.beta.ppf(1 - 0.0125, 31, 970)
    found = renyi_bound_from_counts(900, 1000, 30, 1000, order=order)
    assert found == pytest.approx(larger(low, high, order), rel=1e-9)
    # the other data set as the likelier, or what does not happen as the event
    assert renyi_bound_from_counts(30, 1000, 900, 1000, order=order) == pytest.approx(found)
    assert renyi_bound_from_counts(100, 1000, 970, 1000, order=order) == pytest.approx(found)
    assert renyi_bound_from_counts(5, 10, 5, 10, order=order) == 0


def test_the_bound_grows_with_the_order_up_to_the_largest_loss():
    """At order infinity it is pure privacy's epsilon."""
    orders = [1.001, 1.5, 2, 8, 64, 1e4]
    found = [renyi_bound_from_counts(800, 1000, 20, 1000, order=order) for order in orders]
    assert (np.diff(found) > 0).all()
    low = stats.beta.ppf(0.0125, [800, 980], [201, 21])
    high = stats.beta.ppf(1 - 0.0125, [21, 201], [980, 800])
    assert found[-1] == pytest.approx(np.log(low / high).max(), rel=1e-3)


@pytest.mark.parametrize("order", [1.5, 2.0, 10.0])
def test_randomised_response_is_approached(order):
    """Its outputs are one event, so that nothing but counting errors is lost."""
    p = math.e / (1 + math.e)
    mechanism = batched(lambda data, rng, n: np.where(rng.random(n) < p, data, 1 - data))
    result = audit_mechanism(mechanism, 0, 1, 1.0, 0.0, 1_000_000, identity, 0)
    truth = larger(p, 1 - p, order)
    assert 0.98 * truth < result.renyi_lower_bound(order) < truth


@pytest.fixture(scope="module")
def audits_of_normal_noise():
    """Audits of normal noise whose deviation is the change."""
    mechanism = batched(lambda data, rng, n: data + rng.normal(size=n))
    rng = np.random.default_rng(1)
    return [audit_mechanism(mechanism, 0, 1, 2.0, 0.01, 2000, identity, rng) for _ in range(200)]


@pytest.mark.parametrize("order", [1.5, 2.0, 10.0])
def test_gaussian_noise_is_rarely_found_worse_than_it_is(order, audits_of_normal_noise):
    """Its divergence is order / 2 for a change of one standard deviation."""
    found = np.array([audit.renyi_lower_bound(order) for audit in audits_of_normal_noise])
    assert (found > order / 2).sum() <= stats.binom.isf(1e-4, 200, 0.05)
    assert (found > 0).mean() > 0.9


@pytest.mark.parametrize("order", [1.5, 2.0, 10.0])
def test_an_audit_finds_what_its_events_imply(order):
    """Of normal noise; what a threshold takes away from the divergence is lost, counting is not."""
    mechanism = batched(lambda data, rng, n: data + rng.normal(size=n))
    result = audit_mechanism(mechanism, 0, 1, 2.0, 0.01, 1_000_000, identity, 0)
    implied = []
    for event in (result.epsilon_event, result.delta_event):
        beyond = [stats.norm.sf(event.threshold - x) for x in (0, 1)]
        implied.append(larger(*beyond, order))
    found = result.renyi_lower_bound(order)
    assert 0.95 * max(implied) < found < max(implied) < order / 2


def test_a_wrong_zcdp_claim_is_shown_at_an_order():
    """Noise of deviation 0.5 is 2-zCDP; the claim is of a quarter of that, 0.5."""

    def log_density(output, data):
        return -2 * (output - data) ** 2

    log_density.many = log_density
    mechanism = batched(lambda data, rng, n: data + rng.normal(scale=0.5, size=n))
    result = audit_mechanism(
        mechanism, 0.0, 1.0, 2.5, 1e-2, 20_000, likelihood_ratio(log_density), 0
    )
    ratios = [result.renyi_lower_bound(order) / order for order in (1.1, 1.5, 2, 4)]
    assert 0.5 < max(ratios) < 2


@pytest.mark.parametrize("order", [1.0, 0.5, math.inf, math.nan, "2"])
def test_orders_out_of_range_are_named(order):
    result = audit_mechanism(lambda data, rng: rng.random(), 0, 1, 1.0, 0.0, 16, identity, 0)
    for call in (
        lambda: result.renyi_lower_bound(order),
        lambda: renyi_bound_from_counts(5, 10, 5, 10, order=order),
    ):
        with pytest.raises(ValueError, match="order must be a finite number greater than 1"):
            call()


def test_counts_out_of_range_are_named():
    with pytest.raises(ValueError, match="hits must be at most 10, got 11"):
        renyi_bound_from_counts(11, 10, 1, 10, order=2.0)
    with pytest.raises(ValueError, match="confidence must be less than 1"):
        renyi_bound_from_counts(1, 10, 1, 10, order=2.0, confidence=1.0)
