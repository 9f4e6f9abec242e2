"""The figures and tables of "Multi-Task Learning for Subspace Segmentation" (ICML 2015)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm

from privclust.report.figures import COLOURS
from privclust_papers.report.comparison import (
    DIFFERENCES,
    RANGES,
    SCENE,
    compare,
    compare_margins,
    half_width,
    interval,
    select,
)
from privclust_papers.report.drawing.panels import legend_above
from privclust_papers.report.drawing.style import Drawing, Results, canvas

_TOP_METHOD = "mtsc"  # the method whose curve lies above the others
_SWEEPS = (
    ("n_per_subspace", (15, 20, 25, 30), {"dimension": 13, "n_subspaces": 4}),
    ("dimension", (9, 10, 11, 12, 13), {"n_per_subspace": 16, "n_subspaces": 4}),
    ("n_subspaces", (3, 4, 5, 6), {"dimension": 11, "n_per_subspace": 16}),
)
_AXIS_NAMES = {
    "n_per_subspace": ("n", "points per subspace, n"),
    "dimension": ("d", "subspace dimension, d"),
    "n_subspaces": ("K", "number of subspaces, K"),
}
_METRICS = (
    ("l2_error", "l2 error (eq. 19)", (None, None, None)),
    ("l1_error", "l1 error (eq. 19, l1 norms)", (0.5, 0.6, 0.6)),
    ("segmentation_error", "segmentation error", (0.08, 0.08, 0.08)),
)  # with the ends of the paper's axes, (a)-(c) for the reading that reaches that far
_END = "end of the paper's axis"
_SMALLEST_SHOWN = 1e-2
_AFFINITIES = (
    (0.12, "segmentation_error", "eq. (3)", "vermillion"),
    (-0.12, "segmentation_error_unit_columns", "columns of Z scaled to norm 1", "blue"),
)
_MARGINS = {
    "printed_margin": "printed_more",
    "margin": "more_than_mtsc",
    "low": "more_low",
    "high": "more_high",
}  # differences of means to MTSC: names in the tables
_OF_BLOCKS = {
    "active_rows": "active rows per point of a block",
    "off_block_energy": "share of energy off the blocks",
    "connectivity": "connectivity within a motion",
    "effective_entries": "active entries of a column",
}
_OF_UNSEEN = ("segmentation_error", "l2_error", "l1_error")
_OF_DESCENTS = {
    "objective": "objective (16) per coefficient",
    "n_iter": "iterations",
    "converged": "share of fits that converged",
    "best_run": "share of fits kept from SSC's start",
}


def fig1(results: Results) -> Drawing:
    """Figure 1: errors as n, d and K vary, with 95 % bands; l2 errors by both readings."""
    (summary,) = results.summaries.values()
    tables = []
    with canvas(9.5, 8.2, results.trials) as figure:
        axes = figure.subplots(3, 3, sharey="row")
        for row, (metric, metric_name, ends) in enumerate(_METRICS):
            for column, (axis, values, fixed) in enumerate(_SWEEPS):
                # The paper's letters: its panels (a) to (c) are read as l2 and as l1 errors.
                panel = "abcabcdef"[3 * row + column]
                part = summary[(summary["metric"] == metric) & summary[axis].isin(values)]
                part = part[(part[list(fixed)] == pd.Series(fixed)).all(axis=1)]
                part = part.sort_values(axis, kind="stable").assign(panel=panel)
                tables.append(part)
                _curves(axes[row, column], part, axis, results)
                held = ", ".join(f"{_AXIS_NAMES[name][0]}={fixed[name]}" for name in fixed)
                axes[row, column].set_title(f"({panel})  {held}")
                axes[row, column].set_xlabel(_AXIS_NAMES[axis][1] if row == 2 else "")
                if ends[column]:
                    look = {"color": "0.4", "lw": 0.8, "ls": ":"}
                    axes[row, column].axhline(ends[column], **look, label=_END)
            axes[row, 0].set_ylabel(metric_name)
            axes[row, 0].set_ylim(bottom=0.0)
        handles, names = axes[1, 0].get_legend_handles_labels()
        n = int(summary["n"].max())
        title = f"mean of {n} trials, band: 95 %" if n > 1 else "1 trial"
        place = {"loc": "outside upper center", "ncols": len(names)}
        figure.legend(handles, names, title=title, **place)
    return Drawing(figure, pd.concat(tables, ignore_index=True))


def fig2(results: Results) -> Drawing:
    """Figure 2: magnitudes of the estimated Z of MTSC and SSC, with points sorted by motion."""
    experiment = next(iter(results.trials))  # the other one holds all sequences
    trials = results.trials[experiment]
    labels = _labels(results, trials)
    tables = []
    with canvas(9.2, 4.4, results.trials) as figure:
        axes = figure.subplots(1, len(labels), squeeze=False)[0]
        for axis, label in zip(axes, labels, strict=True):
            row = trials[trials["label"] == label].iloc[0]
            arrays = results.arrays[experiment, row["method"]]
            magnitudes = arrays["array/00000/sorted_magnitudes"]
            sizes = arrays["array/00000/motion_sizes"]
            image = _heat_map(axis, magnitudes, sizes)
            axis.set_title(
                f"{label}: l2 error {100 * row['l2_error']:.2f} %, "
                f"segmentation error {100 * row['segmentation_error']:.2f} %"
            )
            tables.append(_entries(label, magnitudes))
        axes[0].set_ylabel("coefficient of point")
        bar = figure.colorbar(image, ax=axes, shrink=0.85)
        bar.set_label("|z| / largest |z| (square-root scale)")
        axes[0].set_xlabel(
            f"represented point ({row['sequence']}: {len(magnitudes)} points, sorted by motion)"
        )
    return Drawing(figure, pd.concat(tables, ignore_index=True))


def printed_table(results: Results) -> Drawing:
    """Tables 1 to 3: printed and reproduced numbers, with 95 % intervals of the latter."""
    printed = results.printed[results.printed["target"] == results.target]
    # A user's methods get the rows of any one method, without printed values.
    head = printed[printed["method"] == printed["method"].iloc[0]]
    unprinted = [head.assign(method=method, value="nan") for method in results.own]
    printed = pd.concat([printed, *unprinted], ignore_index=True)
    table = compare(printed, dict(results.trials), kinds=results.kinds)
    is_printed = table["printed"].notna()
    # A user's methods have no printed number to agree with.
    for column, blank in (("agrees", np.nan), ("value", ""), ("trials", "")):
        table[column] = table[column].astype(object).where(is_printed, blank)
    held_out = {name: t[t["split"] == "report"] for name, t in results.trials.items()}
    report = compare(printed, held_out, kinds=results.kinds)
    table = table.assign(ours_report_split=report["ours"], n_report_split=report["n"])
    margins = compare_margins(printed, results.trials, _TOP_METHOD, results.kinds)
    table = table.join(margins[list(_MARGINS)].rename(columns=_MARGINS))
    panels = list(dict.fromkeys(zip(table["statistic"], table["select"], strict=True)))
    order = _labels(results, table)
    with canvas(3.1 * len(panels) + 0.6, 2.9, results.trials) as figure:
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, (statistic, condition) in zip(axes, panels, strict=True):
            part = table[(table["statistic"] == statistic) & (table["select"] == condition)]
            _dots(axis, part, order)
            motions, count = condition.partition("=")[2], int(part["n"].max())
            axis.set_title(f"{statistic}, {motions} motions ({count} sequences)")
            axis.set_xlabel(f"{table['metric'].iloc[0].replace('_', ' ')} x 100")
        legend_above(figure, axes[0])
    return Drawing(figure, table)


def blocks(results: Results) -> Drawing:
    """Metrics of Figure 2 as means over all sequences, with differences to SSC."""
    return _over_sequences(results, _OF_BLOCKS)


def descents(results: Results) -> Drawing:
    """Ends of the descents of (16), as means over all sequences."""
    return _over_sequences(results, _OF_DESCENTS)


def _over_sequences(results: Results, metrics: Mapping[str, str]) -> Drawing:
    """Draw means of metrics over sequences of two and three motions, with a panel per metric."""
    (trials,) = results.trials.values()
    trials = trials.dropna(subset=list(metrics))
    order = _labels(results, trials)
    tables = []
    with canvas(2.9 * len(metrics) + 0.6, 0.28 * len(order) + 1.5, results.trials) as figure:
        axes = figure.subplots(1, len(metrics), sharey=True)
        for axis, (metric, name) in zip(axes, metrics.items(), strict=True):
            for shift, n_motions, color in ((0.12, 2, "blue"), (-0.12, 3, "vermillion")):
                part = trials[trials["n_motions"] == n_motions]
                means = _means(part, metric, results.kinds, 1.0).loc[order]
                facts = {"metric": metric, "n_motions": n_motions}
                table = _beside("SSC", means, part, metric, results.kinds).reset_index()
                tables.append(table.assign(**facts))
                label = f"{n_motions} motions ({part['trial'].nunique()} sequences)"
                look = {"color": COLOURS[color], "label": label}
                _interval(axis, means, "mean", shift, **look)
            axis.set_xlim(left=min(0.0, axis.get_xlim()[0]))
            axis.set_xlabel(f"{name}\n(mean, 95 %)")
        legend_above(figure, axes[0])
    return Drawing(figure, pd.concat(tables, ignore_index=True))


def sequences(results: Results) -> Drawing:
    """Errors of MTSC against SSC, a dot per sequence; the table has all methods."""
    (trials,) = results.trials.values()
    labels = dict(zip(trials["method"], trials["label"], strict=True))
    with canvas(8.0, 4.2, results.trials) as figure:
        axes = figure.subplots(1, 2)
        for axis, metric in zip(axes, ("segmentation_error", "l2_error"), strict=True):
            wide = trials.pivot_table(index=["n_motions", "trial"], columns="method", values=metric)
            for n_motions, color, marker in ((2, "blue", "o"), (3, "vermillion", "^")):
                part = 100.0 * wide.loc[[n_motions]]
                look = {"color": COLOURS[color], "label": f"{n_motions} motions ({len(part)})"}
                axis.plot(part["ssc"], part[_TOP_METHOD], marker, markersize=4, alpha=0.6, **look)
            # In per cent, with a margin of 5 %; 1 if all errors are 0.
            largest = 105.0 * float(np.nanmax(wide[["ssc", _TOP_METHOD]].to_numpy())) or 1.0
            axis.axline((0.0, 0.0), slope=1.0, color="#000000", linewidth=0.8)
            axis.set(xlim=(-0.04 * largest, largest), ylim=(-0.04 * largest, largest))
            name = f"{metric.replace('_', ' ')} x 100"
            axis.set(xlabel=f"SSC, {name}", ylabel=f"{labels[_TOP_METHOD]}, {name}", title=name)
            axis.set_aspect("equal")
        handles, names = axes[0].get_legend_handles_labels()
        handles.append(axes[0].lines[-1])
        names.append("equal errors (MTSC has the lower error below the line)")
        figure.legend(handles, names, loc="outside upper center", ncols=3)
    metrics = (*_OF_UNSEEN, "wrong_number", "effective_entries")
    return Drawing(figure, _each_sequence(trials, [m for m in metrics if m in trials]))


def unseen(results: Results) -> Drawing:
    """Mean errors over all sequences of a data set, with differences to MTSC.

    The table has the means, paired by scene, then the errors of each sequence.
    """
    (trials,) = results.trials.values()
    order = _labels(results, trials)
    top = trials.loc[trials["method"] == _TOP_METHOD, "label"].iloc[0]
    tables = []
    with canvas(8.4, 0.28 * len(order) + 1.5, results.trials) as figure:
        axes = figure.subplots(1, len(_OF_UNSEEN), sharey=True)
        for axis, metric in zip(axes, _OF_UNSEEN, strict=True):
            means = _means(trials, metric, results.kinds, 1.0).loc[order]
            table = _beside(top, means, trials, metric, results.kinds).reset_index()
            tables.append(table.assign(metric=metric, sequence="mean of all"))
            _interval(axis, means, "mean", color=COLOURS["blue"])
            axis.set_xlim(left=0.0)
            axis.set_xlabel(f"{metric.replace('_', ' ')}\n(mean of {table['n'].iloc[0]}, 95 %)")
    each = _each_sequence(trials, _OF_UNSEEN).melt(
        ["sequence", SCENE, "n_motions", "split", "metric"], var_name="label", value_name="mean"
    )
    return Drawing(figure, pd.concat([*tables, each], ignore_index=True))


def _each_sequence(trials: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Return the errors with a row per sequence and metric, and a column per method."""
    facts = ["sequence", SCENE, "n_motions", "split"]
    long = trials.melt([*facts, "label"], list(metrics), var_name="metric")
    wide = long.pivot_table("value", [*facts, "metric"], "label", sort=False)
    return wide.reset_index().rename_axis(columns=None)


def settings(results: Results) -> Drawing:
    """Comparison of settings of a method: means with 95 % intervals over trials."""
    (trials,) = results.trials.values()
    if "n_motions" in trials:
        panels = [("segmentation_error", "n_motions=2"), ("segmentation_error", "n_motions=3")]
    else:
        panels = [("l2_error", ""), ("segmentation_error", "")]
    labels = list(dict.fromkeys(trials["label"]))
    tables = []
    with canvas(7.6, 0.3 * len(labels) + 1.1, results.trials) as figure:
        axes = figure.subplots(1, len(panels), sharey=True)
        for axis, (metric, condition) in zip(axes, panels, strict=True):
            part = _means(select(trials, condition), metric, results.kinds).loc[labels]
            tables.append(part.reset_index().assign(metric=metric, select=condition))
            _interval(axis, part, "mean", color=COLOURS["blue"])
            axis.set_xlim(left=0.0)
            what = condition.replace("n_motions=", "motions: ") or "all points"
            axis.set_title(f"{what} ({part['n'].iloc[0]} trials)")
            axis.set_xlabel(f"mean {metric.replace('_', ' ')} x 100, 95 %")
    return Drawing(figure, pd.concat(tables, ignore_index=True))


def unit_columns(results: Results) -> Drawing:
    """Mean segmentation errors of all methods by (3), and by (3) with columns of norm 1."""
    (trials,) = results.trials.values()
    tables = []
    with canvas(7.6, 3.1, results.trials) as figure:
        axes = figure.subplots(1, 2, sharey=True)
        for axis, n_motions in zip(axes, (2, 3), strict=True):
            part = trials[trials["n_motions"] == n_motions]
            order = _labels(results, part)
            for shift, metric, name, color in _AFFINITIES:
                for split in ("all", "tuning", "report"):
                    chosen = part if split == "all" else part[part["split"] == split]
                    if chosen.empty:  # as of few sequences
                        continue
                    means = _means(chosen, metric, results.kinds).loc[order]
                    facts = {"metric": metric, "n_motions": n_motions, "split": split}
                    tables.append(means.reset_index().assign(**facts))
                    if split == "all":
                        look = {"color": COLOURS[color], "label": name}
                        _interval(axis, means, "mean", shift, **look)
            axis.set_xlim(left=0.0)
            axis.set_title(f"{n_motions} motions ({part['trial'].nunique()} sequences)")
            axis.set_xlabel("mean segmentation error x 100, 95 %")
        legend_above(figure, axes[0])
    return Drawing(figure, pd.concat(tables, ignore_index=True))


def properties(results: Results) -> Drawing:
    """Measured deviations behind the claims of Sections 2 to 4, per property and method."""
    (summary,) = results.summaries.values()
    summary = summary[summary["n"] > 0]
    table = summary.pivot_table("max", "property", "label", aggfunc="max", dropna=False)
    table = table.reindex(columns=_labels(results, summary))
    with canvas(8.6, 0.42 * len(table) + 1.4, {}) as figure:
        axis = figure.subplots()
        axis.grid(False)
        deviations = table.to_numpy(dtype=float)
        logs = np.log10(np.clip(deviations, 1e-16, None))
        image = axis.imshow(logs, cmap="cividis", vmin=-16, vmax=1, aspect="auto")
        axis.set_xticks(range(len(table.columns)), list(table.columns))
        axis.set_yticks(range(len(table)), [name.replace("_", " ") for name in table.index])
        for (row, column), value in np.ndenumerate(deviations):
            text = "n/a" if np.isnan(value) else f"{value:.1e}"
            color = "white" if logs[row, column] < -6 else "black"
            axis.text(column, row, text, ha="center", va="center", fontsize=8, color=color)
        figure.colorbar(image, ax=axis, label="log10 of the largest deviation")
    return Drawing(figure, summary)


def _beside(
    base: str, means: pd.DataFrame, trials: pd.DataFrame, metric: str, kinds: Mapping[str, str]
) -> pd.DataFrame:
    """Add each label's mean difference to a base label, paired by sequence and grouped by scene."""
    wide = trials.pivot_table(index="trial", columns="label", values=metric)
    if base not in wide:
        return means
    scenes = trials.drop_duplicates("trial").set_index("trial").get(SCENE)
    kind, rows = DIFFERENCES.get(kinds.get(metric, ""), ""), {}
    for label in wide.columns.difference([base]):
        more = (wide[label] - wide[base]).dropna()
        # Trials without a value of one of the two methods were dropped.
        paired = scenes if scenes is None else scenes.loc[more.index]
        low, high = interval(more, "mean", paired, kind)
        rows[label] = (more.mean(), low, high, int((more < 0.0).sum()))
    name = base.lower()
    columns = [f"from_{name}", f"from_{name}_low", f"from_{name}_high", f"n_below_{name}"]
    return means.join(pd.DataFrame.from_dict(rows, orient="index", columns=columns))


def _means(
    trials: pd.DataFrame, metric: str, kinds: Mapping[str, str], unit: float = 100.0
) -> pd.DataFrame:
    rows = []
    for label, part in trials.groupby("label", sort=False):
        values = part[metric].to_numpy(dtype=float)
        low, high = interval(values, "mean", part.get(SCENE), kinds.get(metric, ""))
        rows.append((label, len(values), unit * values.mean(), unit * low, unit * high))
    return pd.DataFrame(rows, columns=["label", "n", "mean", "low", "high"]).set_index("label")


def _labels(results: Results, table: pd.DataFrame) -> list[str]:
    labels = dict(zip(table["method"], table["label"], strict=True))
    return [labels[method] for method in results.styles if method in labels]


def _curves(axis: Axes, part: pd.DataFrame, x: str, results: Results) -> None:
    least, most = RANGES[results.kinds.get(part["metric"].iloc[0], "")]
    for method, style in results.styles.items():
        line = part[part["method"] == method]
        position, mean, half = line[x], line["mean"], half_width(line["se"], line["n"])
        band = (mean - half).clip(least, most), (mean + half).clip(least, most)
        axis.fill_between(position, *band, color=style.color, alpha=0.15, lw=0)
        label, zorder = line["label"].iloc[0], 3 if method == _TOP_METHOD else 2
        axis.plot(position, mean, **style.line, label=label, zorder=zorder)
    axis.set_xticks(sorted(part[x].unique()))


def _heat_map(axis: Axes, magnitudes: np.ndarray, sizes: np.ndarray):
    scaled = magnitudes / max(magnitudes.max(), np.finfo(float).tiny)
    look = {"cmap": "magma_r", "norm": PowerNorm(0.5, 0, 1), "interpolation": "nearest"}
    image = axis.imshow(scaled, rasterized=True, **look)
    for border in np.cumsum(sizes)[:-1] - 0.5:
        axis.axhline(border, color=COLOURS["blue"], lw=0.8)
        axis.axvline(border, color=COLOURS["blue"], lw=0.8)
    axis.grid(False)
    axis.set_xlabel("represented point")
    return image


def _entries(label: str, magnitudes: np.ndarray) -> pd.DataFrame:
    rows, columns = np.nonzero(magnitudes >= _SMALLEST_SHOWN * magnitudes.max())
    entries = {"row": rows, "column": columns, "magnitude": magnitudes[rows, columns]}
    return pd.DataFrame({"label": label, **entries})


def _interval(
    axis: Axes, part: pd.DataFrame, center: str, shift: float = 0.0, **look: str
) -> np.ndarray:
    """Draw a row with an interval for each label of a table, from the top; return the places."""
    places = np.arange(len(part))[::-1]
    spread = np.clip([part[center] - part["low"], part["high"] - part[center]], 0.0, None)
    axis.errorbar(part[center], places + shift, xerr=spread, fmt="o", capsize=2.5, **look)
    axis.set_yticks(places, part.index)
    return places


def _dots(axis: Axes, part: pd.DataFrame, order: list[str]) -> None:
    part = part.set_index("label").loc[order]
    look = {"color": COLOURS["vermillion"], "label": "ours, all sequences (95 %)"}
    places = _interval(axis, part, "ours", 0.12, **look)
    look = {"markersize": 11, "color": COLOURS["green"], "label": "ours, without the tuning split"}
    axis.plot(part["ours_report_split"], places + 0.12, "|", markeredgewidth=1.6, **look)
    axis.plot(part["printed"], places - 0.12, "D", color=COLOURS["blue"], label="printed")
    axis.set_ylim(-0.6, len(order) - 0.4)
    axis.set_xlim(left=min(0.0, axis.get_xlim()[0]))
