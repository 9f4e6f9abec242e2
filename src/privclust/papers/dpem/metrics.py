"""Metrics of private mixtures and clusterings."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privclust.metrics.mixtures import mean_error, normalised_intracluster_variance
from privclust.mixtures import MixtureParameters, log_density
from privclust.pipeline.runner import TrialData

_KINDS = {1: "spherical", 3: "full"}
_AT_THE_SPOT = 0.01
_FLOORS = ("floored_weights", "floored_means", "floored_covariances")


def evaluate_density(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Test log-likelihood per point over the starts: quartiles, and rates of the floors.

    ``loss`` is minus the median over the starts, so that less is better, as claims compare it;
    ``lower_quartile`` and ``upper_quartile`` bound the interquartile range of the paper's figures.
    With true means, ``mean_error`` is the median distance to them. The fitted parameters of the
    first start are kept as arrays.
    """
    scores, errors = [], []
    for start in range(len(outputs["weights"])):
        parameters = _parameters(outputs, start)
        scores.append(log_density(data.extra["test"], parameters).mean())
        if "true_means" in data.extra:
            errors.append(mean_error(parameters.means, data.extra["true_means"]))
    low, middle, high = np.quantile(scores, [0.25, 0.5, 0.75])
    found = {"loss": -middle, "lower_quartile": low, "upper_quartile": high}
    if errors:
        found["mean_error"] = np.median(errors)
    return {**found, **_floors(outputs), **_first(outputs)}


def evaluate_map(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """How much the means tell of the one who is far away, and where they are.

    ``exposure``: distance of the nearest released mean to the nearest person from far away;
    ``hidden``: 0 where that is below a hundredth of the ball's radius, else 1; ``mean_error``:
    distance of the means to those of the categories. In units of the ball.
    """
    distances = np.linalg.norm(outputs["means"][0][:, None] - data.extra["far"][None], axis=2)
    picture = {"points": data.X, "categories": data.y} if data.extra["pictured"] else {}
    exposure = float(distances.min())
    error = mean_error(outputs["means"][0], data.extra["true_means"])
    found = {"exposure": exposure, "hidden": float(exposure > _AT_THE_SPOT), "mean_error": error}
    return {**found, **picture, **_floors(outputs), **_first(outputs)}


def evaluate_centers(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Normalised intra-cluster variance (NICV), and the centers."""
    nicv = normalised_intracluster_variance(data.X, outputs["centers"])
    picture = {"points": data.X} if data.extra["pictured"] else {}
    return {"nicv": nicv, "centers": outputs["centers"], **picture}


def _parameters(outputs: Mapping[str, np.ndarray], start: int) -> MixtureParameters:
    """Return the mixture fitted from one start."""
    covariances = outputs["covariances"][start]
    kind = _KINDS[covariances.ndim]
    return MixtureParameters(outputs["weights"][start], outputs["means"][start], covariances, kind)


def _floors(outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Mean rates of the floors; NaN where nothing is noised."""
    if "floors" not in outputs:
        return dict.fromkeys(_FLOORS, float("nan"))
    return dict(zip(_FLOORS, outputs["floors"].mean(axis=0), strict=True))


def _first(outputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Parameters of the first start, for pictures."""
    return {name: outputs[name][0] for name in ("weights", "means", "covariances")}
