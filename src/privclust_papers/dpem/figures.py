"""The figures and tables of "Practical Privacy for Expectation Maximization" (DP-EM)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.patches import Ellipse

from privclust_papers.dpem.people import MAP_CENTER, MAP_RADIUS, from_unit_ball
from privclust_papers.report.drawing.panels import (
    arrays_of,
    caption,
    counted,
    legend_above,
    table_drawing,
)
from privclust_papers.report.drawing.style import Drawing, MethodStyle, Results, canvas

_WIDTH = 9.5  # inches, of a table
_NEAR_EM = 0.05  # gap in nats below which a fit counts as near EM
_LINEAR_PART = 10.0 / 9.0  # of a symlog axis from 0 to its threshold, in decades, as Matplotlib's
_FLOORS = ["floored_weights", "floored_means", "floored_covariances"]
_NOMINAL = ["cdp", "cdp_corrected", "dp", "dp_corrected", "joint_cdp", "adaptive_cdp"]
_IN_TABLE_ONLY = "joint_cdp"  # where a panel would have eight lines
_EQUAL_PRIVACY = ["dp_corrected", "zcdp", "joint", "adaptive"]
_N_NAME = "number of training points, N"
_OF_STARTS = "Median over starts (bands: quartiles), averaged over"
_ELLIPSES = "Crosses: means; circles: one standard deviation"
_NEAR_LINE = f"Black line: {_NEAR_EM:g} nats; the axis is linear below it."
_CATEGORY_NAMES = ("single", "married, from far away", "divorced or widowed")


def fig1(results: Results) -> Drawing:
    """Figure 1: people on a map with the mixtures' means and standard deviations.

    Circles have a radius of one standard deviation; fits are from the first uniform start.
    """
    (trials,) = results.trials.values()
    panels = [
        ("A  EM, 104 people", 1, ["em", "em_likeliest"]),
        ("B  private, 104 people", 1, ["cdp", "adaptive_cdp", *results.own]),
        ("C  private, 5,200 people", 50, ["cdp", "adaptive_cdp", *results.own, "em"]),
    ]
    found = set(trials["method"])
    with canvas(9.5, 4.0, results.trials) as figure:
        axes = figure.subplots(1, 3, sharex=True, sharey=True)
        for axis, (title, copies, methods) in zip(axes, panels, strict=True):
            _draw_map(axis, results, copies, [method for method in methods if method in found])
            axis.set_title(title)
        axes[0].set_ylabel("latitude, degrees")
        axes[1].set_xlabel(f"longitude, degrees\n({_ELLIPSES.lower()})")
        legend_above(figure, *axes, ncols=4)
    columns = ["exposure", "hidden", "mean_error", *_FLOORS]
    groups = trials.groupby(["n_copies", "start", "method", "label"], sort=True)
    medians = groups[["mean_error", "em_distance"]].median().add_suffix("_median")
    return Drawing(figure, groups[columns].mean().join(medians).reset_index())


def _pictured(
    results: Results, method: str, x: str, value: float
) -> tuple[pd.Series, dict[str, np.ndarray]]:
    (experiment,) = results.trials
    trials = results.trials[experiment]
    trials = trials[trials["method"] == method].reset_index(drop=True)
    is_first = trials["trial"] == trials["trial"].min()
    if "start" in trials:
        is_first &= trials["start"] == "uniform"
    row = trials.index[(trials[x] == value) & is_first][0]
    return trials.loc[row], arrays_of(results, experiment, method, row)


def _draw_map(axis: Axes, results: Results, copies: int, methods: Sequence[str]) -> None:
    axis.set(aspect="equal", xlim=(5.0, 14.5), ylim=(45.5, 54.0))
    notes = []
    for number, method in enumerate(methods):
        trial, arrays = _pictured(results, method, "n_copies", copies)
        if number == 0:
            points, categories = _degrees(arrays["points"]), arrays["categories"]
            for category, color in enumerate(("#999999", "#d00000", "#bbbbbb")):
                people = points[categories == category].T
                axis.plot(*people, ".", color=color, markersize=4, label=_CATEGORY_NAMES[category])
        on_map = {
            "means": _degrees(arrays["means"]),
            "covariances": MAP_RADIUS**2 * arrays["covariances"],
        }
        _ellipses(axis, on_map, results.styles[method], trial["label"])
        if note := _off_panel(axis, on_map["means"], "means"):
            notes.append(f"{trial['label']}: {note}")
    axis.text(0.02, 0.98, "\n".join(notes), transform=axis.transAxes, fontsize=7, va="top")


def _degrees(points: np.ndarray) -> np.ndarray:
    return from_unit_ball(points, MAP_CENTER, MAP_RADIUS)


def _off_panel(axis: Axes, points: np.ndarray, name: str) -> str:
    """Return a note on the number of points outside of a panel, or an empty text."""
    (left, right), (bottom, top) = axis.get_xlim(), axis.get_ylim()
    is_hidden = ((points < [left, bottom]) | (points > [right, top])).any(axis=1)
    return f"{is_hidden.sum()} of {len(points)} {name} off the panel" if is_hidden.any() else ""


def _ellipses(axis: Axes, arrays: Mapping[str, np.ndarray], style: MethodStyle, label: str) -> None:
    """Draw each component as its mean and the ellipse of one standard deviation."""
    means, covariances = arrays["means"], arrays["covariances"]
    axis.plot(*means.T, "x", color=style.color, markersize=6, label=label, zorder=3)
    line = {"fill": False, "edgecolor": style.color, "linestyle": style.dash}
    for mean, covariance in zip(means, covariances, strict=True):
        axis.add_patch(Ellipse(mean, **_shape(covariance), **line))


def _shape(covariance: np.ndarray) -> dict[str, float]:
    """Return an ellipse's widths, two standard deviations each, and its angle in degrees."""
    if covariance.ndim < 2:
        variances, angle = np.broadcast_to(covariance, 2), 0.0
    else:
        variances, axes = np.linalg.eigh(covariance)
        angle = float(np.degrees(np.arctan2(axes[1, 0], axes[0, 0])))
    width, height = 2.0 * np.sqrt(np.maximum(variances, 0.0))  # negative only by rounding
    return {"width": width, "height": height, "angle": angle}


def fig2(results: Results) -> Drawing:
    """Figure 2: test log-likelihood against N at nominal and at equal privacy, and fits."""
    (trials,) = results.trials.values()
    panels = {
        "A  at the paper's nominal epsilon = 0.9: CDP or (0.9, 0.01)-DP": ["em", *_NOMINAL],
        "A'  at equal privacy: all curves (0.9, 0.01)-DP": ["em", *_EQUAL_PRIVACY],
    }
    with canvas(9.5, 8.6, results.trials) as figure:
        top, bottom = figure.subfigures(2, 1, height_ratios=[1.7, 1])
        draw = partial(_likelihoods, results, "n_samples")
        axis = _two_panels(top, panels, draw, _N_NAME, "test log-likelihood per point")
        best = trials.loc[trials["method"] == "em", "upper_quartile"].max()
        axis.set_ylim(best - 3.0, best + 0.2)
        _fits(bottom, results, trials)
        caption(top, f"{_OF_STARTS} {counted(trials)}.")
        caption(bottom, f"The first trial. {_ELLIPSES}. Grey, dotted: EM.")
    return Drawing(figure, _with_crossings(_curves_table(trials, "n_samples"), trials))


def _two_panels(
    figure: FigureBase,
    panels: Mapping[str, Sequence[str]],
    draw: Callable[[Axes, Sequence[str]], None],
    x_name: str,
    y_name: str,
) -> Axes:
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (title, methods) in zip(axes, panels.items(), strict=True):
        draw(axis, methods)
        axis.set(title=title, xlabel=x_name)
        _legend_below(axis)
    axes[0].set_ylabel(y_name)
    return axes[0]


def _fits(figure: FigureBase, results: Results, trials: pd.DataFrame) -> None:
    """Panel B: the Gaussians fitted from the first start at N = 8,000."""
    candidates = ("dp", "cdp", "adaptive_cdp", *results.own, "em")
    methods = [m for m in candidates if m in set(trials["method"])]
    axes = figure.subplots(1, len(methods), sharex=True, sharey=True)
    for axis, method in zip(axes, methods, strict=True):
        trial, fitted = _pictured(results, method, "n_samples", 8000)
        _, em = _pictured(results, "em", "n_samples", 8000)
        axis.set(aspect="equal", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
        _ellipses(axis, fitted, results.styles[method], "fitted")
        _ellipses(axis, em, MethodStyle("#999999", "", ":"), "EM")
        note = _off_panel(axis, fitted["means"], "means")
        axis.set_title(f"B  {trial['label']}, N = 8,000\n{note}", fontsize=8)


def _with_crossings(table: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """Add the number of points from which the mean loss stays within 0.05 nats of EM's."""
    wide = trials.pivot_table(index="n_samples", columns="method", values="loss")
    crossings = {m: _crossing(wide[m] - wide["em"]) for m in wide.columns}
    return table.assign(n_within_005_of_em=table["method"].map(crossings))


def _crossing(gap: pd.Series) -> float:
    """Return the N from which a gap stays below the threshold, or NaN.

    Interpolated in log N and in the gap on a symlog axis, as curves in the figure cross the line.
    """
    far = np.flatnonzero(gap.to_numpy() > _NEAR_EM)
    if not len(far):
        return float(gap.index[0])
    last = far[-1]
    if last + 1 == len(gap):
        return float("nan")
    # The crossing lies between the last point above the threshold and the next one.
    n0, n1 = np.log(gap.index[last : last + 2])
    above, below = (gap.iloc[last : last + 2] / _NEAR_EM).to_numpy()
    # Decades from the point above down to the threshold; below it the axis is linear.
    way = math.log10(above)
    return float(np.exp(n0 + (n1 - n0) * way / (way + _LINEAR_PART * (1.0 - below))))


def geometry(results: Results) -> Drawing:
    """Crossing points of Figure 2 for settings that the paper does not state."""
    (trials,) = results.trials.values()
    kinds = sorted(trials["geometry"].unique())
    tables = []
    with canvas(9.5, 5.5, results.trials) as figure:
        axes = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
        for axis, kind in zip(axes, kinds, strict=True):
            part = trials[trials["geometry"] == kind]
            wide = part.pivot_table(index="n_samples", columns="method", values="loss")
            for method in (m for m in part["method"].unique() if m != "em"):
                gap = wide[method] - wide["em"]
                label = part.loc[part["method"] == method, "label"].iloc[0]
                if method not in (_IN_TABLE_ONLY, "dp"):  # at most seven lines
                    axis.plot(gap.index, gap, **results.styles[method].line, label=label)
                crossing = {"geometry": kind, "method": method, "n_within_005": _crossing(gap)}
                crossing |= {"n_largest": gap.index[-1], "gap_there": gap.iloc[-1]}
                tables.append({**crossing, "label": label})
            axis.axhline(_NEAR_EM, color="#000000", linewidth=0.8)
            axis.set_yscale("symlog", linthresh=_NEAR_EM)
            axis.set(xscale="log", title=f"Gaussians {kind}", xlabel=_N_NAME)
        axes[0].set_ylabel("test log-likelihood below EM, nats")
        _legend_below(axes[0])
        _legend_below(axes[-1])
        note = "Joint noise (CDP) and DP-EM are in the table only."
        caption(figure, f"Mean of {counted(trials)}. {_NEAR_LINE} {note}")
    return Drawing(figure, pd.DataFrame(tables))


def accuracy(results: Results) -> Drawing:
    """Gap to EM at each budget, at the paper's nominal budget and at equal privacy."""
    (trials,) = results.trials.values()
    wide = trials.pivot_table(index=["epsilon", "trial"], columns="method", values="loss")
    gaps = wide.drop(columns="em").sub(wide["em"], axis=0)
    panels = {
        "epsilon as the paper counts it": ["cdp", "dp", "dp_pure", *results.own],
        "at equal privacy: (epsilon, 0.01)-DP; pure DP: (epsilon, 0)": [
            *("dp_pure_corrected", "dp_corrected", "zcdp", "joint", "adaptive"),
            *results.own,
        ],
    }

    def draw(axis: Axes, methods: Sequence[str]) -> None:
        for part, label, style in _shown(results, methods):
            mean = gaps[part["method"].iloc[0]].groupby("epsilon").mean()
            axis.plot(mean.index, mean, **style.line, label=label)
        axis.axhline(_NEAR_EM, color="#000000", linewidth=0.8)
        axis.set_xscale("log")
        axis.set_yscale("symlog", linthresh=_NEAR_EM)

    with canvas(9.5, 4.9, results.trials) as figure:
        y_name = "test log-likelihood below EM, nats"
        _two_panels(figure, panels, draw, "privacy budget, epsilon", y_name)
        caption(figure, f"Mean of {counted(trials)}. {_NEAR_LINE}")
    means = gaps.groupby("epsilon").mean()
    table = means.stack().rename("below_em").reset_index()
    needed = {method: _crossing(means[method]) for method in means}
    shares = trials.groupby(["method", "epsilon"])[["beyond", "worst"]].mean().reset_index()
    table = table.merge(shares, on=["method", "epsilon"])
    return Drawing(figure, table.assign(epsilon_needed=table["method"].map(needed)))


def fig3(results: Results) -> Drawing:
    """Figure 3: NICV against epsilon at nominal and at equal privacy, and clusterings."""
    (trials,) = results.trials.values()
    nominal = ["cdplap", "cdplap_corrected", "cdpgau", "cdpgau_corrected", "dplloyd", "dplloyd_cdp"]
    equal = ["cdplap_pld", "cdpgau_pld", "dplloyd_corrected", "dplloyd_pld"]
    panels = {
        "A  at the paper's nominal epsilon": nominal,
        "A'  at equal privacy: (epsilon, 1e-6)-DP; DPLloyd, replace-one: delta = 0": equal,
    }
    with canvas(9.5, 8.6, results.trials) as figure:
        top, bottom = figure.subfigures(2, 1, height_ratios=[1.7, 1])
        draw = partial(_quartiles, results)
        _two_panels(top, panels, draw, "privacy budget, epsilon", "NICV")
        _clusterings(bottom, results)
        caption(top, f"Median of {counted(trials)}, bands: quartiles.")
        caption(bottom, "Points and centers (stars) at epsilon = 0.01, NICV in brackets.")
    groups = trials.groupby(["method", "label", "epsilon"], sort=False)["nicv"]
    values = groups.quantile([0.25, 0.5, 0.75]).unstack()
    values.columns = ["nicv_q25", "nicv_q50", "nicv_q75"]
    return Drawing(figure, values.assign(n=groups.size()).reset_index())


def _clusterings(figure: FigureBase, results: Results) -> None:
    """Panel B: points and centers at epsilon = 0.01 from the same start."""
    methods = ("cdplap", "cdpgau", "dplloyd", *results.own)
    axes = figure.subplots(1, len(methods), sharex=True, sharey=True)
    for axis, method in zip(axes, methods, strict=True):
        trial, arrays = _pictured(results, method, "epsilon", 0.01)
        axis.set(aspect="equal", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
        axis.plot(*arrays["points"].T, ",", color="#666666")
        axis.plot(*arrays["centers"].T, "*", color="#d00000", markersize=9)
        note = _off_panel(axis, arrays["centers"], "centers")
        axis.set_title(f"B  {trial['label']} ({trial['nicv']:.4f})\n{note}", fontsize=8)


def fig4(results: Results) -> Drawing:
    """Figure 4: test log-likelihood against the privacy loss, at nominal and equal privacy."""
    (trials,) = results.trials.values()
    lines = ["em", "gaussian"]
    panels = {
        "at the paper's nominal epsilon": lines + [m for m in _NOMINAL if m != _IN_TABLE_ONLY],
        "at equal privacy: (epsilon, 1e-6)-DP, except advanced composition": lines + _EQUAL_PRIVACY,
    }
    with canvas(9.5, 5.7, results.trials) as figure:
        draw = partial(_likelihoods, results, "epsilon")
        x_name = "cumulative privacy loss after 10 iterations, epsilon"
        axis = _two_panels(figure, panels, draw, x_name, "test log-likelihood per point")
        best = trials.loc[trials["method"] == "em", "upper_quartile"].max()
        axis.set_ylim(best - 12.0, best + 0.5)
        caption(
            figure, f"{_OF_STARTS} {counted(trials)}. Left, joint noise (CDP) is in the table only."
        )
    return Drawing(figure, _curves_table(trials, "epsilon"))


def table(results: Results) -> Drawing:
    """Numbers without a figure in the paper: one row per method and grid point."""
    (summary,) = results.summaries.values()
    points = [c for c in summary.columns if c not in _SUMMARY]
    wide = summary.pivot_table("mean", points, "metric", sort=False).reset_index()
    shown = wide.drop(columns="method")
    text = "Each statement by its key; the text of its claim is in config/papers/dpem/claims.yaml."
    return table_drawing(results, wide, shown, text, (_WIDTH, 0.8 + 0.24 * len(wide)))


_SUMMARY = ("metric", "n", "mean", "median", "std", "se", "min", "max")


def _shown(results: Results, methods: Sequence[str]):
    """Yield trials, label and style of each method, and of a user's method, that was run."""
    (trials,) = results.trials.values()
    for method in dict.fromkeys([*methods, *results.own]):
        part = trials[trials["method"] == method]
        if len(part):
            yield part, part["label"].iloc[0], results.styles[method]


def _likelihoods(results: Results, x: str, axis: Axes, methods: Sequence[str]) -> None:
    """Draw the median over starts with the interquartile range, both averaged over data sets."""
    for part, label, style in _shown(results, methods):
        means = part.groupby(x)[["loss", "lower_quartile", "upper_quartile"]].mean()
        broad = {"linewidth": 4.0, "alpha": 0.5} if part["method"].iloc[0] == "em" else {}
        axis.plot(means.index, -means["loss"], **style.line, label=label, **broad)
        band = means["lower_quartile"], means["upper_quartile"]
        axis.fill_between(means.index, *band, color=style.color, alpha=0.12, linewidth=0)
    axis.set_xscale("log")


def _quartiles(results: Results, axis: Axes, methods: Sequence[str]) -> None:
    """Draw the median NICV over trials with the interquartile range."""
    for part, label, style in _shown(results, methods):
        values = part.groupby("epsilon")["nicv"].quantile([0.25, 0.5, 0.75]).unstack()
        axis.plot(values.index, values[0.5], **style.line, label=label)
        band = values[0.25], values[0.75]
        axis.fill_between(values.index, *band, color=style.color, alpha=0.12, linewidth=0)
    axis.set(xscale="log", yscale="log")


def _legend_below(axis: Axes) -> None:
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15)}
    if not axis.get_legend_handles_labels()[1]:
        return
    axis.legend(fontsize=7.5, ncols=2, handlelength=4.0, **place)  # long, to show dashes


def _curves_table(trials: pd.DataFrame, x: str) -> pd.DataFrame:
    """Return the numbers of likelihood curves, with the rates of the floors."""
    spread = ["beyond", "worst", "variance"]
    metrics = ["loss", "lower_quartile", "upper_quartile", "mean_error", *spread, *_FLOORS]
    groups = trials.groupby(["method", "label", x], sort=False)
    table = groups[[name for name in metrics if name in trials]].mean()
    if "worst" in trials:
        table["worst_of_all"] = groups["worst"].max()
    return table.assign(n=groups.size()).reset_index()
