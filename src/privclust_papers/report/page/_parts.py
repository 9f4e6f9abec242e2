"""Contents of the page's parts, as plain values for its template."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from privclust_papers.pipeline.words import CANNOT_TELL, VIOLATED, is_part, is_substitute
from privclust_papers.pipeline.words import CONSISTENT as CASE_HOLDS
from privclust_papers.report.verdicts import (
    CONSISTENT,
    NOT_COMPARABLE,
    NOT_REPRODUCED,
    NOT_RUN,
    PARTLY,
    REPRODUCED,
    TOO_FEW,
    UNDECIDED,
    VACUOUS,
    VERDICTS,
    WHOSE,
)

PREVIEW_ROWS = 40
_VARYING_COLUMNS = ("cpu_seconds",)  # left out, as the page must be the same in every run
_CASE_COLUMNS = {"case", "paper", "claim_by", "claimed_epsilon", "epsilon_at_least", "verdict"}
_OUTCOMES = {CASE_HOLDS: REPRODUCED, VIOLATED: NOT_REPRODUCED, CANNOT_TELL: NOT_RUN}
_URGENT = (
    NOT_REPRODUCED,
    PARTLY,
    TOO_FEW,
    UNDECIDED,
    VACUOUS,
    NOT_COMPARABLE,
    CONSISTENT,
    REPRODUCED,
    NOT_RUN,
)
_FOLDED = (REPRODUCED, NOT_RUN)  # verdicts whose claims are folded if more than _UNFOLDED
_UNFOLDED = 4
_ALT_CLAIMS = 3  # claims in an alternative text
_NUMBER = re.compile(  # matches the text of `verdicts.judge` for a printed number
    r"(?:Expected: \S+, as printed\. )?Found: (?P<ours>\S+) "
    r"\(95 % interval (?P<interval>.*?)\), from (?P<trials>.*) trials\."
)
_OTHERS = re.compile(r"which includes (?P<others>.*) numbers printed for other methods")


def counts(verdicts: pd.DataFrame, column: str = "verdict") -> dict[str, int]:
    """Count sentences and printed numbers by verdict, without the claims under them.

    The column ``published`` has the verdicts of the published run.
    """
    verdicts = verdicts[verdicts["row"] == ""]
    return {name: int((verdicts[column] == name).sum()) for name in VERDICTS}


def whose(verdicts: pd.DataFrame) -> list[dict[str, Any]]:
    """Count the claims of each claimant (`verdicts.WHOSE`) by verdict; the paper's are first."""
    return [
        {"of": of, "about": about, "counts": counts(verdicts[verdicts["of"] == of])}
        for of, about in WHOSE.items()
    ]


def is_number(verdicts: pd.DataFrame) -> pd.Series:
    """Return which rows judge a printed number: only their ids have a slash."""
    return verdicts["id"].str.contains("/", regex=False)


def claims(verdicts: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows with the rank of their verdict, failed ones first.

    Each row is followed by the claims under it, which have ``row``.
    """
    rows = verdicts.to_dict("records")
    ranked = [row | {"rank": VERDICTS.index(row["verdict"])} for row in rows]
    urgency = {
        row["id"]: (_URGENT.index(row["verdict"]), place) for place, row in enumerate(ranked)
    }
    # A claim under a row sorts at the row's place, after the row (False before True).
    return sorted(
        ranked, key=lambda r: (*urgency.get(r["row"] or r["id"], urgency[r["id"]]), bool(r["row"]))
    )


def folded(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Return the claims of each verdict in `_FOLDED`, if there are more than `_UNFOLDED`."""
    groups = [(name, [row for row in rows if row["verdict"] == name]) for name in _FOLDED]
    return [(name, members) for name, members in groups if len(members) > _UNFOLDED]


def numbers(verdicts: pd.DataFrame) -> list[dict[str, Any]]:
    """Return printed numbers and ours, parsed from the texts of `verdicts.judge`."""
    entries = []
    for row in claims(verdicts):
        name, _, printed = row["claim"].rpartition(": ")
        ours = _NUMBER.fullmatch(row["decided_by"])
        parts = ours.groupdict() if ours else dict.fromkeys(_NUMBER.groupindex, "")
        others = _OTHERS.search(row["tolerance"])
        parts |= {"name": name, "printed": printed}
        parts |= {"others": others["others"].replace("the ", "") if others else ""}
        entries.append(row | parts | {"trials": parts["trials"].replace("the paper's ", "")})
    return entries


def alternative_text(target: Mapping[str, Any], verdicts: pd.DataFrame) -> str:
    """Return the alternative text of a drawing: title, place, first claims."""
    rows = verdicts[~is_number(verdicts)].to_dict("records")
    sentences = [f"{target['title']} ({target['where']})"]
    sentences += [f"{row['claim']}: {row['verdict']}" for row in rows[:_ALT_CLAIMS]]
    if more := max(len(rows) - _ALT_CLAIMS, 0):
        sentences.append(f"{more} more claims follow")
    if n_numbers := int(is_number(verdicts).sum()):
        sentences.append(f"{n_numbers} printed numbers are compared with ours")
    return ". ".join(sentences) + "."


def preview(table: pd.DataFrame) -> dict[str, Any]:
    """Return the head of a table with shortened numbers.

    Columns that vary between runs are left out. Constant columns are given once, as ``same``.
    """
    varying = [name for name in _VARYING_COLUMNS if name in table]
    fixed = table.drop(columns=varying)
    same = {name: fixed[name].iloc[0] for name in fixed if fixed[name].nunique() == 1}
    if len(table) < 2 or len(same) == fixed.shape[1]:
        same = {}
    fixed = fixed.drop(columns=list(same))
    numeric = [all(map(_is_numeric, fixed[name])) for name in fixed]
    return {
        "columns": list(zip(fixed.columns, numeric, strict=True)),
        "rows": [
            [(_short(text), text, right) for text, right in zip(row, numeric, strict=True)]
            for row in fixed.head(PREVIEW_ROWS).itertuples(index=False)
        ],
        "n_rows": len(table),
        "left_out": varying,
        "same": [(name, _short(text)) for name, text in same.items()],
    }


def cases(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the cases of an audit; empty for other tables."""
    if not set(table) >= _CASE_COLUMNS:
        return []
    rows = []
    for row in table.to_dict("records"):
        outcome = next((o for o in _OUTCOMES if row["verdict"].startswith(o)), CANNOT_TELL)
        bound = {"epsilon_at_least": _short(row["epsilon_at_least"])}
        rows.append(row | bound | {"outcome": outcome, "class": _OUTCOMES[outcome]})
    return rows


def data(
    spec: Mapping[str, Any], experiments: Iterable[str], sources: Mapping[str, list[str]]
) -> list[dict[str, Any]]:
    """Return descriptions of the experiments' data, without duplicates, and their substitutes."""
    entries: dict[tuple[str, str], dict[str, Any]] = {}
    for name in experiments:
        dataset = spec["experiments"][name]["dataset"]
        features = spec["features"].get(dataset, {})
        about = spec["datasets"].get(features.get("dataset") or dataset, {})
        for source in sources[name]:
            entry = {
                "source": source,
                "features": features,
                "about": about,
                "substituted": is_substitute(source),
                "is_part": is_part(source),
            }
            entries.setdefault((dataset or "", source), entry)
    return list(entries.values())


def absent(targets: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the data sets that a substitute stands in for, and the number of their targets."""
    found: dict[str, dict[str, Any]] = {}
    for target in targets:
        entries = [e["about"] for e in target["data"] if e["substituted"] and e["about"]]
        for title, about in {about["title"]: about for about in entries}.items():
            found.setdefault(title, {**about, "n_targets": 0})["n_targets"] += 1
    return list(found.values())


def settings(spec: Mapping[str, Any], experiments: Iterable[str]) -> list[dict[str, Any]]:
    """Return the parameters of the experiments; methods are calls of their classes."""
    entries = ((name, spec["experiments"][name]) for name in experiments)
    return [
        {
            **entry,
            "name": name,
            "trials": _trials(entry["trials"]),
            "grid": [_axes(part) for part in entry["grid"] if part],
            "calls": [_calls(method) for method in entry["methods"]],
        }
        for name, entry in entries
    ]


def words(spec: Mapping[str, Any], target: Mapping[str, Any]) -> str:
    """Return the search words of a target that its row lacks: paper, methods and data."""
    paper = next(paper for paper in spec["papers"] if paper["name"] == target["paper"])
    found = [paper["name"], paper["title"], target["kind"], *target["experiments"]]
    for name in target["experiments"]:
        entry = spec["experiments"][name]
        found += [word for method in entry["methods"] for word in (method["name"], method["label"])]
        about = spec["datasets"].get(entry["dataset"])
        found += [entry["dataset"] or "", about["title"] if about else ""]
    return " ".join(dict.fromkeys(filter(None, found)))


def shared(spec: Mapping[str, Any], target: Mapping[str, Any]) -> list[str]:
    """Return the other targets that use some of the same fits."""
    return [
        other["name"]
        for other in spec["targets"]
        if other["name"] != target["name"] and {*target["experiments"]} & {*other["experiments"]}
    ]


def command(changed: Mapping[str, str], *rules: str) -> str:
    """Return the command that makes a target, a paper, or all, with the settings of the run."""
    words = ["snakemake --cores 2", *rules]
    if changed:
        words += ["--config", *(shlex.quote(f"{key}={value}") for key, value in changed.items())]
    return " ".join(words)


def _calls(method: Mapping[str, Any]) -> dict[str, Any]:
    steps = [*method["transforms"], (method["estimator"], method["params"])]
    calls = [
        f"{path}({', '.join(f'{key}={value!r}' for key, value in params.items())})"
        for path, params in steps
    ]
    return {"label": method["label"], "calls": calls}


def _axes(part: Mapping[str, Any]) -> list[tuple[str, str]]:
    values = {name: axis if isinstance(axis, list) else [axis] for name, axis in part.items()}
    return [(name, ", ".join(map(str, axis))) for name, axis in values.items()]


def _trials(trials: list[int]) -> str:
    """Return the number of trials, and their numbers unless they are the first ones."""
    if trials == list(range(len(trials))):
        return str(len(trials))
    shown = trials if len(trials) <= 4 else [*trials[:2], "…", trials[-1]]
    return f"{len(trials)} (number {', '.join(map(str, shown))})"


def _is_numeric(text: str) -> bool:
    try:
        float(text or "nan")
    except ValueError:
        return False
    return True


def _short(text: str) -> str:
    """Shorten a long number to 4 digits; other texts are unchanged."""
    if len(text) < 7 or not _is_numeric(text) or not math.isfinite(float(text)):
        return text
    return text if text.isdecimal() else f"{float(text):.4g}"
