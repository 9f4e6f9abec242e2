"""The figure and the table of the privacy audit."""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from privclust.figures.panels import caption, put_table
from privclust.figures.style import PALETTE, RC, Drawing, Results, new_figure, note_sources

# What the metrics' numbers stand for, in the order of privclust.experiments.audits.
VERDICTS = ("holds", "violated", "cannot tell")
CLAIMANTS = ("ours", "paper", "code")
FAMILIES = {
    "control": "controls",
    "dpem": "DP-EM",
    "ckm": "compressive k-means",
    "dpsc": "subspace clustering",
    "privatemail": "PrivateMail",
}
_COLORS = {"holds": PALETTE[2], "violated": PALETTE[0], "cannot tell": "#999999"}
_WIDTH, _ROW = 10.5, 0.215  # inches


def mechanisms(results: Results) -> Drawing:
    """Claimed epsilon and the lower bound that an attack proves, case by case."""
    (trials,), (costs,) = results.trials.values(), results.costs.values()
    table = mechanisms_table(trials, costs)
    shown = [name for name in FAMILIES.values() if name in set(table["paper"])]
    sizes = [int((table["paper"] == name).sum()) for name in shown]
    figure = new_figure(_WIDTH, _ROW * (sum(sizes) + 2 * len(sizes)) + 1.3)
    with mpl.rc_context(RC):
        axes = figure.subplots(len(shown), 1, sharex=True, squeeze=False, height_ratios=sizes)
        for axis, name in zip(axes[:, 0], shown, strict=True):
            _rows(axis, table[table["paper"] == name])
            axis.set_title(name)
        widest = max(table["claimed_epsilon"].max(), table["epsilon_at_least"].max())
        axes[-1, 0].set_xlim(0.0, 1.3 * widest)
        axes[-1, 0].set_xlabel("epsilon")
        figure.legend(handles=_handles(), loc="outside lower center", ncols=4)
        caption(
            figure,
            "What an attack on one pair of neighbours proves of each claim, at 95 % confidence. "
            "Violated: an arrow, as the true epsilon may be larger by any amount. Holds: no "
            "violation although the attack came to half of the claim. An audit proves no privacy. "
            "On the right: seconds of CPU time.",
        )
        note_sources(figure, results.trials)
    return Drawing(figure, table)


def mechanisms_table(trials: pd.DataFrame, costs: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each case: the claim, what was found, the verdict in words, the time."""
    cpu_seconds = dict(zip(costs["method"], costs["cpu_seconds"], strict=True))
    rows = []
    for trial in trials.to_dict("records"):
        verdict = VERDICTS[int(trial["verdict"])]
        rows.append(
            {
                "method": trial["method"],
                "paper": FAMILIES[trial["method"].split("_")[0]],
                "case": trial["label"],
                "claim_by": CLAIMANTS[int(trial["claimant"])],
                "claimed_epsilon": trial["claimed_epsilon"],
                "claimed_delta": trial["claimed_delta"],
                "epsilon_at_least": trial["epsilon_bound"],
                "delta_at_least": trial["delta_bound"],
                "verdict": _in_words(verdict, trial),
                "hits": int(trial["hits"]),
                "other_hits": int(trial["other_hits"]),
                "certifying": int(trial["certifying"]),
                "draws": int(trial["draws"]),
                "cpu_seconds": round(cpu_seconds[trial["method"]], 1),
            }
        )
    return pd.DataFrame(rows)


def _in_words(verdict: str, trial: dict) -> str:
    """Say by how much a claim is violated: in epsilon if that was shown, else in delta."""
    if verdict != "violated":
        return verdict
    if trial["excess"] > 0:
        return f"violated by at least {trial['excess']:.2g}"
    return f"violated: delta at least {_lower(trial['delta_bound'])}"


def _lower(delta: float) -> str:
    """Write a bound on a probability below 1, which rounding must not make 1."""
    return f"{delta:.2g}" if delta < 0.995 else f"{delta:.3g}"


def _rows(axis: Axes, part: pd.DataFrame) -> None:
    """Draw one group of cases."""
    for place, row in enumerate(part.to_dict("records")):
        verdict = row["verdict"].split(" by ")[0].split(":")[0]
        color, found = _COLORS[verdict], row["epsilon_at_least"]
        axis.plot([0.0, found], [place, place], color=color, linewidth=1.2)
        axis.plot(found, place, ">" if verdict == "violated" else "o", color=color)
        axis.plot(row["claimed_epsilon"], place, "|", color="#000000", markersize=9)
        axis.annotate(
            f"{row['cpu_seconds']:.1f} s",
            (1.0, place),
            (4, 0),
            xycoords=axis.get_yaxis_transform(),
            textcoords="offset points",
            va="center",
            fontsize=7.5,
        )
        if verdict == "violated":
            delta = _lower(row["delta_at_least"])
            text = f"δ at least {delta}, claimed {row['claimed_delta']:g}"
            right = max(found, row["claimed_epsilon"])
            axis.annotate(
                text, (right, place), (8, 0), textcoords="offset points", va="center", fontsize=7.5
            )
    names = [
        f"{row['case']} ({row['claim_by']})" if row["claim_by"] != "ours" else row["case"]
        for row in part.to_dict("records")
    ]
    axis.set_yticks(range(len(part)), names)
    axis.set_ylim(len(part) - 0.4, -0.6)
    axis.grid(axis="y", visible=False)


def _handles() -> list[Line2D]:
    """Entries of the legend."""
    marks = {"violated": ">"}
    handles = [
        Line2D([], [], color=color, marker=marks.get(verdict, "o"), label=f"at least: {verdict}")
        for verdict, color in _COLORS.items()
    ]
    claim = Line2D([], [], color="#000000", marker="|", linestyle="", markersize=9, label="claimed")
    return [*handles, claim]


def sensitivities(results: Results) -> Drawing:
    """The largest change of a statistic found beside its stated sensitivity."""
    (trials,) = results.trials.values()
    table = sensitivities_table(trials)
    figure = new_figure(_WIDTH, 0.19 * len(table) + 1.0)
    with mpl.rc_context(RC):
        put_table(figure.subplots(), table, _WIDTH)
        caption(
            figure,
            "The furthest that a search found neighbours to move a statistic, beside what is "
            "stated. A ratio of 1 is a bound that cannot be improved.",
        )
        note_sources(figure, results.trials)
    return Drawing(figure, table)


def sensitivities_table(trials: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each stated sensitivity."""
    rows = []
    for trial in trials.to_dict("records"):
        exceeded = trial["exceeds"] > 1e-9
        rows.append(
            {
                "statistic": trial["about"],
                "stated_by": CLAIMANTS[int(trial["claimant"])],
                "largest_found": trial["largest"],
                "stated": trial["bound"],
                "ratio": trial["ratio"],
                "verdict": "exceeded" if exceeded else "not exceeded",
                "pairs": int(trial["tried"]),
            }
        )
    return pd.DataFrame(rows)
