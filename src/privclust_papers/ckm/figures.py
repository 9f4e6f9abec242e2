"""The figures and tables of "Differentially Private Compressive k-Means" (ICASSP 2019)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from privclust_papers.ckm.panels import (
    LOWEST,
    REFERENCE,
    axes_of,
    counted_on,
    curves,
    cut_note,
    excess,
    excess_scale,
    heat_bar,
    heat_map,
    in_order,
    legend_below,
    legend_of_all,
    metrics_of,
    named_cells,
    sizes,
    sse_scale,
    statistics,
    strip,
)
from privclust_papers.pipeline.words import is_substitute
from privclust_papers.report.drawing.panels import (
    caption,
    cell,
    counted,
    put_table,
    table_drawing,
)
from privclust_papers.report.drawing.style import Drawing, Results, canvas

_WIDTH = 9.5
_FIG3_WIDTH = 12.0  # of three panels
_COLUMNS = 4  # of panels in a row
_OURS = "_gaussian"  # suffix of methods with our decoder instead of CL-OMPR
_DEVICES = (
    *("ckm_l1_m10", "ckm_l10_m10", "ckm_l100_m10", "ckm_l1000_m10"),
    *("dplloyd_uniform", "dplloyd_separated", "eugkm_addremove"),
)
_SKETCHES = (
    *("ckm_l1_m5", "ckm_l1_m10", "ckm_l1_m20", "dplloyd_separated"),
    *("ckm_l1_m10_a10", "ckm_l1_m20_a10", "ckm_l1_m20_a1"),
)
_SNR_NAME = "signal-to-noise ratio, eq. (6) at $\\|z\\|^2 = 0.35$"
_EXCESS_NAME = "relative SSE (log of its excess over 1)"
_SNR_NAMES = {
    "alpha_r": "share α",
    "sigma_xi": "noise σ",
    "n_devices": "devices L",
    "device_size": "rows of each",
    "snr_measured": "measured",
    "snr_eq6": "eq. (6)",
    "ratio": "measured / (6)",
    "snr_eq7": "eq. (7)",
    "ratio_eq7": "measured / (7)",
    "norm2": "||z||²",
}  # columns of the table of SNRs, as a picture heads them
_SNR_METRICS = ("snr_measured", "snr_eq6", "ratio", "snr_eq7", "ratio_eq7", "norm2")
_SIZE_NAMES = {
    "n_clusters": "clusters k",
    "n_features": "features d",
    "n_frequencies": "frequencies m",
}
_NORM_AXES = "n_clusters", "n_features"  # down and across
_DATA_SETS = {"ckm_s1": "S1", "ckm_gowalla": "Gowalla", "ckm_lifesci": "Life Sciences"}
_COST_NAMES = {"cpu_s": "CPU s", "of_reference": "relative to the sketch"}
_RELATIVE_SSE_NAMES = {
    "relative_sse": "SSE relative to Lloyd's k-means",
    "relative_sse_true": "SSE relative to Lloyd's k-means from the true means",
}
_AGAINST = {"relative_sse": "Lloyd = 1", "relative_sse_true": "optimum = 1"}


def fig2(results: Results) -> Drawing:
    """Figure 2: relative SSE against SNR, and over SNR and m/(kd), for both decoders."""
    styles = results.styles
    by_snr = in_order(statistics(results.trials["ckm_snr"], ["snr"]), styles)
    by_size = statistics(results.trials["ckm_grid"], ["snr", "m_factor"])
    by_size = in_order(by_size, styles)
    shown = by_snr[(by_snr["metric"] == "relative_sse") & (by_snr["method"] != REFERENCE)]
    ours = shown["method"].str.endswith(_OURS)
    panels = {
        "m = 10kd: CL-OMPR, the paper's decoder": shown[~ours],
        "m = 10kd: our decoder": shown[ours],
    }
    with canvas(_WIDTH, 8.4, results.trials) as figure:
        top, bottom = figure.subfigures(2, 1, height_ratios=[1.15, 1])
        axes = top.subplots(1, 2, sharey=True)
        for axis, part in zip(axes, panels.values(), strict=True):
            curves(axis, part, "snr", styles, band="std")
        _sse_panels(axes, panels, shown, _SNR_NAME)
        caption(
            top,
            f"Top: median of {counted_on(results.trials['ckm_snr'])}, bands: one standard "
            "deviation. SSE relative to Lloyd's k-means with 3 replicates. Dotted line: "
            f"1.2.{cut_note(shown)}",
        )
        _heat_maps(bottom, by_size, results.trials["ckm_grid"])
    return Drawing(figure, _joined({"ckm_snr": by_snr, "ckm_grid": by_size}))


def _sse_panels(
    axes: Sequence[Axes], titles: Iterable[str], shown: pd.DataFrame, x_name: str
) -> None:
    for axis, title in zip(axes, titles, strict=True):
        sse_scale(axis, shown)
        axis.set(title=title, xlabel=x_name)
        legend_below(axis, _WIDTH / 2.2)
    axes[0].set_ylabel("relative SSE")


def _heat_maps(figure: FigureBase, table: pd.DataFrame, trials: pd.DataFrame) -> None:
    kept = table[(table["metric"] == "relative_sse") & (table["method"] != REFERENCE)]
    methods = list(dict.fromkeys(kept["method"]))
    if not methods:
        return
    axes = figure.subplots(1, len(methods), sharey=True, squeeze=False)[0]
    for axis, method in zip(axes, methods, strict=True):
        part = kept[kept["method"] == method]
        image = heat_map(axis, part)
        axis.set(title=f"r = m, noise only: {part['label'].iloc[0]}", xlabel=_SNR_NAME)
        legend_below(axis, _WIDTH / 2.4)
    axes[0].set_ylabel("m / (kd)")
    heat_bar(figure, image, list(axes))
    caption(figure, f"Bottom: mean of {counted_on(trials)}.")


def fig3(results: Results) -> Drawing:
    """Figure 3: relative SSE against epsilon, with the paper's decoder and with ours."""
    (trials,) = results.trials.values()
    table = in_order(statistics(trials, ["epsilon"]), results.styles)
    shown = table[(table["metric"] == "relative_sse") & (table["method"] != REFERENCE)]
    method = shown["method"]
    panels = {
        "CL-OMPR, the paper's decoder: L devices": shown[method.isin([*_DEVICES, *results.own])],
        "CL-OMPR: sketch size m and share alpha_r": shown[method.isin(_SKETCHES)],
        "our decoder; all under replace-one": shown[
            ~method.isin([*_DEVICES, *_SKETCHES, *results.own])
        ],
    }
    with canvas(_FIG3_WIDTH, 5.6, results.trials) as figure:
        axes = figure.subplots(1, len(panels), sharex=True, sharey=True)
        for axis, part in zip(axes, panels.values(), strict=True):
            curves(axis, part, "epsilon", results.styles, ends=True)
        _sse_panels(axes, panels, shown, "privacy budget, epsilon")
        caption(
            figure,
            f"Median of {counted_on(trials)}. SSE relative to Lloyd's "
            f"k-means with 3 replicates. Thin dotted line: 1.2.{cut_note(shown)} L devices share "
            "the rows. The sketch has size m; each row contributes to a share alpha_r of it. As in "
            "the paper, CKM is dashed for alpha_r = 1. Dotted curves: add/remove-one neighbours, a "
            "weaker guarantee than replace-one.",
        )
    return Drawing(figure, table)


def tab_snr(results: Results) -> Drawing:
    """Eqs. (6) and (7) compared with the measured SNR, and ||z||^2 over sizes of mixtures."""
    axes = {name: axes_of(summary) for name, summary in results.summaries.items()}
    tables = {
        name: statistics(results.trials[name], axes[name], summary["metric"].unique())
        for name, summary in results.summaries.items()
    }
    rows, norms = tables["ckm_tab_snr"], tables["ckm_norm"]
    norms = norms[norms["metric"] == "norm2"]
    laws = list(norms.groupby("label", sort=False))
    wide = _wide(rows, axes["ckm_tab_snr"])
    heights = [0.9 + 0.19 * len(wide), 3.3]
    with canvas(_WIDTH, sum(heights), results.trials) as figure:
        top, bottom = figure.subfigures(2, 1, height_ratios=heights)
        put_table(top.subplots(), wide.rename(columns=_SNR_NAMES), _WIDTH)
        same = [
            f"{_size_name(n)} = {cell(rows[n].iloc[0])}" for n in _same(rows, axes["ckm_tab_snr"])
        ]
        shared = f" ({', '.join(same)})" if same else ""
        measured = counted(results.trials["ckm_tab_snr"])
        caption(top, f"SNR of merged scrambled sketches: means over {measured}{shared}")
        panels = bottom.subplots(1, len(laws), sharey=True, squeeze=False)[0]
        for axis, (label, part) in zip(panels, laws, strict=True):
            parts = [
                part.pivot_table(name, *_NORM_AXES, dropna=False).sort_index()
                for name in ("mean", "min", "max")
            ]
            named_cells(axis, *parts, norms["mean"].max())
            axis.set_xlabel(_size_name(_NORM_AXES[1]))
            low, high = part["mean"].min(), part["mean"].max()
            axis.set_title(f"{label}: {low:.3f} to {high:.3f}", fontsize=8)
        panels[0].set_ylabel(_size_name(_NORM_AXES[0]))
        caption(bottom, f"||z||²: mean and range of {counted(results.trials['ckm_norm'])}")
    return Drawing(figure, _joined(tables))


def _wide(table: pd.DataFrame, axes: list[str]) -> pd.DataFrame:
    """Return a table of means, with a column per metric and a row per varying setting."""
    varied = [name for name in axes if name not in _same(table, axes)]
    heads = [*(["label"] if table["method"].nunique() > 1 else []), *(varied or axes)]
    # settings by number: a missing setting is NaN, which a pivot's index would drop
    setting = table.groupby(heads, sort=False, dropna=False).ngroup().to_numpy()
    means = table.assign(setting=setting).pivot_table("mean", "setting", "metric", dropna=False)
    settings = table[heads].groupby(setting).first()
    shown = [name for name in _SNR_METRICS if name in means]
    return settings.join(means[shown]).reset_index(drop=True)


def _same(table: pd.DataFrame, axes: list[str]) -> list[str]:
    return [name for name in axes if table[name].nunique(dropna=False) == 1]


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _size_name(name: str) -> str:
    """Return the name of a size in words, with the paper's symbol."""
    return _SIZE_NAMES.get(name, _spaced(name))


def statements(results: Results) -> Drawing:
    """The statistics of all metrics of an experiment: one row per method, point and metric.

    Used for statements (the relative excess over each), and for data too large for memory.
    """
    (summary,), (trials,) = results.summaries.values(), results.trials.values()
    table = statistics(trials, axes_of(summary), summary["metric"].unique())
    table = table[table["n"] > 0]
    same = [name for name in ("method", "label", "metric") if table[name].nunique() == 1]
    # A set, because `same` may name the method, too.
    shown = table.drop(columns=[*{"method", "std", "q25", "q75", *same}])
    metric = f"{_spaced(table['metric'].iloc[0])}: " if "metric" in same else ""
    text = f"{metric}statistics over {counted(trials)}"
    return table_drawing(results, table, shown, text, (_WIDTH, 0.9 + 0.24 * max(len(shown), 2)))


scale = statements  # the same table of other numbers


def costs(results: Results) -> Drawing:
    """CPU seconds of each method by number and precision of rows, also relative to the sketch."""
    trials = _only_trials(results)
    table = statistics(trials, ["n_samples", "precision"], list(_COST_NAMES))
    rows = table["n_samples"].map("{:,.0f} rows, ".format)
    named = rows + table["precision"] + ": " + table["metric"].map(_COST_NAMES)
    shown = table.assign(column=named, cell=table["mean"].map("{:.3f}".format))
    wide = shown.pivot(index="label", columns="column", values="cell")
    # `pivot` sorts; methods and columns get back the order of the table.
    wide = wide.loc[list(dict.fromkeys(shown["label"])), list(dict.fromkeys(named))].reset_index()
    text = f"Means of {counted_on(trials)}, on one machine"
    return table_drawing(results, table, wide, text, (_WIDTH, 1.0 + 0.24 * len(wide)))


def decoders(results: Results) -> Drawing:
    """Relative SSE of every trial by decoder, without noise, with medians and worst trials."""
    trials = _only_trials(results)
    metrics = metrics_of(trials)
    table = statistics(trials, [])
    with canvas(_WIDTH, 1.9 + 0.75 * trials["method"].nunique(), results.trials) as figure:
        top, bottom = figure.subfigures(2, 1, height_ratios=[1.8, 1])
        axes = top.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
        for axis, metric in zip(axes, metrics, strict=True):
            strip(axis, trials, metric, results.styles)
            axis.set_xlabel(_RELATIVE_SSE_NAMES[metric])
        caption(top, f"Points: trials. Bars: median of {counted_on(trials)}. No noise, m = 10kd.")
        put_table(bottom.subplots(), _by_decoder(table), _WIDTH)
    return Drawing(figure, table)


def _by_decoder(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per decoder: median, mean and worst of each relative error, and trials."""
    rows = []
    for label, part in table.groupby("label", sort=False):
        row = {"decoder": label}
        for metric in part.itertuples():
            numbers = {"median": metric.median, "mean": metric.mean, "worst": metric.max}
            against = _AGAINST[metric.metric]
            row |= {f"{name}, {against}": f"{v:.3f}" for name, v in numbers.items()}
        rows.append({**row, "trials": int(part["n"].max())})
    return pd.DataFrame(rows)


def _only_trials(results: Results) -> pd.DataFrame:
    (trials,) = results.trials.values()
    return in_order(trials, results.styles)


def beyond(results: Results) -> Drawing:
    """Relative SSE - 1 against epsilon on several data sets, with all methods at equal privacy."""
    tables = {
        name: statistics(trials, ["shape", "epsilon"] if "shape" in trials else ["epsilon"])
        for name, trials in results.trials.items()
    }
    panels = _beyond_panels(results, tables)
    columns = min(_COLUMNS, len(panels) + 1)  # a single panel leaves room for the legend
    n_rows = -(-len(panels) // columns)
    every = pd.concat([part for _, part in panels])
    full = len(panels) == n_rows * columns  # then the legend has its own row
    heights = [1.0] * n_rows + [0.2] * full
    with canvas(_WIDTH, 1.3 + 2.55 * n_rows + 0.6 * full, results.trials) as figure:
        grid = figure.add_gridspec(n_rows + full, columns, height_ratios=heights)
        axes: list[Axes] = []
        for number, (title, part) in enumerate(panels):
            first = axes[0] if axes else None
            axis = figure.add_subplot(grid[divmod(number, columns)], sharex=first, sharey=first)
            axes.append(axis)
            curves(axis, part, "epsilon", results.styles)
            excess_scale(axis, every)
            axis.set_title(title, fontsize=8)
            axis.set_xlabel("epsilon")
            if number % columns:
                axis.tick_params(labelleft=False)
            else:
                axis.set_ylabel(_EXCESS_NAME)
        free = figure.add_subplot(grid[-1, :] if full else grid[-1, len(panels) % columns :])
        free.axis("off")
        share = 1.0 if full else 1.0 - len(panels) % columns / columns
        legend_of_all(axes, free, share * _WIDTH)
        caption(
            figure,
            f"Median SSE of {_numbers_of_trials(results)} relative to Lloyd's k-means. All methods "
            "are (epsilon, 1e-6)-DP for replace-one neighbours and have the same declared bounds. "
            f"The lowest tick is {LOWEST:g} or less.",
        )
    return Drawing(figure, _joined(tables))


def _beyond_panels(
    results: Results, tables: dict[str, pd.DataFrame]
) -> list[tuple[str, pd.DataFrame]]:
    panels = {}
    for name, table in tables.items():
        trials = results.trials[name]
        shapes = list(dict.fromkeys(trials["shape"])) if "shape" in trials else [None]
        for shape in shapes:
            of_shape = trials if shape is None else trials[trials["shape"] == shape]
            part = table if shape is None else table[table["shape"] == shape]
            key = "mixture" if shape == "paper" else shape or _DATA_SETS.get(name, name)
            substitute = of_shape["source"].map(is_substitute).any()
            title = f"{key}{' (substitute)' if substitute else ''}\n{sizes(of_shape)}"
            kept = (part["metric"] == "relative_sse") & (part["method"] != REFERENCE)
            panels[key] = (title, in_order(excess(part[kept]), results.styles))
    first = [key for key in ("mixture", *_DATA_SETS.values()) if key in panels]
    return [panels[key] for key in (*first, *(key for key in panels if key not in first))]


def _numbers_of_trials(results: Results) -> str:
    numbers = sorted({trials["trial"].nunique() for trials in results.trials.values()})
    if len(numbers) == 1:
        return counted(next(iter(results.trials.values())))
    return f"{numbers[0]} to {numbers[-1]} trials"


def goal(results: Results) -> Drawing:
    """Relative SSE on the paper's mixture against epsilon, with a table of medians and worst."""
    trials = _only_trials(results)
    table = statistics(trials, ["epsilon"])
    metrics = metrics_of(trials)[::-1]
    with canvas(_WIDTH, 5.6 + 0.2 * trials["method"].nunique(), results.trials) as figure:
        top, bottom = figure.subfigures(2, 1, height_ratios=[2.6, 1])
        axes = top.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
        for axis, metric in zip(axes, metrics, strict=True):
            part = table[table["metric"] == metric]
            if metric == "relative_sse":
                part = part[part["method"] != REFERENCE]
            curves(axis, excess(part), "epsilon", results.styles, band="range")
            excess_scale(axis, excess(table[table["method"] != REFERENCE]))
            axis.set(title=_RELATIVE_SSE_NAMES[metric], xlabel="epsilon")
            legend_below(axis, _WIDTH / 2.2)
        axes[0].set_ylabel(_EXCESS_NAME)
        caption(
            top,
            f"Median of {counted_on(trials)}, bands: best to worst trial. "
            "Add/remove-one neighbours unless the label says otherwise, delta = 1e-6. "
            f"The lowest tick is {LOWEST:g} or less.",
        )
        put_table(bottom.subplots(), _medians_and_worst(table, metrics[0]), _WIDTH)
    return Drawing(figure, table)


def many_sizes(results: Results) -> Drawing:
    """Relative SSE over numbers of clusters and features: medians and worst trials as a table."""
    trials = _only_trials(results)
    keys = ["n_clusters", "n_features", "epsilon"]
    table = statistics(trials, keys)
    shown = table[table["metric"] == "relative_sse_true"].copy()
    shown["cell"] = _median_and_worst(shown)
    wide = shown.pivot(index=keys, columns="label", values="cell").fillna("n/a")
    wide = wide[list(dict.fromkeys(shown["label"]))].reset_index()
    wide = wide.rename(columns={"n_clusters": "k", "n_features": "d"})
    text = (
        "SSE relative to Lloyd's k-means from the true means: median (worst) of "
        f"{counted_on(trials)}. Add/remove-one neighbours, delta = 1e-6."
    )
    return table_drawing(results, table, wide, text, (_WIDTH, 1.0 + 0.22 * len(wide)))


def _median_and_worst(table: pd.DataFrame) -> np.ndarray:
    """Return the median and the worst trial of each row as text, or ``"n/a"``."""
    written = [f"{m:.3f} ({w:.3f})" for m, w in zip(table["median"], table["max"], strict=True)]
    return np.where(table["n"] > 0, written, "n/a")


def _medians_and_worst(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return medians and worst trials with a row per method and a column per epsilon."""
    part = table[table["metric"] == metric]
    part = part.assign(cell=_median_and_worst(part))
    wide = part.pivot(index="label", columns="epsilon", values="cell")
    wide = wide.loc[list(dict.fromkeys(part["label"]))].fillna("n/a").reset_index()
    names = {value: f"epsilon = {value:g}" for value in wide.columns[1:]}
    return wide.rename(columns={**names, "label": f"{_spaced(metric)}: median (worst)"})


def _joined(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    named = [table.assign(experiment=name) for name, table in tables.items()]
    return pd.concat(named, ignore_index=True)
