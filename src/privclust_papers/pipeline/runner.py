"""Execution of the tasks of a block: shared statistics, fits and evaluation.

A paper's file names its functions by dotted paths. Their arguments and results are as follows;
their docstrings describe specific keys.

``data(point, trial, streams, dataset)`` returns a `TrialData`. `point` is a mapping: the grid point
without its swept axes. `trial` counts from 0; `streams` (`TrialStreams`) already depend on it, so
that few functions use it. `dataset` holds the arrays of the prepared data set and its ``"source"``,
or is None.

``share(point, trial, streams, dataset, shard, n_shards)`` returns a dict of arrays, which are added
over the shards, entry by entry. The sums are in ``data.extra["shared"]`` of fits.

``fit(estimator, params, data, streams)`` takes a class, keywords from the paper's file and the
swept axes, and the result of `data`. It fits the class and returns a dict of str to ndarray. A
method may also be a ``function(data, streams, **params)`` with the same result, without `fit`.

``evaluate(data, outputs)`` takes the result of a fit and the data without ``"shared"``. With a
reference method, ``data.extra["reference"]`` is its result for the same task. It returns a dict of
metrics: numbers (or NaN), which are averaged over trials, and arrays, which are kept for figures.
Further ``metrics`` are called with arguments by name: ``X`` and ``y`` of the data, and arrays from
the fit.

A figure's function takes a `privclust_papers.report.drawing.style.Results` and returns a `Drawing`.

`data` and `share` may use only the streams ``"data"`` and ``"init"``; `fit` and methods may also
use ``"noise"``. The data of an instance (a grid point without its swept axes, and a trial) are
generated once for all its tasks. Every fit imports this module, so that it imports little.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from privclust.core.canonical import canonical_json
from privclust.core.progress import progress_over
from privclust.core.validation import signature_of
from privclust_papers.pipeline import seeds
from privclust_papers.pipeline.experiment import Instance, block_spec, shard_spec
from privclust_papers.pipeline.project_files import PACKAGES
from privclust_papers.settings.config import ConfigError
from privclust_papers.settings.dotted import load_object

log = logging.getLogger(__name__)


Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class TrialData:
    """The data of one trial."""

    # The samples, which fits must not change: methods and swept values share them. Without
    # transforms, any object that `fit` and `evaluate` accept, such as one that draws the same rows
    # in chunks at each pass.
    X: Any
    y: np.ndarray | None  # the true clusters, 0-based, if any
    source: str  # begins with "substitute" for a substitute of other data
    facts: dict[str, str | int] = field(default_factory=dict)  # further columns of the table
    # Other inputs of fits and evaluation, such as held-out samples. "shared" has the result of the
    # experiment's `share` (for fits), "reference" the outputs of the reference method on the same
    # task (for the evaluation); both are dicts of arrays.
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def n_clusters(self) -> int:
        """The true number of clusters."""
        return int(self.y.max()) + 1


class TrialStreams:
    """The random streams of one trial; see `privclust_papers.pipeline.seeds`.

    `spec` has ``seed``, ``paper``, ``experiment``, ``swept`` and, optionally, ``method``. Without a
    method there is no ``"noise"``, since shared data must not depend on a method. Swept axes of
    `point` affect only ``"noise"``.
    """

    def __init__(self, spec: Mapping[str, Any], point: Mapping[str, Any], trial: int) -> None:
        self._experiment = (spec["seed"], spec["paper"], spec["experiment"])
        self._point, self._trial = point, trial
        self._shared = {key: point[key] for key in point if key not in spec["swept"]}
        self._method = spec["method"]["name"] if "method" in spec else None

    def get(self, stream: str) -> np.random.Generator:
        """Return a new generator at the start of a stream; ``"noise"`` needs a method."""
        if stream == "noise" and self._method is None:
            shared = ", ".join(name for name in seeds.STREAMS if name != "noise")
            raise ValueError(f"stream: got 'noise'; without a method it must be one of {shared}")
        if stream == "noise":
            key = (*self._experiment, self._point, self._trial, stream, self._method)
        else:
            key = (*self._experiment, self._shared, self._trial, stream)
        return seeds.generator(*key)


def prepared(X: Any, transforms: Iterable[tuple[str, Mapping[str, Any]]]) -> Any:
    """Return X after a method's transformers, given by dotted paths and parameters, in order."""
    for path, params in transforms:
        X = load_object(path)(**params).fit_transform(X)
    return X


def run_shard(spec: Mapping[str, Any], dataset: Arrays | None) -> dict[str, np.ndarray]:
    """Compute one shard of the shared statistics of each instance of a block.

    `spec` is from `Experiment.share_spec`. Its ``share`` names a function ``share(point, trial,
    streams, dataset, shard, n_shards)`` that returns a dict of arrays, to be added over the shards,
    entry by entry. The result has the arrays of the i-th instance as ``"<i>/<name>"``.
    """
    share = load_object(spec["share"])
    shard, n_shards = spec["shard"], spec["n_shards"]
    name = f"{spec['experiment']} shard {shard} of {n_shards}"
    results = (
        share(point, trial, TrialStreams(spec, point, trial), dataset, shard, n_shards)
        for point, trial in spec["instances"]
    )
    return _numbered(progress_over(results, len(spec["instances"]), name))


def merge_shards(shards: Iterable[Arrays]) -> dict[str, np.ndarray]:
    """Add shards entry by entry, in the order given.

    Sums of integers are exact unless they overflow, and independent of the number of shards. Sums
    of floating-point numbers depend on it in their last digits.

    Raises a ValueError if shards differ in the names, shapes or types of their arrays.
    """
    merged: dict[str, np.ndarray] = {}
    for number, arrays in enumerate(shards):
        shape = {name: (array.shape, array.dtype.str) for name, array in arrays.items()}
        if number == 0:
            first, merged = shape, dict(arrays)
            continue
        if shape != first:
            raise ValueError(f"shard {number}: got arrays {shape}; shard 0 has {first}")
        for name in merged:
            # Not in place: the first shard's arrays belong to the caller.
            merged[name] = merged[name] + arrays[name]
    return merged


def run_block(
    spec: Mapping[str, Any], dataset: Arrays | None, shared: Arrays | None = None
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Fit a batch of methods on the tasks of one block.

    A method is fitted once for all values of swept axes that its class or function does not accept,
    or that its `params` fix. `spec` is from `Experiment.fit_spec`, `shared` from `merge_shards`.
    Returns the arrays of fits for the i-th task as ``"<method>/<i>/<name>"``, and the CPU seconds
    of the fits of each method, without data generation.
    """
    statistics = _by_number(shared or {})
    cpu_seconds = {method["name"]: 0.0 for method in spec["methods"]}
    done = itertools.chain.from_iterable(
        _fit_instance(spec, instance, dataset, statistics[number], cpu_seconds)
        for number, instance in enumerate(spec["instances"])
    )
    n_tasks = len(spec["methods"]) * sum(len(sweep) for *_, sweep in spec["instances"])
    results: dict[str, list[Arrays]] = {name: [] for name in cpu_seconds}
    what = f"{len(results)} methods" if len(results) > 1 else next(iter(results))
    for name, result in progress_over(done, n_tasks, f"{spec['experiment']} {what}"):
        results[name].append(result)
    return _joined({name: _numbered(parts) for name, parts in results.items()}), cpu_seconds


def run_short(
    spec: Mapping[str, Any], dataset: Arrays | None
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Fit all methods of a short experiment; `spec` is from `Experiment.evaluate_spec`.

    Shared statistics are computed in one shard. The result is that of `run_block`.
    """
    (batch,) = spec["batches"]
    block = block_spec(spec, batch, 0)
    shared = run_shard(shard_spec(block, 0, 1), dataset) if spec["share"] else None
    return run_block(block, dataset, shared)


def _fit_instance(
    spec: Mapping[str, Any],
    instance: Instance,
    dataset: Arrays | None,
    shared: Arrays,
    cpu_seconds: dict[str, float],
) -> Iterator[tuple[str, Arrays]]:
    """Fit each task of an instance; a generator, so that its data are freed before the next."""
    data = _instance_data(spec, *instance[:2], dataset)
    if shared:
        data = replace(data, extra={**data.extra, "shared": shared})
    for method in spec["methods"]:
        yield from _fit_method(spec, method, instance, data, cpu_seconds)


def _fit_method(
    spec: Mapping[str, Any],
    method: Mapping[str, Any],
    instance: Instance,
    data: TrialData,
    cpu_seconds: dict[str, float],
) -> Iterator[tuple[str, Arrays]]:
    """Fit one method on each task of an instance, and add the CPU time to `cpu_seconds`."""
    point, trial, sweep = instance
    fit = load_object(spec["fit"]) if spec["fit"] else None
    estimator = load_object(method["estimator"])
    # An axis fixed by `params` is no axis of this method: its fit is the same at all values.
    free = signature_of(estimator).parameters.keys() - method["params"]
    results: dict[str, Arrays] = {}
    start = time.process_time()
    data = replace(data, X=prepared(data.X, method["transforms"]))
    for swept in sweep:
        accepted = {axis: value for axis, value in swept.items() if axis in free}
        key = canonical_json(accepted)
        if key not in results:
            # Only accepted axes are in the key of the noise, so that equal fits have equal noise.
            streams = TrialStreams({**spec, "method": method}, {**point, **accepted}, trial)
            params = {**method["params"], **accepted}
            results[key] = run_method(fit, estimator, params, data, streams)
        # The clock stops during `yield`, while other code uses the result.
        cpu_seconds[method["name"]] += time.process_time() - start
        yield method["name"], results[key]
        start = time.process_time()


def run_method(
    fit: Callable[..., Arrays] | None,
    estimator: Callable[..., Any],
    params: Mapping[str, Any],
    data: TrialData,
    streams: TrialStreams,
) -> Arrays:
    """Fit a class, or call a function; raise a ConfigError if a fitted class lacks an attribute."""
    if not isinstance(estimator, type):
        return estimator(data, streams, **params)
    try:
        return fit(estimator, params, data, streams)
    except AttributeError as error:
        # An AttributeError of another object is a fault of the code, not of the class.
        if not isinstance(error.obj, estimator):
            raise
        name = f"{estimator.__module__}.{estimator.__qualname__}"
        raise ConfigError(f"{name} has no {error.name!r} after it was fitted") from error


def random_state_for(estimator: type, rng: np.random.Generator) -> np.random.Generator | int:
    """Return `random_state` for a class: a generator for the project's classes and subclasses.

    Other classes get an integer, which all libraries accept.
    """
    if any(base.__module__.partition(".")[0] in PACKAGES for base in estimator.__mro__):
        return rng
    return int(rng.integers(2**31))


def _instance_data(
    spec: Mapping[str, Any], point: Mapping[str, Any], trial: int, dataset: Arrays | None
) -> TrialData:
    return load_object(spec["data"])(point, trial, TrialStreams(spec, point, trial), dataset)


def evaluate_fits(
    spec: Mapping[str, Any],
    read_block: Callable[[int], Mapping[str, Arrays]],
    dataset: Arrays | None,
) -> dict[str, np.ndarray]:
    """Compute the metrics of all methods of an experiment from their fits.

    `spec` is from `Experiment.evaluate_spec`. `read_block` returns the arrays of each method, by
    name, for the number of a block; one block is in memory at a time. The result has columns with
    one entry per task, ``"<method>/point/<name>"``, ``"<method>/trial"``,
    ``"<method>/fact/<name>"`` and ``"<method>/value/<name>"``, and metrics that are arrays,
    ``"<method>/array/<task>/<name>"``.
    """
    metrics = {method: _Metrics() for method in spec["methods"]}
    blocks = range(len(spec["blocks"]))
    for number in progress_over(blocks, len(blocks), f"{spec['experiment']} evaluated"):
        _evaluate_block(spec, number, read_block(number), dataset, metrics)
    return _joined({method: rows.columns() for method, rows in metrics.items()})


class _Metrics:
    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._arrays: dict[str, np.ndarray] = {}

    def add(
        self, point: Mapping[str, Any], trial: int, data: TrialData, values: Mapping[str, Any]
    ) -> None:
        """Append one task: numbers as a row, arrays by its number."""
        row = {f"point/{key}": value for key, value in point.items()}
        row |= {"trial": trial, "fact/source": data.source}
        row |= {f"fact/{key}": value for key, value in data.facts.items()}
        for key, value in values.items():
            if np.ndim(value):
                self._arrays[f"array/{len(self._rows):05d}/{key}"] = np.asarray(value)
            else:
                row[f"value/{key}"] = float(value)
        self._rows.append(row)

    def columns(self) -> dict[str, np.ndarray]:
        columns = {key: np.asarray([row[key] for row in self._rows]) for key in self._rows[0]}
        return columns | self._arrays


def _evaluate_block(
    spec: Mapping[str, Any],
    number: int,
    fitted: Mapping[str, Arrays],
    dataset: Arrays | None,
    metrics: Mapping[str, _Metrics],
) -> None:
    """Evaluate a block of every method; a function, so that memory is freed before the next."""
    outputs = {method: _by_number(arrays) for method, arrays in fitted.items()}
    first = 0
    for point, trial, sweep in spec["blocks"][number]:
        places = range(first, first + len(sweep))
        tasks = {name: [results[i] for i in places] for name, results in outputs.items()}
        _evaluate_instance(spec, (point, trial, sweep), tasks, dataset, metrics)
        first += len(sweep)


def _evaluate_instance(
    spec: Mapping[str, Any],
    instance: Instance,
    outputs: Mapping[str, Sequence[Arrays]],
    dataset: Arrays | None,
    metrics: Mapping[str, _Metrics],
) -> None:
    """Evaluate an instance's tasks, by method and index, on data generated once."""
    point, trial, sweep = instance
    evaluate = load_object(spec["evaluate"])
    data = _instance_data(spec, point, trial, dataset)
    for place, swept in enumerate(sweep):
        seen = data
        if spec["reference"]:
            reference = outputs[spec["reference"]][place]
            seen = replace(data, extra={**data.extra, "reference": reference})
        for method, rows in metrics.items():
            result = outputs[method][place]
            values = _with_metrics(spec, seen, result, evaluate(seen, result))
            rows.add({**point, **swept}, trial, data, values)


def _with_metrics(
    spec: Mapping[str, Any], data: TrialData, outputs: Arrays, values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the metrics of `evaluate`, and those named in the paper's file."""
    offered, joined = {**outputs, "X": data.X, "y": data.y}, dict(values)
    for name, path in spec.get("metrics", {}).items():
        where = f"experiments.{spec['experiment']}.metrics.{name}"
        if name in joined:
            raise ConfigError(f"{where}: {spec['evaluate']} returns a metric of this name already")
        metric = load_object(path)
        parameters = signature_of(metric).parameters.values()
        needed = [p.name for p in parameters if p.default is p.empty]
        for argument in needed:
            if argument not in offered:
                raise ConfigError(
                    f"{where}: {path} has the argument {argument!r}; allowed are "
                    f"{', '.join(sorted(offered))}"
                )
        joined[name] = metric(**{argument: offered[argument] for argument in needed})
    return joined


def _numbered(results: Iterable[Arrays]) -> dict[str, np.ndarray]:
    """Join results into one mapping, with names prefixed by the result's number."""
    return _joined({f"{number:05d}": result for number, result in enumerate(results)})


def _joined(results: Mapping[str, Arrays]) -> dict[str, np.ndarray]:
    """Join mappings into one, with names prefixed by the mapping's key."""
    return {f"{key}/{name}": a for key, result in results.items() for name, a in result.items()}


def _by_number(arrays: Arrays) -> Mapping[int, dict[str, np.ndarray]]:
    """Undo `_numbered`; a result without arrays is empty."""
    results: defaultdict[int, dict[str, np.ndarray]] = defaultdict(dict)
    for name, array in arrays.items():
        number, _, rest = name.partition("/")
        results[int(number)][rest] = array
    return results
