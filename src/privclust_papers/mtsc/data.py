"""Trials of subspace segmentation: generated subspaces and filmed motions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust.core.spectral import estimate_n_clusters, spectral_clustering
from privclust.synthetic.subspaces import random_subspaces
from privclust_papers.datasets.hopkins155 import parent_scene
from privclust_papers.pipeline.runner import TrialData, TrialStreams, random_state_for
from privclust_papers.settings.config import ConfigError
from privclust_papers.settings.dotted import construct
from privclust_papers.shared.rows import Dataset, Point

SCENE = "scene"  # fact: sequences of a scene are cut from the same film
_MOST_CLUSTERS = 20  # limit of the estimated number of clusters
GENERATED = "generated as the paper describes"


def random_subspace_trial(
    point: Point, trial: int, streams: TrialStreams, dataset: None
) -> TrialData:
    """Draw the data of Section 5, simulated data: K random subspaces, n Gaussian points in each.

    The point has ``ambient_dimension`` D, ``dimension`` d, ``n_subspaces`` K, ``n_per_subspace`` n.
    """
    return TrialData(*random_subspaces(**_shape(point), rng=streams.get("data")), GENERATED)


def gaussian_map_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """Draw the data by another reading: maps with Gaussian entries, points of any norm."""
    maps = {"orthonormal": False, "unit_norm": False}
    return TrialData(*random_subspaces(**_shape(point), **maps, rng=streams.get("data")), GENERATED)


def _shape(point: Point) -> dict[str, int]:
    sizes = ("n_per_subspace", "dimension", "n_subspaces", "ambient_dimension")
    return {name: point[name] for name in sizes}


def motion_trial(point: Point, trial: int, streams: TrialStreams, dataset: Dataset) -> TrialData:
    """Return a motion sequence: a sample is the trajectory of one tracked point.

    The trial is the index of the sequence, sorted by number of motions, then by name.
    """
    return _sequence_trial(dataset, _ordered(dataset), trial)


def tuning_trial(point: Point, trial: int, streams: TrialStreams, dataset: Dataset) -> TrialData:
    """Return a motion sequence of the tuning split; see `motion_trial`."""
    order = _ordered(dataset)
    return _sequence_trial(dataset, order[dataset["split"][order] == b"tuning"], trial)


def _ordered(dataset: Dataset) -> np.ndarray:
    return np.argsort(dataset["n_motions"], kind="stable")  # they are sorted by name


def _sequence_trial(dataset: Dataset, order: np.ndarray, trial: int) -> TrialData:
    """Return a sequence as samples, with facts by which tables are split."""
    source = dataset["source"]
    if trial >= len(order):
        raise ConfigError(
            f"trials: got {trial}; it must be 0 to {len(order) - 1}, one a sequence of {source}"
        )
    place = order[trial]
    name, family, split = (dataset[key][place].decode() for key in ("name", "family", "split"))
    facts = {"sequence": name, SCENE: parent_scene(name)}
    facts |= {"n_motions": int(dataset["n_motions"][place]), "family": family, "split": split}
    x, labels = (dataset[f"sequences/{place:03d}/{key}"] for key in ("trajectories", "labels"))
    return TrialData(x.T, labels, source, facts)


def fit_segmentation(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Segment the samples of a trial with the true number of clusters.

    Returns ``labels``; and, if the estimator has coefficients, ``coefficients`` (Z, single
    precision), ``labels_unit_columns``, from the affinity (3) of Z with columns of norm 1, and
    ``n_estimated``, the number of clusters by the eigengap of (3); for a descent of (16) also the
    values of `descent_end`.
    """
    random_state = random_state_for(estimator, streams.get("init"))
    offered = {"n_clusters": data.n_clusters, "random_state": random_state}
    model = construct(estimator, params, **offered).fit(data.X)
    outputs = {"labels": np.asarray(model.labels_, dtype=np.int32)}
    if hasattr(model, "coefficients_"):
        Z = np.asarray(model.coefficients_)
        # A generator of its own: the stream itself would repeat the numbers of the fit.
        rng = np.random.default_rng(streams.get("init").integers(2**63))
        labels = spectral_clustering(unit_column_affinity(Z), data.n_clusters, rng)
        outputs["labels_unit_columns"] = labels.astype(np.int32)
        magnitudes = np.abs(Z)
        most = min(_MOST_CLUSTERS, len(Z) // 2)
        outputs["n_estimated"] = np.int64(estimate_n_clusters(magnitudes + magnitudes.T, most))
        outputs["coefficients"] = Z.astype(np.float32)
    return outputs | descent_end(model)


def descent_end(model: Any) -> dict[str, np.ndarray]:
    """Return the end of a fit's descent of (16); an empty mapping for other methods.

    ``objective`` is (16) per coefficient; ``n_iter`` and ``converged`` are those of the estimator;
    ``best_run`` is the index of the best run: the starts in their order, then restarts.
    """
    if not hasattr(model, "objective_history_"):
        return {}
    return {
        "objective": np.float64(model.objective_history_[-1] / model.coefficients_.size),
        "n_iter": np.int64(model.n_iter_),
        "converged": np.bool_(model.converged_),
        "best_run": np.int64(np.argmin(model.restart_objectives_)),
    }


def unit_column_affinity(Z: np.ndarray) -> np.ndarray:
    """Return the affinity (3) of Z with columns of Euclidean norm 1; zero columns stay."""
    lengths = np.linalg.norm(Z, axis=0)
    magnitudes = np.abs(Z) / np.where(lengths > 0.0, lengths, 1.0)
    return magnitudes + magnitudes.T
