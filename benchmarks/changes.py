"""Judge the published run's verdicts again by today's rules, in docs/results/changes.md.

python benchmarks/changes.py <commit of the published claims>

The committed tables hold no trials. Their verdicts tell how many comparisons held and were
contradicted at 95 %; a claim whose check has changed since waits for a new run.
"""

import re
import subprocess
import sys

import pandas as pd
import yaml
from scipy.stats import t
from scratch import ROOT, write_into

from privclust_papers.dpsc.metrics import distance_of_random
from privclust_papers.frontier.printed import ROUNDING, SCORES
from privclust_papers.report.checks import WITHOUT_INTERVAL
from privclust_papers.report.comparison import _lies_in
from privclust_papers.report.verdicts import (
    CONSISTENT,
    NOT_COMPARABLE,
    NOT_REPRODUCED,
    PARTLY,
    REPRODUCED,
    TOO_FEW,
    UNDECIDED,
    VACUOUS,
    _verdict_on_counts,
)

PAPERS = "ckm", "dpem", "mtsc", "dpsc", "privatemail", "frontier"
KEPT = VACUOUS, NOT_COMPARABLE, "not run"  # verdicts that counts do not decide
WAITS = "waits for a run"
REPLACED = "dpem_map", "dpem_gowalla"  # experiments on other data than the paper has
AT_CHANCE = "no method is above chance"
ON_CIFAR100 = "privatemail_cifar100", "privatemail_settings_cifar100", "privatemail_control"
RECALL_OF_CHANCE = 0.0765  # Recall@8 of a random order of the gallery of CIFAR-100
RANGE = "up to epsilon = 100 now, random subspaces by eq. (2): by `dpsc_fig2.csv`"
TWO_BOUNDS = "a narrow and a wide bound, by `ckm_tab_snr.csv`"
STARTS = "a printed mean of random starts has a sampling error, and is rounded"
UNCONTRADICTED = "some comparisons hold and none is contradicted"
ONE_IS_ENOUGH = "none holds, and one contradicted is enough"
OTHERS_AGREE = "agrees, but so does another printed number"
FEWER_TRIALS = "agrees, but we have fewer trials than the paper"
SAME_NUMBER = "the other printed number that agrees is equal"
OF_COUNTS = {(PARTLY, CONSISTENT): UNCONTRADICTED, (TOO_FEW, NOT_REPRODUCED): ONE_IS_ENOUGH}
CANNOT_FAIL, GARBLED = "cannot fail: a test now", "our copy of the text is garbled there"
GONE = {  # why what was judged is no claim now, if not because it cannot fail
    "ckm_fig2_curve_mask_noisy": "pairs that another claim has too",
    "ckm_variance_line": GARBLED,
    "ckm_privacy_printed": GARBLED,
    "ckm_fig3_as_well_good": "part of `ckm_fig3_as_well`",
    "ckm_fig3_as_well_small": "part of `ckm_fig3_as_well_all`",
    "ckm_fig3_as_well_small_m10": "part of `ckm_fig3_as_well_m10`",
    **dict.fromkeys(
        ("dpsc_fig2_large_d5", "dpsc_fig2_large_d10"), "a truly large epsilon has no number"
    ),
    "ckm_costs_less_hundredth": "part of `ckm_less_computations`",
    **{
        f"mtsc_fig1_below{of}{maps}": "not in the paper; its axis chose our maps"
        for of in ("", "_ssc", "_cass", "_lrr")
        for maps in ("", "_gaussian")
    },
}
COUNTS = re.compile(r"(\d+) of (\d+) comparisons hold, (\d+|none) (?:is|are) contradicted")
SIDES = {"expected side": (1, 0, 1), "other side": (0, 1, 1), "both sides": (0, 0, 1)}


def counts_of(said):
    """Return how many comparisons held and were contradicted, of how many; None if not told."""
    if match := COUNTS.search(said):
        held, n, failed = (0 if count == "none" else int(count) for count in match.groups())
        return held, failed, n
    return next((counts for side, counts in SIDES.items() if said.rstrip(".").endswith(side)), None)


def number_again(row, printed):
    """Return the verdict on a printed number, equal numbers of other methods left out."""
    interval = re.search(
        r"interval (\S+) to (\S+)\),? from (\d+) of the paper's (\d+)", row.decided_by
    )
    if row.verdict != PARTLY or not interval:
        return CONSISTENT if row.verdict == PARTLY else row.verdict
    low, high, n, n_printed = map(float, interval.groups())
    _, method, statistic, select = row.id.split("/")
    same = printed[
        (printed["target"] == row.target)
        & (printed["statistic"] == statistic)
        & (printed["select"] == select)
    ]
    own = same.loc[same["method"] == method, "value"].iloc[0]
    others = [v for v in same["value"].dropna() if v != own and _lies_in(v, low, high)]
    return CONSISTENT if others or n < n_printed else REPRODUCED


def score_of(method, select):
    """Return the row of a method and a data set in the published table of scores."""
    table = pd.read_csv(ROOT / "docs/results/frontier/frontier_tab1.csv")
    of_set = table["set"] == (select or "set=letter").removeprefix("set=")
    return table[of_set & (table["method"] == method)].iloc[0]


def lloyd_again(select):
    """Return the verdict on a printed score of Lloyd's, a mean of as many other random starts."""
    row = score_of("lloyd", select)
    printed = SCORES[row["set"]][0]
    if abs(row["mean"] - printed) <= 2.0**0.5 * row["half_width"] + ROUNDING:
        return REPRODUCED
    is_rare = row["std"] < ROUNDING and printed > row["mean"]  # all our runs are equal
    return TOO_FEW if is_rare else NOT_REPRODUCED


def score_again(check):
    """Return the verdict on a score held against a printed one, which is rounded."""
    row = score_of(check["method"], check.get("select"))
    low, high = row["mean"] - row["half_width"], row["mean"] + row["half_width"]
    bound, rounding = check["bound"], check["rounding"]
    if high < bound - rounding:
        return REPRODUCED
    return NOT_REPRODUCED if low > bound + rounding else TOO_FEW


def rule_of_number(row, new):
    """Return in words what moved a printed number; empty if nothing did."""
    if new == row.verdict:
        return ""
    if new == REPRODUCED:
        return SAME_NUMBER
    n, n_printed = map(int, re.search(r"from (\d+) of the paper's (\d+)", row.decided_by).groups())
    return FEWER_TRIALS if n < n_printed else OTHERS_AGREE


def rule_of(claim, is_same, whose):
    """Return in words what moved a claim."""
    moved = [] if claim.get("of", whose) == whose else [f"of {claim['of']} now"]
    if "under" in claim:
        decides = "decides" if claim.get("decides") else "shown"
        moved.append(f"under `{claim['under']}`: {decides}, not counted")
    elif not is_same:
        moved.append("another measure")
    return "; ".join(moved)


def is_at_chance(paper, claim):
    """Return whether the published table shows no method of a claim on CIFAR-100 above chance."""
    check = claim.get("check", {})
    if check.get("chance", {}).get("metric") != "gain_8" or check["experiment"] not in ON_CIFAR100:
        return False
    table = pd.read_csv(ROOT / f"docs/results/{paper}/{claim['target']}.csv")
    methods = [check["method"], *check.get("against", [])]
    table = table[(table["experiment"] == check["experiment"]) & (table["metric"] == "recall_8")]
    table = table[table["method"].isin(methods)]
    if "along" in check:
        table = table[table["axis"] == check["along"]]
        table = table[(table["axis"] != "sigma") | (table["value"] >= 2.0)]  # below: another claim
    if "select" in check:
        values = check["select"].removeprefix("epsilon=").split("|")
        table = table[table["epsilon"].isin(map(float, values))]
    limit = RECALL_OF_CHANCE + check["chance"]["value"]
    lows = table["mean"] - t.ppf(0.975, table["n"] - 1) * table["se"]
    means = table.groupby("method")["mean"].mean()
    return len(table) > 0 and bool((lows <= limit).all() and (means <= limit).all())


def counts_of_distances(claim):
    """Return the counts of a claim on distances that the published Figure 2 of dpsc decides."""
    check = claim["check"]
    if check["kind"] != "below" or not check["experiment"].startswith("dpsc_"):
        return None
    table = pd.read_csv(ROOT / "docs/results/dpsc/dpsc_fig2.csv")
    table = table[
        (table["experiment"] == check["experiment"]) & (table["method"] == check["method"])
    ]
    values = check.get("select", "").removeprefix("epsilon=").split("|")
    table = table[table["epsilon"].astype(str).isin(values)]
    table = table[table["metric"] == "distance"]
    if check["metric"] not in ("relative_distance", "closeness") or table.empty:
        return None
    settings = yaml.safe_load((ROOT / "config/papers/dpsc/paper.yaml").read_text())
    point = settings["experiments"][check["experiment"]]["effort"]["paper"]["grid"][0]
    sizes = (point[name] for name in ("n_clusters", "n_features", "dimension"))
    bound = check["bound"] * distance_of_random(*sizes)  # the same for closeness: it is a half
    half_widths = t.ppf(0.975, table["n"] - 1) * table["se"]
    below = (table["mean"] + half_widths < bound).sum()
    above = (table["mean"] - half_widths > bound).sum()
    held, failed = (below, above) if check["metric"] == "relative_distance" else (above, below)
    return int(held), int(failed), len(table)


def between_bounds(claim):
    """Return the verdict by a narrow and a wide bound on a mean, from the published table."""
    check = claim["check"]
    paper = claim["target"].split("_")[0]
    table = pd.read_csv(ROOT / f"docs/results/{paper}/{claim['target']}.csv")
    table = table[(table["metric"] == check["metric"]) & (table["method"] == check["method"])]
    half_widths = t.ppf(0.975, table["n"] - 1) * table["std"] / table["n"] ** 0.5
    sides = {
        _verdict_on_counts(
            (table["mean"] + half_widths < bound).sum(),
            (table["mean"] - half_widths > bound).sum(),
            len(table),
        )
        for bound in (check["bound"], check["wide_bound"])
    }
    return UNDECIDED if len(sides) > 1 and NOT_REPRODUCED in sides else sides.pop()


def starred(claim, counts):
    """Return the verdict on counts, with an asterisk if wider intervals may change it."""
    has_interval = claim["check"]["kind"] not in WITHOUT_INTERVAL
    return _verdict_on_counts(*counts) + (
        "*" if has_interval and 1 < counts[2] != counts[0] else ""
    )


def waiting(claim):
    """Return the verdict on a claim with a new check: no run makes generated data comparable."""
    return NOT_COMPARABLE if claim["check"]["experiment"] in REPLACED else WAITS


def judged_anew(paper, claim):
    """Return the verdict on a claim that the published run does not have, its counts and rule."""
    if is_at_chance(paper, claim):
        return VACUOUS, None, f"new; {AT_CHANCE}"
    if counts := counts_of_distances(claim):
        return starred(claim, counts), counts, f"new; {RANGE}"
    return waiting(claim), None, "new"


def changes(paper, commit):
    """Yield old id, whose, old verdict, new verdict and rule, row by row."""
    folder = ROOT / "config/papers" / paper
    text = subprocess.run(
        ["git", "show", f"{commit}:config/papers/{paper}/claims.yaml"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    before = {claim["id"]: claim for claim in yaml.safe_load(text)}
    now = {c["id"]: c for c in yaml.safe_load((folder / "claims.yaml").read_text())}
    targets = yaml.safe_load((folder / "paper.yaml").read_text())["targets"]
    whose = {
        n: c.get("of", "ours" if targets[c["target"]].get("ours") else "paper")
        for n, c in now.items()
    }
    file = folder / "printed.csv"
    printed = pd.read_csv(file, dtype={"value": str}) if file.exists() else pd.DataFrame()
    found = {}
    for row in pd.read_csv(ROOT / f"docs/results/{paper}/verdicts.csv").fillna("").itertuples():
        name = row.id.split("/")[0]
        if name not in now:
            yield row.id, row.of, row.verdict, "no claim", GONE.get(name, CANNOT_FAIL)
            continue
        claim, counts = now[name], counts_of(row.decided_by)
        same = {"reason": 0, "rounding": 0, "chance": 0}
        checks = [c.get(name, {}).get("check", {}) | same for c in (before, now)]
        if checks[0].get("kind") == "alike":
            checks[0]["statistic"] = "std"
        is_same = checks[0] == checks[1]
        rule = rule_of(claim, is_same, row.of)
        if "/" in row.id:
            new = number_again(row, printed)
            if "own_starts" in claim["check"]:
                new = lloyd_again(row.id.split("/")[-1])
                rule = STARTS if new != row.verdict else ""
            else:
                rule = rule or rule_of_number(row, new)
        elif is_at_chance(paper, claim):
            new = VACUOUS
            rule = f"{AT_CHANCE}; {rule}".removesuffix("; ")
        elif not is_same and (again := counts_of_distances(claim)):
            counts = again
            new = starred(claim, counts)
            rule = f"{RANGE}; {rule}".removesuffix("; another measure")
        elif "wide_bound" in claim["check"]:
            new = between_bounds(claim)
            rule = "; ".join([*filter(None, [rule]), TWO_BOUNDS]).removeprefix("another measure; ")
        elif not is_same:
            new = waiting(claim)
        elif row.verdict not in KEPT and "rounding" in claim["check"]:
            new = score_again(claim["check"])
        elif row.verdict in KEPT or counts is None:
            new = row.verdict
        else:
            new = starred(claim, counts)
            rule = rule or OF_COUNTS.get((row.verdict, new.rstrip("*")), "")
        found[name] = new, counts
        yield row.id, claim.get("of", row.of), row.verdict, new, rule
    fresh = {n: judged_anew(paper, c) for n, c in now.items() if "check" in c and n not in before}
    found |= {name: (new, counts) for name, (new, counts, _) in fresh.items()}
    for name, claim in now.items():
        if "check" in claim:
            if name in fresh:
                new, _, rule = fresh[name]
                yield name, whose[name], "", new, rule
            continue
        deciding = [c["id"] for c in now.values() if c.get("under") == name and c.get("decides")]
        parts = [found.get(i, (WAITS, None)) for i in deciding]
        comparable = [part for part in parts if part[0] not in KEPT] or parts
        if any(new == WAITS for new, _ in comparable):
            new = WAITS
        elif any(new in KEPT for new, _ in parts) and comparable == parts:
            new = parts[0][0]
        else:
            held, failed, n = (sum(counts[i] for _, counts in comparable) for i in range(3))
            new = _verdict_on_counts(held, failed, n) + ("*" if held < n > 1 else "")
        yield name, whose[name], "", new, f"row of {len(deciding)} claim{'s' * (len(deciding) > 1)}"


if __name__ == "__main__":
    lines = [
        "| claim | of | published | by the new rules | rule |",
        "| --- | --- | --- | --- | --- |",
    ]
    for paper in PAPERS:
        lines += [f"| {' | '.join(cells)} |" for cells in changes(paper, sys.argv[1])]
    write_into(ROOT / "docs/results/changes.md", "changes", "\n".join(lines))
