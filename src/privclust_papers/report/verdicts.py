"""Claims of the papers, judged by our results.

A claim's check names an experiment, a metric and a comparison; the tolerance of each comparison
is its own 95 % interval (Student's t), never a number picked to pass. `MEANINGS` tells the
verdicts, `WHOSE` whose claims they are on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from privclust_papers.pipeline.words import is_substitute
from privclust_papers.report.checks import (
    KINDS,
    TOLERANCES,
    WITHOUT_INTERVAL,
    at_chance,
)
from privclust_papers.report.comparison import (
    FEWEST,
    compare,
    compare_margins,
    select,
)
from privclust_papers.report.sentences import (
    FAILS,
    HOLDS,
    Wording,
    capitalised,
    outcome,
)

REPRODUCED = "reproduced"
PARTLY = "partly"
NOT_REPRODUCED = "not reproduced"
TOO_FEW = "too few trials"
VACUOUS = "vacuous"
NOT_COMPARABLE = "not comparable"
NOT_RUN = "not run"
MEANINGS = {
    REPRODUCED: (
        "Every comparison that the claim makes holds in our results; or a printed number agrees, "
        "and the numbers printed for other methods do not; or a printed margin does, and none at "
        "all does not."
    ),
    PARTLY: (
        "Some comparisons hold, and at least as many as are contradicted; or a printed number "
        "agrees, but as other methods' numbers do (a margin: as none at all does), or with only a "
        "part of the paper's trials, or where all draws of ours give one value."
    ),
    NOT_REPRODUCED: (
        "More comparisons are contradicted than hold; or a printed number lies outside the 95 % "
        "interval of ours."
    ),
    TOO_FEW: (
        "The trials cannot tell: no comparison holds, and no more are contradicted than by chance "
        f"alone; or a printed number has fewer than {FEWEST} of its trials."
    ),
    VACUOUS: "It holds, but no method that is compared does better than chance.",
    NOT_COMPARABLE: (
        "The paper's data could not be had, and a declared substitute stood in for them."
    ),
    NOT_RUN: "Nothing was run that could decide it, as for what paper effort alone has.",
}
"""The verdicts, and what each means."""

VERDICTS = tuple(MEANINGS)
_BY_CHANCE = 0.025  # of ties, that one side of an interval has contradicted
PAPERS, OURS, CODE = "paper", "ours", "code"
WHOSE = {
    PAPERS: "what the paper says",
    OURS: "evidence of our own",
    CODE: "what the authors' released code does",
}
"""Whose claims are judged, which are counted apart."""

COLUMNS = (
    *("id", "paper", "of", "target", "where", "claim"),
    *("verdict", "decided_by", "tolerance", "data"),
)


def judge(
    claims: list[Mapping[str, Any]],
    trials: Mapping[str, pd.DataFrame],
    printed: pd.DataFrame,
    own_targets: Iterable[str] = (),
    quantities: Mapping[str, Mapping[str, str]] | None = None,
) -> pd.DataFrame:
    """Return a verdict for each claim; a claim on printed numbers gives one for each number.

    `claims` are the entries of the papers' claims.yaml, each with its ``paper``, `trials` those of
    each experiment that was run, `printed` the numbers the papers print; see
    `privclust_papers.report.comparison.PRINTED_COLUMNS`. What a claim does not say to be ``of`` the
    paper, the code or ours is of the paper, but for `own_targets`. `quantities` has for each paper
    what its metrics and axes are in words. The result has `COLUMNS`.
    """
    own_targets = frozenset(own_targets)
    rows: list[dict[str, str]] = []
    for claim in claims:
        head = {key: claim[key] for key in ("id", "paper", "target", "where", "claim")}
        head["of"] = claim.get("of", OURS if claim["target"] in own_targets else PAPERS)
        if "reading" in claim:
            head["claim"] += f" (read so: {claim['reading']})"
        check = claim["check"]
        if check["kind"] == "printed":
            rows.extend(_judge_printed(head, printed, trials))
            continue
        if check["kind"] == "printed_margins":
            rows.extend(_judge_margins(head, check["method"], printed, trials))
            continue
        table = trials.get(check["experiment"])
        if table is not None:
            conditions = check.get("select", [])
            for condition in [conditions] if isinstance(conditions, str) else conditions:
                table = select(table, condition)
        rows.append(
            head | _judge_comparisons(check, table, (quantities or {}).get(claim["paper"], {}))
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _judge_printed(
    head: Mapping[str, str], printed: pd.DataFrame, trials: Mapping[str, pd.DataFrame]
) -> list[dict[str, str]]:
    """Judge each printed number of a target on its own."""
    entries = compare(printed[printed["target"] == head["target"]], dict(trials))
    rows = []
    for entry in entries.to_dict("records"):
        name = f"{entry['label']} {entry['statistic']} {entry['metric']}".replace("_", " ")
        row = {
            **head,
            "id": f"{head['id']}/{entry['method']}/{entry['statistic']}/{entry['select']}",
            "claim": f"{name}, {entry['select'].replace('_', ' ')}: {entry['value']}",
            "data": entry["source"],
            "decided_by": "",
            "tolerance": "",
        }
        if entry["n"]:
            interval = f"95 % interval {entry['low']:.3g} to {entry['high']:.3g}"
            row["decided_by"] = (
                f"ours is {entry['ours']:.3g} ({interval}) from {entry['n']} of the paper's "
                f"{entry['trials']} trials"
            )
            row["tolerance"] = (
                f"the 95 % interval of ours, in which {entry['others']:.0f} of "
                f"{entry['n_others']:.0f} numbers printed for other methods lie too"
            )
        row["verdict"] = _verdict_on_number(entry)
        rows.append(row)
    return rows


def _judge_margins(
    head: Mapping[str, str],
    method: str,
    printed: pd.DataFrame,
    trials: Mapping[str, pd.DataFrame],
) -> list[dict[str, str]]:
    """Judge by how much each printed mean of a target lies above a method's, each on its own."""
    entries = printed[printed["target"] == head["target"]]
    margins = compare_margins(entries, trials, method)
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
                f"ours is {margin['margin']:.3g} ({interval}) from the same "
                f"{margin['n']:.0f} trials"
            )
            row["tolerance"] = "the 95 % interval of paired differences of ours"
        rows.append(row)
    return rows


def _verdict_on_margin(margin: Mapping[str, Any], n_printed: int) -> str:
    """Return the verdict on a printed margin; one that agrees as none at all does is "partly"."""
    if not margin["n"] > 0:
        return NOT_RUN
    if is_substitute(margin["source"]):
        return NOT_COMPARABLE
    if margin["n"] < 2 or (margin["n"] < FEWEST and margin["n"] < n_printed):
        return TOO_FEW
    low, high = margin["low"] - margin["rounding"], margin["high"] + margin["rounding"]
    if not low <= margin["printed_margin"] <= high:
        return NOT_REPRODUCED
    return PARTLY if low <= 0.0 <= high or margin["n"] < n_printed else REPRODUCED


def _verdict_on_number(entry: Mapping[str, Any]) -> str:
    """Return the verdict on a printed number beside ours."""
    is_whole = entry["n"] >= entry["trials"]
    if not entry["n"]:
        return NOT_RUN
    if is_substitute(entry["source"]):
        return NOT_COMPARABLE
    if entry["n"] < 2 or (entry["n"] < FEWEST and not is_whole):
        return TOO_FEW
    if not entry["agrees"]:
        return NOT_REPRODUCED
    says_more = entry["high"] > entry["low"] and not entry["others"]  # one value covers nothing
    return REPRODUCED if is_whole and says_more else PARTLY


def _judge_comparisons(
    check: Mapping[str, Any], table: pd.DataFrame | None, quantities: Mapping[str, str]
) -> dict[str, str]:
    """Judge a claim that is a set of comparisons, each of which holds, fails or stays open."""
    methods = {check["method"], *check.get("against", [])}
    if table is None or not methods <= set(table["method"]):
        return {"verdict": NOT_RUN, "decided_by": "", "tolerance": "", "data": ""}
    wording = Wording(check, table, quantities)
    has_interval = check["kind"] not in WITHOUT_INTERVAL
    results, sentence = KINDS[check["kind"]](check, table, wording)
    held, failed = results.count(HOLDS), results.count(FAILS)
    if not results:
        return {"verdict": NOT_RUN, "decided_by": "no value", "tolerance": "", "data": ""}
    verdict = _verdict_on_counts(held, failed, len(results))
    if verdict in (REPRODUCED, PARTLY) and "chance" in check and at_chance(check, table):
        verdict = VACUOUS
    sources = sorted(set(table["source"]))
    if any(map(is_substitute, sources)):
        verdict = NOT_COMPARABLE
    tolerance = TOLERANCES[check["kind"]].format(**check)
    if len(results) > 1 and "interval" in tolerance:
        by_chance = f"{_BY_CHANCE * len(results):.2g} of {len(results)}"
        tolerance += (
            f"; were there no difference at all, chance alone would have {by_chance} hold and as "
            "many contradicted"
        )
    return {
        "verdict": verdict,
        "decided_by": f"{capitalised(sentence)}; {outcome(results, has_interval)}",
        "tolerance": tolerance,
        "data": "; ".join(sources),
    }


def _verdict_on_counts(held: int, failed: int, n: int) -> str:
    """Return the verdict on so many comparisons, the rest of which is open.

    Where none holds, so many seem contradicted by chance alone, were all ties, in one of 20 cases.
    """
    if held == n:
        return REPRODUCED
    if not held:
        from scipy.stats import binom  # most of what the page would import, and it judges nothing

        if failed <= binom.ppf(0.95, n, _BY_CHANCE):
            return TOO_FEW
    return PARTLY if held >= failed else NOT_REPRODUCED
