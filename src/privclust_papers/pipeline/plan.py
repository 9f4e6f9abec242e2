"""The plan of a run, from the config files: data, features, experiments and targets.

The workflow and every job import this module at their start, so that it imports nothing heavy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from privclust_papers.datasets.fetch import resolve_mirror
from privclust_papers.datasets.registry import DataError, Dataset, load_datasets
from privclust_papers.pipeline.experiment import Experiment, experiments_of
from privclust_papers.pipeline.feature_sets import FeatureEntry, load_feature_sets, other_networks
from privclust_papers.pipeline.project_files import SETTINGS
from privclust_papers.pipeline.sources import source_files
from privclust_papers.pipeline.user_config import join_own_methods
from privclust_papers.settings.config import ConfigError, load_validated, load_yaml, validate

DEFAULT_MIRROR = "../shared/data"
_STYLE = ("colour", "marker", "promise", "line")  # of a method's curves
PAPER, CLAIMS, PRINTED = "paper.yaml", "claims.yaml", "printed.csv"  # in a paper's folder


@dataclass(frozen=True)
class Target:
    """A figure or table: a rule that can be named on the command line."""

    name: str
    paper: str
    kind: str  # "figure" or "table"
    title: str
    where: str  # in the paper
    ours: bool  # whether it is additional evidence, without a figure or table in the paper
    experiments: tuple[str, ...]  # its sources
    draw: str  # dotted path of the drawing function
    own: tuple[str, ...] = ()  # methods of the user in it
    styles: tuple[tuple[str, dict[str, Any]], ...] = ()  # of its methods' curves; see `styles_in`
    kinds: dict[str, str] = field(default_factory=dict)  # of its paper's quantities

    def spec(self) -> dict[str, Any]:
        """Return all settings of the drawing besides its tables, as JSON values."""
        return {
            "target": self.name,
            "paper": self.paper,
            "draw": self.draw,
            "experiments": list(self.experiments),
            "own": list(self.own),
            "styles": [list(entry) for entry in self.styles],
            "kinds": self.kinds,
        }


@dataclass(frozen=True)
class Plan:
    """All parts of a run; data sets and features are those that experiments need."""

    effort: str
    mirror: Path | None  # searched for data before any address
    substitutes: bool
    datasets: dict[str, Dataset]
    features: dict[str, FeatureEntry]
    papers: dict[str, dict[str, str]]  # title, citation and config file of each
    experiments: dict[str, Experiment]
    targets: dict[str, Target]
    quantities: dict[str, dict[str, str]] = field(default_factory=dict)  # in words, by paper
    kinds: dict[str, dict[str, str]] = field(default_factory=dict)  # of quantities, by paper
    elsewhere: tuple[str, ...] = ()  # targets only of the other effort
    notices: tuple[str, ...] = ()  # on a user's methods that this run leaves out of a panel

    def beside(self, name: str) -> dict[str, str]:
        """Return the existing files of a name in the papers' folders, by paper."""
        files = {paper: Path(a["file"]).with_name(name) for paper, a in self.papers.items()}
        return {paper: str(file) for paper, file in files.items() if file.is_file()}


def normalise(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config with texts from the command line parsed as YAML, such as ``false``."""
    import yaml

    return {
        key: yaml.safe_load(value) if isinstance(value, str) and value else value
        for key, value in config.items()
    }


def found_beside(config: Mapping[str, Any], home: str) -> dict[str, Any]:
    """Return the config with the paths of its files: below the working folder, or else in `home`.

    `home` is the folder with the workflow's ``config``. A missing file keeps its name, for the
    error message.
    """

    def place(name: str) -> str:
        there = os.path.join(home, name)
        return there if os.path.exists(there) and not os.path.exists(name) else name

    files = {key: place(config[key]) for key in SETTINGS if config.get(key)}
    return {**config, **files, "papers": [place(name) for name in config.get("papers") or ()]}


def changed_settings(config: Mapping[str, Any], path: str) -> dict[str, str]:
    """Return the settings of a run that differ from its config file, as on the command line.

    Absolute paths are reduced to their last part. ``substitutes: false`` and ``artefacts`` are left
    out: they change no results, only whether there are any, or the content of an archive.
    """
    import yaml

    def shortened(value: Any) -> Any:
        if isinstance(value, list):
            return [shortened(item) for item in value]
        is_far = isinstance(value, str) and Path(value).is_absolute()
        return f"/path/to/{Path(value).name}" if is_far else value

    file = load_yaml(path)
    changed = {key: value for key, value in config.items() if value != file.get(key)}
    if changed.get("substitutes") is False:
        del changed["substitutes"]
    changed.pop("artefacts", None)
    return {
        # Only the first line: YAML ends a plain scalar with a line of dots.
        key: yaml.safe_dump(shortened(value), default_flow_style=True, width=10_000).splitlines()[0]
        for key, value in changed.items()
    }


def load_plan(config: Mapping[str, Any], schemas: str, environ: Mapping[str, str]) -> Plan:
    """Return the plan from all config files, after validation.

    `config` is the content of config/config.yaml with changes from the command line, `schemas` the
    folder of the schemas, `environ` the environment, for PRIVCLUST_DATA_MIRROR. Raises a
    ConfigError of one line with file, key, value and allowed values.
    """
    folder = Path(schemas)
    validate(dict(config), load_yaml(folder / "config.schema.yaml"), "config")
    try:
        mirror = resolve_mirror(config["mirror"], environ, DEFAULT_MIRROR)
    except DataError as error:
        raise ConfigError(str(error)) from None
    datasets = load_datasets(config["datasets"], folder / "datasets.schema.yaml")
    files = [str(Path(paper, PAPER)) for paper in config["papers"]]
    schema = folder / "paper.schema.yaml"
    formats = {"dotted": lambda text: "." not in text or source_files([text])}
    documents = [(path, load_validated(path, schema, formats)) for path in files]
    join_own_methods([document for _, document in documents], config["my_methods"], folder)
    papers, experiments, targets = {}, {}, {}
    elsewhere: dict[str, Target] = {}
    for path, document in documents:
        paper = document["paper"]
        papers[paper] = {key: document[key] for key in ("title", "citation")} | {"file": path}
        of_paper = experiments_of(document, config["effort"], config["seed"], path)
        _add(experiments, of_paper, f"{path}: experiments")
        drawn = _targets_of(document, path)
        drawable = {name: t for name, t in drawn.items() if {*t.experiments} <= {*of_paper}}
        _add(targets, drawable, f"{path}: targets")
        elsewhere |= {name: target for name, target in drawn.items() if name not in drawable}
    features = load_feature_sets(
        config["features"],
        folder / "features.schema.yaml",
        datasets,
        config["datasets"],
        config["features_model"],
    )
    used = _data_used(experiments, datasets, features, config)
    extracted = {name: features[name] for name in sorted(used & features.keys())}
    of_images = {entry.dataset for entry in extracted.values()}
    of_networks = {entry.weights for entry in extracted.values() if entry.weights}
    read = used - features.keys() | of_images | of_networks
    return Plan(
        effort=config["effort"],
        mirror=mirror,
        substitutes=config["substitutes"],
        datasets={name: datasets[name] for name in sorted(read)},
        features=extracted,
        papers=papers,
        quantities={d["paper"]: d.get("quantities", {}) for _, d in documents},
        kinds={d["paper"]: d.get("kinds", {}) for _, d in documents},
        experiments=experiments,
        targets={name: _titled(t, experiments, features) for name, t in targets.items()},
        elsewhere=tuple(sorted(elsewhere)),
        notices=tuple(
            f"{config['my_methods']}: methods.{method}.targets.{name}: left out of this run: "
            f"{only_at_paper_effort(name)}"
            for name, target in sorted(elsewhere.items())
            for method in target.own
        ),
    )


def _titled(
    target: Target,
    experiments: Mapping[str, Experiment],
    features: Mapping[str, FeatureEntry],
) -> Target:
    """Return a target with a note in its title on networks that replace the paper's."""
    read = dict.fromkeys(experiments[name].dataset for name in target.experiments)
    notice = other_networks(features[name] for name in read if name in features)
    return replace(target, title=f"{target.title}; {notice}") if notice else target


def only_at_paper_effort(target: str) -> str:
    """Return the instructions for a target that only paper effort has."""
    return (
        f"{target} is made at effort=paper only, as it takes long; to make it: snakemake --cores 2 "
        f"{target} --config effort=paper"
    )


def _data_used(
    experiments: Mapping[str, Experiment],
    datasets: Mapping[str, Dataset],
    features: Mapping[str, FeatureEntry],
    config: Mapping[str, Any],
) -> set[str]:
    """Return the data sets and features of experiments, or raise if one is undefined."""
    used = {e.name: e.dataset for e in experiments.values() if e.dataset}
    defined = sorted({*datasets, *features})
    for name, dataset in used.items():
        if dataset not in defined:
            raise ConfigError(
                f"experiments.{name}.dataset: got {dataset!r}; it must be one of "
                f"{', '.join(defined)} (defined in {config['datasets']} and {config['features']})"
            )
    return set(used.values())


def _targets_of(document: Mapping[str, Any], path: str) -> dict[str, Target]:
    targets = {}
    for name, entry in document["targets"].items():
        for experiment in entry["experiments"]:
            if experiment not in document["experiments"]:
                raise ConfigError(
                    f"{path}: targets.{name}.experiments: got {experiment!r}; it must be one of "
                    f"{', '.join(document['experiments'])}"
                )
        lists = {key: tuple(entry.get(key, ())) for key in ("experiments", "own")}
        styles = styles_in(document, entry["experiments"])
        head = {"ours": False, "name": name, "paper": document["paper"], "styles": styles}
        head["kinds"] = document.get("kinds", {})
        targets[name] = Target(**{**head, **entry, **lists})
    return targets


def styles_in(
    document: Mapping[str, Any], experiments: Sequence[str]
) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return the styles, from a paper's file, of the methods of some experiments.

    Methods are in the order of the paper's ``methods``. Styles in an experiment override those
    there; the first of several experiments has priority.
    """
    uses: dict[str, Mapping[str, Any]] = {}
    for experiment in experiments:
        # The right operand wins, so that entries of earlier experiments stay.
        uses = document["experiments"][experiment]["methods"] | uses
    return tuple(
        (name, {key: said[key] for key in _STYLE if key in said})
        for name, method in document["methods"].items()
        if name in uses
        for said in [method | (uses[name] or {})]
    )


def _add(joined: dict[str, Any], added: Mapping[str, Any], where: str) -> None:
    """Join two mappings with distinct names, since names become file names."""
    for name in added:
        if name in joined:
            raise ConfigError(f"{where}: the name {name!r} is already used in another paper's file")
    joined.update(added)
