"""Write the table of scores in docs/results/frontier.md from what stands in docs/results/frontier/.

python benchmarks/scores.py
"""

import pandas as pd
from scratch import ROOT, write_into

from privclust_papers.frontier.printed import PRIVATE, SCORES, best_private

PAGE = ROOT / "docs/results/frontier.md"
RESULTS = ROOT / "docs/results/frontier"
OURS = {"compressive": "CompressiveKMeans", "dplloyd": "DPLloyd", "lloyd": "Lloyd, ours"}
HEAD = ("set", *OURS.values(), "Lloyd, printed", "best private, printed", "by", "verdict")


def scores(name):
    """Return a target's table in Markdown, a set a row; half widths of 95 % intervals of ours."""
    table = pd.read_csv(RESULTS / f"{name}.csv")
    verdicts = pd.read_csv(RESULTS / "verdicts.csv").set_index("id")["verdict"]
    lines = [f"| {' | '.join(HEAD)} |", "|" + " --- |" * len(HEAD)]
    for row_of, rows in table.groupby("set", sort=False):
        ours = rows.set_index("method")
        cells = [row_of]
        for method in OURS:
            mean, width = ours.loc[method, ["mean", "half_width"]]
            cells.append(f"{mean:.4f} ± {width:.4f}")
        printed = dict(zip(PRIVATE, SCORES[row_of][1:], strict=True))
        best = next(name for name in PRIVATE if printed[name] == best_private(row_of))
        verdict = verdicts[f"frontier_{row_of}"]
        cells += [f"{SCORES[row_of][0]:.4f}", f"{printed[best]:.4f}", best, verdict]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    write_into(PAGE, "scores", scores("frontier_tab1"))
