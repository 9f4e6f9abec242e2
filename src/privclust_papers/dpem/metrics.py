"""Metrics of private mixtures and clusterings."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privclust.metrics.mixtures import mean_error, normalised_intracluster_variance
from privclust.mixtures import MixtureParameters, log_density
from privclust_papers.pipeline.runner import TrialData

_COVARIANCE_TYPES = {1: "spherical", 2: "diag", 3: "full"}  # by their arrays' dimensions
_EXPOSED_WITHIN = 0.01
_NEAR = 0.05  # nats below the reference that count as near it
_PARAMETERS = ("weights", "means", "covariances")
_FLOORS = tuple(f"floored_{name}" for name in _PARAMETERS)


def evaluate_density(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Return quartiles over starts of the test log-likelihood per point, and rates of the floors.

    ``loss`` is minus the median over the starts, since claims expect smaller values to be better.
    ``lower_quartile`` and ``upper_quartile`` are as in the paper's figures. With true means,
    ``mean_error`` is the median distance to them. For spherical components, ``variance`` is the
    mean over components, median over starts. With a reference (EM), single fits are compared with
    its median: ``beyond`` is the share of starts more than 0.05 nats below, ``worst`` the largest
    gap. The fitted parameters of the first start are kept as arrays.
    """
    scores = _scores(data.extra["test"], outputs)
    low, middle, high = np.quantile(scores, [0.25, 0.5, 0.75])
    metrics = {"loss": -middle, "lower_quartile": low, "upper_quartile": high}
    if "true_means" in data.extra:
        errors = [mean_error(means, data.extra["true_means"]) for means in outputs["means"]]
        metrics["mean_error"] = np.median(errors)
    if _covariance_type(outputs) == "spherical":
        metrics["variance"] = np.median(outputs["covariances"].mean(axis=1))
    if "reference" in data.extra:
        reference = _scores(data.extra["test"], data.extra["reference"])
        gaps = np.median(reference) - scores
        metrics |= {"beyond": (gaps > _NEAR).mean(), "worst": gaps.max()}
    return {**metrics, **_floors_and_first(outputs)}


def _covariance_type(outputs: Mapping[str, np.ndarray]) -> str:
    return _COVARIANCE_TYPES[outputs["covariances"][0].ndim]


def _scores(test: np.ndarray, outputs: Mapping[str, np.ndarray]) -> np.ndarray:
    starts = zip(*(outputs[name] for name in _PARAMETERS), strict=True)
    kind = _covariance_type(outputs)
    densities = [MixtureParameters(*start, kind) for start in starts]
    return np.array([log_density(test, density).mean() for density in densities])


def evaluate_map(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Return how much the means reveal of the far person, and their errors.

    ``exposure``: smallest distance of a released mean to a far person; ``hidden``: 0 if that is
    below 0.01, else 1; ``mean_error``: distance of the means to those of the categories;
    ``em_distance``: to those of the reference, EM; ``log_em_distance``: its decimal logarithm,
    since some means are far away. All in units of the ball's radius.
    """
    distances = np.linalg.norm(outputs["means"][0][:, None] - data.extra["far"][None], axis=2)
    picture = {"points": data.X, "categories": data.y} if data.extra["pictured"] else {}
    exposure = float(distances.min())
    error = mean_error(outputs["means"][0], data.extra["true_means"])
    from_em = mean_error(outputs["means"][0], data.extra["reference"]["means"][0])
    hidden = float(exposure > _EXPOSED_WITHIN)
    metrics = {"exposure": exposure, "hidden": hidden, "mean_error": error}
    metrics["em_distance"] = from_em
    metrics["log_em_distance"] = np.log10(from_em) if from_em > 0.0 else np.nan  # EM's own
    return {**metrics, **picture, **_floors_and_first(outputs)}


def evaluate_centers(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Return the normalised intra-cluster variance (NICV), and the centers."""
    nicv = normalised_intracluster_variance(data.X, outputs["centers"])
    picture = {"points": data.X} if data.extra["pictured"] else {}
    return {"nicv": nicv, "centers": outputs["centers"], **picture}


def _floors_and_first(outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Return mean rates of the floors (NaN without noise), and the first start for figures."""
    rates = outputs["floors"].mean(axis=0) if "floors" in outputs else [np.nan] * len(_FLOORS)
    first = {name: outputs[name][0] for name in _PARAMETERS}
    return {**dict(zip(_FLOORS, rates, strict=True)), **first}
