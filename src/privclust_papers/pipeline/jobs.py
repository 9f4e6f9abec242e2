"""Inputs, parameters and resources of the jobs of each rule.

Snakemake calls these methods with the wildcards of a job. A *spec* is the JSON of all settings that
determine a job's outputs besides its inputs; *code* is the list of source files that do. A job is
repeated when one of them changes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from privclust.core.canonical import canonical_json
from privclust_papers.datasets.registry import Dataset
from privclust_papers.pipeline import layout
from privclust_papers.pipeline.experiment import MEMORY_MB, Experiment
from privclust_papers.pipeline.plan import CLAIMS, PRINTED, Plan
from privclust_papers.pipeline.project_files import CITATION
from privclust_papers.pipeline.sources import shown, source_files
from privclust_papers.settings.config import load_yaml

Wildcards = Any
"""Wildcards of a job's file names: an attribute for each name in braces (see `layout`)."""

TABLES = "privclust_papers.pipeline.tables"
_MINUTES = 30
_NO_WILDCARDS = str.maketrans("{}", "()")  # Snakemake fills braces in
_NUMBER = r"\d{4}"
_PAGE = Path(__file__).parents[1] / "report" / "page"
_PAGE_FILES = ("index.html.j2", "target.html.j2", "style.css", "page.js")


class Jobs:
    """Inputs, parameters and resources of the jobs of a run.

    `changed` has the settings that differ from the config file; `citation` is the workflow's
    CITATION.cff, if any.
    """

    def __init__(
        self,
        plan: Plan,
        changed: Mapping[str, str],
        citation: str = CITATION,
    ) -> None:
        self.plan, self.changed, self.citation = plan, changed, citation
        self.results = layout.RESULTS.format(effort=plan.effort)
        self.verdicts = layout.VERDICTS.format(effort=plan.effort)
        self.page = layout.PAGE.format(effort=plan.effort)

    def wildcard_constraints(self) -> dict[str, str]:
        """Return regular expressions for the values of wildcards."""
        plan = self.plan
        # Names are listed, so that a wildcard never matches a part of another name.
        names = {
            "effort": [plan.effort],
            "dataset": plan.datasets,
            "features": plan.features,
            "paper": plan.papers,
            "experiment": plan.experiments,
            "batch": {batch for e in plan.experiments.values() for batch in e.batches},
            "target": plan.targets,
        }
        patterns = {key: "|".join(sorted(values)) or "none" for key, values in names.items()}
        return {**patterns, "block": _NUMBER, "shard": _NUMBER}

    # Resources.

    def memory(self, wildcards: Wildcards, attempt: int) -> int:
        """Return the memory of a job in MB, doubled at each new attempt."""
        experiment = self.plan.experiments.get(getattr(wildcards, "experiment", None))
        features = self.plan.features.get(getattr(wildcards, "features", None))
        # Extraction of features holds the images of its data set in memory.
        name = features.dataset if features else getattr(wildcards, "dataset", None)
        reads = experiment or self.plan.datasets.get(name)
        return ((reads and reads.memory_mb) or MEMORY_MB) * 2 ** (attempt - 1)

    def runtime(self, wildcards: Wildcards, attempt: int) -> int:
        """Return the time of a job in minutes, doubled at each new attempt."""
        return _MINUTES * 2 ** (attempt - 1)

    # Data.

    def fetch_spec(self, wildcards: Wildcards) -> str:
        """Return the settings that determine the source of a data set, without absolute paths.

        They include the files in the mirror, so that a substitute is replaced once the data are
        there.
        """
        dataset, mirror = self.plan.datasets[wildcards.dataset], self.plan.mirror
        sources = dataset.sources if mirror is not None else ()
        places = (source.location for source in sources if source.kind == "mirror")
        spec = {
            "dataset": dataset.name,
            "file": dataset.file,
            "content_sha256": dataset.content_sha256,
            "sources": [
                [s.kind, s.location, s.sha256, s.md5, s.part and asdict(s.part)]
                for s in dataset.sources
            ],
            "in_mirror": [place for place in places if (mirror / place).exists()],
            "substitutes": self.plan.substitutes,
        }
        return canonical_json(spec)

    def fetch_code(self, wildcards: Wildcards) -> list[str]:
        digest = self.plan.datasets[wildcards.dataset].content_digest
        return source_files(["privclust_papers.datasets.fetch", *([digest] if digest else [])])

    def prepare_spec(self, wildcards: Wildcards) -> str:
        dataset = self.plan.datasets[wildcards.dataset]
        substitute = dataset.substitute
        spec = {
            "dataset": dataset.name,
            "reader": dataset.reader,
            "parts": [[s.location, s.part.file, s.part.reader] for s in dataset.sources if s.part],
            "substitute": substitute
            and {"generator": substitute.generator, "parameters": dict(substitute.parameters)},
        }
        return canonical_json(spec)

    def prepare_code(self, wildcards: Wildcards) -> list[str]:
        dataset = self.plan.datasets[wildcards.dataset]
        substitute = [dataset.substitute.generator] if dataset.substitute else []
        parts = [source.part.reader for source in dataset.sources if source.part]
        return source_files([dataset.reader, *parts, *substitute])

    def images(self, wildcards: Wildcards) -> str:
        """Return the input of features: a prepared set of images."""
        return layout.PREPARED.format(dataset=self.plan.features[wildcards.features].dataset)

    def weights(self, wildcards: Wildcards) -> str | list[str]:
        """Return the folder of the network's weights, if they are fetched."""
        name = self.plan.features[wildcards.features].weights
        return layout.RAW.format(dataset=name) if name else []

    def features_spec(self, wildcards: Wildcards) -> str:
        return canonical_json(self.plan.features[wildcards.features].spec())

    def data_file(self, name: str) -> str:
        """Return the input file of experiments with ``dataset`` `name`."""
        return self._data_stages(name)[-1]

    def _data_stages(self, name: str) -> list[str]:
        """Return a data file and its intermediate files, in the order of their creation."""
        features = self.plan.features.get(name)
        source = name if features is None else features.dataset
        stages = [pattern.format(dataset=source) for pattern in (layout.RAW, layout.PREPARED)]
        if features and features.weights:
            stages.append(layout.RAW.format(dataset=features.weights))
        return stages if features is None else [*stages, layout.FEATURES.format(features=name)]

    # Experiments.

    def dataset(self, wildcards: Wildcards) -> str | list[str]:
        """Return the prepared data set or the features that an experiment reads, if any."""
        name = self._experiment(wildcards).dataset
        return self.data_file(name) if name else []

    def share_code(self, wildcards: Wildcards) -> list[str]:
        """Return the code of shared statistics: the data and the sharing functions only."""
        experiment = self._experiment(wildcards)
        return source_files([experiment.share, experiment.data])

    def share_spec(self, wildcards: Wildcards) -> str:
        numbers = int(wildcards.block), int(wildcards.shard)
        return canonical_json(self._experiment(wildcards).share_spec(*numbers))

    def shards(self, wildcards: Wildcards) -> list[str]:
        """Return the shards for a block's fits, if its methods share statistics."""
        return self._shards(wildcards.experiment, int(wildcards.block))

    def fit_code(self, wildcards: Wildcards) -> list[str]:
        """Return the code of a batch's fits: data, fitting and methods."""
        experiment = self._experiment(wildcards)
        return self._fit_code(experiment, experiment.batches[wildcards.batch])

    def fit_spec(self, wildcards: Wildcards) -> str:
        experiment = self._experiment(wildcards)
        return canonical_json(experiment.fit_spec(wildcards.batch, int(wildcards.block)))

    def fit_methods(self, wildcards: Wildcards) -> str:
        return ", ".join(self._experiment(wildcards).batches[wildcards.batch])

    def fits(self, wildcards: Wildcards) -> list[str]:
        """Return the fits of an experiment by block, then by name of the batch."""
        return self._fits(wildcards.experiment, layout.FIT)

    def fit_costs(self, wildcards: Wildcards) -> list[str]:
        """Return the files of the costs of fits, in the order of `fits`."""
        return self._fits(wildcards.experiment, layout.FIT_COST)

    def evaluate_code(self, wildcards: Wildcards) -> list[str]:
        """Return the code of metrics and tables, and of fits if the same job computes them."""
        experiment = self._experiment(wildcards)
        metrics = experiment.metrics.values()
        code = source_files([experiment.data, experiment.evaluate, *metrics, TABLES])
        if not experiment.is_short:
            return code
        share = source_files([experiment.share]) if experiment.share else []
        fits = self._fit_code(experiment, experiment.methods)
        return sorted({*code, *share, *fits})

    def evaluate_spec(self, wildcards: Wildcards) -> str:
        """Return the settings of an experiment's metrics and their summary."""
        experiment = self._experiment(wildcards)
        labels = {name: method.label for name, method in experiment.methods.items()}
        return canonical_json({**experiment.evaluate_spec(), "labels": labels})

    @staticmethod
    def _fit_code(experiment: Experiment, names: Iterable[str]) -> list[str]:
        paths = [path for name in names for path in experiment.methods[name].dotted_paths()]
        fit = [experiment.fit] if experiment.fit else []
        return source_files([experiment.data, *fit, *paths])

    def _experiment(self, wildcards: Wildcards) -> Experiment:
        return self.plan.experiments[wildcards.experiment]

    def _file(self, pattern: str, name: str, **numbered: str) -> str:
        paper = self.plan.experiments[name].paper
        return pattern.format(effort=self.plan.effort, paper=paper, experiment=name, **numbered)

    def _shards(self, name: str, block: int) -> list[str]:
        experiment = self.plan.experiments[name]
        n_shards = experiment.shards if experiment.share and not experiment.is_short else 0
        return [
            self._file(layout.SHARD, name, block=f"{block:04d}", shard=f"{number:04d}")
            for number in range(n_shards)
        ]

    def _fits(self, name: str, pattern: str) -> list[str]:
        """Return one file per fit of an experiment with separate jobs for fits."""
        experiment = self.plan.experiments[name]
        return [
            self._file(pattern, name, batch=batch, block=f"{number:04d}")
            for number in range(0 if experiment.is_short else experiment.n_blocks)
            for batch in sorted(experiment.batches)
        ]

    # Targets.

    def drawn_from(self, pattern: str) -> Callable[[Wildcards], list[str]]:
        """Return an input function for one file of each experiment of a target."""

        def files(wildcards: Wildcards) -> list[str]:
            return [self._file(pattern, name) for name in self._target(wildcards).experiments]

        return files

    def draw_code(self, wildcards: Wildcards) -> list[str]:
        return source_files([self._target(wildcards).draw])

    def draw_spec(self, wildcards: Wildcards) -> str:
        return canonical_json(self._target(wildcards).spec())

    def labels(self, wildcards: Wildcards) -> dict[str, str]:
        """Return name, title and place of a target, or the place that our own evidence is for."""
        target = self._target(wildcards)
        place = f"{self.plan.papers[target.paper]['title']}: {target.where}"
        place = f"our own evidence, for {place}" if target.ours else place
        labels = {"target": target.name, "title": target.title, "in the paper": place}
        return {name: words.translate(_NO_WILDCARDS) for name, words in labels.items()}

    def printed_values(self, wildcards: Wildcards) -> list[str]:
        """Return the table of printed numbers of a target's paper, if any."""
        paper = self._target(wildcards).paper
        return [file for name, file in self.plan.beside(PRINTED).items() if name == paper]

    def drawings(self, targets: Iterable[str]) -> list[str]:
        return [
            pattern.format(effort=self.plan.effort, target=target)
            for target in targets
            for pattern in layout.DRAWING
        ]

    def named_rules(self) -> dict[str, list[str]]:
        """Return the targets of each rule that is named after a target or a paper."""
        targets = self.plan.targets
        papers = {
            paper: [name for name, target in targets.items() if target.paper == paper]
            for paper in sorted(self.plan.papers)
        }
        return {name: [name] for name in sorted(targets)} | papers

    def _target(self, wildcards: Wildcards) -> Any:
        return self.plan.targets[wildcards.target]

    # The whole run.

    def of_experiments(self, *patterns: str) -> list[str]:
        """Return files of all experiments."""
        names = self.plan.experiments
        return [self._file(pattern, name) for name in names for pattern in patterns]

    def of_targets(self, pattern: str) -> list[str]:
        """Return one file of each target."""
        names = sorted(self.plan.targets)
        return [pattern.format(effort=self.plan.effort, target=name) for name in names]

    def verdicts_spec(self, wildcards: Wildcards) -> str:
        """Return the settings of verdicts: claims and experiments, in the order of the files."""
        spec = {
            "experiments": list(self.plan.experiments),
            "papers": list(self.plan.beside(CLAIMS)),
            "own_targets": [name for name, target in self.plan.targets.items() if target.ours],
            "quantities": self.plan.quantities,
            "kinds": self.plan.kinds,
        }
        return canonical_json(spec)

    def page_code(self, wildcards: Wildcards) -> list[str]:
        """Return the code of the page, with its templates, style and script."""
        parts = [shown(_PAGE / name) for name in _PAGE_FILES]
        return source_files(["privclust_papers.report.page"]) + parts

    def published(self, wildcards: Wildcards) -> list[str]:
        """Return the files with verdicts of the published run."""
        files = [f"docs/results/{paper}/verdicts.csv" for paper in self.plan.papers]
        return [file for file in files if os.path.exists(file)]

    def page_spec(self, wildcards: Wildcards) -> str:
        """Return the content of the page besides tables and figures: see `report.page.render`."""
        plan = self.plan
        spec = {
            "effort": plan.effort,
            "papers": [
                {"name": name, **about, "results": _page_of_results(name)}
                for name, about in plan.papers.items()
            ],
            "citation": _content_of(self.citation),
            "targets": [asdict(target) for target in plan.targets.values()],
            "experiments": {name: _settings_of(e) for name, e in plan.experiments.items()},
            "datasets": {name: _words_on(dataset) for name, dataset in plan.datasets.items()},
            "features": {
                name: asdict(entry) | {"network": entry.network}
                for name, entry in plan.features.items()
            },
            "changed": self.changed,
        }
        return canonical_json(spec)

    # Missing intermediate files.

    def gaps(self, wildcards: Wildcards) -> list[str]:
        """Return the missing files of the run for which a later file exists.

        Snakemake takes a final file for up to date if an intermediate one is missing, such as after
        a failed job with new settings, for which it has removed the old output. Rules for final
        files therefore request the gaps as well.
        """
        return self._gaps(self.plan.experiments, self.plan.targets, self.verdicts, self.page)

    def gaps_behind(self, targets: list[str]) -> Callable[[Wildcards], list[str]]:
        """Return an input function for the gaps of some targets; see `gaps`."""
        experiments = {name for target in targets for name in self.plan.targets[target].experiments}
        return lambda wildcards: self._gaps(experiments, targets)

    def _gaps(self, experiments: Iterable[str], targets: Iterable[str], *last: str) -> list[str]:
        """Return the missing intermediate files of targets and of the last files."""
        gaps: set[str] = set()
        for name in experiments:
            drawn = self.drawings(t for t in targets if name in self.plan.targets[t].experiments)
            is_later_there = False
            # Backwards: once a file exists, everything missing before it is a gap.
            for stage in reversed([*self._stages(name), drawn, *([file] for file in last)]):
                missing = [file for file in stage if not os.path.exists(file)]
                if is_later_there:
                    gaps.update(missing)
                is_later_there = is_later_there or len(missing) < len(stage)
        return sorted(gaps)

    def _stages(self, name: str) -> list[list[str]]:
        experiment = self.plan.experiments[name]
        data = self._data_stages(experiment.dataset) if experiment.dataset else []
        numbers = range(experiment.n_blocks)
        return [
            *([file] for file in data),
            [file for number in numbers for file in self._shards(name, number)],
            self._fits(name, layout.FIT) + self._fits(name, layout.FIT_COST),
            [self._file(pattern, name) for pattern in layout.EVALUATED],
        ]


def _content_of(citation: str) -> Any:
    """Return the content of a CITATION.cff as JSON values; None if there is no file."""
    if not os.path.exists(citation):
        return None
    return json.loads(json.dumps(load_yaml(citation), default=str))  # YAML has dates


def _page_of_results(paper: str) -> str:
    pages = f"docs/results/{paper}.md", f"docs/{paper}.md"  # of a paper, or of the audit
    return next((page for page in pages if os.path.exists(page)), "")


def _settings_of(experiment: Experiment) -> dict[str, Any]:
    return {
        "paper": experiment.paper,
        "dataset": experiment.dataset,
        "grid": list(experiment.grid),
        "n_points": len(experiment.points),
        "trials": list(experiment.trials),
        "seed": experiment.seed,
        "swept": list(experiment.swept),
        "methods": [m.spec() | {"label": m.label} for m in experiment.methods.values()],
    }


def _words_on(dataset: Dataset) -> dict[str, Any]:
    """Return the page's description of a data set and its substitutes."""
    parts = [source.description for source in dataset.sources if source.part]
    substitutes = [dataset.substitute.description] if dataset.substitute else []
    return {
        "title": dataset.title,
        "citation": dataset.citation,
        "homepage": dataset.homepage,
        "substitutes": list(dict.fromkeys([*parts, *substitutes])),
    }
