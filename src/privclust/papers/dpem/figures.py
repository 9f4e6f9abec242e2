"""The figures and tables of "Practical Privacy for Expectation Maximization" (DP-EM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse

from privclust.report.drawing.panels import arrays_of, put_table
from privclust.report.drawing.style import MARKERS, Drawing, MethodStyle, Results, canvas

_WIDTH = 9.5  # inches, of a table
_MOST_NATS = 12.0  # below the best that a panel shows
_NEAR = 0.05  # nats below EM that count as having come near it
_FLOORS = ("floored_weights", "floored_means", "floored_covariances")
_CATEGORY_NAMES = ("single", "married, from far away", "divorced or widowed")


def fig1(results: Results) -> Drawing:
    """Figure 1: people on a map with the mixtures' means and standard deviations."""
    (experiment,) = results.trials
    trials = results.trials[experiment]
    own = [[(method, copies) for method in results.own] for copies in (1, 50)]
    panels = [
        ("A  EM, 104 people", [("em", 1)]),
        ("B  private, 104 people", [("cdp", 1), ("adaptive_cdp", 1), *own[0]]),
        ("C  private, 5,200 people", [("cdp", 50), ("adaptive_cdp", 50), *own[1], ("em", 50)]),
    ]
    with canvas(9.5, 4.0, results.trials) as figure:
        axes = figure.subplots(1, 3, sharex=True, sharey=True)
        for axis, (title, shown) in zip(axes, panels, strict=True):
            _draw_map(axis, results, experiment, shown)
            axis.set_title(title)
        axes[0].set_ylabel("north (unit ball)")
        axes[1].set_xlabel("east (unit ball)")
        handles, names = axes[2].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=len(names))
    columns = [
        "exposure",
        "hidden",
        "mean_error",
        "floored_weights",
        "floored_means",
        "floored_covariances",
    ]
    table = trials.groupby(["n_copies", "method", "label"], sort=True)[columns].mean()
    return Drawing(figure, table.reset_index())


def _draw_map(
    axis: Axes, results: Results, experiment: str, shown: Sequence[tuple[str, int]]
) -> None:
    """Draw one panel: people, then the circles of each method at one standard deviation."""
    trials = results.trials[experiment]
    for number, (method, copies) in enumerate(shown):
        own = trials[trials["method"] == method].reset_index(drop=True)
        row = own.index[(own["n_copies"] == copies) & (own["trial"] == own["trial"].min())][0]
        arrays = arrays_of(results, experiment, method, row)
        if number == 0:
            points, categories = arrays["points"], arrays["categories"]
            for category, color in enumerate(("#999999", "#d00000", "#bbbbbb")):
                mine = points[categories == category]
                axis.plot(*mine.T, ".", color=color, markersize=4, label=_CATEGORY_NAMES[category])
        style = results.styles[method]
        _circles(axis, arrays, style, own["label"].iloc[0])
    axis.set_aspect("equal")
    axis.set_xlim(-0.9, 0.6)
    axis.set_ylim(-0.9, 0.4)


def _circles(axis: Axes, arrays: Mapping[str, np.ndarray], style: MethodStyle, label: str) -> None:
    """Draw each component as its mean and the circle of one standard deviation."""
    means, covariances = arrays["means"], arrays["covariances"]
    axis.plot(*means.T, "x", color=style.color, markersize=6, label=label, zorder=3)
    for mean, variance in zip(means, covariances, strict=True):
        width = 2.0 * np.sqrt(variance)
        axis.add_patch(
            Ellipse(mean, width, width, fill=False, edgecolor=style.color, linestyle=style.dash)
        )


def fig2(results: Results) -> Drawing:
    """Figure 2: test log-likelihood against N at nominal and at equal privacy, and fits."""
    (experiment,) = results.trials
    trials = results.trials[experiment]
    nominal = ["em", "cdp", "cdp_sound", "dp", "dp_sound", "joint_cdp", "adaptive_cdp"]
    equal = ["em", "dp_sound", "zcdp", "joint", "adaptive"]
    with canvas(9.5, 8.0, results.trials) as figure:
        top, bottom = figure.subfigures(2, 1, height_ratios=[1.7, 1])
        axes = top.subplots(1, 2, sharey=True)
        titles = (
            "A  at the paper's nominal epsilon = 0.9: CDP or (0.9, 0.01)-DP",
            "A'  at equal privacy: every curve (0.9, 0.01)-DP",
        )
        for axis, methods, title in zip(axes, (nominal, equal), titles, strict=True):
            _likelihoods(axis, results, "n_samples", methods)
            axis.set_title(title)
            axis.set_xlabel("number of training points, N")
            _legend_below(axis)
        axes[0].set_ylabel("test log-likelihood per point")
        best = trials.loc[trials["method"] == "em", "upper_quartile"].max()
        axes[0].set_ylim(best - 3.0, best + 0.2)
        _fits(bottom, results, experiment, trials)
    return Drawing(figure, _with_crossings(_curves_table(trials, "n_samples"), trials))


def _fits(figure, results: Results, experiment: str, trials: pd.DataFrame) -> None:
    """Panel B: the Gaussians fitted from the first start at N = 8,000."""
    pictured = ("dp", "cdp", "adaptive_cdp", *results.own, "em")
    methods = [m for m in pictured if m in set(trials["method"])]
    axes = figure.subplots(1, len(methods), sharex=True, sharey=True)
    for axis, method in zip(axes, methods, strict=True):
        own = trials[trials["method"] == method].reset_index(drop=True)
        row = own.index[(own["n_samples"] == 8000) & (own["trial"] == own["trial"].min())][0]
        fitted, em = (arrays_of(results, experiment, name, row) for name in (method, "em"))
        _circles(axis, fitted, results.styles[method], "fitted")
        _circles(axis, em, MethodStyle("#999999", "", ":"), "EM")
        axis.set_title(f"B  {own['label'].iloc[0]}, N = 8,000", fontsize=8)
        axis.set_aspect("equal")
        axis.set_xlim(-1.05, 1.05)
        axis.set_ylim(-1.05, 1.05)


def _with_crossings(table: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """Add the number of points from which a method stays within 0.05 nats of EM.

    Interpolated in log N on the mean difference of the losses from the last point above.
    """
    wide = trials.pivot_table(index="n_samples", columns="method", values="loss")
    crossings = {m: _crossing(wide[m] - wide["em"]) for m in wide.columns}
    return table.assign(n_within_005_of_em=table["method"].map(crossings))


def _crossing(gap: pd.Series) -> float:
    """Return N where a gap falls below the threshold for good; NaN if it never does."""
    far = np.flatnonzero(gap.to_numpy() > _NEAR)
    if not len(far):
        return float(gap.index[0])
    last = far[-1]
    if last + 1 == len(gap):
        return float("nan")
    (n0, n1), (g0, g1) = np.log(gap.index[last : last + 2]), gap.iloc[last : last + 2]
    return float(np.exp(n0 + (n1 - n0) * (g0 - _NEAR) / (g0 - g1)))


def geometry(results: Results) -> Drawing:
    """How the crossing points of Figure 2 move with what the paper does not say."""
    (experiment,) = results.trials
    trials = results.trials[experiment]
    kinds = sorted(trials["geometry"].unique())
    tables = []
    with canvas(9.5, 5.2, results.trials) as figure:
        axes = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
        for axis, kind in zip(axes, kinds, strict=True):
            part = trials[trials["geometry"] == kind]
            wide = part.pivot_table(index="n_samples", columns="method", values="loss")
            for number, method in enumerate(m for m in part["method"].unique() if m != "em"):
                gap = wide[method] - wide["em"]
                label = part.loc[part["method"] == method, "label"].iloc[0]
                axis.plot(gap.index, gap, MARKERS[number % 7], label=label, linestyle="-")
                crossing = {"geometry": kind, "method": method, "n_within_005": _crossing(gap)}
                tables.append({**crossing, "label": label})
            axis.axhline(_NEAR, color="#000000", linewidth=0.8)
            axis.set_xscale("log")
            axis.set_yscale("symlog", linthresh=0.05)
            axis.set_title(f"Gaussians {kind}")
            axis.set_xlabel("number of training points, N")
        axes[0].set_ylabel("test log-likelihood below EM, nats")
        _legend_below(axes[0])
        _legend_below(axes[-1])
    return Drawing(figure, pd.DataFrame(tables))


def fig3(results: Results) -> Drawing:
    """Figure 3: NICV against epsilon at nominal and at equal privacy, and clusterings."""
    (experiment,) = results.trials
    trials = results.trials[experiment]
    nominal = ["cdplap", "cdplap_sound", "cdpgau", "cdpgau_sound", "dplloyd", "dplloyd_cdp"]
    equal = ["cdplap_pld", "cdpgau_pld", "dplloyd_sound", "dplloyd_pld"]
    with canvas(9.5, 8.0, results.trials) as figure:
        top, bottom = figure.subfigures(2, 1, height_ratios=[1.7, 1])
        axes = top.subplots(1, 2, sharey=True)
        titles = (
            "A  at the paper's nominal epsilon",
            "A'  at equal privacy: every curve (epsilon, 1e-6)-DP",
        )
        for axis, methods, title in zip(axes, (nominal, equal), titles, strict=True):
            _quartiles(axis, results, "epsilon", "nicv", methods)
            axis.set_yscale("log")
            axis.set_title(title)
            axis.set_xlabel("privacy budget, epsilon")
            _legend_below(axis)
        axes[0].set_ylabel("NICV (median, band: quartiles)")
        _clusterings(bottom, results, experiment, trials)
    return Drawing(figure, _quartile_table(trials, "epsilon", "nicv"))


def _clusterings(figure, results: Results, experiment: str, trials: pd.DataFrame) -> None:
    """Panel B: points and centers at epsilon = 0.01 from the same start."""
    methods = ("cdplap", "cdpgau", "dplloyd", *results.own)
    axes = figure.subplots(1, len(methods), sharex=True, sharey=True)
    for axis, method in zip(axes, methods, strict=True):
        own = trials[trials["method"] == method].reset_index(drop=True)
        row = own.index[(own["epsilon"] == 0.01) & (own["trial"] == own["trial"].min())][0]
        arrays = arrays_of(results, experiment, method, row)
        axis.plot(*arrays["points"].T, ",", color="#666666")
        inside = np.linalg.norm(arrays["centers"], axis=1) <= 1.0
        axis.plot(*arrays["centers"][inside].T, "*", color="#d00000", markersize=9)
        outside = (
            f", {(~inside).sum()} of {len(inside)} centers outside" if not inside.all() else ""
        )
        title = f"B  {own['label'].iloc[0]} ({own['nicv'][row]:.4f}){outside}"
        # three panels have room for a title in a line
        axis.set_title(title.replace(" (", "\n(") if len(methods) > 3 else title, fontsize=8)
        axis.set_aspect("equal")
        axis.set_xlim(-1.05, 1.05)
        axis.set_ylim(-0.6, 0.6)


def fig4(results: Results) -> Drawing:
    """Figure 4: test log-likelihood against the privacy loss, at nominal and equal privacy."""
    (experiment,) = results.trials
    trials = results.trials[experiment]
    lines = ["em", "gaussian"]
    nominal = [*lines, "cdp", "cdp_sound", "dp", "dp_sound", "joint_cdp", "adaptive_cdp"]
    equal = [*lines, "dp_sound", "zcdp", "joint", "adaptive"]
    with canvas(9.5, 5.4, results.trials) as figure:
        axes = figure.subplots(1, 2, sharey=True)
        titles = (
            "at the paper's nominal epsilon",
            "at equal privacy: (epsilon, 1e-6)-DP but for advanced composition",
        )
        for axis, methods, title in zip(axes, (nominal, equal), titles, strict=True):
            _likelihoods(axis, results, "epsilon", methods)
            axis.set_title(title)
            axis.set_xlabel("cumulative privacy loss after 10 iterations, epsilon")
            _legend_below(axis)
        axes[0].set_ylabel("test log-likelihood per point")
        best = trials.loc[trials["method"] == "em", "upper_quartile"].max()
        axes[0].set_ylim(best - 12.0, best + 0.5)
    return Drawing(figure, _curves_table(trials, "epsilon"))


def likelihoods(results: Results) -> Drawing:
    """Test log-likelihood of all methods against epsilon."""
    (trials,) = results.trials.values()
    with canvas(6.5, 5.0, results.trials) as figure:
        axis = figure.subplots()
        _likelihoods(axis, results, "epsilon", list(results.styles))
        best, lowest = trials["upper_quartile"].max(), trials["lower_quartile"].min()
        room = 0.05 * min(best - lowest, _MOST_NATS)
        axis.set_ylim(max(lowest, best - _MOST_NATS) - room, best + room)
        axis.set_xlabel("privacy budget, epsilon")
        axis.set_ylabel("test log-likelihood per point, median of the starts")
        _legend_below(axis)
    return Drawing(figure, _curves_table(trials, "epsilon"))


def table(results: Results) -> Drawing:
    """Numbers that the paper has no figure for: one row a method and grid point."""
    (experiment,) = results.summaries
    summary = results.summaries[experiment]
    wide = summary.pivot_table(
        index=[c for c in summary.columns if c not in _SUMMARY],
        columns="metric",
        values="mean",
        sort=False,
    ).reset_index()
    with canvas(_WIDTH, 0.6 + 0.24 * len(wide), results.trials) as figure:
        put_table(figure.subplots(), wide.drop(columns="method"), _WIDTH)
    return Drawing(figure, wide)


_SUMMARY = ("metric", "n", "mean", "median", "std", "se", "min", "max")


def _shown(results: Results, methods: Sequence[str]):
    """Yield the trials of each method, and of a user's own, with label and style, if it was run."""
    (trials,) = results.trials.values()
    for method in dict.fromkeys([*methods, *results.own]):
        own = trials[trials["method"] == method]
        if len(own):
            yield own, own["label"].iloc[0], results.styles[method]


def _likelihoods(axis: Axes, results: Results, x: str, methods: Sequence[str]) -> None:
    """Draw the median over starts with the interquartile range, both averaged over data sets."""
    for own, label, style in _shown(results, methods):
        means = own.groupby(x)[["loss", "lower_quartile", "upper_quartile"]].mean()
        axis.plot(
            means.index,
            -means["loss"],
            **style.line,
            label=label,
            **({"linewidth": 4.0, "alpha": 0.5} if own["method"].iloc[0] == "em" else {}),
        )
        axis.fill_between(
            means.index,
            means["lower_quartile"],
            means["upper_quartile"],
            color=style.color,
            alpha=0.12,
            linewidth=0,
        )
    axis.set_xscale("log")


def _quartiles(axis: Axes, results: Results, x: str, metric: str, methods: Sequence[str]) -> None:
    """Draw the median over trials with the interquartile range."""
    for own, label, style in _shown(results, methods):
        values = own.groupby(x)[metric].quantile([0.25, 0.5, 0.75]).unstack()
        axis.plot(
            values.index,
            values[0.5],
            **style.line,
            label=label,
        )
        axis.fill_between(
            values.index, values[0.25], values[0.75], color=style.color, alpha=0.12, linewidth=0
        )
    axis.set_xscale("log")


def _legend_below(axis: Axes) -> None:
    """Name the curves below their panel, where they hide nothing."""
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15)}
    axis.legend(fontsize=7.5, ncols=2, handlelength=4.0, **place)  # long: dashes tell


def _curves_table(trials: pd.DataFrame, x: str) -> pd.DataFrame:
    """Return the numbers behind likelihood curves, with how often each floor acted."""
    metrics = ["loss", "lower_quartile", "upper_quartile", "mean_error"]
    present = [name for name in (*metrics, *_FLOORS) if name in trials]
    table = trials.groupby(["method", "label", x], sort=False)[present].mean().reset_index()
    counts = trials.groupby(["method", "label", x], sort=False).size().to_numpy()
    return table.assign(n=counts)


def _quartile_table(trials: pd.DataFrame, x: str, metric: str) -> pd.DataFrame:
    """Return the numbers behind quartile curves."""
    groups = trials.groupby(["method", "label", x], sort=False)[metric]
    values = groups.quantile([0.25, 0.5, 0.75]).unstack()
    values.columns = [f"{metric}_q{int(100 * q)}" for q in values.columns]
    return values.assign(n=groups.size()).reset_index()
