"""Trials of compressive k-means: mixtures of any size, and real data sets with public bounds.

Each point has ``n_clusters``. The extra of a trial has ``n_clusters``, ``bounds`` (public) and
``n_frequencies``, the largest number of any method; for mixtures also ``means`` and ``seed``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from privclust.core.validation import signature_of
from privclust.synthetic.clusters import MixtureRows, draw_mixture
from privclust_papers.datasets import lifesci
from privclust_papers.pipeline.runner import TrialData, TrialStreams, random_state_for
from privclust_papers.settings.dotted import COMPLETE, construct
from privclust_papers.shared.rows import Dataset, Point, centers_of, random_subset

GENERATED = "generated as the paper describes"
OTHER_MIXTURE = "generated: not the paper's mixture"
_BOX_IN_DEVIATIONS = 4.0  # half width of the declared bounds, in standard deviations
_LARGE = 1_000_000  # least number of rows for float32
_GOOD_EPSILON = 1e-2  # above which the paper calls its results good


class Rows:
    """Rows of a mixture, drawn at first use and then kept."""

    def __init__(self, mixture: MixtureRows) -> None:
        self.mixture = mixture

    @cached_property
    def array(self) -> np.ndarray:
        """All rows (n_samples, n_features), in float64, or float32 from a million rows on."""
        return self.mixture.to_array(np.float32 if self.mixture.n_samples >= _LARGE else float)


def as_array(X) -> np.ndarray:
    """Return the rows of a trial, drawn or read, as one array."""
    return X.array if isinstance(X, Rows) else X


def mixture_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    r"""Return a mixture of Gaussians of Section 5, or of another shape, drawn at first use.

    The declared bounds are :math:`[-b, b]^d` with b four standard deviations of a coordinate under
    the paper's distribution of mixtures, :math:`b = 4 \sqrt{1 + 2.25\, k^{2/d}}`, which is public.
    The point also has ``n_samples``, ``n_features`` and, optionally, ``shape`` (of
    `privclust.synthetic.clusters.draw_mixture`; "paper") and ``n_frequencies``.
    """
    k, d = point["n_clusters"], point["n_features"]
    shape = point.get("shape", "paper")
    seed = int(streams.get("data").integers(2**63))
    mixture = draw_mixture(shape, point["n_samples"], k, d, seed)
    # A coordinate's variance: 1 within a cluster, and (1.5 k^(1/d))^2 of the means.
    half_width = _BOX_IN_DEVIATIONS * math.sqrt(1.0 + (1.5 * k ** (1.0 / d)) ** 2)
    extra = {
        "n_clusters": k,
        "bounds": (np.full(d, -half_width), np.full(d, half_width)),
        "means": mixture.centers,
        "n_frequencies": point.get("n_frequencies"),
        "seed": seed,
    }
    source = GENERATED if shape == "paper" else OTHER_MIXTURE
    return TrialData(Rows(mixture), None, source, extra=extra)


def s1_trial(point: Point, trial: int, streams: TrialStreams, dataset: Dataset) -> TrialData:
    """Return S1 with its published bounds; trials differ by noise."""
    return _real(dataset["X"], dataset["source"], (-1.0, 1.0), point["n_clusters"])


def gowalla_trial(point: Point, trial: int, streams: TrialStreams, dataset: Dataset) -> TrialData:
    """Return ``n_samples`` random check-ins, with the bounds of longitude and latitude."""
    points = random_subset(dataset["points"], point["n_samples"], streams)
    globe = np.array([180.0, 90.0])
    return _real(points, dataset["source"], (-globe, globe), point["n_clusters"])


def lifesci_trial(point: Point, trial: int, streams: TrialStreams, dataset: Dataset) -> TrialData:
    """Return the components of Life Sciences with published bounds; trials differ by noise."""
    bounds = (lifesci.LOWER, lifesci.UPPER)
    return _real(dataset["X"], dataset["source"], bounds, point["n_clusters"])


def _real(X: np.ndarray, source: str, bounds, n_clusters: int) -> TrialData:
    d = X.shape[1]
    low, high = (np.broadcast_to(np.asarray(bound, dtype=float), (d,)) for bound in bounds)
    extra = {"n_clusters": n_clusters, "bounds": (low, high), "n_frequencies": None}
    return TrialData(X, None, source, extra=extra)


def budget_regime(epsilon: float) -> np.float64:
    """Return 2 above epsilon = 0.01, where the paper calls its results good, 1 at it, 0 below."""
    return np.float64(1.0 + np.sign(epsilon - _GOOD_EPSILON))


def fit_clusters(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Cluster a trial's rows by an estimator of any class.

    The estimator receives those of these arguments that it accepts: the number of clusters, the
    declared bounds and the noise stream. An estimator with a norm bound receives the ball around
    the bounds, with centred rows. Returns ``centers`` (n_clusters, n_features), NaN if the method
    cannot be run; with an epsilon ``regime``, see `budget_regime`; if the estimator has an
    ``inertia_``, ``sse`` and, for mixtures, ``sse_true`` from a start at the true means.
    """
    accepted = signature_of(estimator).parameters
    low, high = data.extra["bounds"]
    k, X, offset = data.extra["n_clusters"], as_array(data.X), np.zeros(len(low))
    offered = {
        "n_clusters": k,
        "n_components": k,
        "bounds": (low, high),
        "random_state": random_state_for(estimator, streams.get("noise")),
    }
    if "norm_bound" in accepted and "bounds" not in accepted:
        # The ball around the box has its center at 0 only after this shift.
        offset = 0.5 * (low + high)
        X = X - offset
        offered["norm_bound"] = float(np.linalg.norm(0.5 * (high - low)))
    model = construct(estimator, params, **COMPLETE, **offered)
    outputs = {"regime": budget_regime(params["epsilon"])} if "epsilon" in params else {}
    if not _fitted(model, X):
        return outputs | {"centers": np.full((k, len(low)), np.nan)}
    outputs["centers"] = centers_of(model) + offset
    if hasattr(model, "inertia_"):
        outputs["sse"] = np.float64(model.inertia_)
        if "means" in data.extra:
            from_means = construct(
                estimator, {**params, "init": data.extra["means"]}, **COMPLETE, **offered
            )
            outputs["sse_true"] = np.float64(from_means.fit(X).inertia_)
    return outputs


def _fitted(model, X) -> bool:
    """Fit a model; return False if its grid would exceed the memory limit."""
    with warnings.catch_warnings():
        # bounds are for the distribution, not the sample: some rows are outside by design
        warnings.filterwarnings("ignore", message="rows outside bounds")
        warnings.filterwarnings("ignore", message="rows with a norm above")
        try:
            model.fit(X)
        except ValueError as error:
            if "the grid needs" not in str(error):
                raise
            return False
    return True
