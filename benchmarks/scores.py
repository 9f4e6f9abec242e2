"""Write the table of scores in docs/results/frontier.md from what stands in docs/results/frontier/.

python benchmarks/scores.py

Verdicts are judged again by today's rules: a printed score stands for all numbers that round to it.
"""

import pandas as pd
from changes import lloyd_again, score_again
from scratch import ROOT, write_into

from privclust_papers.frontier.printed import PRIVATE, ROUNDING, SCORES, best_private

PAGE = ROOT / "docs/results/frontier.md"
RESULTS = ROOT / "docs/results/frontier"
OURS = {"compressive": "CompressiveKMeans", "dplloyd": "DPLloyd", "lloyd": "Lloyd, ours"}
PRINTED = "Lloyd, printed", "Lloyd agrees?", "best private, printed", "by", "ours is lower?"
HEAD = ("set", *OURS.values(), *PRINTED)


def agrees(row_of, row):
    """Return whether the printed score of Lloyd's agrees with ours, and how far ours is from it."""
    printed, verdict = SCORES[row_of][0], lloyd_again(f"set={row_of}")
    if round(row["mean"], 4) == printed:
        return f"{verdict}: the same digits"
    return f"{verdict}: {100 * (row['mean'] / printed - 1):+.1f} %"


def is_lower(row_of, row):
    """Return whether our score is below the best private one, and by how much at least."""
    best = best_private(row_of)
    check = {"method": "compressive", "select": f"set={row_of}", "bound": best}
    least = 1 - (row["mean"] + row["half_width"]) / (best - ROUNDING)
    return f"{score_again(check | {'rounding': ROUNDING})}: by {100 * least:.2g} % or more"


def scores(name):
    """Return a target's table in Markdown, a set a row; half widths of 95 % intervals of ours."""
    table = pd.read_csv(RESULTS / f"{name}.csv")
    lines = [f"| {' | '.join(HEAD)} |", "|" + " --- |" * len(HEAD)]
    for row_of, rows in table.groupby("set", sort=False):
        ours = rows.set_index("method")
        cells = [row_of]
        for method in OURS:
            mean, width = ours.loc[method, ["mean", "half_width"]]
            cells.append(f"{mean:.4f} ± {width:.4f}")
        printed = dict(zip(PRIVATE, SCORES[row_of][1:], strict=True))
        best = next(name for name in PRIVATE if printed[name] == best_private(row_of))
        cells += [f"{SCORES[row_of][0]:.4f}", agrees(row_of, ours.loc["lloyd"])]
        cells += [f"{printed[best]:.4f}", best, is_lower(row_of, ours.loc["compressive"])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    write_into(PAGE, "scores", scores("frontier_tab1"))
