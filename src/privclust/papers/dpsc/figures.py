"""The figures of "Differentially Private Subspace Clustering" (NIPS 2015)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.ticker import FixedLocator, NullLocator

from privclust.papers.dpsc.panels import (
    METRICS,
    QUARTILES,
    by_epsilon,
    chain_lines,
    circle_panel,
    epsilon_colors,
    exact_lines,
)
from privclust.report.drawing.panels import BAND, caption, counted, mean_curves, statistics
from privclust.report.drawing.style import BELOW, PALETTE, Drawing, Results, canvas

_WIDTH = 10.5
_LETTER = 0.065  # inches of a letter in a legend
_PRINTED = (
    "sa_ssc",
    "sa_tsc",
    "sa_lrr",
    "exp_ssc",
    "exp_lrr",
    "sulq_10",
    "sulq_50",
    "sulq_10_mod",
    "sulq_50_mod",
    "kplanes_ssc",
)
_HONEST = (
    "sa_ssc_sound",
    "sulq_10",
    "sulq_50",
    "gibbs_random",
    "gibbs_sulq",
    "kplanes_ssc",
    "kplanes",
)
_STARTS = (
    "exp_ssc",
    "gibbs_random",
    "gibbs_annealed",
    "gibbs_sulq",
    "gibbs_sulq_tenth",
    "sulq_10",
    "sulq_restarts",
    "kplanes_ssc",
)
_DATA_SETS = {
    "dpsc_d5": "generated, σ = 0.01",
    "dpsc_d10": "generated, σ = 0.1",
    "dpsc_yale": "Extended Yale B",
    "dpsc_starts": "generated, σ = 0.1",
    "dpsc_starts_yale": "Extended Yale B",
}
_AXES = {"cost": "k-means cost, eq. (3)", "distance": "Wasserstein distance, eq. (2)"}
_SHOWN_POINTS = 16  # of Figure 1
_SHAPES = {"lines": "rows about two lines", "circle": "evenly spaced rows"}
_LEAST_DISTANCE = 1e-9  # drawn; rounding lies below
_SCALE_TICKS = (1.0, 1.1, 1.5, 2.0, 5.0, 10.0, 50.0, 100.0, 1000.0)
_CONVERGED = 1.1  # of the potential scale reduction, below which chains count as mixed


def fig1(results: Results) -> Drawing:
    """Figure 1: points on a circle, the best two lines, and one more point that turns them."""
    (experiment,) = results.trials
    trials = results.trials[experiment]
    method = trials["method"].iloc[0]
    row = int(np.flatnonzero(trials["n_points"] == _SHOWN_POINTS)[0])
    arrays = results.arrays[experiment, method]
    points, added, lines = (arrays[f"array/{row:05d}/{n}"] for n in ("points", "added", "lines"))
    distance = trials["distance"].iloc[row]
    with canvas(_WIDTH, 3.9, results.trials) as figure:
        axes = figure.subplots(1, 3)
        for number, axis in enumerate(axes[:2]):
            circle_panel(axis, points, added[number], lines[number], lines[:number])
        axes[0].set_title("A  one point more: the best two lines")
        axes[1].set_title(f"B  the same point elsewhere: {distance:.3f} away")
        places = np.arange(len(trials))
        axes[2].plot(places, trials["distance"], "o", color=PALETTE[1])
        axes[2].axhline(2.0, color="#bbbbbb", linewidth=1.2)
        axes[2].set_xticks(places, [str(n) for n in trials["n_points"]])
        axes[2].set_ylim(0.0, 2.1)
        axes[2].set_xlabel("evenly spaced points")
        axes[2].set_ylabel("Wasserstein distance of the optima")
        axes[2].set_title("C  what one point moves (grey: the diameter)")
    return Drawing(figure, trials[["n_points", "distance", "gap"]])


def fig2(results: Results) -> Drawing:
    """Figure 2: cost and Wasserstein distance against epsilon, as printed."""
    text = (
        "Mean of {trials}{band}. Of Gibbs samples (exp.) the mean over the last 100. Dashed: as "
        "printed, without a guarantee (exp.: starts taken from the data). Vertical: ε = 2D/√m, "
        "from which on Theorem 3.1 speaks of Algorithm 1 (s.a.). Grey line: random subspaces."
    )
    return _utility(results, _PRINTED, text)


def beyond(results: Results) -> Drawing:
    """What has a guarantee, at one (epsilon, delta), as it is released."""
    text = (
        "Mean of {trials}{band}. What is released: of Gibbs samples the last. Every solid curve is "
        "(ε, 1/(n ln n))-DP, of Gibbs samplers in the limit of many sweeps. Dotted: without "
        "privacy. Grey line: random subspaces."
    )
    return _utility(results, _HONEST, text, released=True)


def starts(results: Results) -> Drawing:
    """One Gibbs sample from starts that privacy allows, beside SuLQ and the paper's start."""
    text = (
        "Mean of {trials}{band}. Of Gibbs samples the last. Solid: (ε, 1/(n ln n))-DP in all, of "
        "Gibbs samplers in the limit of many sweeps. Dashed: the paper's start, taken from the "
        "data. Dotted: without privacy. Grey line: random subspaces."
    )
    return _utility(results, _STARTS, text, released=True)


def _utility(
    results: Results, methods: Sequence[str], text: str, released: bool = False
) -> Drawing:
    """Draw both metrics on all data sets."""
    table = statistics(results.trials, ["epsilon"], METRICS, QUARTILES)
    names = [name for name in _DATA_SETS if name in results.trials]
    with canvas(_WIDTH, 7.6, results.trials) as figure:
        axes = figure.subplots(2, len(names), squeeze=False, sharex="col")
        for column, name in enumerate(names):
            trials = results.trials[name]
            sizes = _sizes(trials)
            for axis, (metric, label) in zip(axes[:, column], _AXES.items(), strict=True):
                shown = metric + ("_last" if released else "")
                part = table[(table["experiment"] == name) & (table["metric"] == shown)]
                mean_curves(axis, part, "epsilon", [*methods, *results.own], results.styles)
                axis.set_ylim(bottom=0.0)
                if column == 0:
                    axis.set_ylabel(label)
                if not released:
                    axis.axvline(_condition(*sizes), color="#bbbbbb", linewidth=1.2, zorder=0)
            title = f"{_DATA_SETS[name]}\n{_told(*sizes)}"
            if not released:
                title += f"\n2D/√m = {_rounded(_condition(*sizes))}"
            axes[0, column].set_title(title)
            random = _random(*sizes[1:])
            axes[1, column].axhline(random, color="#bbbbbb", linewidth=1.2, zorder=0)
            axes[1, column].set_ylim(0.0, 1.08 * random)
            axes[1, column].set_xlabel("privacy budget, ε")
            axes[1, column].set_xlim(*_limits(trials["epsilon"]))
        handles, labels = axes[0, 0].get_legend_handles_labels()
        columns = int(_WIDTH // (0.9 + _LETTER * max(len(label) for label in labels)))
        figure.legend(
            handles, labels, loc="outside lower center", ncols=columns, handlelength=4.0
        ).set_gid(BELOW)
        counts = sorted({counted(results.trials[name]) for name in names})
        caption(figure, text.format(trials=" or ".join(counts), band=BAND))
    return Drawing(figure, table)


def _sizes(trials: pd.DataFrame) -> tuple[int, int, int, int]:
    """Return n, k, d, q of an experiment."""
    row = trials.iloc[0]
    return tuple(int(row[n]) for n in ("n_samples", "n_clusters", "n_features", "dimension"))


def _told(n: int, k: int, d: int, q: int) -> str:
    """Write the sizes of a data set."""
    return f"n = {n}, d = {d}, k = {k}, q = {q}"


def _rounded(value: float) -> str:
    """Write a number with three digits or all before the point."""
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def _limits(epsilons: pd.Series) -> tuple[float, float]:
    """Return the ends of the axis of epsilon, with some room."""
    return 0.8 * epsilons.min(), 1.25 * epsilons.max()


def _condition(n: int, k: int, d: int, q: int) -> float:
    """Return the least epsilon of Theorem 3.1: 2 D / sqrt(m), D = k d q and m = n // (2 q k)."""
    return 2.0 * k * d * q / math.sqrt(n // (2 * q * k))


def _random(k: int, d: int, q: int) -> float:
    """Return the Wasserstein distance of random subspaces in a fixed matching, in square mean."""
    return math.sqrt(2.0 * k * q * (1.0 - q / d))


def fig3(results: Results) -> Drawing:
    """Figure 3: statistic, cost and distance along the sweeps; chains from different starts."""
    (experiment,) = results.trials
    trials = results.trials[experiment]
    colors = epsilon_colors(trials["epsilon"].unique())
    others = [method for method in results.styles if method != "gibbs_random"]
    with canvas(_WIDTH, 7.4, results.trials) as figure:
        axes = figure.subplots(2, 3)
        panels = (
            (axes[0, 0], "exp_ssc", "statistic", "A  as printed: start by SSC", "test statistic"),
            (axes[0, 1], "exp_ssc", "cost_path", "B  start by SSC", _AXES["cost"]),
            (axes[0, 2], "exp_ssc", "distance_path", "C  start by SSC", _AXES["distance"]),
            (axes[1, 0], "exp_ssc", "aligned", "D  the same of projections UU'", "test statistic"),
            (axes[1, 1], "gibbs_random", "distance_path", "E  random start", _AXES["distance"]),
        )
        for axis, method, name, title, label in panels:
            chain_lines(axis, results, experiment, method, name, colors)
            axis.set_title(title)
            axis.set_ylabel(label)
        _, _, d, q = _sizes(trials)
        axes[1, 0].axhline(math.sqrt(q / d), color="#000000", linestyle=":", linewidth=1.0)
        axes[0, 0].legend(loc="upper right")
        by_epsilon(axes[1, 2], trials, "rhat", others)
        axes[1, 2].axhline(_CONVERGED, color="#000000", linestyle=":", linewidth=1.0)
        axes[1, 2].set_yscale("log")
        axes[1, 2].set_ylim(0.9, max(3.0, 1.3 * trials["rhat"].max()))
        axes[1, 2].yaxis.set_major_locator(FixedLocator(_SCALE_TICKS))
        axes[1, 2].yaxis.set_major_formatter("{x:g}")
        axes[1, 2].yaxis.set_minor_locator(NullLocator())
        axes[1, 2].set_title("F  against a chain with a random start")
        axes[1, 2].set_ylabel("potential scale reduction of the cost")
        axes[1, 2].legend(loc="upper left", fontsize=7.5)
        caption(
            figure,
            f"A line is a chain: {counted(trials)}, {_told(*_sizes(trials))}. A and D: over all "
            "sweeps so far; D is 1 where nothing moves and comes to √(q/d), dotted, where "
            "subspaces move freely. F: second halves of two chains on the same rows, dotted: 1.1.",
        )
    metrics = ["final_statistic", "final_aligned", "rhat", "separation"]
    table = trials.groupby(["method", "label", "epsilon"], sort=False)[metrics]
    table = table.agg(["mean", "min", "max"])
    table.columns = [f"{metric}_{statistic}" for metric, statistic in table.columns]
    return Drawing(figure, table.reset_index())


def scaling(results: Results) -> Drawing:
    """Distance against the ambient dimension, all else the same."""
    (experiment,) = results.trials
    trials = results.trials[experiment]
    epsilons = sorted(trials["epsilon"].unique())
    keys = ["method", "label", "epsilon", "n_features"]
    groups = trials.groupby(keys, sort=False)["relative_distance"]
    table = groups.agg(["mean", "std", "count"]).rename(columns={"count": "n"}).reset_index()
    table["se"] = table["std"] / np.sqrt(table["n"])
    with canvas(_WIDTH, 4.2, results.trials) as figure:
        axes = figure.subplots(1, len(epsilons), squeeze=False, sharey=True)[0]
        for axis, epsilon in zip(axes, epsilons, strict=True):
            part = table[table["epsilon"] == epsilon]
            mean_curves(axis, part, "n_features", list(results.styles), results.styles)
            axis.axhline(1.0, color="#bbbbbb", linewidth=1.2, zorder=0)
            axis.set_xticks(sorted(trials["n_features"].unique()))
            axis.xaxis.set_major_formatter("{x:g}")
            axis.minorticks_off()
            axis.set_title(f"ε = {epsilon:g}")
            axis.set_xlabel("ambient dimension d")
        axes[0].set_ylabel("Wasserstein distance, random subspaces = 1")
        axes[0].set_ylim(bottom=0.0)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=5, handlelength=4.0
        ).set_gid(BELOW)
        n, k, _, q = _sizes(trials)
        caption(
            figure,
            f"Mean of {counted(trials)}{BAND}; n = {n}, k = {k}, q = {q}, "
            f"σ = {trials['noise'].iloc[0]:g}. Dashed: starts taken from the data.",
        )
    return Drawing(figure, table)


def chain(results: Results) -> Drawing:
    """Total variation distance of exact small chains from their target."""
    (experiment,) = results.trials
    trials = results.trials[experiment]
    shapes = list(trials["shape"].unique())
    colors = epsilon_colors(trials["epsilon"].unique())
    with canvas(_WIDTH, 4.4, results.trials) as figure:
        axes = figure.subplots(1, len(shapes), squeeze=False, sharey=True)[0]
        for axis, shape in zip(axes, shapes, strict=True):
            for method in results.styles:
                exact_lines(axis, results, experiment, method, shape, colors)
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_ylim(_LEAST_DISTANCE, 1.5)
            axis.set_xlabel("sweeps")
            axis.set_title(_SHAPES.get(shape, shape))
        axes[0].set_ylabel("total variation distance from eq. (10)")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4).set_gid(BELOW)
        caption(
            figure,
            f"Computed by quadrature, not sampled: {int(trials['n_samples'].iloc[0])} rows in the "
            "plane, two lines. A chain that is g from the target on all data is "
            "(ε, (1 + e^ε) g)-DP. Dashed: the start is the best two lines, in random order.",
        )
    groups = trials.groupby(["method", "label", "shape", "epsilon"], sort=False)
    return Drawing(figure, groups["final_distance"].agg(["mean", "max"]).reset_index())
