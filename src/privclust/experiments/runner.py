"""Running the tasks of a block, and evaluating a method.

Every fit starts by importing this, so it imports little.
"""

from __future__ import annotations

import inspect
import logging
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from privclust import seeds
from privclust.dotted import load_object

log = logging.getLogger("privclust")

_SECONDS_BETWEEN_LINES = 5.0


@dataclass(frozen=True)
class TrialData:
    """The data of one trial.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The samples.
    y : ndarray of shape (n_samples,) or None
        The true clusters, 0-based, where there are any.
    source : str
        Name of the data; begins with ``"substitute"`` where it stands in for other data.
    facts : dict
        What the summary may be split by: texts and whole numbers.
    extra : dict of str to ndarray
        What else a fit or its evaluation needs, such as samples held out.
    """

    X: np.ndarray
    y: np.ndarray | None
    source: str
    facts: dict[str, str | int] = field(default_factory=dict)
    extra: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def n_clusters(self) -> int:
        """The true number of clusters."""
        return int(self.y.max()) + 1


class TrialStreams:
    """The random streams of one trial; see `privclust.seeds`."""

    def __init__(self, spec: Mapping[str, Any], point: Mapping[str, Any], trial: int) -> None:
        self._experiment = (spec["seed"], spec["paper"], spec["experiment"])
        self._point, self._trial = point, trial
        self._shared = {key: point[key] for key in point if key not in spec["swept"]}
        self._method = spec["method"]["name"]

    def get(self, stream: str) -> np.random.Generator:
        """Return a fresh generator at the start of a stream."""
        if stream == "noise":
            key = (*self._experiment, self._point, self._trial, stream, self._method)
        else:
            key = (*self._experiment, self._shared, self._trial, stream)
        return seeds.generator(*key)


def progress(items: Sequence[Any], what: str) -> Iterator[Any]:
    """Iterate over items and say how far it is: a bar on a terminal, else a line now and then."""
    if sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(items, desc=what, leave=False)
        return
    last = time.monotonic()
    for done, item in enumerate(items):
        yield item
        if time.monotonic() - last > _SECONDS_BETWEEN_LINES or done + 1 == len(items):
            log.info("%s: %d of %d", what, done + 1, len(items))
            last = time.monotonic()


def prepared(X: np.ndarray, transforms: Iterable[tuple[str, Mapping[str, Any]]]) -> np.ndarray:
    """Apply a method's transformers, named by dotted paths with their parameters, in order."""
    for path, params in transforms:
        X = load_object(path)(**params).fit_transform(X)
    return X


def run_block(
    spec: Mapping[str, Any], dataset: Mapping[str, np.ndarray] | None
) -> dict[str, np.ndarray]:
    """Fit one method on the tasks of one block.

    Parameters
    ----------
    spec : mapping
        From `Experiment.fit_spec`.
    dataset : mapping of str to ndarray or None
        The prepared data set, where the experiment reads one.

    Returns
    -------
    dict of str to ndarray
        For the i-th task, each array that the fit returned as ``"<i>/<name>"``.
    """
    make_data, fit = load_object(spec["data"]), load_object(spec["fit"])
    estimator = load_object(spec["method"]["estimator"])
    name = f"{spec['experiment']} {spec['method']['name']}"
    arrays = {}
    for index, (point, trial) in enumerate(progress(spec["tasks"], name)):
        streams = TrialStreams(spec, point, trial)
        data = make_data(point, trial, streams, dataset)
        data = replace(data, X=prepared(data.X, spec["method"]["transforms"]))
        result = fit(estimator, _settings(estimator, spec, point), data, streams)
        arrays.update({f"{index:05d}/{key}": value for key, value in result.items()})
    return arrays


def _settings(estimator: type, spec: Mapping[str, Any], point: Mapping[str, Any]) -> dict[str, Any]:
    """Join a method's parameters with the swept axes that it knows."""
    accepted = inspect.signature(estimator).parameters
    swept = {axis: point[axis] for axis in spec["swept"] if axis in accepted}
    return {**spec["method"]["params"], **swept}


def evaluate_method(
    spec: Mapping[str, Any],
    blocks: Iterable[Mapping[str, np.ndarray]],
    dataset: Mapping[str, np.ndarray] | None,
) -> dict[str, np.ndarray]:
    """Compute the metrics of one method from its fits.

    Parameters
    ----------
    spec : mapping
        ``evaluate``, the dotted path, and ``fits``, the specs of the method's blocks.
    blocks : iterable of mapping
        The arrays of each block, in order.
    dataset : mapping of str to ndarray or None
        The prepared data set, where the experiment reads one.

    Returns
    -------
    dict of str to ndarray
        Columns with one entry per task: ``"point/<name>"``, ``"trial"``, ``"fact/<name>"``,
        ``"value/<name>"``; and metrics that are arrays as ``"array/<task>/<name>"``.
    """
    evaluate = load_object(spec["evaluate"])
    rows, arrays = [], {}
    for fit_spec, fitted in zip(spec["fits"], blocks, strict=True):
        make_data = load_object(fit_spec["data"])
        for index, (point, trial) in enumerate(fit_spec["tasks"]):
            streams = TrialStreams(fit_spec, point, trial)
            data = make_data(point, trial, streams, dataset)
            prefix = f"{index:05d}/"
            outputs = {k.removeprefix(prefix): v for k, v in fitted.items() if k.startswith(prefix)}
            values = evaluate(data, outputs)
            row = {f"point/{key}": value for key, value in point.items()}
            row |= {"trial": trial, "fact/source": data.source}
            row |= {f"fact/{key}": value for key, value in data.facts.items()}
            for key, value in values.items():
                if np.ndim(value):
                    arrays[f"array/{len(rows):05d}/{key}"] = np.asarray(value)
                else:
                    row[f"value/{key}"] = float(value)
            rows.append(row)
    columns = {key: np.asarray([row[key] for row in rows]) for key in rows[0]}
    return columns | arrays
