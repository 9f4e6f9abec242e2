"""What the chooser answers from, as a list of groups: methods that were measured side by side.

Values come from the committed tables of docs/results/, settings from these and from config/papers/,
by the description in chooser.yaml.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
PAPERS = HERE.parents[1] / "config" / "papers"
SIZES = {"n": "n_samples", "d": "n_features", "k": "n_clusters"}
NOT_SETTINGS = {"n", "mean", "median", "std", "se", "min", "max", "panel", "metric"}


@functools.cache  # a page asks for it once for each of its tables
def read() -> dict[str, Any]:
    """Return the tasks by name, not to be changed: ``title``, ``higher_is_better``, ``groups``."""
    tasks = yaml.safe_load((HERE / "chooser.yaml").read_text(encoding="utf-8"))
    return {
        name: {
            "title": task["title"],
            "plan": task.get("plan", False),
            "higher_is_better": task.get("higher_is_better", False),
            "groups": [group for source in task["sources"] for group in groups(source)],
        }
        for name, task in tasks.items()
    }


def files() -> list[Path]:
    """Return the files that `read` reads."""
    tasks = yaml.safe_load((HERE / "chooser.yaml").read_text(encoding="utf-8"))
    tables = [source["table"] for task in tasks.values() for source in task["sources"]]
    return [
        HERE / "chooser.yaml",
        *(RESULTS / f"{name}.csv" for name in tables),
        *sorted(PAPERS.glob("*/paper.yaml")),
    ]


@functools.cache
def _paper(name: str) -> dict[str, Any]:
    """Return a paper's file."""
    return yaml.safe_load((PAPERS / name / "paper.yaml").read_text(encoding="utf-8"))


def groups(source: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the groups of a table: those with an epsilon, then those without privacy."""
    table = pd.read_csv(RESULTS / f"{source['table']}.csv")
    if "experiment" not in table:
        table["experiment"] = next(iter(source["experiments"]))
    paper = _paper(source["table"].split("/")[0])
    for name, of_experiment in source["experiments"].items():
        settings = Settings(paper, name, of_experiment, source)
        rows = table[table["experiment"] == name]
        axes = [column for column in settings.axes if column in rows and rows[column].notna().any()]
        for key, part in rows.groupby(axes, sort=False, dropna=False) if axes else [((), rows)]:
            group = settings.group(dict(zip(axes, key, strict=True)), part, source["private"])
            if group["methods"]:
                yield group
        at_rest = [axis for axis in axes if axis != "epsilon"]
        for key, part in rows.groupby(at_rest, sort=False) if at_rest else [((), rows)]:
            group = settings.group(
                dict(zip(at_rest, key, strict=True)),
                part.drop_duplicates([column for column in ("method", "metric") if column in part]),
                {name: [page, "none"] for name, page in source["reference"].items()},
            )
            if group["methods"]:
                yield group


def title_of(page: str) -> str:
    """Return the title of a method's page."""
    with (HERE.parent / "methods" / f"{page}.md").open(encoding="utf-8") as lines:
        return next(lines).removeprefix("# ").strip()


class Settings:
    """An experiment's settings, and how its rows become a group."""

    def __init__(
        self, paper: dict[str, Any], name: str, about: dict[str, Any], source: dict[str, Any]
    ) -> None:
        self.experiment = paper["experiments"][name]
        self.grid = self.experiment.get("grid") or self.experiment["effort"]["paper"]["grid"]
        self.about, self.source = about, source
        self.axes = sorted({axis for point in self.grid for axis in point} - NOT_SETTINGS)

    def constant(self, name: str) -> Any:
        """Return a setting that is the same throughout the grid, else None."""
        values = {str(point[name]): point[name] for point in self.grid if name in point}
        (value,) = values.values() if len(values) == 1 else (None,)
        return None if isinstance(value, list) else value

    def group(
        self, point: dict[str, Any], rows: pd.DataFrame, wanted: dict[str, list]
    ) -> dict[str, Any]:
        """Return the group at a point of the grid; epsilon is None without one."""
        sizes = {name: self.size(name, point) for name in SIZES}
        is_private = any(promise != "none" for _, promise in wanted.values())
        epsilon = point.get("epsilon", self.about.get("facts", {}).get("epsilon"))
        trials = rows["n"].max() if "n" in rows else None
        return {
            "data": self.about["data"].format(**point),
            "page": self.source["page"],
            "measure": self.source["measure"],
            **sizes,
            "epsilon": float(epsilon) if is_private else None,
            "trials": int(trials),
            "nothing": self.nothing(rows),
            "methods": list(self.methods(rows, wanted)),
        }

    def size(self, name: str, point: dict[str, Any]) -> int:
        """Return n, d or k."""
        facts = self.about.get("facts", {})
        if name in facts:
            return facts[name]
        if "n_subspaces" in point:  # of the segmentation experiments
            k = point["n_subspaces"]
            of = {"n": k * point["n_per_subspace"], "d": point["ambient_dimension"], "k": k}
            return int(of[name])
        return int(point.get(SIZES[name]) or self.constant(SIZES[name]))

    def values(self, rows: pd.DataFrame, metric: str | None) -> pd.Series:
        """Return the values of a metric by method."""
        if "metric" in rows:
            rows = rows[rows["metric"] == metric]
        return rows.set_index("method")[self.source["statistic"]]

    def methods(self, rows: pd.DataFrame, wanted: dict[str, list]) -> Iterator[dict[str, Any]]:
        """Yield the methods that have a value."""
        values = self.values(rows, self.source.get("metric"))
        labels = rows.drop_duplicates("method").set_index("method")["label"]
        for name, (page, promise) in wanted.items():
            value = float(values.get(name, math.nan))
            if math.isnan(value):
                continue
            params = self.experiment["methods"][name] or {}
            params = params.get("params") or {}
            delta = params.get("delta", self.source.get("delta", self.constant("delta")))
            yield {
                "name": title_of(page) if page else labels[name],
                "label": labels[name],
                "page": page and f"methods/{page}",
                "promise": promise,
                "delta": f"{delta:g}" if isinstance(delta, float) else delta,
                "neighbours": params.get("neighbours", "replace_one"),
                "value": value,
            }

    def nothing(self, rows: pd.DataFrame) -> dict[str, Any] | None:
        """Return what a result must be better than to be of use, where that was measured."""
        about = self.source.get("nothing")
        if about is None:
            return None
        value = about.get("value")
        if "method" in about:
            value = self.values(rows, None)[about["method"]]
        elif "metric" in about:
            value = self.values(rows, about["metric"]).dropna().iloc[0]
        return {"name": about["name"], "value": float(value)}
