"""Checks of the paper's statements on budgets and sensitivities, by arithmetic and by search."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom, norm

from privclust.mixtures import PlanSettings, budget_share, perturbations
from privclust.privacy import Neighbours, Sensitivity
from privclust.privacy.accounting import composed_epsilon
from privclust.privacy.measurements import Gamma, Measurement, Wishart, claimed_rho
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.shared.rows import Point
from privclust_papers.shared.statements import Check, Setting, without_rows

_DRAWS = 20_000  # random neighbours in one search
_RULE_DELTA = 0.01  # of advanced composition
_CHANGED = 1e-9  # of a sum of squares: a change that is not rounding
_DELTAS = {"1e4": 1e-4, "1e6": 1e-6}


def statement_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """Draw sizes at which ``statement``, a key of `STATEMENTS`, is checked."""
    rng = streams.get("data")
    extra = {
        "check": STATEMENTS[point["statement"]],
        "n_features": int(rng.choice([1, 2, 3, 10])),
        "n_components": int(rng.choice([2, 3, 8])),
        "n_iter": int(rng.choice([1, 5, 10, 30])),
        "epsilon": float(10.0 ** rng.uniform(-2.0, 0.0)),
        "delta": float(10.0 ** rng.uniform(-6.0, -2.0)),
        "n_effective": float(rng.choice([5.0, 50.0, 500.0])),
    }
    return without_rows(extra)


def _cdp_budget(mean_noise: str, setting: Setting, rng: np.random.Generator) -> float:
    """Section 5: the mean losses at its shares add up to epsilon.

    The loss of a pure release is that of randomised response, the worst case; that of Gaussian
    noise is integrated numerically.
    """
    settings = _settings(setting, mean_noise)
    share = budget_share(settings, setting["epsilon"], 0.5, "cdp")
    worst = float(_relative_entropy(*_randomised_response(share)))
    means = worst
    if mean_noise == "gaussian":
        c = math.sqrt(2.0 * math.log(1.25 / settings.mean_delta))  # below eq. (15)
        means = _mean_loss_of_normal_noise(share / c)
    # In each iteration: the weights and K covariances are pure releases, K means have their noise.
    k = settings.n_components
    return settings.n_iter * ((k + 1) * worst + k * means) / setting["epsilon"] - 1.0


def _randomised_response(epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities of the outcomes for both answers."""
    truth = 1.0 / (1.0 + math.exp(-epsilon))
    answer = np.array([truth, 1.0 - truth])
    return answer, answer[::-1]


def _relative_entropy(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the mean privacy loss log(p / q) under p, with outcomes along the last axis."""
    return (p * np.log(p / q)).sum(axis=-1)


def _mean_loss_of_normal_noise(shift: float) -> float:
    """Return the mean privacy loss of Gaussian noise for a shift in standard deviations."""
    x = np.linspace(-12.0, 12.0, 4001)
    p, q = norm.logpdf(x), norm.logpdf(x - shift)
    return float(np.trapezoid(np.exp(p) * (p - q), x))


def _advanced_budget(setting: Setting, rng: np.random.Generator) -> float:
    """Eq. (31): the exact epsilon of its shares at delta_1.

    The worst case of pure releases is repeated randomised response, with a loss of eps' for each
    true answer and -eps' for each false one.
    """
    settings = _settings(setting, "laplace")
    share = budget_share(settings, setting["epsilon"], setting["delta"], "advanced")
    n = settings.n_iter * (2 * settings.n_components + 1)
    n_true = np.arange(n + 1)
    probabilities = binom.pmf(n_true, n, _randomised_response(share)[0][0])
    losses = share * (2.0 * n_true - n)

    def spare(epsilon: float) -> float:
        # The least delta at an epsilon: the mean of 1 - e^(epsilon - loss) over larger losses.
        failure = (probabilities * np.maximum(-np.expm1(epsilon - losses), 0.0)).sum()
        return setting["delta"] - float(failure)

    exact = 0.0 if spare(0.0) >= 0.0 else brentq(spare, 0.0, n * share)
    return exact / setting["epsilon"] - 1.0


def _failure_jointly(setting: Setting, rng: np.random.Generator) -> float:
    """Appendix C: the joint l2 sensitivity of the K means of an iteration is at most 2 / N_k."""
    k, d = setting["n_components"], setting["n_features"]
    rows, weights = _neighbours(rng, d, k)
    change = weights[0][..., None] * rows[0][:, None] - weights[1][..., None] * rows[1][:, None]
    # The factor 1 / N_k is on both sides and left out.
    return float(np.sqrt((change**2).sum(axis=(1, 2))).max()) / 2.0 - 1.0


def _mean_loss(setting: Setting, rng: np.random.Generator) -> float:
    """Footnote 6: the mean loss of eps'-DP is at most eps'^2 / 2, searched over two outcomes.

    Two outcomes suffice: the loss is convex, and extreme if all ratios are exp(+-eps').
    """
    epsilon = setting["epsilon"]
    p = np.append(rng.random(_DRAWS), _randomised_response(epsilon)[0])
    # The extreme probabilities of a neighbour: both outcomes' ratios stay within e^eps'.
    far = np.minimum(p * math.exp(epsilon), 1.0 - (1.0 - p) * math.exp(-epsilon))
    near = np.maximum(p * math.exp(-epsilon), 1.0 - (1.0 - p) * math.exp(epsilon))
    pairs = [np.stack([ends, 1.0 - ends], axis=-1) for ends in (far, near)]
    truth = np.stack([p, 1.0 - p], axis=-1)
    return (
        float(max(_relative_entropy(truth, pair).max() for pair in pairs)) / (epsilon**2 / 2.0)
        - 1.0
    )


def _largest_change(
    statistic: Callable[..., np.ndarray], bound: Callable[[Setting], float]
) -> Check:
    """Return a check that searches for the largest change of one component's statistic."""

    def excess(setting: Setting, rng: np.random.Generator) -> float:
        rows, weights = _neighbours(rng, setting["n_features"], setting["n_components"])
        changes = statistic(setting, rows, weights, rng)
        return float(changes.max()) / bound(setting) - 1.0

    return excess


def _neighbours(
    rng: np.random.Generator, d: int, k: int
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    def rows() -> np.ndarray:
        # Rows at which bounds are attained (the largest l1 norm, axes, the origin), and any others.
        signs = rng.choice([-1.0, 1.0], size=(_DRAWS, d)) / math.sqrt(d)
        axes = np.eye(d)[rng.integers(d, size=_DRAWS)] * rng.choice([-1.0, 1.0], size=(_DRAWS, 1))
        free = rng.normal(size=(_DRAWS, d))
        free /= np.linalg.norm(free, axis=1, keepdims=True)
        free *= rng.random((_DRAWS, 1))
        kind = rng.integers(4, size=_DRAWS)[:, None]
        return np.select([kind == 0, kind == 1, kind == 2], [signs, axes, 0.0 * free], free)

    def weights() -> np.ndarray:
        hard = np.eye(k)[rng.integers(k, size=_DRAWS)]
        soft = rng.dirichlet(np.full(k, 0.5), size=_DRAWS)
        return np.where(rng.random((_DRAWS, 1)) < 0.5, hard, soft)

    return (rows(), rows()), (weights(), weights())


def _weights_change(setting, rows, weights, rng) -> np.ndarray:
    """l1 change of all mixing weights at N rows, eq. (13)."""
    return np.abs(weights[0] - weights[1]).sum(axis=1) / setting["n_effective"]


def _means_change(norm: int, prior: float) -> Callable[..., np.ndarray]:
    """Change of one mean at a given N_k, eqs. (14), (20), (22), with kappa_0 in (23), (24)."""

    def change(setting, rows, weights, rng) -> np.ndarray:
        moved = weights[0][:, :1] * rows[0] - weights[1][:, :1] * rows[1]
        return np.linalg.norm(moved, ord=norm, axis=1) / (setting["n_effective"] + prior)

    return change


def _trace_change(setting, rows, weights, rng) -> np.ndarray:
    """Change of the trace of one covariance at given N_k and mean, eqs. (16), (26), (27)."""
    squared = [(r**2).sum(axis=1) * w[:, 0] for r, w in zip(rows, weights, strict=True)]
    return (squared[0] - squared[1]) / setting["n_effective"]


def _map_trace_change(setting, rows, weights, rng) -> np.ndarray:
    """Change of the trace in eq. (28), with the means of each data set.

    The sum of the other rows is along an axis, of a length up to that of N_k - 1 rows in the ball.
    """
    n, d = setting["n_effective"], setting["n_features"]
    others = np.zeros(d)
    others[0] = rng.uniform(-1.0, 1.0) * (n - 1.0)
    traces = []
    for r, w in zip(rows, weights, strict=True):
        mean = (others + w[:, :1] * r) / n
        pull = n - n / (1.0 + n)  # - N_k mu'mu + kappa_0 N_k / (N_k + kappa_0) mu'mu, negated
        second = (r**2).sum(axis=1) * w[:, 0]
        traces.append((second - pull * (mean**2).sum(axis=1)) / (n + 2.0 * (d + 2.0)))
    return traces[0] - traces[1]


def _map_trace_bound(setting: Setting) -> float:
    """Eq. (29): 1 / (N_k + c), c = nu_0 + d + 2 with nu_0 = d + 2."""
    return 1.0 / (setting["n_effective"] + 2.0 * (setting["n_features"] + 2.0))


def _gamma_excluded(setting: Setting, rng: np.random.Generator) -> float:
    """Share of Gamma outputs that are impossible for a neighbour; 0 under pure privacy.

    A cluster of N_k rows at 0 is compared with one row at norm 1.
    """
    size = 1.0 / (setting["n_features"] * setting["n_effective"])
    bound = Sensitivity(size, "l1", Neighbours.REPLACE_ONE, "DP-EM, below eq. (16)")
    outputs = Gamma(bound, setting["epsilon"]).release(np.zeros(_DRAWS), rng)
    return float((outputs < bound.value).mean())


def _wishart_excluded(setting: Setting, rng: np.random.Generator) -> float:
    """Share of Wishart outputs that are impossible for a neighbour; see `_gamma_excluded`."""
    d, size = setting["n_features"], 1.0 / setting["n_effective"]
    bound = Sensitivity(size, "trace", Neighbours.REPLACE_ONE, "DP-EM, eq. (27)")
    outputs = Wishart(bound, setting["epsilon"]).release(np.zeros((_DRAWS // 10, d, d)), rng)
    neighbour = np.zeros((d, d))
    neighbour[0, 0] = bound.value
    return float((np.linalg.eigvalsh(outputs - neighbour)[:, 0] < 0.0).mean())


def _covariances_changed(setting: Setting, rng: np.random.Generator) -> float:
    """Appendix B: half the number of Gaussians whose covariance one row changes, minus 1.

    At a given N_k and mean, as in eq. (25). With two Gaussians the statement cannot fail.
    """
    rows, weights = _neighbours(rng, setting["n_features"], max(setting["n_components"], 3))
    one, other = ((r**2).sum(axis=1)[:, None] * w for r, w in zip(rows, weights, strict=True))
    return float((np.abs(one - other) > _CHANGED).sum(axis=1).max()) / 2.0 - 1.0


def _noise_by_rows(setting: Setting, rng: np.random.Generator) -> float:
    """Introduction: by how much ten times the rows change the noise of a mean over DPLloyd's.

    It is -0.9 if "the 1/N factor" is the paper's only. DPLloyd has Laplace noise of scale
    (d + 1) J / epsilon on counts and sums (Section 6), and divides one by the other.
    """
    d, scale = setting["n_features"], (setting["n_features"] + 1) * setting["n_iter"]
    share = budget_share(_settings(setting, "laplace"), setting["epsilon"], 0.5, "cdp")

    def spread(draws: np.ndarray) -> float:
        return float(np.subtract(*np.quantile(draws, [0.75, 0.25])))

    def ratio(n: float) -> float:
        ours = rng.laplace(0.0, 2.0 * math.sqrt(d) / (n * share), _DRAWS)
        of_sums, of_counts = rng.laplace(0.0, scale / setting["epsilon"], (2, _DRAWS))
        mean = 1.0 / math.sqrt(d)  # of a row on the unit sphere
        return spread(ours) / spread((n * mean + of_sums) / (n + of_counts))

    n = 10.0 * scale / setting["epsilon"]  # fewer rows than the noise on their number: no mean
    return ratio(10.0 * n) / ratio(n) - 1.0


def _mean_bound(norm: int, prior: float) -> Callable[[Setting], float]:
    def bound(setting: Setting) -> float:
        largest = 2.0 * math.sqrt(setting["n_features"]) if norm == 1 else 2.0
        return largest / (setting["n_effective"] + prior)

    return bound


STATEMENTS: dict[str, Check] = {
    "budget_cdp_laplace": partial(_cdp_budget, "laplace"),
    "budget_cdp_gaussian": partial(_cdp_budget, "gaussian"),
    "budget_advanced": _advanced_budget,
    "failure_jointly": _failure_jointly,
    "mean_loss": _mean_loss,
    "weights": _largest_change(_weights_change, lambda s: 2.0 / s["n_effective"]),
    "means_l1": _largest_change(_means_change(1, 0.0), _mean_bound(1, 0.0)),
    "means_l2": _largest_change(_means_change(2, 0.0), _mean_bound(2, 0.0)),
    "means_l1_map": _largest_change(_means_change(1, 1.0), _mean_bound(1, 1.0)),
    "means_l2_map": _largest_change(_means_change(2, 1.0), _mean_bound(2, 1.0)),
    "trace": _largest_change(_trace_change, lambda s: 1.0 / s["n_effective"]),
    "trace_map": _largest_change(_map_trace_change, _map_trace_bound),
    "two_covariances": _covariances_changed,
    "noise_by_rows": _noise_by_rows,
    "gamma_private": _gamma_excluded,
    "wishart_private": _wishart_excluded,
}


def budget_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """Return a trial without data: the comparison depends only on the rule and the sizes.

    The point has ``epsilon``, and the sizes ``n_components``, ``n_features``, ``n_iter``.
    """
    return without_rows(point)


def compose_budget(
    data: TrialData, streams: TrialStreams, *, accounting: str, mean_noise: str
) -> dict[str, np.ndarray]:
    """Return the privacy loss of a rule's noise, with corrected Gamma and Wishart noise.

    The rule, `accounting` ("cdp" or "advanced") and `mean_noise`, is that of
    `privclust.mixtures.PrivateGaussianMixture`. Returns ``claimed_rho`` by the paper's count of
    releases, ``rho`` by their joint sensitivity, and ``epsilon_<delta>`` at delta = 1e-4 and 1e-6,
    the least of basic composition, zCDP and PLD.
    """
    corrected = _settings({**data.extra, "variant": "corrected"}, mean_noise)
    share = budget_share(corrected, data.extra["epsilon"], _RULE_DELTA, accounting)
    # the joint release is not in the paper: it is counted as one release
    counted = corrected if mean_noise == "joint" else replace(corrected, variant="paper")
    plan = perturbations(corrected, share).values()
    losses = [noise.claimed for noise in plan]
    costs = {"claimed_rho": sum(map(_by_footnote_6, perturbations(counted, share).values()))}
    costs["rho"] = claimed_rho(plan)
    costs |= {f"epsilon_{name}": composed_epsilon(losses, delta) for name, delta in _DELTAS.items()}
    return {name: np.float64(cost) for name, cost in costs.items()}


def _by_footnote_6(noise: Measurement) -> float:
    """Return the paper's count: half the square of epsilon for a pure release."""
    loss = noise.claimed
    return loss.count * (loss.epsilon**2 / 2.0 if math.isfinite(loss.epsilon) else loss.rho)


def _settings(setting: Setting, mean_noise: str) -> PlanSettings:
    return PlanSettings(
        n_features=int(setting["n_features"]),
        n_components=int(setting["n_components"]),
        n_iter=int(setting["n_iter"]),
        covariance_type=setting.get("covariance_type", "spherical"),
        mean_noise=mean_noise,
        variant=setting.get("variant", "paper" if mean_noise != "joint" else "corrected"),
        mean_delta=setting.get("mean_delta", 1e-3),
    )
