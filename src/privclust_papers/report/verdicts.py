"""Verdicts on claims of the papers by our results: one row for each sentence or printed number.

A claim's check names an experiment, a metric and a comparison; the tolerance of each comparison
is its own interval, never a number chosen to pass. Claims that are ``under`` another (a reading, a
data set) are shown with it. A row without its own check is judged by all comparisons of the claims
under it that ``decide``. `MEANINGS` explains the verdicts, `WHOSE` the claimants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from privclust_papers.pipeline.words import is_part, is_substitute
from privclust_papers.report.checks import (
    CHANCE_ALONE,
    KINDS,
    TOLERANCES,
    WITHOUT_INTERVAL,
    at_chance,
)
from privclust_papers.report.comparison import (
    FEWEST,
    compare,
    compare_margins,
    decimals,
    select,
)
from privclust_papers.report.sentences import FAILS, HOLDS, OPEN, Wording, outcome

REPRODUCED = "reproduced"
CONSISTENT = "consistent"
PARTLY = "partly"
NOT_REPRODUCED = "not reproduced"
TOO_FEW = "too few trials"
UNDECIDED = "undecided"
VACUOUS = "vacuous"
NOT_COMPARABLE = "not comparable"
NOT_RUN = "not run"
MEANINGS = {
    REPRODUCED: (
        "Every comparison of the claim holds in our results. A printed number is reproduced if it "
        "lies in our 95 % interval, widened by half a unit of its last digit, and no number "
        "printed for another method does. A printed margin is reproduced if it lies in our 95 % "
        "interval, and zero does not."
    ),
    CONSISTENT: (
        "Some comparisons hold, the others are undecided, and none is contradicted. A printed "
        "number is consistent if it lies in our 95 % interval, but numbers printed for other "
        "methods (for a margin: zero) do too, or we have fewer trials than the paper."
    ),
    PARTLY: (
        "Some comparisons hold and some are contradicted, but not more are contradicted than hold."
    ),
    NOT_REPRODUCED: (
        "More comparisons are contradicted than hold, or a printed number lies outside our 95 % "
        "interval, widened by half a unit of its last digit."
    ),
    TOO_FEW: (
        "The trials decide nothing: no comparison holds and none is contradicted. This verdict "
        f"also stands where we have fewer than {FEWEST} of the trials behind a printed number, or "
        "where all our random starts give the same result and the printed mean is higher."
    ),
    UNDECIDED: (
        'The paper gives no number for a word such as "about", and the claim is not reproduced '
        "with the narrowest bound that a reader may choose, but it is with the widest."
    ),
    VACUOUS: (
        "No method in the comparison does better than chance, so that neither outcome says "
        "anything about the claim."
    ),
    NOT_COMPARABLE: (
        "The paper's data are not available, so a declared substitute was used. For a claim of our "
        "own there is then nothing of the paper to compare with."
    ),
    NOT_RUN: (
        "Nothing was run that could decide the claim. Some experiments run at paper effort only."
    ),
}
"""The verdicts and their meanings."""

VERDICTS = tuple(MEANINGS)
PAPERS, OURS, CODE = "paper", "ours", "code"
WHOSE = {
    PAPERS: "claims and numbers of the papers",
    OURS: "claims of our own",
    CODE: "claims on the authors' released code",
}
"""The claimants, counted separately."""

COLUMNS = (
    *("id", "paper", "of", "target", "where", "claim"),
    *("verdict", "decided_by", "tolerance", "data", "row", "judged_by"),
)


@dataclass(frozen=True)
class _Judgement:
    """The comparisons of a claim, and their texts."""

    outcomes: Callable[[float], list[str]]
    texts: tuple[str, str]  # expected, found
    tolerance: str
    sources: Sequence[str]
    has_interval: bool
    is_at_chance: bool


_NO_VERDICT = {"verdict": NOT_RUN, "decided_by": "", "tolerance": "", "data": ""}


def judge(
    claims: list[Mapping[str, Any]],
    trials: Mapping[str, pd.DataFrame],
    printed: pd.DataFrame,
    own_targets: Iterable[str] = (),
    quantities: Mapping[str, Mapping[str, str]] | None = None,
    kinds: Mapping[str, Mapping[str, str]] | None = None,
) -> pd.DataFrame:
    """Return a verdict for each claim; a claim on printed numbers gives one for each number.

    `claims` are the entries of the papers' claims.yaml, each with its ``paper``, `trials` those of
    each experiment that was run, `printed` the numbers that the papers print; see
    `privclust_papers.report.comparison.PRINTED_COLUMNS`. Claims without ``of`` (the paper, the code
    or ours) are ours for `own_targets`, else of the paper. For each paper, `quantities` describes
    metrics and axes, and `kinds` has the kinds of metrics, see `RANGES` there. The result has
    `COLUMNS`; ``row`` is empty for claims that count, else the id of the row that the claim is
    under.
    """
    own_targets = frozenset(own_targets)
    rows: list[dict[str, str]] = []
    judgements: dict[str, _Judgement | None] = {}
    for claim in claims:
        head = {key: claim[key] for key in ("id", "paper", "target", "where", "claim")}
        head["of"] = claim.get("of", OURS if claim["target"] in own_targets else PAPERS)
        head |= {"row": claim.get("under", ""), "judged_by": claim.get("judged_by", "")}
        if "reading" in claim:
            head["claim"] += f" (reading: {claim['reading']})"
        check = claim.get("check")
        of_paper = (kinds or {}).get(claim["paper"], {})
        if check is None:
            rows.append(head)  # judged below, by the claims under it
        elif check["kind"] == "printed":
            entries = printed[printed["target"] == claim["target"]]
            found = compare(entries, dict(trials), "own_starts" in check, of_paper)
            rows.extend(_judge_printed(head, "own_starts" in check, found))
        elif check["kind"] == "printed_margins":
            entries = printed[printed["target"] == claim["target"]]
            found = compare_margins(entries, trials, check["method"], of_paper)
            rows.extend(_judge_margins(head, check["method"], entries, found))
        else:
            kind = of_paper.get(check["metric"], "")
            words = (quantities or {}).get(claim["paper"], {})
            judgement = _judged(check | {"quantity_kind": kind}, trials, words)
            judgements[claim["id"]] = judgement
            told = _told([judgement] if judgement else [])
            if judgement and "wide_bound" in check:
                wide = {**check, "bound": check["wide_bound"], "quantity_kind": kind}
                told = _between_bounds(told, _told([_judged(wide, trials, words) or judgement]))
            rows.append(head | told)
    n_best = {claim["id"]: claim["data_sets"] for claim in claims if "data_sets" in claim}
    # Second, because a row may come before the claims under it.
    for row in (row for row in rows if "verdict" not in row):
        deciding = [c["id"] for c in claims if c.get("under") == row["id"] and c.get("decides")]
        judged = _of_the_papers([one for name in deciding if (one := judgements[name])])
        row |= _told(_on_best_data(judged, n_best.get(row["id"], len(judged))))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _judged(
    check: Mapping[str, Any], trials: Mapping[str, pd.DataFrame], words: Mapping[str, str]
) -> _Judgement | None:
    table = trials.get(check["experiment"])
    if table is None:
        return None
    conditions = check.get("select", [])
    for condition in [conditions] if isinstance(conditions, str) else conditions:
        table = select(table, condition)
    if not {check["method"], *check.get("against", [])} <= set(table["method"]):
        return None
    if check.get("scale") == "log":
        with np.errstate(divide="ignore"):
            table = table.assign(**{check["metric"]: np.log(table[check["metric"]])})
    found = KINDS[check["kind"]](check, table, Wording(check, table, words))
    if found is None:
        return None
    outcomes, texts = found
    several = CHANCE_ALONE if len(outcomes(0.95)) > 1 else ""
    return _Judgement(
        outcomes,
        texts,
        TOLERANCES[check["kind"]].format(**{**check, "chance_alone": several}),
        sorted(set(table["source"])),
        check["kind"] not in WITHOUT_INTERVAL,
        "chance" in check and at_chance(check, table),
    )


def _told(judged: Sequence[_Judgement]) -> dict[str, str]:
    """Return the verdict on all comparisons of some checks together, and its reasons.

    A claim holds if all of its comparisons do, at 95 %. If not, comparisons that hold or fail are
    counted at a level with a Bonferroni correction, so that each kind of error has a probability of
    at most 2.5 % per claim, not per comparison.
    """
    judged = _of_the_papers(judged)
    if not judged:
        return dict(_NO_VERDICT)
    is_vacuous = all(one.is_at_chance for one in judged)

    def results_at(level: float) -> list[str]:
        """Return all outcomes. Those at chance count as open, unless all are at chance."""
        return [
            OPEN if one.is_at_chance and not is_vacuous else result
            for one in judged
            for result in one.outcomes(level)
        ]

    results = results_at(0.95)
    has_interval = any(one.has_interval for one in judged)
    level = 0.95
    # If all hold at 95 %, the joint claim is an intersection-union test and needs no correction.
    if has_interval and results.count(HOLDS) < len(results) > 1:
        level = 1.0 - 0.05 / len(results)
        results = results_at(level)
    verdict = _verdict_on_counts(results.count(HOLDS), results.count(FAILS), len(results))
    if is_vacuous:
        verdict = VACUOUS
    sources = sorted({source for one in judged for source in one.sources})
    if any(map(is_substitute, sources)):
        verdict = NOT_COMPARABLE
    tolerance = judged[0].tolerance if len(judged) == 1 else "the tolerances of the claims under it"
    if level > 0.95:
        tolerance += (
            f"; counted with {100 * level:.4g} % intervals, because there are {len(results)} "
            "comparisons"
        )
    came_out = outcome(results, has_interval)
    came_out = came_out[:1].upper() + came_out[1:]
    # The texts of the least favourable of several checks stand for all.
    expected, found = min(judged, key=_favourable).texts
    head = "Expected"
    if len(judged) > 1:
        head = f"{len(judged)} claims together. Expected of the least favourable"
    came_out = f"{head}: {expected}. Found: {found}. {came_out}."
    return {
        "verdict": verdict,
        "decided_by": came_out,
        "tolerance": tolerance,
        "data": "; ".join(sources),
    }


def _between_bounds(narrow: dict[str, str], wide: dict[str, str]) -> dict[str, str]:
    """Return the verdict by the narrow bound, or "undecided" if the wide one gives another side."""
    if (narrow["verdict"] == NOT_REPRODUCED) == (wide["verdict"] == NOT_REPRODUCED):
        return narrow
    found = (
        f"With the narrow bound: {narrow['decided_by']} With the wide bound: {wide['decided_by']}"
    )
    tolerance = f"{narrow['tolerance']}; or {wide['tolerance']}"
    return {**narrow, "decided_by": found, "tolerance": tolerance, "verdict": UNDECIDED}


def _of_the_papers(judged: Sequence[_Judgement]) -> Sequence[_Judgement]:
    """Return the judgements on the papers' own data, or all if there are none."""
    return [one for one in judged if not any(map(is_substitute, one.sources))] or judged


def _on_best_data(judged: Sequence[_Judgement], n_sets: int) -> list[_Judgement]:
    """Return the judgements on the data sets that fit a claim best, comparisons at chance open."""
    groups: dict[tuple[str, ...], list[_Judgement]] = {}
    for one in judged:
        groups.setdefault(tuple(one.sources), []).append(one)

    def misfit(group: list[_Judgement]) -> tuple[int, int]:
        results = [r for one in group if not one.is_at_chance for r in one.outcomes(0.95)]
        return results.count(FAILS), -results.count(HOLDS)

    return [one for group in sorted(groups.values(), key=misfit)[:n_sets] for one in group]


def _favourable(one: _Judgement) -> tuple[float, float]:
    """Return a key that sorts by the share of contradicted comparisons, then of those that hold."""
    results = one.outcomes(0.95)
    return -results.count(FAILS) / len(results), results.count(HOLDS) / len(results)


def _verdict_on_counts(held: int, failed: int, n: int) -> str:
    if held == n:
        return REPRODUCED
    if not failed:
        return CONSISTENT if held else TOO_FEW
    return PARTLY if held >= failed else NOT_REPRODUCED


def _judge_printed(
    head: Mapping[str, str], own_starts: bool, entries: pd.DataFrame
) -> list[dict[str, str]]:
    """Return a row for each printed number of a target, from the result of `compare`."""
    rows = []
    for entry in entries.to_dict("records"):
        name = f"{entry['label']} {entry['statistic']} {entry['metric']}".replace("_", " ")
        place = f"/{entry['method']}/{entry['statistic']}/{entry['select']}"
        row = {
            **head,
            "id": head["id"] + place,
            "row": head["row"] and head["row"] + place,
            "claim": f"{name}, {entry['select'].replace('_', ' ')}: {entry['value']}",
            "data": entry["source"],
            "decided_by": "",
            "tolerance": "",
        }
        if entry["n"]:
            digits = decimals(entry["value"]) + 1
            ours, low, high = (f"{entry[name]:.{digits}f}" for name in ("ours", "low", "high"))
            row["decided_by"] = (
                f"Expected: {entry['value']}, as printed. Found: {ours} (95 % interval {low} to "
                f"{high}), from {entry['n']} of the paper's {entry['trials']} trials."
            )
            starts = "the sampling error of the printed mean and by " if own_starts else ""
            row["tolerance"] = (
                f"our 95 % interval, widened by {starts}half a unit of the last printed digit, "
                f"which includes {entry['others']:.0f} of the {entry['n_others']:.0f} numbers "
                "printed for other methods"
            )
        row["verdict"] = _verdict_on_number(entry)
        rows.append(row)
    return rows


def _judge_margins(
    head: Mapping[str, str], method: str, entries: pd.DataFrame, margins: pd.DataFrame
) -> list[dict[str, str]]:
    """Return a row for each margin of a target's printed means over a method's mean."""
    rows = []
    for place, entry in entries[entries["statistic"] == "mean"].iterrows():
        if entry["method"] == method:
            continue
        margin = margins.loc[place]
        name = entry["method"] if pd.isna(margin["label"]) else margin["label"]
        where = entry["select"].replace("_", " ")
        row = {
            **head,
            "id": f"{head['id']}/{entry['method']}/{entry['select']}",
            "row": head["row"] and f"{head['row']}/{entry['method']}/mean/{entry['select']}",
            "claim": f"{head['claim']}: {name}, {where}",
            "verdict": _verdict_on_margin(margin, int(entry["trials"])),
            "decided_by": "",
            "tolerance": "",
            "data": "" if pd.isna(margin["source"]) else margin["source"],
        }
        if margin["n"] > 1:
            row["claim"] += f": {margin['printed_margin']:.2f}"
            interval = f"95 % interval {margin['low']:.3g} to {margin['high']:.3g}"
            row["decided_by"] = (
                f"Expected: {margin['printed_margin']:.2f}, as printed. "
                f"Found: {margin['margin']:.3g} ({interval}), from the same "
                f"{margin['n']:.0f} trials."
            )
            row["tolerance"] = (
                "our 95 % interval of paired differences, widened by the rounding of both numbers"
            )
        rows.append(row)
    return rows


def _verdict_on_margin(margin: Mapping[str, Any], n_printed: int) -> str:
    """Return the verdict on a printed margin: "consistent" if a margin of 0 agrees as well."""
    # Written so that NaN, of a margin without trials, counts as not run.
    if not margin["n"] > 0:
        return NOT_RUN
    if is_substitute(margin["source"]) or is_part(margin["source"]):
        return NOT_COMPARABLE
    if margin["n"] < 2 or (margin["n"] < FEWEST and margin["n"] < n_printed):
        return TOO_FEW
    low, high = margin["low"] - margin["rounding"], margin["high"] + margin["rounding"]
    if not low <= margin["printed_margin"] <= high:
        return NOT_REPRODUCED
    return CONSISTENT if low <= 0.0 <= high or margin["n"] < n_printed else REPRODUCED


def _verdict_on_number(entry: Mapping[str, Any]) -> str:
    is_whole = entry["n"] >= entry["trials"]
    if not entry["n"]:
        return NOT_RUN
    if is_substitute(entry["source"]) or is_part(entry["source"]):
        return NOT_COMPARABLE
    if entry["n"] < 2 or (entry["n"] < FEWEST and not is_whole):
        return TOO_FEW
    if not entry["agrees"]:
        return TOO_FEW if entry.get("rare_start") else NOT_REPRODUCED
    return REPRODUCED if is_whole and not entry["others"] else CONSISTENT
