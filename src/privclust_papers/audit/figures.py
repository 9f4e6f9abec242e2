"""The figures and the table of the privacy audit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from privclust.report.figures import PALETTE
from privclust_papers.pipeline.words import (
    AUDIT_VERDICTS,
    CANNOT_TELL,
    CLAIMANTS,
    CONSISTENT,
    VIOLATED,
)
from privclust_papers.report.drawing.panels import caption, table_drawing, ticks_at
from privclust_papers.report.drawing.style import BELOW, Drawing, MethodStyle, Results, canvas

FAMILIES = {
    "control": "controls",
    "dpem": "DP-EM",
    "ckm": "compressive k-means",
    "dpsc": "subspace clustering",
    "privatemail": "PrivateMail",
}
_OWN = "of your own"
_COLORS = {CONSISTENT: PALETTE[2], VIOLATED: PALETTE[0], CANNOT_TELL: "#999999"}
_LABEL = {"textcoords": "offset points", "va": "center", "fontsize": 7.5}  # texts of a row
_COUNTS = ("hits", "other_hits", "certifying", "draws")
_WIDTH, _ROW = 10.5, 0.215  # inches
_SIZES = (9.0, 5.0)  # of the starts' markers: different, so that none is hidden
_PAIRS = {
    "best": "A  the record decides which two lines are best",
    "stray": "B  the record decides how long two lines stay together",
}


def mechanisms(results: Results) -> Drawing:
    """Claimed epsilon and the lower bound proved by an attack, for each case."""
    (trials,), (costs,) = results.trials.values(), results.costs.values()
    table = mechanisms_table(trials, costs)
    shown = [name for name in (*FAMILIES.values(), _OWN) if name in set(table["paper"])]
    sizes = [int((table["paper"] == name).sum()) for name in shown]
    with canvas(_WIDTH, _ROW * (sum(sizes) + 2 * len(sizes)) + 1.3, results.trials) as figure:
        axes = figure.subplots(len(shown), 1, sharex=True, squeeze=False, height_ratios=sizes)
        for axis, name in zip(axes[:, 0], shown, strict=True):
            _rows(axis, table[table["paper"] == name])
            axis.set_title(name)
        widest = max(table["claimed_epsilon"].max(), table["epsilon_at_least"].max())
        axes[-1, 0].set_xlim(0.0, 1.42 * widest)  # room for delta at the longest arrow
        axes[-1, 0].set_xlabel("epsilon")
        figure.legend(handles=_handles(), loc="outside lower center", ncols=4)
        caption(
            figure,
            "Lower bounds on epsilon that an attack on one pair of neighbours gives, at 95 % "
            "confidence. Violated (arrow): the true epsilon may be much larger, as an audit stops "
            "when it convicts. Consistent: no violation, and the attack reached at least half of "
            "the claim. An audit cannot prove privacy. On the right: seconds of CPU time.",
        )
    return Drawing(figure, table)


def mechanisms_table(trials: pd.DataFrame, costs: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each case: the claim, the bounds, the verdict in words, the time."""
    cpu_seconds = {row.method: round(row.cpu_seconds, 1) for row in costs.itertuples()}
    groups = [FAMILIES.get(method.split("_")[0], _OWN) for method in trials["method"]]
    claimants = [CLAIMANTS[int(number)] for number in trials["claimant"]]
    return pd.DataFrame(
        {
            "method": trials["method"],
            "paper": groups,
            "case": trials["label"],
            "claim_by": np.where(np.array(groups) == _OWN, "you", claimants),
            "claimed_epsilon": trials["claimed_epsilon"],
            "claimed_delta": trials["claimed_delta"],
            "epsilon_at_least": trials["epsilon_bound"],
            "delta_at_least": trials["delta_bound"],
            "verdict": list(map(_in_words, trials.to_dict("records"))),
            **{name: trials[name].astype(int) for name in _COUNTS},
            "cpu_seconds": trials["method"].map(cpu_seconds),
        }
    )


def _in_words(trial: dict) -> str:
    """Return the verdict in words, with the violation in epsilon if shown, else in delta."""
    verdict = AUDIT_VERDICTS[int(trial["verdict"])]
    if verdict != VIOLATED:
        return verdict
    if trial["excess"] > 0:
        return f"violated by at least {trial['excess']:.2g}"
    return f"violated: delta at least {_lower(trial['delta_bound'])}"


def _lower(delta: float) -> str:
    """Format a bound on a probability below 1 such that it is not rounded to 1."""
    return f"{delta:.2g}" if delta < 0.995 else f"{delta:.3g}"


def _rows(axis: Axes, part: pd.DataFrame) -> None:
    for place, row in enumerate(part.to_dict("records")):
        # The verdict alone, without the amount that `_in_words` adds.
        verdict = row["verdict"].split(" by ")[0].split(":")[0]
        color, bound = _COLORS[verdict], row["epsilon_at_least"]
        axis.plot([0.0, bound], [place, place], color=color, linewidth=1.2)
        axis.plot(bound, place, ">" if verdict == VIOLATED else "o", color=color)
        axis.plot(row["claimed_epsilon"], place, "|", color="#000000", markersize=9)
        seconds = f"{row['cpu_seconds']:.1f} s"
        axis.annotate(seconds, (1.0, place), (4, 0), xycoords=axis.get_yaxis_transform(), **_LABEL)
        if verdict == VIOLATED:
            delta = _lower(row["delta_at_least"])
            text = f"δ at least {delta}, claimed {row['claimed_delta']:g}"
            axis.annotate(text, (max(bound, row["claimed_epsilon"]), place), (8, 0), **_LABEL)
    names = [
        f"{row['case']} ({row['claim_by']})" if row["claim_by"] in CLAIMANTS[1:] else row["case"]
        for row in part.to_dict("records")
    ]
    axis.set_yticks(range(len(part)), names)
    axis.set_ylim(len(part) - 0.4, -0.6)
    axis.grid(axis="y", visible=False)


def _handles() -> list[Line2D]:
    marks = {VIOLATED: ">"}
    handles = [
        Line2D([], [], color=color, marker=marks.get(verdict, "o"), label=f"at least: {verdict}")
        for verdict, color in _COLORS.items()
    ]
    claim = Line2D([], [], color="#000000", marker="|", linestyle="", markersize=9, label="claimed")
    return [*handles, claim]


def sweeps(results: Results) -> Drawing:
    """Bounds from an attack on the Gibbs sampler after sweeps, compared with its exact loss."""
    ((experiment, trials),) = results.trials.items()
    shown = [pair for pair in _PAIRS if pair in set(trials["pair"])]
    with canvas(_WIDTH, 4.6, results.trials) as figure:
        axes = figure.subplots(1, len(shown), squeeze=False)[0]
        for axis, pair in zip(axes, shown, strict=True):
            for (method, style), size in zip(results.styles.items(), _SIZES, strict=False):
                part = trials[trials["method"] == method].reset_index(drop=True)
                arrays = results.arrays[experiment, method]
                _sweeps_of(axis, part[part["pair"] == pair], arrays, style, size)
            axis.axhline(trials["claimed_epsilon"].iloc[0], color="#000000", linewidth=1.2)
            axis.set_title(_PAIRS[pair])
            axis.set_xscale("log", base=2)
            ticks_at(axis, trials["n_sweeps"].unique())
            axis.set_xlabel("sweeps")
            axis.set_ylim(bottom=-0.04 * axis.get_ylim()[1])
        axes[0].set_ylabel("ε, nats")
        handles = _sweeps_handles(results, trials)
        figure.legend(handles=handles, loc="outside lower center", ncols=3).set_gid(BELOW)
        caption(
            figure,
            "Two lines, by the Gibbs sampler of the exponential mechanism at a claimed ε = "
            f"{trials['claimed_epsilon'].iloc[0]:g}, δ = 0, stopped after some sweeps; each panel "
            "has one pair of neighbours. Lines: the exact loss, by quadrature. Marks: the bound "
            "that an attack gives at 95 % confidence, filled if it convicts by ε or by δ.",
        )
    return Drawing(figure, sweeps_table(trials, results.arrays))


def _sweeps_of(axis: Axes, part: pd.DataFrame, arrays, style: MethodStyle, size: float) -> None:
    color = style.color
    longest = part["n_sweeps"].idxmax()
    path = arrays[f"array/{longest:05d}/loss_path"]
    axis.plot(range(1, len(path) + 1), path, color=color)
    axis.axhline(part["limit_loss"].iloc[0], color="#999999", linestyle=":", linewidth=1.2)
    for row in part.to_dict("records"):
        face = color if row["is_convicted"] else "#ffffff"
        axis.plot(
            row["n_sweeps"], row["epsilon_bound"], style.marker, color=color, markerfacecolor=face,
            markersize=size, zorder=3,
        )  # fmt: skip


def _sweeps_handles(results: Results, trials: pd.DataFrame) -> list[Line2D]:
    names = dict(zip(trials["method"], trials["label"], strict=True))
    styles = zip(results.styles.items(), _SIZES, strict=False)
    shown = [(names[method], style, size) for (method, style), size in styles]
    return [
        *(Line2D([], [], color=s.color, label=f"exact loss, {name}") for name, s, _ in shown),
        Line2D([], [], color="#999999", linestyle=":", label="exact loss after many sweeps"),
        *(
            Line2D(
                [], [], color=s.color, marker=s.marker, markersize=size, linestyle="",
                markerfacecolor="#ffffff", label=f"at least, {name}",
            )
            for name, s, size in shown
        ),
        Line2D([], [], color="#000000", linewidth=1.2, label="claimed"),
    ]  # fmt: skip


def sweeps_table(
    trials: pd.DataFrame, arrays: Mapping[tuple[str, str], Mapping[str, np.ndarray]]
) -> pd.DataFrame:
    """Return a row for each start, pair and number of sweeps.

    ``largest_epsilon`` is the largest exact loss so far, after ``largest_at`` sweeps.
    """
    rows = []
    for (_, method), paths in arrays.items():
        of_method = trials[trials["method"] == method]
        for place, trial in enumerate(of_method.to_dict("records")):
            path = paths[f"array/{place:05d}/loss_path"]
            rows.append(
                {
                    "start": trial["label"],
                    "pair": trial["pair"],
                    "rows": int(trial["n_rows"]),
                    "sweeps": int(trial["n_sweeps"]),
                    "claimed_epsilon": trial["claimed_epsilon"],
                    "exact_epsilon": trial["exact_epsilon"],
                    "exact_delta": trial["exact_delta"],
                    "largest_epsilon": path.max(),
                    "largest_at": int(path.argmax()) + 1,
                    "limit_epsilon": trial["limit_loss"],
                    "epsilon_at_least": trial["epsilon_bound"],
                    "delta_at_least": trial["delta_bound"],
                    "verdict": _in_words(trial),
                    **{name: int(trial[name]) for name in _COUNTS},
                }
            )
    return pd.DataFrame(rows).sort_values(["pair", "start", "sweeps"], ignore_index=True)


def sensitivities(results: Results) -> Drawing:
    """The largest change of a statistic found, compared with its stated sensitivity."""
    (trials,) = results.trials.values()
    table = sensitivities_table(trials)
    text = (
        "Largest change of a statistic between neighbours that a search found, and the stated "
        "sensitivity. A ratio of 1 means that the stated bound cannot be improved."
    )
    return table_drawing(results, table, table, text, (_WIDTH, 0.19 * len(table) + 1.0))


def sensitivities_table(trials: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each stated sensitivity."""
    return pd.DataFrame(
        {
            "statistic": trials["about"],
            "stated_by": [CLAIMANTS[int(number)] for number in trials["claimant"]],
            "largest_found": trials["largest"],
            "stated": trials["bound"],
            "ratio": trials["ratio"],
            "verdict": np.where(trials["exceeds"] > 1e-9, "exceeded", "not exceeded"),
            "pairs": trials["tried"].astype(int),
        }
    )
