"""Sensitivities by search, losses from what the search finds, and budgets against closed forms."""

import functools
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from privclust.mixtures import PlanSettings, budget_share, perturbations
from privclust.mixtures._noisy_statistics import add_noise
from privclust.privacy import Guarantee
from privclust.privacy.accounting import zcdp_epsilon
from privclust.privacy.measurements import Laplace

TYPES = ("zero", "spherical", "diag", "full")
DELTA = 1e-5


def of_laplace(l1, l2):
    """rho of Laplace noise of scale 1 for changes of l1 and l2, exact if entries change alike."""
    if not l1:
        return 0.0
    change = l2**2 / l1
    return l1 / change * (change + math.exp(-change) - 1.0)


def settings(kind="full", noise="joint", variant="corrected", d=2, k=3, n_iter=10, mean_delta=1e-3):
    return PlanSettings(d, k, n_iter, kind, noise, variant, mean_delta)


def promised(plan, share, accounting):
    """The guarantee of a fit with that share."""
    definition = "cdp" if accounting == "cdp" else "approximate"
    delta = 0.0 if accounting == "cdp" else DELTA
    lines = [part.statement(name) for name, part in perturbations(plan, share).items()]
    return Guarantee.of(lines, definition, "replace-one", delta=delta)


# --- what one row adds, independently of the package: columns are batches of rows ---------------


def _second(kind, x):
    """phi's second moments of rows x (n, d), as they are released one by one."""
    d = x.shape[1]
    if kind == "spherical":
        return (x**2).sum(axis=1, keepdims=True)
    if kind == "diag":
        return x**2
    pairs = list(itertools.combinations_with_replacement(range(d), 2))
    return np.stack([x[:, i] * x[:, j] for i, j in pairs], axis=1)


def contribution(part, kind, gamma, x):
    """Return what rows x with responsibilities gamma add to a release, shape (n, length)."""
    n, d = x.shape
    if part == "counts":
        phi = np.ones((n, 1))
    elif part == "sums":
        phi = x
    elif part == "second_moments":
        phi = _second(kind, x)
    else:
        phi = np.hstack([np.ones((n, 1)), x])
        if kind != "zero":
            second = _second(kind, x)
            if kind == "full":  # so that its norm is Frobenius's
                pairs = itertools.combinations_with_replacement(range(d), 2)
                second = second * [1.0 if i == j else math.sqrt(2.0) for i, j in pairs]
            phi = np.hstack([phi, second])
    return (gamma[:, :, None] * phi[:, None, :]).reshape(n, -1)


def _project(gamma, x):
    """Return points of the simplex and of the unit ball near any points."""
    gamma = np.maximum(gamma, 0.0) + 1e-300
    gamma = gamma / gamma.sum(axis=1, keepdims=True)
    return gamma, x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0)


def _random_pairs(n, k, d, rng):
    """Pairs of rows: random, and with the extremes (vertices, axes, signs, opposites, 0)."""

    def rows():
        inside = rng.standard_normal((n, d)) * rng.choice([0.1, 1.0, 10.0], (n, 1))
        signs = rng.choice([-1.0, 1.0], (n, d)) / math.sqrt(d)
        axes = np.eye(d)[rng.integers(d, size=n)] * rng.choice([-1.0, 0.0, 1.0], (n, 1))
        which = rng.integers(3, size=(n, 1))
        return np.where(which == 0, inside, np.where(which == 1, signs, axes))

    def weights():
        flat = rng.dirichlet(np.ones(k), size=n)
        return np.where(rng.random((n, 1)) < 0.5, flat, np.eye(k)[rng.integers(k, size=n)])

    x, other = rows(), rows()
    other = np.where(rng.random((n, 1)) < 0.2, -x, other)
    return [*_project(weights(), x), *_project(weights(), other)]


@functools.cache
def largest_change(part, kind, order, k, d, seed=0):
    """Largest change over pairs of rows that a random search with local climbs finds."""
    rng = np.random.default_rng(seed)

    def change(pair):
        moved = contribution(part, kind, *pair[:2]) - contribution(part, kind, *pair[2:])
        return np.linalg.norm(moved, order, axis=1)

    pair = _random_pairs(20_000, k, d, rng)
    found = change(pair)
    best = np.argsort(found)[-50:]
    pair, found = [a[best] for a in pair], found[best]
    for step in np.geomspace(0.5, 1e-3, 150):
        moved = [a + step * rng.standard_normal(a.shape) for a in pair]
        moved = [*_project(*moved[:2]), *_project(*moved[2:])]
        values = change(moved)
        better = values > found
        pair = [np.where(better[:, None], b, a) for a, b in zip(pair, moved, strict=True)]
        found = np.where(better, values, found)
    return float(found.max())


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("noise", ["laplace", "joint"])
def test_what_is_noised_is_what_the_search_is_over(kind, noise):
    """`add_noise` releases exactly the entries whose change is searched below."""
    rng = np.random.default_rng(0)
    d, k = 3, 2
    gamma, x = rng.dirichlet(np.ones(k), size=1), rng.standard_normal((1, d))
    shape = {"zero": None, "spherical": (k,), "diag": (k, d), "full": (k, d, d)}[kind]
    second = None
    if shape:
        phi = {"spherical": x[0] @ x[0], "diag": x[0] ** 2, "full": np.outer(x[0], x[0])}[kind]
        second = np.multiply.outer(gamma[0], phi)
        assert second.shape == shape
    seen = {}

    def spy(name):
        def release(value, source, weight=1.0):
            seen[name] = (value * weight).ravel()
            return value

        return SimpleNamespace(mechanism="laplace", release=release)

    names = ["joint"] if noise == "joint" else ["counts", "sums", "second_moments"]
    plan = {name: spy(name) for name in names}
    noisy = add_noise(plan, gamma[0], gamma[0][:, None] * x, second, None)
    assert set(seen) == set(perturbations(settings(kind, noise, d=d, k=k), 1.0))
    for name, value in seen.items():
        expected = contribution(name, kind, gamma, x)[0]
        np.testing.assert_allclose(value, expected, rtol=1e-14)
    np.testing.assert_allclose(noisy.counts, gamma[0])  # and puts it back where it was
    np.testing.assert_allclose(noisy.sums, gamma[0][:, None] * x)
    if shape:
        np.testing.assert_allclose(noisy.second_moments, second)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("noise", ["laplace", "gaussian", "joint"])
def test_sensitivities_hold_and_are_attained(kind, noise, d):
    for name, part in perturbations(settings(kind, noise, d=d), 1.0).items():
        order = {"l1": 1, "l2": 2}[part.sensitivity.norm]
        found = largest_change(name, kind, order, 3, d)
        assert found <= part.sensitivity.value + 1e-9, name
        assert found >= 0.99 * part.sensitivity.value, name


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("noise", ["laplace", "gaussian", "joint"])
def test_losses_follow_from_the_changes_found(kind, noise, d):
    """rho is l2^2 / (2 b^2) for normal noise, epsilon is l1 / b for Laplace; all clusters."""
    share = 0.3
    for name, part in perturbations(settings(kind, noise, d=d), share).items():
        l1, l2 = (largest_change(name, kind, order, 3, d) for order in (1, 2))
        normal = part.mechanism == "gaussian"
        assert part.claimed.count == 10
        rho = l2**2 / (2.0 * part.scale**2)
        if not normal:
            rho = of_laplace(l1 / part.scale, min(l1, l2) / part.scale)
        assert rho <= part.claimed.rho * (1 + 1e-9)
        assert rho >= 0.98 * part.claimed.rho
        if normal:
            assert math.isinf(part.claimed.epsilon)
        else:
            assert l1 / part.scale <= part.claimed.epsilon * (1 + 1e-9)
            assert l1 / part.scale >= 0.99 * part.claimed.epsilon


@pytest.mark.parametrize("d", [1, 3, 10])
def test_losses_of_the_table(d):
    share, c = 0.2, math.sqrt(2 * math.log(1250.0))
    rho = {
        (kind, noise, name): part.claimed.rho
        for kind in TYPES
        for noise in ("laplace", "gaussian", "joint")
        for name, part in perturbations(settings(kind, noise, d=d), share).items()
    }
    square = share**2
    for kind in TYPES:
        assert rho[kind, "laplace", "counts"] == pytest.approx(of_laplace(share, share / 2**0.5))
        # sums change by 2 sqrt(d) in l1 and by 2 in l2
        expected = of_laplace(share, share / d**0.5)
        assert rho[kind, "laplace", "sums"] == pytest.approx(expected, rel=1e-5)
        assert rho[kind, "laplace", "sums"] < square / (2 * d)
        assert rho[kind, "gaussian", "sums"] == pytest.approx(square / (2 * c**2))
        assert rho[kind, "joint", "joint"] == pytest.approx(square / 2)
    for kind in ("spherical", "diag"):
        moments = rho[kind, "laplace", "second_moments"]
        assert moments == pytest.approx(of_laplace(2 * share, 2**0.5 * share), rel=1e-5)
        assert moments < square
    epsilon, mu = 2 * share, 2**1.5 * share / (d + 1)
    expected = of_laplace(epsilon, min(mu, epsilon))
    assert rho["full", "laplace", "second_moments"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_papers_count_is_not_too_small_in_k_means_mode(noise, k, d):
    """What variant "paper" claims without second moments is at least what the noise costs."""
    for name, part in perturbations(settings("zero", noise, "paper", d=d, k=k), 0.3).items():
        l1, l2 = (largest_change(name, "zero", norm, k, d) for norm in (1, 2))
        cost = l2**2 / (2.0 * part.scale**2)
        if isinstance(part, Laplace):
            cost = of_laplace(l1 / part.scale, min(l1, l2) / part.scale)
        assert 10 * cost <= part.claimed.rho * part.claimed.count * (1 + 1e-9)


# --- budgets ---------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["paper", "corrected"])
@pytest.mark.parametrize(("k", "n_iter", "epsilon"), [(2, 1, 0.05), (3, 10, 0.9), (8, 30, 2.0)])
def test_shares_of_section_5_and_of_equation_31(variant, k, n_iter, epsilon):
    c2 = 2 * math.log(1.25 / 0.01)

    def share(kind, noise, accounting, delta=0.02):
        plan = settings(kind, noise, variant, k=k, n_iter=n_iter, mean_delta=0.01)
        return budget_share(plan, epsilon, delta, accounting)

    for kind in ("spherical", "full"):
        laplace = math.sqrt(2 * epsilon / (n_iter * (2 * k + 1)))
        normal = math.sqrt(2 * epsilon / (n_iter * (k / c2 + k + 1)))
        advanced = epsilon / (2 * math.sqrt(2 * (2 * k + 1) * n_iter * math.log(1 / 0.02)))
        assert share(kind, "laplace", "cdp") == pytest.approx(laplace)
        assert share(kind, "gaussian", "cdp") == pytest.approx(normal)
        assert share(kind, "laplace", "advanced") == pytest.approx(advanced)
        assert share(kind, "gaussian", "advanced") == pytest.approx(advanced)
    # k-means mode: no second moments, K + 1 perturbations an iteration
    laplace = math.sqrt(2 * epsilon / (n_iter * (k + 1)))
    normal = math.sqrt(2 * epsilon / (n_iter * (k / c2 + 1)))
    advanced = epsilon / (2 * math.sqrt(2 * (k + 1) * n_iter * math.log(1 / 0.02)))
    assert share("zero", "laplace", "cdp") == pytest.approx(laplace)
    assert share("zero", "gaussian", "cdp") == pytest.approx(normal)
    assert share("zero", "laplace", "advanced") == pytest.approx(advanced)


def test_equation_31_composes_to_epsilon():
    plan = settings("full", "laplace", "paper")
    share = budget_share(plan, 0.9, 0.01, "advanced")
    composed = math.sqrt(-2 * 70 * math.log(0.01)) * share + 70 * share * math.expm1(share)
    assert 0.5 * 0.9 < composed <= 0.9  # Dwork and Roth, Theorem 3.20


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("noise", ["laplace", "gaussian", "joint"])
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("d", [1, 2, 10])
def test_cdp_budget_is_never_exceeded(kind, noise, k, d):
    """Also for one component: its second moments cost more than Section 5 counts."""
    plan = settings(kind, noise, d=d, k=k)
    share = budget_share(plan, 0.7, DELTA, "cdp")
    promise = promised(plan, share, "cdp")
    assert promise.definition == "cdp"
    assert promise.relation == "replace-one"
    assert promise.mu <= 0.7 * (1 + 1e-12)
    assert promise.tau == pytest.approx(math.sqrt(2 * promise.mu))
    if noise == "joint":
        assert promise.mu == pytest.approx(0.7)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 1000.0])
@pytest.mark.parametrize("k", [1, 3])
def test_advanced_budget_is_never_exceeded(epsilon, k):
    plan = settings("spherical", "laplace", d=1, k=k)
    share = budget_share(plan, epsilon, DELTA, "advanced")
    promise = promised(plan, share, "advanced")
    assert promise.epsilon <= epsilon


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("noise", ["laplace", "gaussian", "joint"])
def test_zcdp_spends_the_budget(kind, noise):
    plan = settings(kind, noise)
    share = budget_share(plan, 1.5, DELTA, "zcdp")
    promise = promised(plan, share, "zcdp")
    assert 0.999 * 1.5 < zcdp_epsilon(promise.total_rho, DELTA) <= 1.5
    assert promise.definition == "approximate"
    assert promise.epsilon <= 1.5
    assert promise.delta == DELTA


@pytest.mark.parametrize(
    ("kind", "noise"),
    [("zero", "laplace"), ("full", "laplace"), ("spherical", "gaussian"), ("full", "joint")],
)
def test_pld_spends_the_budget(kind, noise):
    plan = settings(kind, noise)
    share = budget_share(plan, 1.5, DELTA, "pld")
    promise = promised(plan, share, "pld")
    assert 0.97 * 1.5 < promise.epsilon_at(DELTA) <= 1.5
    assert promise.epsilon <= 1.5


@pytest.mark.parametrize("kind", ["zero", "full"])
def test_joint_share_is_that_of_gaussian_privacy(kind):
    """J normal releases are one with mu = share sqrt(J): Dong, Roth and Su, Corollary 2.13."""
    epsilon, n_iter = 1.0, 7
    plan = settings(kind, "joint", n_iter=n_iter)
    mu = budget_share(plan, epsilon, DELTA, "pld") * math.sqrt(n_iter)
    up, down = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
    delta = stats.norm.cdf(up) - math.exp(epsilon) * stats.norm.cdf(down)
    assert 0.999 * DELTA < delta <= DELTA * (1 + 1e-9)  # the difference of two cancels


@pytest.mark.parametrize("accounting", ["cdp", "advanced", "zcdp", "pld"])
@pytest.mark.parametrize(("kind", "word"), [("spherical", "eq. (16)"), ("full", "(17), (18)")])
def test_the_papers_covariances_leave_no_guarantee(accounting, kind, word):
    plan = settings(kind, "laplace", "paper")
    share = budget_share(plan, 1.0, DELTA, accounting)
    promise = promised(plan, share, accounting)
    assert promise.definition == "none"
    assert math.isinf(promise.epsilon_at(DELTA))
    assert any(word in caveat for caveat in promise.caveats)


@pytest.mark.parametrize(
    ("accounting", "epsilon", "delta", "message"),
    [
        ("cdp", 0.0, 0.1, "epsilon must be a finite number greater than 0, got 0.0"),
        ("pld", -1.0, 0.1, "epsilon"),
        ("zcdp", 1.0, 0.0, "delta"),
        ("pld", 1.0, 1.0, "delta must lie in .0, 1., got 1.0"),
        ("advanced", 1.0, 0.1, "with mean_noise='joint' use 'cdp', 'zcdp' or 'pld'"),
    ],
)
def test_bad_budgets(accounting, epsilon, delta, message):
    with pytest.raises(ValueError, match=message):
        budget_share(settings(), epsilon, delta, accounting)
