"""The figures of "Differentially Private Subspace Clustering" (NIPS 2015)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from privclust.report.figures import PALETTE
from privclust_papers.dpsc.metrics import MIXED, distance_of_random
from privclust_papers.dpsc.panels import by_epsilon, chain_lines, circle_panel, epsilon_colors
from privclust_papers.report.comparison import half_width
from privclust_papers.report.drawing.panels import (
    BAND,
    caption,
    counted,
    legend_below,
    limits,
    mean_curves,
    plain_ticks,
    rows_of,
    statistics,
    ticks_at,
)
from privclust_papers.report.drawing.style import Drawing, Results, canvas

_WIDTH = 10.5
_LETTER = 0.065  # inches of a letter in a legend
_PRINTED = (
    *("sa_ssc", "sa_tsc", "sa_lrr", "exp_ssc", "exp_lrr"),
    *("sulq_10_classical", "sulq_50_classical"),
)  # the seven lines of the paper
_CALIBRATIONS = (
    *("sulq_10_classical", "sulq_50_classical", "sulq_10_mod", "sulq_50_mod"),
    *("sulq_10", "sulq_50", "kplanes_ssc"),
)
_WITHOUT_BAND = ("kplanes_ssc", "kplanes")  # the same at every epsilon: a band would be a slab
_CORRECTED_METHODS = (
    *("sa_ssc_corrected", "sulq_10", "sulq_50", "gibbs_random", "gibbs_sulq", "moments"),
    "kplanes",
)  # seven lines; the table has k-plane from SSC's start
_STARTS = (
    "exp_ssc",
    "gibbs_random",
    "gibbs_sulq",
    "gibbs_moments",
    "sulq_restarts",
    "moments",
    "kplanes_ssc",
)  # seven lines; the table has all methods
_AS_PRINTED = ("sa_ssc", "exp_ssc")  # at usual budgets, next to private methods
_USUAL_BUDGETS = {  # seven lines per panel; the table has all methods
    "methods of the paper": (
        "sa_ssc_corrected",
        "gibbs_random",
        "sulq_10_classical",
        "sulq_10_mod",
        "sulq_10",
    ),
    "SuLQ (zCDP) and the moment sketch": (
        "sulq_10",
        "sulq_restarts",
        "sulq_averaged",
        "sulq_restarts_averaged",
        "moments",
        "moments_alone",
        "bound",
    ),
}
_DATA_SETS = {
    "dpsc_d5": "synthetic, σ = 0.01",
    "dpsc_d10": "synthetic, σ = 0.1",
    "dpsc_yale": "Extended Yale B",
    "dpsc_starts": "synthetic, σ = 0.1",
    "dpsc_starts_yale": "Extended Yale B",
}
_AXES = {"cost": "k-means cost, eq. (3)", "distance": "Wasserstein distance, eq. (2)"}
_METRICS = (*_AXES, *(f"{metric}_last" for metric in _AXES), *(f"relative_{m}" for m in _AXES))
_STATISTIC = "test statistic"  # between 0 and 1, as on the paper's axis
_QUARTILES = {"q25": 0.25, "median": 0.5, "q75": 0.75}
_GREY = {"color": "#bbbbbb", "linewidth": 1.2}
_DOTTED = {"color": "#000000", "linestyle": ":", "linewidth": 1.0}
_SHOWN_POINTS = 16  # of Figure 1
_SHAPES = {"lines": "rows about two lines", "circle": "evenly spaced rows"}
_ROWS = {"unit": "rows of norm 1", "largest": "largest norm 1"}
_LEAST_DISTANCE = 1e-9  # lower limit of the axis, above rounding errors
_SCALE_TICKS = (1.1, 1.5, 2.0, 5.0, 10.0, 50.0, 100.0, 1000.0)
_CHAIN_WIDTH = 0.9  # points
_CHAINS_SHOWN = 8  # most chains in Figure 3 of each method and epsilon, one a trial


def fig1(results: Results) -> Drawing:
    """Figure 1: points on a circle, the best two lines, and one more point that turns them."""
    ((experiment, trials),) = results.trials.items()
    trial, arrays = next(
        (trial, arrays)
        for trial, arrays in rows_of(results, experiment, trials["method"].iloc[0])
        if trial["n_points"] == _SHOWN_POINTS
    )
    with canvas(_WIDTH, 3.9, results.trials) as figure:
        first, second, moved = figure.subplots(1, 3)
        for number, axis in enumerate((first, second)):
            lines, added = arrays["lines"], arrays["added"][number]
            circle_panel(axis, arrays["points"], added, lines[number], lines[:number])
        first.set_title("A  the best two lines with one added point")
        second.set_title(f"B  the point moved: best lines at distance {trial['distance']:.3f}")
        places = np.arange(len(trials))
        moved.plot(places, trials["distance"], "o", color=PALETTE[1])
        moved.axhline(2.0, **_GREY)
        moved.set_xticks(places, [str(n) for n in trials["n_points"]])
        moved.set(ylim=(0.0, 2.1), xlabel="number of evenly spaced points")
        moved.set_ylabel("Wasserstein distance of the optima")
        moved.set_title("C  effect of one point (grey: the diameter)")
    return Drawing(figure, trials[["n_points", "distance", "gap"]])


def fig2(results: Results) -> Drawing:
    """Figure 2: cost and Wasserstein distance against epsilon, as printed."""
    text = (
        "Gibbs samplers (exp.): mean of the last 100 samples. Dashed: as printed, without a "
        "guarantee (exp.: starts taken from the data). Last row: SuLQ with three calibrations of "
        "its noise, all private, and k-plane without privacy (dotted). Vertical: ε = 2D/√m, the "
        "least ε of Theorem 3.1 on Algorithm 1 (s.a.)."
    )
    rows = (("cost", _PRINTED), ("distance", _PRINTED), ("distance", _CALIBRATIONS))
    return _utility(results, rows, text)


def beyond(results: Results) -> Drawing:
    """Released results of private methods at equal (epsilon, delta)."""
    text = (
        "Gibbs samplers (exp.): the last sample. Solid curves: (ε, 1/(n ln n))-DP, for Gibbs "
        "samplers in the limit of many sweeps. Dotted: without privacy (k-plane from SSC's start "
        "is in the table)."
    )
    rows = [(metric, _CORRECTED_METHODS) for metric in _AXES]
    return _utility(results, rows, text, released=True)


def starts(results: Results) -> Drawing:
    """One Gibbs sample from private starts and from the paper's start, and SuLQ."""
    text = (
        "Gibbs samplers (exp.): the last sample. Solid: (ε, 1/(n ln n))-DP in total, for Gibbs "
        "samplers in the limit of many sweeps. Dashed: the paper's start, from the data. Dotted: "
        "without privacy. Other starts are in the table."
    )
    return _utility(results, [(metric, _STARTS) for metric in _AXES], text, released=True)


def _utility(
    results: Results,
    rows: Sequence[tuple[str, Sequence[str]]],
    text: str,
    released: bool = False,
) -> Drawing:
    """Draw panels with a row per metric and set of methods, and a column per data set."""
    table = statistics(results.trials, ["epsilon"], _METRICS, _QUARTILES)
    tables = {name: results.trials[name] for name in _DATA_SETS if name in results.trials}
    with canvas(_WIDTH, 1.6 + 3.0 * len(rows), results.trials) as figure:
        axes = figure.subplots(len(rows), len(tables), squeeze=False, sharex="col")
        for panels, (name, trials) in zip(axes.T, tables.items(), strict=True):
            sizes = _sizes(trials)
            title = f"{_DATA_SETS[name]}, {counted(trials)}\n{_sizes_text(*sizes)}"
            if not released:
                title += f"\n2D/√m = {_rounded(_condition(*sizes))}"
            random = distance_of_random(*sizes[1:])
            for axis, (metric, methods) in zip(panels, rows, strict=True):
                shown = metric + ("_last" if released else "")
                part = table[(table["experiment"] == name) & (table["metric"] == shown)]
                look = {"styles": results.styles, "kinds": results.kinds}
                banded = [method for method in methods if method not in _WITHOUT_BAND]
                others = [method for method in methods if method in _WITHOUT_BAND]
                mean_curves(axis, part, "epsilon", [*banded, *results.own], **look)
                mean_curves(axis, part, "epsilon", others, **look, has_bands=False)
                axis.set(ylim=(0.0, None), xlim=limits(trials["epsilon"]))
                if metric == "distance":
                    axis.axhline(random, **_GREY, zorder=0)
                    axis.set_ylim(0.0, 1.08 * random)
                if not released:
                    axis.axvline(_condition(*sizes), **_GREY, zorder=0)
            panels[0].set_title(title)
            panels[-1].set_xlabel("privacy budget, ε")
        for axis, (metric, _) in zip(axes[:, 0], rows, strict=True):
            axis.set_ylabel(_AXES[metric])
        names = [name for axis in axes.flat for name in axis.get_legend_handles_labels()[1]]
        ncols = int(_WIDTH // (0.9 + _LETTER * max(map(len, names))))
        legend_below(figure, *axes[:, 0], ncols=ncols, handlelength=4.0)
        caption(figure, f"Mean{BAND}. {text} Grey line: random subspaces.")
    return Drawing(figure, table)


def _sizes(trials: pd.DataFrame) -> tuple[int, int, int, int]:
    row = trials.iloc[0]
    return tuple(int(row[n]) for n in ("n_samples", "n_clusters", "n_features", "dimension"))


def _sizes_text(n: int, k: int, d: int, q: int) -> str:
    return f"n = {n}, d = {d}, k = {k}, q = {q}"


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def _condition(n: int, k: int, d: int, q: int) -> float:
    """Return the least epsilon of Theorem 3.1: 2 D / sqrt(m), D = k d q and m = n // (2 q k)."""
    return 2.0 * k * d * q / math.sqrt(n // (2 * q * k))


def fig3(results: Results) -> Drawing:
    """Figure 3: statistic, cost and distance along the sweeps; chains from different starts."""
    ((experiment, trials),) = results.trials.items()
    colors = epsilon_colors(trials["epsilon"].unique())
    others = [method for method in results.styles if method != "gibbs_random"]
    with canvas(_WIDTH, 7.4, results.trials) as figure:
        axes = figure.subplots(2, 3)
        panels = (
            ("exp_ssc", "statistic", "A  as printed: start by SSC", _STATISTIC),
            ("exp_ssc", "cost_path", "B  start by SSC", _AXES["cost"]),
            ("exp_ssc", "distance_path", "C  start by SSC", _AXES["distance"]),
            ("exp_ssc", "aligned", "D  statistic of projections UU'", _STATISTIC),
            ("gibbs_random", "distance_path", "E  random start", _AXES["distance"]),
        )
        *along_sweeps, scale = axes.flat
        for axis, (method, quantity, title, label) in zip(along_sweeps, panels, strict=True):
            chains = rows_of(results, experiment, method)
            shown = [(row, arrays) for row, arrays in chains if row["trial"] < _CHAINS_SHOWN]
            chain_lines(axis, shown, quantity, colors, linewidth=_CHAIN_WIDTH)
            axis.set_ylim(bottom=0.0, top=1.05 if label == _STATISTIC else None)
            axis.set(xscale="log", title=title, ylabel=label)
        n, k, d, q = _sizes(trials)
        axes[1, 0].axhline(math.sqrt(q / d), **_DOTTED)
        axes[0, 0].legend(loc="upper right")
        by_epsilon(scale, trials, "rhat", others)
        scale.axhline(MIXED, **_DOTTED)
        scale.set(yscale="log", ylim=(0.9, max(3.0, 1.3 * trials["rhat"].max())))
        scale.yaxis.set_major_locator(FixedLocator(_SCALE_TICKS))
        scale.yaxis.set_major_formatter("{x:g}")
        scale.yaxis.set_minor_locator(NullLocator())
        scale.set_title("F  against a chain from a random start")
        scale.set_ylabel("potential scale reduction of the cost")
        scale.legend(loc="upper left", fontsize=7.5)
        caption(
            figure,
            f"{counted(trials)}, {_sizes_text(n, k, d, q)}. Each line is a chain; at most "
            f"{_CHAINS_SHOWN} are drawn at each ε. A and D are over all "
            "sweeps from the first on. D is 1 if no subspace moves, and tends to √(q/d) "
            "(dotted) if they move freely. F uses the second halves of two chains on the same "
            "rows; dotted: 1.1.",
        )
    metrics = ["final_statistic", "final_aligned", "rhat", "unmixed", "separation"]
    table = trials.groupby(["method", "label", "epsilon"], sort=False)[metrics]
    table = table.agg(["mean", "min", "max"])
    table.columns = [f"{metric}_{statistic}" for metric, statistic in table.columns]
    return Drawing(figure, table.reset_index())


def scaling(results: Results) -> Drawing:
    """Distance against the ambient dimension, and against the number of rows."""
    tables = []
    with canvas(_WIDTH, 8.0, results.trials) as figure:
        upper, lower = figure.subfigures(2, 1)
        for part, name, panels, x in (
            (upper, "dpsc_scaling", "epsilon", "n_features"),
            (lower, "dpsc_rows", "n_features", "n_samples"),
        ):
            trials = results.trials.get(name)
            if trials is not None:
                tables.append(_scaling_panels(part, name, trials, panels, x, results))
    return Drawing(figure, pd.concat(tables, ignore_index=True))


_SCALING_AXES = {"epsilon": "ε", "n_features": "ambient dimension d", "n_samples": "rows n"}


def _scaling_panels(figure, name, trials, panel_key, x, results):
    keys = ["epsilon", "n_features", "n_samples"]
    table = statistics({name: trials}, keys, ["relative_distance"]).drop(columns="metric")
    values = sorted(trials[panel_key].unique())
    axes = figure.subplots(1, len(values), squeeze=False, sharey=True)[0]
    for axis, value in zip(axes, values, strict=True):
        part = table[table[panel_key] == value]
        look = {"styles": results.styles, "kinds": results.kinds}
        mean_curves(axis, part, x, list(results.styles), **look)
        axis.axhline(1.0, **_GREY, zorder=0)
        ticks_at(axis, trials[x].unique(), "{x:,g}")
        title = _SCALING_AXES[panel_key].split()[-1]
        axis.set(title=f"{title} = {value:g}", xlabel=_SCALING_AXES[x])
    axes[0].set_ylabel("distance relative to random subspaces")
    axes[0].set_ylim(bottom=0.0)
    legend_below(figure, axes[0], ncols=4, handlelength=4.0)
    n, k, _, q = _sizes(trials)
    fixed = f"n = {n}" if x == "n_features" else f"ε = {trials['epsilon'].iloc[0]:g}"
    caption(
        figure,
        f"Mean of {counted(trials)}{BAND}; {fixed}, k = {k}, q = {q}, "
        f"σ = {trials['noise'].iloc[0]:g}. Dashed: starts taken from the data.",
    )
    return table


def frontier(results: Results) -> Drawing:
    """Distance of private methods at usual budgets, and of the paper's methods as printed."""
    trials = results.trials["dpsc_frontier"]
    metrics = ["distance", "relative_distance", "stated", "last_round"]
    sizes = ["n_samples", "n_features"]
    table = statistics({"dpsc_frontier": trials}, [*sizes, "epsilon"], metrics)
    table = table[table["n"] > 0]
    shown = table[table["metric"] == "distance"]
    with canvas(_WIDTH, 8.4, results.trials) as figure:
        parts = [part for _, part in trials.groupby(sizes, sort=False)]
        axes = figure.subplots(len(_USUAL_BUDGETS), len(parts), squeeze=False, sharex=True)
        for panels, part in zip(axes.T, parts, strict=True):
            _usual_budgets(panels, results, part, shown)
        for axis, name in zip(axes[:, 0], _USUAL_BUDGETS, strict=True):
            axis.set_ylabel(f"{name}\n{_AXES['distance']}")
        for axis in axes[-1]:
            axis.set_xlabel("privacy budget, ε")
        legend_below(figure, *axes.flat, ncols=3, handlelength=4.0)
        caption(
            figure,
            f"Mean of {counted(trials)}{BAND}. "
            "Solid: (ε, 1/(n ln n))-DP, Gibbs samplers (exp.) in the limit of many sweeps. Dashed: "
            "as printed, without a guarantee, from the trials of Figure 2. Dotted: the least root "
            "mean square error of any unbiased decoder of the sketch; with more than 1,000 moments "
            "(d = 20) this bound includes the noise only. Grey line: random subspaces. SuLQ-50 "
            "(zCDP) is in the table.",
        )
    return Drawing(figure, table)


def _usual_budgets(
    panels: Sequence[Axes], results: Results, part: pd.DataFrame, shown: pd.DataFrame
) -> None:
    """Draw the distances on one data set, for methods of the paper and for later methods."""
    n, k, d, q = _sizes(part)
    low, high = limits(part["epsilon"])
    here = shown[(shown["n_samples"] == n) & (shown["n_features"] == d)]
    printed = _printed_at(results, n, d, low, high)
    random = distance_of_random(k, d, q)
    for axis, methods in zip(panels, _USUAL_BUDGETS.values(), strict=True):
        own = results.own if axis is panels[-1] else ()
        mean_curves(axis, here, "epsilon", [*methods, *own], results.styles, is_log=True)
        axis.axhline(random, **_GREY, zorder=0)
        rows = here[here["method"].isin([*methods, *own])]
        # Lower ends of bands that are symmetric on the logarithmic axis, as in `mean_curves`.
        ends = rows["mean"] ** 2 / (rows["mean"] + half_width(rows["se"], rows["n"]))
        lowest = ends.fillna(rows["mean"])
        axis.set(yscale="log", xlim=(low, high))
        axis.set_ylim(0.8 * min([random, *lowest]), 1.3 * random)
        plain_ticks(axis.yaxis, 1.0, 2.0, 5.0)
    mean_curves(panels[0], printed, "epsilon", _AS_PRINTED, results.styles, is_log=True)
    panels[0].set_title(f"synthetic, σ = {part['noise'].iloc[0]:g}\n{_sizes_text(n, k, d, q)}")


def _printed_at(results, n, d, low, high):
    for name in ("dpsc_d5", "dpsc_d10"):
        trials = results.trials.get(name)
        if trials is not None and (n, d) == (_sizes(trials)[0], _sizes(trials)[2]):
            table = statistics({name: trials}, ["epsilon"], ["distance"])
            return table[table["epsilon"].between(low, high)]
    return pd.DataFrame(columns=["method", "epsilon"])


def faces(results: Results) -> Drawing:
    """Distance and cost on the faces, by preparation of the rows."""
    (trials,) = results.trials.values()
    keys = ["rows", "noise"]
    metrics = {
        "distance": _AXES["distance"],
        "relative_cost": "cost relative to k-plane (no privacy)",
    }
    table = statistics(results.trials, [*keys, "epsilon"], list(metrics))
    forms = [tuple(form) for form in trials[keys].drop_duplicates().to_numpy()]
    with canvas(_WIDTH, 4.2, results.trials) as figure:
        axes = figure.subplots(1, len(metrics))
        for axis, (metric, label) in zip(axes, metrics.items(), strict=True):
            shown = table[table["metric"] == metric]
            by_method = shown.groupby("method", sort=False)
            for i, (method, part) in enumerate(by_method):
                style = results.styles[method]
                beside = 0.15 * (i - (by_method.ngroups - 1) / 2)  # equal values hide none
                places = [
                    forms.index(form) + beside
                    for form in zip(part["rows"], part["noise"], strict=True)
                ]
                look = {"color": style.color, "marker": style.marker or "_", "linestyle": "none"}
                name, bars = part["label"].iloc[0], part["std"].fillna(0.0)
                axis.errorbar(places, part["mean"], bars, label=name, **look)
            names = [f"{_ROWS[rows]}\nσ = {noise:g}" for rows, noise in forms]
            axis.set_xticks(range(len(forms)), names)
            axis.set(ylabel=label, xlim=(-0.5, len(forms) - 0.5))
        axes[0].axhline(distance_of_random(*_sizes(trials)[1:]), **_GREY, zorder=0)
        axes[0].set_ylim(bottom=0.0)
        axes[1].set_yscale("log")
        legend_below(figure, axes[0], ncols=4)
        caption(
            figure,
            f"Mean of {counted(trials)} at ε = {trials['epsilon'].iloc[0]:g}, bars: one standard "
            f"deviation; {_sizes_text(*_sizes(trials))}. Grey line: random subspaces.",
        )
    return Drawing(figure, table)


def threshold(results: Results) -> Drawing:
    """Errors of TSC's components and their subspaces, by number of rows."""
    (trials,) = results.trials.values()
    keys = ["n_features", "noise", "decay"]
    table = statistics(results.trials, [*keys, "n_samples"], ["mismatch", "distance"])
    apart = trials["n_features"].max()
    shown = table[(table["metric"] == "distance") & (table["n_features"] == apart)]
    forms = shown[["noise", "decay"]].drop_duplicates().to_numpy()
    with canvas(_WIDTH, 3.9, results.trials) as figure:
        axes = figure.subplots(1, len(forms), squeeze=False, sharey=True)[0]
        for axis, (noise, decay) in zip(axes, forms, strict=True):
            part = shown[(shown["noise"] == noise) & (shown["decay"] == decay)]
            look = {"styles": results.styles, "kinds": results.kinds}
            mean_curves(axis, part, "n_samples", list(results.styles), **look)
            ticks_at(axis, part["n_samples"].unique())
            law = " · log 300 / log n" if decay else ""
            axis.set(title=f"σ = {noise:g}{law}", xlabel="rows n")
        axes[0].set_ylabel(_AXES["distance"])
        axes[0].set_ylim(bottom=0.0)
        legend_below(figure, axes[0], ncols=2, handlelength=4.0)
        missed = table[table["metric"] == "mismatch"].groupby("n_features")["mean"].mean()
        wrong = ", ".join(f"{share:.1%} at d = {d:g}" for d, share in missed.items())
        caption(
            figure,
            f"Mean of {counted(trials)}{BAND}; d = {apart:g}, k = 3, q = 3. Noise N(0, σ²/d) on "
            f"each coordinate. Graphs with other components than the subspaces: {wrong}.",
        )
    return Drawing(figure, table)


def chain(results: Results) -> Drawing:
    """Total variation distance of exact small chains from their target."""
    ((experiment, trials),) = results.trials.items()
    labels = dict(zip(trials["method"], trials["label"], strict=True))
    shapes = list(trials["shape"].unique())
    colors = epsilon_colors(trials["epsilon"].unique())
    with canvas(_WIDTH, 4.4, results.trials) as figure:
        axes = figure.subplots(1, len(shapes), squeeze=False, sharey=True)[0]
        for axis, shape in zip(axes, shapes, strict=True):
            for method, style in results.styles.items():
                rows = rows_of(results, experiment, method)
                chains = (row for row in rows if row[0]["shape"] == shape)
                remark = f", {labels.get(method)}"
                chain_lines(axis, chains, "total_variation", colors, remark, linestyle=style.dash)
            axis.set(xscale="log", yscale="log", ylim=(_LEAST_DISTANCE, 1.5))
            axis.set_title(_SHAPES.get(shape, shape))
        axes[0].set_ylabel("total variation distance from eq. (10)")
        legend_below(figure, axes[0], ncols=4)
        caption(
            figure,
            f"Computed by quadrature, not sampled: {int(trials['n_samples'].iloc[0])} rows in the "
            "plane, two lines. A chain within distance g of the target on all data is "
            "(ε, (1 + e^ε) g)-DP. Dashed: the start is the best two lines, in random order.",
        )
    groups = trials.groupby(["method", "label", "shape", "epsilon"], sort=False)
    return Drawing(figure, groups["final_distance"].agg(["mean", "max"]).reset_index())
