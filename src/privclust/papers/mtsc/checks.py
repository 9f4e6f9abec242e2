"""Properties that the MTSC paper states of the methods, measured on generated data.

A trial draws data on which a property should show, and the fit returns a *deviation*: zero, to
rounding or to the noise variance, for a method that has the property.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from privclust.core.dotted import construct
from privclust.datasets.synthetic import random_subspaces
from privclust.metrics.segmentation import l2_error
from privclust.papers.mtsc.data import GENERATED
from privclust.papers.rows import Point
from privclust.pipeline.runner import TrialData, TrialStreams

_AMBIENT = 26  # D of Section 5
_DISJOINT = {"n_per_subspace": 16, "dimension": 11, "n_subspaces": 4}
_INDEPENDENT = {"n_per_subspace": 12, "dimension": 5, "n_subspaces": 4}
_SINGULAR_VALUES = (0.1, 10.0)  # of an invertible map
_SCALES = (0.1, 10.0)  # of points, Phi in eq. (17)


def property_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """Draw noise-free data: independent subspaces for Lemma 1, else disjoint ones."""
    name = point["property"]
    shape = _INDEPENDENT if name == "independent_subspaces" else _DISJOINT
    X, y = random_subspaces(**shape, ambient_dimension=_AMBIENT, rng=streams.get("data"))
    return TrialData(X, y, GENERATED, {"checked": name})


def fit_property(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Measure how far a method is from having a property; NaN where it has no meaning for it."""

    def fitted(X: np.ndarray) -> Any:
        """Fit the method to samples, from the same start each time."""
        offered = {"n_clusters": data.n_clusters, "random_state": streams.get("init")}
        return construct(estimator, params, **offered).fit(X)

    # drawn apart from the data, and the same for every method
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

    A point's coefficient is multiplied by its scale before the error is taken, so that the error
    weighs what each point contributes and not the units it is measured in.
    """
    offsets = rng.standard_normal((data.n_clusters, _AMBIENT)) / np.sqrt(_AMBIENT)
    scales = np.exp(rng.uniform(*np.log(_SCALES), size=len(data.X)))
    equal = fitted(data.X + offsets[data.y]).coefficients_
    scaled = fitted(scales[:, None] * data.X + offsets[data.y]).coefficients_
    return l2_error(scales[:, None] * scaled, data.y) - l2_error(equal, data.y)


def _independent_subspaces(fitted: Fitter, data: TrialData, rng: np.random.Generator) -> float:
    """l2 error where subspaces are independent: zero by Lemma 1."""
    return l2_error(fitted(data.X).coefficients_, data.y)


def _shape_interaction(fitted: Fitter, data: TrialData, rng: np.random.Generator) -> float:
    """Relative distance of Z from V V', the noise-free solution of LRR and LSR (Section 2)."""
    _, values, basis = np.linalg.svd(data.X.T, full_matrices=False)
    basis = basis[values > 1e-10 * values[0]]
    return _relative_change(basis.T @ basis, fitted(data.X).coefficients_)


def _objective_increase(fitted: Fitter, data: TrialData, rng: np.random.Generator) -> float:
    """Largest rise of objective (16) between iterations at the same nu and beta, relative to it."""
    model = fitted(data.X)
    if not hasattr(model, "objective_history_"):
        return float("nan")
    same = np.diff(model.noise_history_) == 0.0
    if hasattr(model, "weight_penalty_history_"):
        same &= np.diff(model.weight_penalty_history_) == 0.0
    rises = np.diff(model.objective_history_)[same]
    return float(max(rises.max(), 0.0) / np.abs(model.objective_history_).max())


_PROPERTIES = {
    "orthogonal_map": _orthogonal_map,
    "invertible_map": _invertible_map,
    "column_scaling": _column_scaling,
    "independent_subspaces": _independent_subspaces,
    "shape_interaction": _shape_interaction,
    "objective_increase": _objective_increase,
}


def _change(fitted: Fitter, X: np.ndarray, mapped: np.ndarray) -> float:
    """Relative change of Z between two versions of the data."""
    return _relative_change(fitted(X).coefficients_, fitted(mapped).coefficients_)


def _relative_change(before: np.ndarray, after: np.ndarray) -> float:
    """Norm of a change in parts of what it begins at."""
    return float(np.linalg.norm(after - before) / np.linalg.norm(before))
