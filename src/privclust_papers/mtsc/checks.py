"""Properties of methods that the MTSC paper states, measured on synthetic data.

A trial draws data for a property, and the fit returns a *deviation*. For a method with the property
it is zero up to rounding or the noise variance; for some properties it is a signed difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone

from privclust.metrics.segmentation import l2_error, segmentation_error
from privclust.segmentation import LSR
from privclust.segmentation.mtsc_solver import Schedule, Solution, solve
from privclust.synthetic.subspaces import random_subspaces
from privclust_papers.mtsc.data import GENERATED
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.settings.dotted import construct
from privclust_papers.shared.rows import Point

_AMBIENT = 26  # D of Section 5
_DISJOINT = {"n_per_subspace": 16, "dimension": 11, "n_subspaces": 4}
_INDEPENDENT = {"n_per_subspace": 12, "dimension": 5, "n_subspaces": 4}
_SINGULAR_VALUES = (0.1, 10.0)  # of an invertible map
_SCALES = (0.1, 10.0)  # of points, Phi in eq. (17)
_COMMON = 10.0  # length of the common part of highly correlated points; their own part has 1
_LARGE_PENALTY = 3.0  # beta / N: Lemma 2 asks for "sufficiently large"; ten times the default
_UNUSED = 1e-14  # variance of points of other subspaces in an ideal start
_LINK = 1e-6  # threshold of a link, relative to the largest coefficient


def property_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """Draw noise-free data: independent subspaces for Lemma 1, else disjoint ones."""
    name = point["property"]
    shape = _INDEPENDENT if name == "independent_subspaces" else _DISJOINT
    X, y = random_subspaces(**shape, ambient_dimension=_AMBIENT, rng=streams.get("data"))
    return TrialData(X, y, GENERATED, {"checked": name})


def fit_property(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Return the deviation of a method from a property; NaN if the property does not apply."""

    def fitted(X: np.ndarray) -> Any:
        """Fit the method to samples, from the same start each time."""
        offered = {"n_clusters": data.n_clusters, "random_state": streams.get("init")}
        return construct(estimator, params, **offered).fit(X)

    # independent of the data, and the same for every method
    rng = np.random.default_rng(streams.get("data").integers(2**63, size=4))
    return {"deviation": np.float64(_PROPERTIES[data.facts["checked"]](fitted, data, rng))}


Fitter = Callable[[np.ndarray], Any]


def _orthogonal_map(fitted: Fitter, data: TrialData, rng: np.random.Generator) -> float:
    """Relative change of Z under X -> QX with Q orthogonal (Sections 2 and 4)."""
    turn, _ = np.linalg.qr(rng.standard_normal((_AMBIENT, _AMBIENT)))
    return _change(fitted, data.X, data.X @ turn.T)


def _invertible_map(fitted: Fitter, data: TrialData, rng: np.random.Generator) -> float:
    """Relative change of Z under X -> QX with Q invertible (Sections 2 and 4)."""
    left, _ = np.linalg.qr(rng.standard_normal((_AMBIENT, _AMBIENT)))
    right, _ = np.linalg.qr(rng.standard_normal((_AMBIENT, _AMBIENT)))
    stretch = np.geomspace(*_SINGULAR_VALUES, _AMBIENT)
    return _change(fitted, data.X, data.X @ ((left * stretch) @ right.T))


def _column_scaling(fitted: Fitter, data: TrialData, rng: np.random.Generator) -> float:
    """Growth of the l2 error when points of affine subspaces are scaled: Phi in eq. (17).

    Coefficients are multiplied by the scales of points first, so that the error weighs the
    contributions of points, independently of their units.
    """
    equal, scaled, scales = _scaled_pair(fitted, data, rng)
    grown = l2_error(scales[:, None] * scaled.coefficients_, data.y)
    return grown - l2_error(equal.coefficients_, data.y)


def _column_scaling_labels(fitted: Fitter, data: TrialData, rng: np.random.Generator) -> float:
    """Growth of the segmentation error on the same data: the paper speaks of accuracy."""
    equal, scaled, _ = _scaled_pair(fitted, data, rng)
    before, after = (segmentation_error(data.y, model.labels_) for model in (equal, scaled))
    return after - before


def _scaled_pair(fitted: Fitter, data: TrialData, rng: np.random.Generator) -> tuple:
    """Fit points of affine subspaces as they are and scaled; return both and the scales."""
    offsets = rng.standard_normal((data.n_clusters, _AMBIENT)) / np.sqrt(_AMBIENT)
    scales = np.exp(rng.uniform(*np.log(_SCALES), size=len(data.X)))
    equal = fitted(data.X + offsets[data.y])
    return equal, fitted(scales[:, None] * data.X + offsets[data.y]), scales


def _independent_subspaces(fitted: Fitter, data: TrialData, rng: np.random.Generator) -> float:
    """l2 error for independent subspaces: zero by Lemma 1."""
    return l2_error(fitted(data.X).coefficients_, data.y)


def _dependent_subspaces(fitted: Fitter, data: TrialData, rng: np.random.Generator) -> float:
    """l2 error for independent subspaces minus that for 44 dimensions in 26: negative if larger."""
    X, y = random_subspaces(**_INDEPENDENT, ambient_dimension=_AMBIENT, rng=rng)
    return l2_error(fitted(X).coefficients_, y) - l2_error(fitted(data.X).coefficients_, data.y)


def _lsr_distance(fitted: Fitter, data: TrialData, rng: np.random.Generator) -> float:
    """Relative distance of Z from that of LSR, both with a diagonal of zeros (Section 2)."""
    return _distance_from_lsr(fitted, data.X)


def _lsr_distance_correlated(fitted: Fitter, data: TrialData, rng: np.random.Generator) -> float:
    """Distance of Z from that of LSR for highly correlated points."""
    common = rng.standard_normal(_AMBIENT)
    return _distance_from_lsr(fitted, data.X + _COMMON * common / np.linalg.norm(common))


def _ideal_start(fitted: Fitter, data: TrialData, rng: np.random.Generator) -> float:
    """Objective (16) from the ideal start minus the lowest from others, per coefficient (Lemma 2).

    The others are the default start of the method, and annealing with five restarts.
    """
    models = _with_large_penalty(fitted, data)
    if models is None:
        return float("nan")
    lowest = min(model.objective_history_[-1] for model in models)
    n = len(data.X)
    return float(_from_ideal_start(models[0], data).objective[-1] - lowest) / (n * (n - 1))


def _ideal_answer(fitted: Fitter, data: TrialData, rng: np.random.Generator) -> float:
    """l2 error of Z from the ideal start; 1 if points of a subspace are not connected (Lemma 2)."""
    models = _with_large_penalty(fitted, data, n_models=1)
    if models is None:
        return float("nan")
    Z = _from_ideal_start(models[0], data).coefficients
    links = csr_array(np.abs(Z) > _LINK * np.abs(Z).max())
    is_connected = connected_components(links, directed=False)[0] == data.n_clusters
    return l2_error(Z, data.y) if is_connected else 1.0


def _with_large_penalty(fitted: Fitter, data: TrialData, n_models: int = 2) -> list[Any] | None:
    """Fit MTSC with the penalty of Lemma 2, from its default start, and with annealing."""
    model = clone(fitted(data.X))
    if "weight_penalty" not in model.get_params():
        return None
    model.set_params(weight_penalty=_LARGE_PENALTY)
    annealed = clone(model).set_params(noise_start=3e-2, n_restarts=5, tol=1e-4)
    return [each.fit(data.X) for each in (model, annealed)[:n_models]]


def _from_ideal_start(model: Any, data: TrialData) -> Solution:
    """Run the descent of a fitted MTSC from variances of 1 within subspaces and about 0 between."""
    n = len(data.X)
    penalty = model.weight_penalty * n
    # Only the last nu: annealing would leave the ideal start.
    schedule = Schedule(model.noise_history_[-1:], penalty, max_iter=model.max_iter, tol=model.tol)
    # The scale that MTSC gives samples before its descent: a mean squared norm of 1.
    X = data.X.T * np.sqrt(n) / np.linalg.norm(data.X)
    return solve(X, schedule, np.where(data.y[:, None] == data.y, 1.0, _UNUSED))


def _shape_interaction(fitted: Fitter, data: TrialData, rng: np.random.Generator) -> float:
    """Relative distance of Z from V V', the noise-free solution of LRR and LSR (Section 2)."""
    _, values, basis = np.linalg.svd(data.X.T, full_matrices=False)
    # Data have a lower rank than dimensions; the other singular vectors are arbitrary.
    basis = basis[values > 1e-10 * values[0]]
    return _relative_change(basis.T @ basis, fitted(data.X).coefficients_)


def _objective_increase(fitted: Fitter, data: TrialData, rng: np.random.Generator) -> float:
    """Largest relative increase of objective (16) between iterations at equal nu."""
    model = fitted(data.X)
    if not hasattr(model, "objective_history_"):
        return float("nan")
    same = np.diff(model.noise_history_) == 0.0
    # When nu changes, so does the objective, and its values are not comparable.
    rises = np.diff(model.objective_history_)[same]
    return float(max(rises.max(), 0.0) / np.abs(model.objective_history_).max())


_PROPERTIES = {
    "orthogonal_map": _orthogonal_map,
    "invertible_map": _invertible_map,
    "column_scaling": _column_scaling,
    "column_scaling_labels": _column_scaling_labels,
    "independent_subspaces": _independent_subspaces,
    "dependent_subspaces": _dependent_subspaces,
    "lsr_distance": _lsr_distance,
    "lsr_distance_correlated": _lsr_distance_correlated,
    "ideal_start": _ideal_start,
    "ideal_answer": _ideal_answer,
    "shape_interaction": _shape_interaction,
    "objective_increase": _objective_increase,
}


def _distance_from_lsr(fitted: Fitter, X: np.ndarray) -> float:
    return _relative_change(LSR(1, lam=None).fit(X).coefficients_, fitted(X).coefficients_)


def _change(fitted: Fitter, X: np.ndarray, mapped: np.ndarray) -> float:
    return _relative_change(fitted(X).coefficients_, fitted(mapped).coefficients_)


def _relative_change(before: np.ndarray, after: np.ndarray) -> float:
    return float(np.linalg.norm(after - before) / np.linalg.norm(before))
