"""The plan of an experiment: its grid, its trials, and how they are cut into blocks.

An experiment is a set of fits that one or more targets draw from. Its *tasks* are all pairs of a
grid point and a trial in a fixed order; a *block* is a run of tasks that one job does with one
method. Results do not depend on the size of a block.

This module is read each time the workflow is planned, so it imports nothing heavy.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privclust.artefacts import canonical_json
from privclust.config import ConfigError


@dataclass(frozen=True)
class Method:
    """A method in an experiment: an estimator class and its parameters.

    Attributes
    ----------
    name : str
        Short name used in file names and tables.
    label : str
        Name printed in figures.
    estimator : str
        Dotted path of the class.
    params : dict
        Keyword arguments of the class.
    transforms : tuple of (str, dict)
        Dotted paths and keyword arguments of the transformers that prepare the samples, in order.
    """

    name: str
    label: str
    estimator: str
    params: dict[str, Any]
    transforms: tuple[tuple[str, dict[str, Any]], ...] = ()

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
        Dotted paths of the three functions that make up a trial.
    dataset : str or None
        The prepared data set that `data` reads, if any.
    methods : dict of str to Method
    points : tuple of dict
        The grid points.
    trials : tuple of int
        The trials of each point.
    block : int
        Number of tasks in one job.
    groups : tuple of tuple of str
        By which facts of a trial the summary is split, besides the grid point.
    seed : int
        The base seed.
    swept : tuple of str
        Axes of the grid that are settings of the methods: data and starts are the same along them.
    """

    paper: str
    name: str
    data: str
    fit: str
    evaluate: str
    dataset: str | None
    methods: dict[str, Method]
    points: tuple[dict[str, Any], ...]
    trials: tuple[int, ...]
    block: int
    groups: tuple[tuple[str, ...], ...]
    seed: int
    swept: tuple[str, ...] = ()

    @property
    def tasks(self) -> list[tuple[int, int]]:
        """All (index of the point, trial), in the order in which blocks are cut."""
        return list(itertools.product(range(len(self.points)), self.trials))

    @property
    def n_blocks(self) -> int:
        """Number of jobs a method takes."""
        return -(-len(self.tasks) // self.block)

    def fit_spec(self, method: str, block: int) -> dict[str, Any]:
        """Return all that decides the content of one block, as JSON values."""
        tasks = self.tasks[block * self.block : (block + 1) * self.block]
        return {
            "paper": self.paper,
            "experiment": self.name,
            "data": self.data,
            "fit": self.fit,
            "method": self.methods[method].spec(),
            "seed": self.seed,
            "swept": list(self.swept),
            "tasks": [[self.points[index], trial] for index, trial in tasks],
        }

    def evaluate_spec(self) -> dict[str, Any]:
        """Return all that decides the metrics of all methods, as JSON values."""
        return {
            "experiment": self.name,
            "evaluate": self.evaluate,
            "methods": {
                method: [self.fit_spec(method, block) for block in range(self.n_blocks)]
                for method in self.methods
            },
        }

    def summary_spec(self) -> dict[str, Any]:
        """Return all that decides the summary, as JSON values."""
        return {
            "paper": self.paper,
            "experiment": self.name,
            "labels": {name: method.label for name, method in self.methods.items()},
            "groups": [list(group) for group in self.groups],
        }


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
        If an experiment names a method that the file does not define.
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
        found[name] = Experiment(
            paper=document["paper"],
            name=name,
            data=settings["data"],
            fit=settings["fit"],
            evaluate=settings["evaluate"],
            dataset=settings.get("dataset"),
            methods=methods,
            points=expand_grid(settings.get("grid", [{}])),
            trials=expand_trials(settings["trials"]),
            block=settings["block"],
            groups=tuple(tuple(group) for group in settings.get("groups", [])),
            seed=seed,
            swept=tuple(settings.get("swept", ())),
        )
    return found


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
        estimator=defined[name]["class"],
        params=dict(use.get("params", {})),
        transforms=tuple(
            (step["class"], dict(step.get("params", {}))) for step in use.get("transforms", [])
        ),
    )
