"""The figure of known faults: cases by tools."""

from __future__ import annotations

import pandas as pd

from privclust.report.figures import PALETTE
from privclust_audit.faults import FAULTS
from privclust_papers.audit.fault_trials import UNKNOWN, UNSEEN
from privclust_papers.report.drawing.panels import caption
from privclust_papers.report.drawing.style import Drawing, Results, canvas

_WIDTH, _ROW = 12.5, 0.2  # inches
_MARKS = {
    "found": ("o", PALETTE[2]),
    "not found": ("X", PALETTE[0]),
    "": ("_", "#999999"),
    "cannot tell": ("$?$", "#999999"),
}


def faults(results: Results) -> Drawing:
    """Detections of faults by tool, with the bound on epsilon and the number of runs."""
    (trials,), (costs,) = results.trials.values(), results.costs.values()
    table = faults_table(trials)
    seconds = dict(zip(costs["method"], costs["cpu_seconds"], strict=True))
    names, tools = list(dict.fromkeys(table["fault"])), list(dict.fromkeys(trials["method"]))
    labels = dict(zip(trials["method"], trials["label"], strict=True))
    with canvas(_WIDTH, _ROW * len(names) + 1.4, results.trials) as figure:
        axis = figure.subplots()
        for row in table.to_dict("records"):
            x, y = tools.index(row["method"]), names.index(row["fault"])
            marker, color = _MARKS[row["verdict"]]
            axis.plot(x, y, marker=marker, linestyle="", color=color)
            if row["verdict"]:
                bound = f"{row['epsilon_at_least']:.2g}, " if row["epsilon_at_least"] else ""
                axis.annotate(
                    f"{bound}{row['runs']:,} runs", (x, y), (10, 0),
                    textcoords="offset points", va="center", fontsize=7.5,
                )  # fmt: skip
        claims = dict(zip(table["fault"], table["claimed_epsilon"], strict=True))
        axis.set_yticks(range(len(names)), [f"{name} ({claims[name]:.2g})" for name in names])
        axis.set_ylim(len(names) - 0.4, -0.6)
        axis.set_xlim(-0.3, len(tools) - 0.2)
        heads = [
            f"{labels[tool]}\n{_found(table, tool)}, {seconds[tool]:.0f} CPU s" for tool in tools
        ]
        axis.set_xticks(range(len(tools)), heads)
        axis.xaxis.tick_top()
        axis.grid(visible=False)
        caption(
            figure,
            "Known faults, with the epsilon that each claims. Disc: found, with the lower bound on "
            "epsilon and the number of runs on both data sets. (An audit stops when it convicts, "
            "so that its bound hardly exceeds the claim.) Cross: not found. Dash: the density is "
            "not known. Question mark: the inspection cannot decide. CPU seconds are for all "
            "faults and their private twins.",
        )
    return Drawing(figure, table)


def _found(table: pd.DataFrame, tool: str) -> str:
    verdicts = table.loc[table["method"] == tool, "verdict"]
    used = ~verdicts.isin(["", "cannot tell"])
    return f"{(verdicts == 'found').sum()} of {used.sum()} found"


def faults_table(trials: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each tool and fault, with faults in the order of the collection."""
    words = {UNSEEN: "cannot tell", UNKNOWN: "", 0.0: "not found", 1.0: "found"}
    table = pd.DataFrame(
        {
            "method": trials["method"],
            "fault": trials["fault"],
            "about": [FAULTS[name].about for name in trials["fault"]],
            "claimed_epsilon": trials["claimed_epsilon"],
            "verdict": trials["found"].map(words),
            "epsilon_at_least": trials["epsilon_bound"],
            "runs": trials["runs"].astype(int),
            "is_twin_convicted": trials["twin_found"].astype(bool),
        }
    )
    order = list(FAULTS)
    return table.sort_values(
        "fault", key=lambda names: names.map(order.index), kind="stable", ignore_index=True
    )
