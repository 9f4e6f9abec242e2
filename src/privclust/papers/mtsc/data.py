"""Trials of subspace segmentation: generated subspaces and filmed motions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust.core.config import ConfigError
from privclust.core.dotted import construct
from privclust.datasets.hopkins155 import Sequence, unpack
from privclust.datasets.synthetic import random_subspaces
from privclust.pipeline.runner import TrialData, TrialStreams, random_state_for

GENERATED = "generated as the paper describes"


def random_subspace_trial(
    point: Mapping[str, int],
    trial: int,
    streams: TrialStreams,
    dataset: None,
) -> TrialData:
    """Draw the data of Section 5, simulated data: K random subspaces, n Gaussian points in each.

    Parameters
    ----------
    point : mapping
        ``ambient_dimension`` D, ``dimension`` d, ``n_subspaces`` K, ``n_per_subspace`` n.
    trial : int
        Not used beyond the stream's key.
    streams : TrialStreams
        The data stream is used.
    dataset : None
    """
    X, y = random_subspaces(
        n_per_subspace=point["n_per_subspace"],
        dimension=point["dimension"],
        n_subspaces=point["n_subspaces"],
        ambient_dimension=point["ambient_dimension"],
        rng=streams.get("data"),
    )
    return TrialData(X, y, GENERATED)


def motion_trial(
    point: Mapping[str, Any],
    trial: int,
    streams: TrialStreams,
    dataset: Mapping[str, Any],
) -> TrialData:
    """Return one motion sequence: a sample is the trajectory of one tracked point.

    Parameters
    ----------
    point : mapping
        Not used: the sequences differ, not their treatment.
    trial : int
        The sequence's place among all, those of two motions first, each sorted by name.
    streams : TrialStreams
        Not used.
    dataset : mapping
        The prepared data set and its ``"source"``.
    """
    return _sequence_trial(_ordered(dataset), trial, dataset["source"])


def tuning_trial(
    point: Mapping[str, Any],
    trial: int,
    streams: TrialStreams,
    dataset: Mapping[str, Any],
) -> TrialData:
    """Return one motion sequence of the tuning split; see `motion_trial` for the rest.

    Parameters
    ----------
    point, streams : object
        Not used.
    trial : int
        The sequence's place among those of the tuning split.
    dataset : mapping
        The prepared data set and its ``"source"``.
    """
    tuning = [sequence for sequence in _ordered(dataset) if sequence.split == "tuning"]
    return _sequence_trial(tuning, trial, dataset["source"])


def _ordered(dataset: Mapping[str, Any]) -> list[Sequence]:
    """All sequences, those of two motions first, each sorted by name."""
    return sorted(unpack(dataset), key=lambda sequence: (sequence.n_motions, sequence.name))


def _sequence_trial(sequences: list[Sequence], trial: int, source: str) -> TrialData:
    """Return a sequence as samples, with the facts that tables are split by."""
    if trial >= len(sequences):
        raise ConfigError(
            f"trials: got {trial}; it may be 0 to {len(sequences) - 1}, one a sequence of {source}"
        )
    sequence = sequences[trial]
    facts = {
        "sequence": sequence.name,
        "n_motions": sequence.n_motions,
        "family": sequence.family,
        "split": sequence.split,
    }
    return TrialData(sequence.trajectories.T, sequence.labels, source, facts)


def fit_segmentation(
    estimator: type,
    params: Mapping[str, Any],
    data: TrialData,
    streams: TrialStreams,
) -> dict[str, np.ndarray]:
    """Segment the samples of a trial with the true number of clusters.

    Returns
    -------
    dict of str to ndarray
        ``labels``; and, where the estimator has them, ``coefficients`` (Z, in single precision).
    """
    random_state = random_state_for(estimator, streams.get("init"))
    offered = {"n_clusters": data.n_clusters, "random_state": random_state}
    model = construct(estimator, params, **offered).fit(data.X)
    found = {"labels": np.asarray(model.labels_, dtype=np.int32)}
    if hasattr(model, "coefficients_"):
        found["coefficients"] = np.asarray(model.coefficients_, dtype=np.float32)
    return found
