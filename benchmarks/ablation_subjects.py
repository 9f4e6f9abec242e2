"""Subspaces and mixtures for `ablation`: data sets, fits, losses, and the stages to leave out.

*subspaces*: `MomentSubspaceClustering` on 10,000 rows near three planes in eight dimensions, with
each of the troubles of `moments`, and near lines, planes and other subspaces in 5 to 30 dimensions.
The loss is the Wasserstein distance of the subspaces from the true ones. *few_features*: the same
in 3 to 6 features.

*mixtures*: `AdaptiveGaussianMixture` on rows of twenty drawn mixtures. The loss is the mean of the
true log density less the fitted one, on 20,000 other rows: an estimate of the Kullback-Leibler
divergence, in nats, at least `LEAST_DIVERGENCE`.

All data are generated; none is in a result of a paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from unittest import mock

import moments
import numpy as np

from privclust.metrics import wasserstein_distance
from privclust.mixtures import AdaptiveGaussianMixture, MixtureParameters, log_density, sample
from privclust.mixtures import _adaptive as adaptive
from privclust.sketches import moment_release
from privclust.subspaces import MomentSubspaceClustering
from privclust.subspaces.moments import _decoding, _estimator, _likelihood, last_round
from privclust.subspaces.moments.union import even_ratio
from privclust.synthetic.subspaces import subspace_mixture

DELTA = 1e-6
LEAST_DIVERGENCE = 1e-4


@dataclass(frozen=True)
class Cell:
    """A data set: a fit by epsilon, seed and parameters, and the loss of a fit."""

    name: str
    fit: Callable[[float, int, dict[str, object]], object]
    loss: Callable[[object], float]


@dataclass(frozen=True)
class Subject:
    """What is measured: modules of constants, stages and data sets."""

    modules: tuple[str, ...]
    stages: dict[str, object]
    cells: Callable[[], list[Cell]]


def subspace_cell(name: str, rows: np.ndarray, bases: np.ndarray) -> Cell:
    """Return rows near subspaces."""
    k, _, q = bases.shape

    def fit(epsilon, seed, parameters):
        how = {"epsilon": epsilon, "delta": DELTA, "random_state": seed, **parameters}
        return MomentSubspaceClustering(k, q, **how).fit(rows)

    return Cell(name, fit, lambda model: wasserstein_distance(model.subspaces_, bases))


def subspace_cells() -> list[Cell]:
    """Return planes with troubles, and subspaces of other sizes (clusters, features, dimension)."""
    cells = [
        subspace_cell(name, *draw(np.random.default_rng(seed)))
        for seed, (name, draw) in enumerate(moments.troubles())
    ]
    for seed, size in enumerate([(2, 5, 1), (4, 6, 2), (5, 10, 3), (3, 20, 3), (2, 30, 2)]):
        rng = np.random.default_rng(100 + seed)
        rows, _, bases = subspace_mixture(10_000, *size, rng, 0.05)
        cells.append(subspace_cell("k = {}, d = {}, q = {}".format(*size), rows, bases))
    return cells


def few_feature_cells() -> list[Cell]:
    """Return subspaces in 3 to 6 features, as rows, clusters, features and dimension."""
    sizes = [(10_000, k, 3, 1) for k in (2, 3, 4)] + [(10_000, k, 4, 2) for k in (2, 3)]
    sizes += [(10_000, 2, 3, 2), (10_000, 3, 5, 2), (10_000, 4, 5, 3), (10_000, 3, 6, 2)]
    sizes += [(2_000, 3, 4, 1), (10_000, 6, 4, 1), (50_000, 6, 3, 1), (50_000, 4, 4, 2)]
    cells = []
    for seed, (n, *size) in enumerate(sizes):
        rows, _, bases = subspace_mixture(n, *size, np.random.default_rng(500 + seed), 0.05)
        cells.append(subspace_cell(f"n = {n}, k = {size[0]}, d = {size[1]}", rows, bases))
    return cells


def simulated_as_decoded(decoded, radius, rng, outside=None, simulated=last_round._simulated):
    """Return what `_simulated` does, at the decoded distance of rows from the subspaces."""
    return simulated(decoded, radius, rng)


def as_decoded(*args, combined=last_round.combined):
    """Return what `combined` does, without the released factors."""
    with mock.patch.multiple(last_round, _SCALES=(1.0, 1.0), _simulated=simulated_as_decoded):
        return combined(*args)


def even_alone(objective, starts, descended=_decoding._descended):
    """Return what `_descended` does, but let unions with an uneven spread explain nothing."""
    return descended(objective, starts) if objective.is_even else (starts, np.full(1, np.inf))


def of_moments(likelihood, unions, rng):
    """Return the best union by moments of degree 2 and 4, in place of `_most_likely`."""
    q = unions[0].bases.shape[2]
    more = {degree: np.log(even_ratio(q, degree)) for degree in likelihood.degrees if degree > 4}
    return replace(unions[0], log_ratios=unions[0].log_ratios | more)


SUBSPACES = Subject(
    modules=(
        *("sketches.moment_release", "subspaces.moments.union", "subspaces.moments._objective"),
        *("subspaces.moments._likelihood", "subspaces.moments._information"),
        *("subspaces.moments._decoding", "subspaces.moments.last_round"),
    ),
    stages={
        "the last round": {"last_round": False},
        "the last round only if all are detected": {"last_round": True},
        "moments of degree 6": (moment_release, "_FEW_FEATURES", 0),
        "many starts": (_decoding, "_N_STARTS", 1),
        "several unions to the end": (_decoding, "_N_BEST", 1),
        "an uneven spread": (_decoding, "_descended", even_alone),
        "the likelihood": (_decoding, "_most_likely", of_moments),
        "covariances at the union": (_decoding, "_N_WHITENINGS", 0),
        "an uneven shape of rows": (_likelihood, "_SHAPE", 1e-6),
        "the choice of the radius": (last_round, "_RADII", (0.1,)),
        "the scale by released factors": (last_round, "_SCALES", (1.0, 1.0)),
        "the distance by released factors": (last_round, "_simulated", simulated_as_decoded),
        "scale and distance": (_estimator, "combined", as_decoded),
    },
    cells=subspace_cells,
)


def drawn_mixture(rng, d, k, *, spreads=(0.1,), weights=None, kind="full"):
    """Return a mixture with means in the unit ball; deviations are drawn from `spreads`."""
    means = rng.standard_normal((k, d))
    means *= 0.8 * (rng.random(k) ** (1 / d) / np.linalg.norm(means, axis=1))[:, None]
    variances = rng.choice(spreads, k)[:, None] ** 2 * rng.uniform(0.3, 1.0, (k, d))
    if kind == "spherical":
        covariances = variances.mean(axis=1)
    elif kind == "diag":
        covariances = variances
    else:
        turns = np.linalg.qr(rng.standard_normal((k, d, d)))[0]
        covariances = turns * variances[:, None, :] @ turns.transpose(0, 2, 1)
    weights = np.full(k, 1.0 / k) if weights is None else np.asarray(weights)
    return MixtureParameters(weights, means, covariances, kind)


def mixture_cell(name: str, seed: int, n: int, norm_bound: float, law: dict[str, object]) -> Cell:
    """Return rows of a drawn mixture."""
    rng = np.random.default_rng(seed)
    truth = drawn_mixture(rng, **law)
    rows, others = (sample(truth, size, rng)[0] for size in (n, 20_000))
    best = log_density(others, truth).mean()

    def fit(epsilon, seed, parameters):
        how = {"covariance_type": truth.covariance_type, "norm_bound": norm_bound, "delta": DELTA}
        how |= {"epsilon": epsilon, "random_state": seed, **parameters}
        return AdaptiveGaussianMixture(truth.n_components, **how).fit(rows)

    return Cell(name, fit, lambda model: max(best - model.score(others), LEAST_DIVERGENCE))


def mixture_cells() -> list[Cell]:
    """Return twenty mixtures."""
    unequal = np.arange(6, 0, -1) / 21.0
    laws = {
        "three in the plane": (10_000, 1.0, {"d": 2, "k": 3}),
        "a wide bound": (10_000, 20.0, {"d": 2, "k": 3}),
        "few rows": (2_000, 1.0, {"d": 2, "k": 3}),
        "twelve in the plane": (20_000, 1.0, {"d": 2, "k": 12, "spreads": (0.05,)}),
        "spherical": (10_000, 1.0, {"d": 4, "k": 5, "kind": "spherical"}),
        "axis-parallel": (10_000, 1.0, {"d": 4, "k": 5, "kind": "diag"}),
        "unequal weights": (20_000, 1.0, {"d": 3, "k": 6, "weights": unequal}),
        "narrow and wide": (20_000, 1.0, {"d": 3, "k": 4, "spreads": (0.03, 0.3)}),
        "overlapping": (20_000, 1.0, {"d": 2, "k": 4, "spreads": (0.35,)}),
        "ten features": (20_000, 1.0, {"d": 10, "k": 4}),
        "five, 3 features": (15_000, 1.0, {"d": 3, "k": 5}),
        "eight, a wide bound": (15_000, 5.0, {"d": 2, "k": 8, "spreads": (0.07,)}),
        "few rows, 3 features": (3_000, 1.0, {"d": 3, "k": 5, "spreads": (0.15,)}),
        "axis-parallel, 6 features": (20_000, 1.0, {"d": 6, "k": 6, "kind": "diag"}),
        "spherical, 8 features": (20_000, 1.0, {"d": 8, "k": 8, "kind": "spherical"}),
        "a share of 3 %": (20_000, 1.0, {"d": 2, "k": 4, "weights": (0.7, 0.2, 0.07, 0.03)}),
        "very narrow and wide": (30_000, 1.0, {"d": 2, "k": 5, "spreads": (0.02, 0.2)}),
        "overlapping, 3 features": (20_000, 1.0, {"d": 3, "k": 6, "spreads": (0.3,)}),
        "one feature": (10_000, 1.0, {"d": 1, "k": 3, "spreads": (0.08,)}),
        "fifteen features": (30_000, 1.0, {"d": 15, "k": 3}),
    }
    return [mixture_cell(name, seed, *law) for seed, (name, law) in enumerate(laws.items())]


def without_memory(run, mixture, refine=adaptive._Run.refine):
    """Return what `refine` does, with measurements alone: the earlier estimate counts nothing."""
    with mock.patch.object(adaptive, "kalman_step", lambda old, *_: (np.ones_like(old), old)):
        return refine(run, mixture)


def with_drift(old, distances, noise, step=adaptive.kalman_step):
    """Return what `kalman_step` does in older versions: it adds a constant to all variances."""
    with mock.patch.object(adaptive, "_CONTRADICTED", 0.0):
        gain, new = step(old, distances, noise)
    return gain, new + 0.0025


MIXTURES = Subject(
    modules=(
        *("mixtures._adaptive", "mixtures._fitted_mixture", "mixtures._noisy_statistics"),
        *("decoding._density",),
    ),
    stages={
        "rounds beyond the first": {"max_iter": 1},
        "an average with earlier rounds": (adaptive._Run, "refine", without_memory),
        "several starts": (adaptive, "_STARTS", 1),
        "shrinkage of the start's covariances": (adaptive, "_TO_THE_MEAN", 0.0),
        "bounds on changes of shape": (adaptive, "_SHAPE_CHANGE", (1e-6, 1e6)),
        "doubt of the start": (adaptive, "_START_VARIANCE", 1e-6),
        "doubt of an average that is contradicted": (adaptive, "_CONTRADICTED", 0.0),
        "contradiction in place of a constant drift": (adaptive, "kalman_step", with_drift),
    },
    cells=mixture_cells,
)
FEW_FEATURES = replace(SUBSPACES, cells=few_feature_cells)
SUBJECTS = {"subspaces": SUBSPACES, "few_features": FEW_FEATURES, "mixtures": MIXTURES}
