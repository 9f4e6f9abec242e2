"""An experiment: its grid, its trials, and how they are cut into blocks.

An experiment is a set of fits that one or more targets draw from. Its *tasks* are all pairs of a
grid point and a trial. Tasks that differ in swept axes only form an *instance*: they share their
data, which are made once for all of them. A *block* is a run of instances that one job does with
one *batch* of methods: with one method, or where fits are short with all methods that depend on the
same source files. Results depend neither on the size of a block nor on batches.

This module is read each time the workflow is planned, so it imports nothing heavy.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from privclust.core.canonical import canonical_json
from privclust.core.config import ConfigError
from privclust.pipeline.sources import source_files

MEMORY_MB = 1500  # of a job at its first attempt, unless the experiment says more
_FIT_KEYS = ("paper", "experiment", "data", "share", "fit", "seed", "swept")
_SHARE_KEYS = ("paper", "experiment", "data", "share", "seed", "swept")

# A grid point without its swept axes, a trial, and the values of the swept axes one after another.
Instance = tuple[dict[str, Any], int, list[dict[str, Any]]]


@dataclass(frozen=True)
class Method:
    """A method in an experiment: a class or a function, and its parameters.

    Attributes
    ----------
    name : str
        Short name used in file names and tables.
    label : str
        Name printed in figures.
    estimator : str
        Dotted path of the class, which the experiment's `fit` constructs and fits, or of a function
        ``function(data, streams, **params)``, which returns what a fit does.
    params : dict
        Keyword arguments of the class or function.
    transforms : tuple of (str, dict)
        Dotted paths and keyword arguments of the transformers that prepare the samples, in order.
    code : tuple of str
        Dotted paths of what else it depends on.
    """

    name: str
    label: str
    estimator: str
    params: dict[str, Any]
    transforms: tuple[tuple[str, dict[str, Any]], ...] = ()
    code: tuple[str, ...] = ()

    def dotted_paths(self) -> list[str]:
        """Return the dotted paths of the objects that the method consists of."""
        return [self.estimator, *(path for path, _ in self.transforms), *self.code]

    def spec(self) -> dict[str, Any]:
        """Return all that decides what the method does, as JSON values."""
        return {
            "name": self.name,
            "estimator": self.estimator,
            "params": self.params,
            "transforms": [list(transform) for transform in self.transforms],
        }


@dataclass(frozen=True)
class Experiment:
    """One experiment at one effort.

    Attributes
    ----------
    paper, name : str
        Where it belongs.
    data, fit, evaluate : str
        Dotted paths of the three functions that make up a trial; `fit` is None where all methods
        are functions.
    dataset : str or None
        The prepared data set that `data` reads, if any.
    methods : dict of str to Method
    points : tuple of dict
        The grid points.
    trials : tuple of int
        The trials of each point.
    block : int
        Number of tasks in one job, rounded up to whole instances.
    groups : tuple of tuple of str
        By which facts of a trial the summary is split, besides the grid point.
    seed : int
        The base seed.
    swept : tuple of str
        Axes of the grid that are settings of the methods: data and starts are the same along them.
    share : str or None
        Dotted path of the function that computes what all methods read of an instance's data.
    shards : int
        Into how many jobs `share` is split for each block.
    reference : str or None
        The method whose outputs the evaluation of every method is given.
    memory_mb : int
        Memory of a job at its first attempt, in MB.
    together : bool
        Whether one job fits all methods that depend on the same source files.
    grid : tuple of dict
        The union of product grids that the points come from, as the config has it.
    """

    paper: str
    name: str
    data: str
    fit: str | None
    evaluate: str
    dataset: str | None
    methods: dict[str, Method]
    points: tuple[dict[str, Any], ...]
    trials: tuple[int, ...]
    block: int
    groups: tuple[tuple[str, ...], ...]
    seed: int
    swept: tuple[str, ...] = ()
    share: str | None = None
    shards: int = 1
    reference: str | None = None
    memory_mb: int = MEMORY_MB
    together: bool = False
    grid: tuple[dict[str, Any], ...] = ()

    @cached_property
    def batches(self) -> dict[str, tuple[str, ...]]:
        """The methods that one job fits, by the name of the first of them.

        Those of a batch depend on the same source files: an edit refits what it would refit if
        each method had a job of its own.
        """
        if not self.together:
            return {name: (name,) for name in self.methods}
        batches: dict[tuple[str, ...], list[str]] = {}
        for name, method in self.methods.items():
            batches.setdefault(tuple(source_files(method.dotted_paths())), []).append(name)
        return {names[0]: tuple(names) for names in batches.values()}

    @cached_property
    def blocks(self) -> list[list[Instance]]:
        """The instances of each block.

        In order: shared points as the grid has them, of each its trials, of each its swept values.
        A block ends with the instance that fills it.
        """
        sweeps: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {}
        for point in self.points:
            shared = {axis: value for axis, value in point.items() if axis not in self.swept}
            _, sweep = sweeps.setdefault(canonical_json(shared), (shared, []))
            sweep.append({axis: point[axis] for axis in self.swept})
        blocks: list[list[Instance]] = []
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
        """Number of jobs a batch takes."""
        return len(self.blocks)

    def fit_spec(self, batch: str, block: int) -> dict[str, Any]:
        """Return all that decides a batch's fits of one block, as JSON values."""
        return block_spec(self.evaluate_spec(), batch, block)

    def share_spec(self, block: int, shard: int) -> dict[str, Any]:
        """Return all that decides one shard of what a block's methods share, as JSON values."""
        spec = {**self.evaluate_spec(), "instances": self.blocks[block]}
        return shard_spec(spec, shard, self.shards)

    def evaluate_spec(self) -> dict[str, Any]:
        """Return all that decides the metrics of all methods, as JSON values."""
        return {
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

    def summary_spec(self) -> dict[str, Any]:
        """Return all that decides the summary, as JSON values."""
        return {
            "paper": self.paper,
            "experiment": self.name,
            "labels": {name: method.label for name, method in self.methods.items()},
            "groups": [list(group) for group in self.groups],
        }


def block_spec(spec: Mapping[str, Any], batch: str, block: int) -> dict[str, Any]:
    """Return all that decides a batch's fits of one block.

    Parameters
    ----------
    spec : mapping
        From `Experiment.evaluate_spec`, or what JSON made of it.
    batch : str
        The batch's name.
    block : int
        The block's number, from 0.
    """
    shared = {key: spec[key] for key in _FIT_KEYS}
    methods = [spec["methods"][name] for name in spec["batches"][batch]]
    return shared | {"methods": methods, "instances": spec["blocks"][block]}


def shard_spec(spec: Mapping[str, Any], shard: int, n_shards: int) -> dict[str, Any]:
    """Return all that decides one shard of what a block's methods share.

    The swept values are no part of it: another epsilon leaves the shards as they are.

    Parameters
    ----------
    spec : mapping
        From `block_spec`, of any batch.
    shard, n_shards : int
        The shard's number, from 0, and how many there are.
    """
    instances = [[point, trial] for point, trial, _ in spec["instances"]]
    shared = {key: spec[key] for key in _SHARE_KEYS}
    return shared | {"instances": instances, "shard": shard, "n_shards": n_shards}


def expand_grid(grid: list[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return the points of a union of product grids, each once, in the order given.

    Parameters
    ----------
    grid : list of mapping
        In each, a list stands for an axis and anything else for a fixed value.

    Examples
    --------
    >>> expand_grid([{"d": 13, "n": [15, 20]}, {"d": [12, 13], "n": 15}])
    ({'d': 13, 'n': 15}, {'d': 13, 'n': 20}, {'d': 12, 'n': 15})
    """
    points: dict[str, dict[str, Any]] = {}
    for part in grid:
        names = sorted(part)
        axes = [part[name] if isinstance(part[name], list) else [part[name]] for name in names]
        for values in itertools.product(*axes):
            point = dict(zip(names, values, strict=True))
            points.setdefault(canonical_json(point), point)
    return tuple(points.values())


def expand_trials(trials: int | Mapping[str, int]) -> tuple[int, ...]:
    """Return trial numbers from a count or from ``{start, stop, step}``.

    Examples
    --------
    >>> expand_trials(3)
    (0, 1, 2)
    >>> expand_trials({"stop": 30, "step": 10})
    (0, 10, 20)
    """
    if isinstance(trials, int):
        return tuple(range(trials))
    return tuple(range(trials.get("start", 0), trials["stop"], trials.get("step", 1)))


def experiments_of(
    document: Mapping[str, Any], effort: str, seed: int, where: str
) -> dict[str, Experiment]:
    """Return the experiments of a paper's config at one effort.

    Parameters
    ----------
    document : mapping
        A config that fits workflow/schemas/paper.schema.yaml.
    effort : str
        The effort whose settings count.
    seed : int
        The base seed.
    where : str
        Name of the file, for messages.

    Returns
    -------
    dict of str to Experiment
        Without those that have no settings for this effort.

    Raises
    ------
    ConfigError
        If an experiment names a method that the file does not define, has no task, has classes
        among its methods and no `fit`, sweeps along an axis that its grid lacks, takes a reference
        that is none of its methods, or has shards of nothing.
    """
    found = {}
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
        found[name] = Experiment(
            paper=document["paper"],
            name=name,
            data=settings["data"],
            fit=settings.get("fit"),
            evaluate=settings["evaluate"],
            dataset=settings.get("dataset"),
            methods=methods,
            points=expand_grid(settings.get("grid", [{}])),
            trials=expand_trials(settings["trials"]),
            block=settings["block"],
            groups=tuple(tuple(group) for group in settings.get("groups", [])),
            seed=seed,
            swept=tuple(settings.get("swept", ())),
            share=settings.get("share"),
            shards=settings.get("shards", 1),
            reference=settings.get("reference"),
            memory_mb=settings.get("memory_mb", MEMORY_MB),
            together=settings.get("together", False),
            grid=tuple(settings.get("grid", [])),
        )
        _check(found[name], f"{where}: experiments.{name}")
    return found


def class_or_function(method: Mapping[str, Any]) -> str:
    """Return the dotted path of what a method of a paper's config is."""
    return method["class"] if "class" in method else method["function"]


def _check(experiment: Experiment, where: str) -> None:
    """Refuse what no schema can: keys that do not fit one another."""
    if not experiment.points or not experiment.trials:
        raise ConfigError(
            f"{where}: got {len(experiment.points)} grid points and {len(experiment.trials)} "
            "trials; there may be at least 1 of each"
        )
    for axis in experiment.swept:
        if any(axis not in point for point in experiment.points):
            raise ConfigError(
                f"{where}.swept: got {axis!r}; it may be one of "
                f"{', '.join(sorted(set.intersection(*map(set, experiment.points)))) or 'none'}"
            )
    if experiment.reference not in (None, *experiment.methods):
        raise ConfigError(
            f"{where}.reference: got {experiment.reference!r}; "
            f"it may be one of {', '.join(experiment.methods)}"
        )
    if experiment.shards > 1 and experiment.share is None:
        raise ConfigError(
            f"{where}: shards: got {experiment.shards}; it may be 1 where there is no 'share'"
        )


def _method(
    defined: Mapping[str, Any], experiment: str, name: str, use: Mapping[str, Any], where: str
) -> Method:
    """Join what a method is with how an experiment uses it."""
    if name not in defined:
        raise ConfigError(
            f"{where}: experiments.{experiment}.methods: got {name!r}; "
            f"it may be one of {', '.join(sorted(defined))} (defined under methods)"
        )
    return Method(
        name=name,
        label=defined[name]["label"],
        estimator=class_or_function(defined[name]),
        params=dict(use.get("params", {})),
        transforms=tuple(
            (step["class"], dict(step.get("params", {}))) for step in use.get("transforms", [])
        ),
        code=tuple(use.get("code", ())),
    )
