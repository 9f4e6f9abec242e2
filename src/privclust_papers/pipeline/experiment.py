"""An experiment: its grid, its trials, and their partition into blocks.

An experiment is a set of fits for one or more targets. Its *tasks* are all pairs of a grid point
and a trial. Tasks that differ only in swept axes form an *instance* and share their data, which are
generated once. A *block* is a sequence of instances that one job runs with one *batch* of methods:
one method, or all methods of the project if fits are short. A *short* experiment, with one block
and one batch, is fitted and evaluated by a single job. Results do not depend on blocks and batches.

This module is imported each time the workflow is planned and imports nothing heavy.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from privclust.core.canonical import canonical_json
from privclust_papers.pipeline.project_files import PACKAGES
from privclust_papers.settings.config import ConfigError

MEMORY_MB = 1500  # default of a job at its first attempt
_FIT_KEYS = ("paper", "experiment", "data", "share", "fit", "seed", "swept")
_SHARE_KEYS = ("paper", "experiment", "data", "share", "seed", "swept")
# Keys that an experiment takes from the config unchanged, or by default.
_SETTINGS = {"data", "fit", "evaluate", "metrics", "dataset", "block", "reference"}
_SETTINGS |= {"share", "shards", "memory_mb", "together"}

# A grid point without its swept axes, a trial, and the values of the swept axes one after another.
Instance = tuple[dict[str, Any], int, list[dict[str, Any]]]


@dataclass(frozen=True)
class Method:
    """A method in an experiment: a class or a function, and its parameters."""

    name: str  # in file names and tables
    label: str  # in figures
    # dotted path of the class, which the experiment's `fit` constructs and fits, or of a function
    # ``function(data, streams, **params)`` with the same result as a fit
    estimator: str
    params: dict[str, Any]  # keyword arguments of the class or function
    # dotted paths and keyword arguments of the transformers that prepare the samples, in order
    transforms: tuple[tuple[str, dict[str, Any]], ...] = ()

    def dotted_paths(self) -> list[str]:
        """Return the dotted paths of all objects of the method."""
        return [self.estimator, *(path for path, _ in self.transforms)]

    @property
    def package(self) -> str:
        """The method's package; "" for the project and scikit-learn."""
        package = self.estimator.partition(".")[0]
        return "" if package in (*PACKAGES, "sklearn") else package

    def spec(self) -> dict[str, Any]:
        """Return all settings of the method, as JSON values."""
        return {
            "name": self.name,
            "estimator": self.estimator,
            "params": self.params,
            "transforms": [list(transform) for transform in self.transforms],
        }


@dataclass(frozen=True)
class Experiment:
    """One experiment at one effort."""

    paper: str
    name: str
    # dotted paths of the functions of a trial; no `fit` if all methods are functions
    data: str
    fit: str | None
    evaluate: str
    dataset: str | None  # the prepared data set that `data` reads
    methods: dict[str, Method]
    points: tuple[dict[str, Any], ...]  # of the grid
    trials: tuple[int, ...]  # of each point
    block: int  # tasks in one job, rounded up to whole instances
    seed: int  # the base seed
    # axes that are settings of the methods: data and starts are the same along them
    swept: tuple[str, ...] = ()
    share: str | None = None  # dotted path; computes shared statistics of an instance's data
    shards: int = 1  # number of jobs of `share` for each block
    reference: str | None = None  # method with outputs for the evaluation of every method
    memory_mb: int = MEMORY_MB
    together: bool = False  # one job fits all methods of a package
    grid: tuple[dict[str, Any], ...] = ()  # the grid as in the config
    metrics: dict[str, str] = field(default_factory=dict)  # dotted paths of functions, by name

    @cached_property
    def batches(self) -> dict[str, tuple[str, ...]]:
        """The methods fitted by one job, by the name of the first of them.

        With `together`, the methods of one package are a batch, so that adding a user's method does
        not refit those of the project.
        """
        batches: dict[str, list[str]] = {}
        for name, method in self.methods.items():
            batches.setdefault(method.package if self.together else name, []).append(name)
        return {names[0]: tuple(names) for names in batches.values()}

    @property
    def is_short(self) -> bool:
        """Whether one job fits and evaluates the experiment, since starting jobs takes longer."""
        return self.together and len(self.batches) == self.n_blocks == 1

    @cached_property
    def blocks(self) -> list[list[Instance]]:
        """The instances of each block, ordered by shared point, trial, and swept values.

        A block ends with the instance that fills it.
        """
        sweeps: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {}
        for point in self.points:
            shared = {axis: value for axis, value in point.items() if axis not in self.swept}
            # Points of an instance need not follow each other in the grid.
            _, sweep = sweeps.setdefault(canonical_json(shared), (shared, []))
            sweep.append({axis: point[axis] for axis in self.swept})
        blocks: list[list[Instance]] = []
        # The first instance begins a block, as if one before it were full.
        n_tasks = self.block
        for (shared, sweep), trial in itertools.product(sweeps.values(), self.trials):
            if n_tasks >= self.block:
                blocks.append([])
                n_tasks = 0
            blocks[-1].append((shared, trial, sweep))
            n_tasks += len(sweep)
        return blocks

    @property
    def n_blocks(self) -> int:
        """Number of jobs per batch."""
        return len(self.blocks)

    def fit_spec(self, batch: str, block: int) -> dict[str, Any]:
        """Return all settings of a batch's fits of one block, as JSON values."""
        return block_spec(self.evaluate_spec(), batch, block)

    def share_spec(self, block: int, shard: int) -> dict[str, Any]:
        """Return all settings of one shard of a block's shared statistics, as JSON values."""
        spec = {**self.evaluate_spec(), "instances": self.blocks[block]}
        return shard_spec(spec, shard, self.shards)

    def evaluate_spec(self) -> dict[str, Any]:
        """Return all settings of the metrics of all methods, as JSON values."""
        metrics = {"metrics": self.metrics} if self.metrics else {}
        return metrics | {
            "paper": self.paper,
            "experiment": self.name,
            "data": self.data,
            "share": self.share,
            "fit": self.fit,
            "evaluate": self.evaluate,
            "reference": self.reference,
            "seed": self.seed,
            "swept": list(self.swept),
            "methods": {name: method.spec() for name, method in self.methods.items()},
            "batches": {name: list(methods) for name, methods in self.batches.items()},
            "blocks": self.blocks,
        }


def block_spec(spec: Mapping[str, Any], batch: str, block: int) -> dict[str, Any]:
    """Return all settings of a batch's fits of one block, from `Experiment.evaluate_spec`."""
    shared = {key: spec[key] for key in _FIT_KEYS}
    methods = [spec["methods"][name] for name in spec["batches"][batch]]
    return shared | {"methods": methods, "instances": spec["blocks"][block]}


def shard_spec(spec: Mapping[str, Any], shard: int, n_shards: int) -> dict[str, Any]:
    """Return all settings of one shard of a block, from the `block_spec` of any batch.

    Swept values are not included, so that shards do not depend on epsilon.
    """
    instances = [[point, trial] for point, trial, _ in spec["instances"]]
    shared = {key: spec[key] for key in _SHARE_KEYS}
    return shared | {"instances": instances, "shard": shard, "n_shards": n_shards}


def expand_grid(grid: list[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return the distinct points of a union of product grids, in the order given.

    In each grid a list is an axis, and any other value is fixed.
    """
    points: dict[str, dict[str, Any]] = {}
    for part in grid:
        # By name: the order of keys in a config file must not change the order of tasks.
        names = sorted(part)
        axes = [part[name] if isinstance(part[name], list) else [part[name]] for name in names]
        for values in itertools.product(*axes):
            point = dict(zip(names, values, strict=True))
            # Two grids may overlap; the first point of equal ones keeps its place.
            points.setdefault(canonical_json(point), point)
    return tuple(points.values())


def expand_trials(trials: int | Mapping[str, int]) -> tuple[int, ...]:
    """Return trial numbers from a count or from ``{start, stop, step}``."""
    if isinstance(trials, int):
        return tuple(range(trials))
    return tuple(range(trials.get("start", 0), trials["stop"], trials.get("step", 1)))


def experiments_of(
    document: Mapping[str, Any], effort: str, seed: int, where: str
) -> dict[str, Experiment]:
    """Return the experiments of a paper's config that have settings for an effort.

    `document` is valid under workflow/schemas/paper.schema.yaml; `where` names its file in errors.
    Raises a ConfigError if an experiment has an undefined method, no task, classes among its
    methods but no `fit`, a swept axis that is not in its grid, a reference that is not one of its
    methods, or shards without `share`.
    """
    experiments = {}
    for name, entry in document["experiments"].items():
        if effort not in entry["effort"]:
            continue
        settings = {**entry, **entry["effort"][effort]}
        methods = {
            method: _method(document["methods"], name, method, use or {}, where)
            for method, use in settings["methods"].items()
        }
        classes = [method for method in methods if "class" in document["methods"][method]]
        if classes and "fit" not in settings:
            raise ConfigError(
                f"{where}: experiments.{name}.fit: missing; it fits methods that are classes, such "
                f"as {classes[0]}"
            )
        grid = settings.get("grid", [])
        plain = {key: value for key, value in settings.items() if key in _SETTINGS}
        experiments[name] = Experiment(
            paper=document["paper"],
            name=name,
            methods=methods,
            points=expand_grid(grid or [{}]),
            trials=expand_trials(settings["trials"]),
            seed=seed,
            swept=tuple(settings.get("swept", ())),
            grid=tuple(grid),
            **{"fit": None, "dataset": None, **plain},
        )
        _check(experiments[name], f"{where}: experiments.{name}")
    return experiments


def _check(experiment: Experiment, where: str) -> None:
    """Raise a ConfigError for inconsistent keys, which a schema cannot detect."""
    if not experiment.points or not experiment.trials:
        raise ConfigError(
            f"{where}: got {len(experiment.points)} grid points and {len(experiment.trials)} "
            "trials; there must be at least 1 of each"
        )
    for axis in experiment.swept:
        if any(axis not in point for point in experiment.points):
            raise ConfigError(
                f"{where}.swept: got {axis!r}; it must be one of "
                f"{', '.join(sorted(set.intersection(*map(set, experiment.points)))) or 'none'}"
            )
    if experiment.reference not in (None, *experiment.methods):
        raise ConfigError(
            f"{where}.reference: got {experiment.reference!r}; "
            f"it must be one of {', '.join(experiment.methods)}"
        )
    if experiment.shards > 1 and experiment.share is None:
        raise ConfigError(
            f"{where}: shards: got {experiment.shards}; it must be 1 where there is no 'share'"
        )


def _method(
    defined: Mapping[str, Any], experiment: str, name: str, use: Mapping[str, Any], where: str
) -> Method:
    if name not in defined:
        raise ConfigError(
            f"{where}: experiments.{experiment}.methods: got {name!r}; "
            f"it must be one of {', '.join(sorted(defined))} (defined under methods)"
        )
    return Method(
        name=name,
        label=defined[name]["label"],
        estimator=defined[name].get("class") or defined[name]["function"],
        params=dict(use.get("params", {})),
        transforms=tuple(
            (step["class"], dict(step.get("params", {}))) for step in use.get("transforms", [])
        ),
    )
