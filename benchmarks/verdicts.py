"""Write how often each kind of claim gets each verdict into docs/results/rules.md.

python benchmarks/verdicts.py [repeats]

Claims are simulated: true, tied (the difference is exactly at the bound) or false by one standard
deviation of a trial, at one point or at twelve. `tests/papers/report/test_verdict_rates.py` states
the false-alarm rates of the same simulation.
"""

import sys
from collections import Counter

import numpy as np
import pandas as pd
from scratch import ROOT, write_into

from privclust_papers.report.verdicts import VERDICTS, judge

PAGE = ROOT / "docs/results/rules.md"
TRUTHS = {"true": 1.0, "tied": 0.0, "false": -1.0}  # margin in standard deviations of a trial
SIZES = (2, 5, 20, 100)
BOUND = 3.0
LETTERS = {"reproduced": "R", "consistent": "C", "partly": "P", "not reproduced": "N"}
LETTERS |= dict.fromkeys(("too few trials", "not run"), "T")
_PAIRED = {"against": ["b"], "by": ["d"]}
_BOUNDED = {"bound": BOUND, "reason": "simulated"}
CHECKS = {
    "lowest": {"kind": "lowest", **_PAIRED},
    "within": {"kind": "within", **_PAIRED, **_BOUNDED},
    "lowest, by medians": {"kind": "lowest", "statistic": "median", **_PAIRED},
    "below": {"kind": "below", "by": ["d"], **_BOUNDED},
    "below, a share of trials": {"kind": "below", "by": ["d"], "bound": 0.5, "reason": "simulated"},
    "falls": {"kind": "falls", "along": "d"},
    "stable": {"kind": "stable", "along": "d", **_BOUNDED},
    "alike": {"kind": "alike", "statistic": "std", **_PAIRED, "bound": 2.0, "reason": "simulated"},
    "printed": {"kind": "printed"},
}
_HEAD = {"id": "c", "paper": "p", "target": "t", "where": "w", "claim": "says"}
_PRINTED = ("t", "e", "a", "error", "mean", "d=0", f"{100 * BOUND:.2f}", 2)
_NUMBER = ("target", "experiment", "method", "metric", "statistic", "select", "value", "trials")


def simulated(name, margin, n_trials, n_points, rng):
    """Return trials of methods a and b at points d, whose claim is true by a margin."""
    shape = n_trials, n_points
    common = rng.standard_normal((n_trials, 1))
    noise = rng.standard_normal((2, *shape)) / np.sqrt(2.0)
    a, b = common + noise
    if name.startswith("lowest"):
        a = a - margin
    elif name in ("within", "below"):
        a = a * (1.0 if name == "within" else 1.0 / np.sqrt(1.5)) + BOUND - margin
    elif name == "below, a share of trials":
        a = (rng.random(shape) < 0.5 - 0.4 * margin).astype(float)
    elif name == "falls":
        a = a - margin * np.arange(n_points)
    elif name == "stable":
        a = a + (BOUND - margin) * (np.arange(n_points) == 0)
    elif name == "alike":
        a = b[::-1] * 2.0 ** (1.0 - margin)
    else:
        a = a / np.sqrt(1.5) + BOUND + {1.0: 0.0, 0.0: 0.5, -1.0: 1.0}[margin]
    parts = [
        pd.DataFrame(
            {"method": method, "label": method, "source": "simulated", "error": values.ravel()}
            | {
                "trial": np.repeat(range(n_trials), n_points),
                "d": np.tile(range(n_points), n_trials),
            }
        )
        for method, values in (("a", a), ("b", b))
    ]
    return {"e": pd.concat(parts)}


def verdict_of(name, margin, n_trials, n_points, rng):
    """Return the verdict on one simulated claim."""
    check = {"experiment": "e", "metric": "error", "method": "a", **CHECKS[name]}
    printed = pd.DataFrame([_PRINTED], columns=list(_NUMBER))
    tables = simulated(name, margin, n_trials, n_points, rng)
    kinds = {"p": {"error": "share"}} if "share" in name else {}
    return judge([{**_HEAD, "check": check}], tables, printed, kinds=kinds)["verdict"][0]


def rates(name, truth, n_trials, n_points, repeats, seed=0):
    """Return the share of simulated claims that get each verdict."""
    rng = np.random.default_rng([seed, n_trials, n_points])
    found = [verdict_of(name, TRUTHS[truth], n_trials, n_points, rng) for _ in range(repeats)]
    return {verdict: found.count(verdict) / repeats for verdict in VERDICTS}


def table(repeats):
    """Return the table of rates in Markdown: letters of verdicts, and per cent."""
    head = ("check", "points", "the claim is", *(f"{n} trials" for n in SIZES))
    lines = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    for name in CHECKS:
        if name == "within":  # the same test on the same draws as "lowest"
            continue
        label = "lowest, within" if name == "lowest" else name
        points = (2, 12) if name in ("falls", "stable") else (1,) if name == "printed" else (1, 12)
        for n_points in points:
            for truth in TRUTHS:
                cells = [label, str(n_points), truth]
                for n in SIZES:
                    found = Counter()
                    for verdict, rate in rates(name, truth, n, n_points, repeats).items():
                        found[LETTERS.get(verdict, "other")] += rate
                    shown = [f"{v} {100 * rate:.0f}" for v, rate in found.items() if rate]
                    cells.append(", ".join(shown))
                lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    write_into(PAGE, "rates", table(int(sys.argv[1]) if len(sys.argv) > 1 else 400))
