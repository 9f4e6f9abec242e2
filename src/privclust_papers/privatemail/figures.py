"""The figures and tables of "PrivateMail" (2021)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from privclust.report.figures import PALETTE
from privclust_papers.pipeline.words import is_substitute
from privclust_papers.privatemail.panels import (
    SWEEPS,
    along_iterates,
    ceiling,
    chance,
    class_colors,
    cloud,
    defaults,
    frame,
    log_recall_scale,
    named_below,
    one_axis,
    recall_scale,
    scaled,
    weaker,
    without_infinite_guarantees,
)
from privclust_papers.report.comparison import half_width
from privclust_papers.report.drawing.panels import (
    BAND,
    TRIALS_FOR_A_BAND,
    caption,
    cell,
    counted,
    mean_curves,
    rows_of,
    statistics,
    table_drawing,
    ticks_at,
)
from privclust_papers.report.drawing.style import Drawing, MethodStyle, Results, canvas

_WIDTH = 10.5
_DATA_SETS = {"cifar100": "CIFAR-100", "cub200": "CUB-200-2011", "cars196": "Cars196"}
_AS_PUBLISHED = ("mail", "code", "dsne", "pca", "pca_gaussian", "projection")
_WITHOUT_PRIVACY = ("smlq", "smlq_code", "tsne", "features", "pixels")
_GUARANTEED = (
    *("mail_unlabelled", "code_unlabelled", "corrected", "dsne_corrected"),
    *("pca_corrected", "projection_corrected", "label_response"),
)  # seven lines; the table has the corrected method that releases the embedding
_SHOWN_ITERATES = (1, 2, 3)
_CLOUDS = {
    "iterates": "as printed",
    "iterates_code": "as released",
    "iterates_random": "as printed, class-free features",
}
_CONVERGED = (5, 7)  # iterates between which the paper's recall is constant
_MOST_EPSILONS = 5  # of Figure 7
_LINEAR_OBJECTIVE = 1e-3  # relative to the start: below it the axis is linear
_KERNELS = {"search": "eq. (11)", "search_printed": "eq. (2)"}
_BOUNDS = {
    "M": ("constant", "mean"),
    "bound": ("bound", "mean"),
    "largest change": ("change", "max"),
    "bound/change: mean": ("ratio", "mean"),
    "least": ("ratio", "min"),
    "with √M: mean": ("root_ratio", "mean"),
    "least with √M": ("root_ratio", "min"),
}
_LEAKS = {
    "as printed": {
        "mail": ("Algorithm 1", "o", "-"),
        "mail_bare": ("no dummies", "s", "--"),
        "mail_unlabelled": ("no dummies, no label", "^", ":"),
    },
    "as released": {
        "code": ("no dummies", "s", "--"),
        "code_unlabelled": ("no dummies, no label", "^", ":"),
    },
}
_FEATURES = {"real": PALETTE[1], "class-free": PALETTE[0]}
_WIDTHS = {"sigma": "σ, eq. (2)", "sigma^2": "σ²", "2 sigma^2": "2σ², eq. (11)"}
_NORMS = {"unit": "of norm 1", "raw": "as they are"}
_PRINTED = {
    "sigma": "σ",
    "alpha": "α",
    "n_components": "k",
    "init_scale": "σq",
    "n_iter": "T",
    "epsilon": "ε",
    "delta": "δ",
}
_DATA_SIZES = {
    "n_public_images": "public images",
    "n_public_classes": "public classes",
    "n_images": "gallery",
    "n_classes": "gallery classes",
    "n_queries": "queries",
}


def _data_set(experiment: str) -> str:
    return _DATA_SETS[experiment.rsplit("_", 1)[-1]]


def _mean_of(results: Results) -> str:
    return f"Mean of {counted(*results.trials.values())}{BAND}"


def fig2(results: Results) -> Drawing:
    """Figure 2: gallery images by class at three iterates of SMLQ, and without class features."""
    (experiment,) = results.trials
    parts = []
    with canvas(_WIDTH * 0.8, 8.6, results.trials) as figure:
        axes = figure.subplots(len(_CLOUDS), len(_SHOWN_ITERATES), squeeze=False)
        for panels, (method, name) in zip(axes, _CLOUDS.items(), strict=True):
            trial, arrays = next(rows_of(results, experiment, method))
            classes = arrays["shown_labels"]
            for axis, iterate, shown in zip(panels, _SHOWN_ITERATES, arrays["shown"], strict=True):
                rows = scaled(shown)
                cloud(axis, rows, class_colors(classes))
                frame(axis, rows)
                recall = trial[f"recall_8_{iterate}"]
                axis.set_title(f"iterate {iterate}: Recall@8 {recall:.3f}")
                part = pd.DataFrame({"class": classes, "x": rows[:, 0], "y": rows[:, 1]})
                head = {"method": method, "iterate": iterate, "recall_8": recall}
                parts.append(part.assign(**head)[[*head, "class", "x", "y"]])
            panels[0].set_ylabel(name)
        n_classes = int(trial["n_classes"])
        caption(
            figure,
            f"{len(classes)} of {int(trial['n_images'])} images of the gallery, coloured by their "
            f"{n_classes} classes; {_data_set(experiment)}. Each panel has its own scale; distant "
            "points are left out. Class-free features contain no information on the image: any "
            "order comes from the labels.",
        )
    return Drawing(figure, pd.concat(parts, ignore_index=True))


def fig3(results: Results) -> Drawing:
    """Figure 3: Recall@8 against iterations of SMLQ; below, the objective of Theorem 1."""
    table = along_iterates(results)
    with canvas(_WIDTH, 6.6, results.trials) as figure:
        axes = figure.subplots(2, len(results.trials), squeeze=False, sharex=True)
        for panels, name in zip(axes.T, results.trials, strict=True):
            part = table[table["experiment"] == name]
            recall, objective = (part[part["metric"] == m] for m in ("recall_8", "objective"))
            for axis, curves in zip(panels, (recall, objective), strict=True):
                look = {"styles": results.styles, "kinds": results.kinds}
                mean_curves(axis, curves, "iterate", list(results.styles), **look)
                axis.axvspan(*_CONVERGED, color="#000000", alpha=0.05, linewidth=0, zorder=0)
                axis.set_xscale("linear")
                axis.xaxis.get_major_locator().set_params(integer=True)
            top, bottom = panels
            start = recall.loc[recall["iterate"] == 0, "mean"].mean()
            chance(top, start, "random starts")
            recall_scale(top, recall["mean"].max())
            if objective["mean"].min() > 0:
                bottom.set_yscale("log")
            else:
                bottom.set_yscale("symlog", linthresh=_LINEAR_OBJECTIVE)
            top.set_title(f"{_data_set(name)}, {counted(results.trials[name])}")
            bottom.set_xlabel("iterates of eq. (4)")
        axes[0, 0].set_ylabel("Recall@8")
        axes[1, 0].set_ylabel("objective v, relative to its start")
        named_below(figure, axes[0, 0], _WIDTH)
        caption(
            figure,
            f"Mean{BAND}. Shaded: iterates 5 to 7, after which the paper's recall has converged. "
            "All methods except SMLQ without labels know the label of every gallery image.",
        )
    return Drawing(figure, table)


def fig5(results: Results) -> Drawing:
    """Figure 5: Recall@8 against k, alpha and sigma, one at a time about Table 2."""
    parts, n_rows = [], len(_by_data_set(results))
    with canvas(_WIDTH, 1.6 + 2.5 * n_rows, results.trials) as figure:
        axes = figure.subplots(n_rows, len(SWEEPS), squeeze=False, sharey="row", sharex="col")
        for panels, (name, trials) in zip(axes, _by_data_set(results).items(), strict=True):
            for axis, varied in zip(panels, SWEEPS, strict=True):
                part = statistics({name: one_axis(trials, varied)}, [varied], ["recall_8"])
                look = {"styles": results.styles, "kinds": results.kinds}
                mean_curves(axis, part, varied, list(results.styles), **look)
                axis.set_xscale("log" if varied == "sigma" else "linear")
                if varied == "n_components":
                    axis.set_xscale("log", base=2)
                    ticks_at(axis, part[varied].unique())
                chance(axis, trials["chance_8"].mean())
                parts.append(part.rename(columns={varied: "value"}).assign(axis=varied))
            recall_scale(panels[0], max(part["mean"].max() for part in parts[-len(SWEEPS) :]))
            fixed = (f"{_PRINTED[key]} = {value:g}" for key, value in defaults(trials).items())
            head = f"{_data_set(name)}, {counted(trials)}"
            panels[0].set_title(f"{head}: {', '.join(fixed)}")
            panels[0].set_ylabel("Recall@8")
        for axis, label in zip(axes[-1], SWEEPS.values(), strict=True):
            axis.set_xlabel(label)
        named_below(figure, axes[0, 0], _WIDTH)
        epsilon = next(iter(results.trials.values()))["epsilon"].iloc[0]
        caption(
            figure,
            f"Mean{BAND}. The two other settings are as in Table 2, ε = {epsilon:g}. Dashed: the "
            "query's label is used after the noise, without a guarantee. Dotted: no noise. At "
            "σ up to 1 only SMLQ is shown, because Theorem 2 has no finite bound at small σ.",
        )
    table = pd.concat(parts, ignore_index=True)
    order = ["experiment", "method", "label", "axis", "value", "metric", "n", "mean", "std", "se"]
    return Drawing(figure, table[order])


def _by_data_set(results: Results) -> dict[str, pd.DataFrame]:
    """Return the trials of each data set under the name of its first experiment."""
    names: dict[str, list[str]] = {}
    for name in results.trials:
        names.setdefault(_data_set(name), []).append(name)
    return {
        first: pd.concat([results.trials[name] for name in (first, *others)], ignore_index=True)
        for first, *others in names.values()
    }


def readings(results: Results) -> Drawing:
    """Recall@8 against sigma under each reading: norm of features, kernel width, labels."""
    ((name, trials),) = results.trials.items()
    metrics = ["recall_8", "best_8", "gap_7", "chance_8", "density"]
    table = statistics({name: trials}, ["reading", "sigma"], metrics)
    recalls = table[(table["metric"] == "recall_8") & table["mean"].notna()]
    widths = [width for width in _WIDTHS if trials["reading"].str.endswith(f", {width}").any()]
    with canvas(_WIDTH, 6.6, results.trials) as figure:
        axes = figure.subplots(len(_NORMS), len(widths), squeeze=False, sharex=True, sharey=True)
        for panels, (norm, title) in zip(axes, _NORMS.items(), strict=True):
            for axis, width in zip(panels, widths, strict=True):
                part = recalls[recalls["reading"] == f"{norm}, {width}"]
                look = {"styles": results.styles, "kinds": results.kinds}
                mean_curves(axis, part, "sigma", list(results.styles), **look)
                axis.set_xscale("log")
                chance(axis, trials["chance_8"].mean())
                axis.set_title(f"features {title}, width {_WIDTHS[width]}")
            panels[0].set_ylabel("Recall@8")
        recall_scale(axes[0, 0], recalls["mean"].max())
        for axis in axes[-1]:
            axis.set_xlabel("σ")
        named_below(figure, axes[0, 0], _WIDTH)
        caption(
            figure,
            f"{_mean_of(results)}; CIFAR-100, {int(trials['n_images'].iloc[0])} gallery and "
            f"{int(trials['n_public_images'].iloc[0])} public images, five iterates. Shuffled: "
            "features are exchanged between images, so that recall comes from the labels only. "
            "PrivateMail: Algorithm 1 at ε = 10, if Theorem 2 has a finite bound.",
        )
    return Drawing(figure, table)


def fig6(results: Results) -> Drawing:
    """Figure 6: Recall@8 against epsilon, also without the label after noise, and non-private."""
    tables = {name: t for name, t in results.trials.items() if "features" in set(t["method"])}
    metrics = ["recall_8", "chance_8", "ceiling_8", "guaranteed_epsilon"]
    table = statistics(without_infinite_guarantees(tables), ["epsilon"], metrics)
    with canvas(_WIDTH, 11.5, tables) as figure:
        parts = figure.subfigures(3, 1, height_ratios=[1.1, 1.1, 0.6])
        styles = _lines_as_measured(results.styles, tables)
        published = _recall_row(parts[0], tables, table, styles, _AS_PUBLISHED)
        _recall_row(parts[1], tables, table, styles, (*_GUARANTEED, *results.own))
        _levels_row(parts[2], tables, table, styles)
        for axis, name in zip(published, tables, strict=True):
            axis.set_title(f"{_data_set(name)}, {counted(tables[name])}")
        caption(
            parts[0],
            "As published. Mean. Solid: (ε, δ)-private for the query's features and label. Dashed: "
            "a weaker guarantee, or none. Shaded: above the upper bound for (ε, δ)-private queries "
            "that retrieve 9 images; the printed form retrieves 9 images of each class.",
        )
        caption(
            parts[1],
            "Without the query's label after the noise, and methods with a guarantee. Lines as "
            f"above. The table also has the corrected method that releases the embedding. "
            f"{_typical_intervals(table)}",
        )
        caption(parts[2], "Without privacy, at any ε. Grey line: chance.")
    return Drawing(figure, table)


def _typical_intervals(table: pd.DataFrame) -> str:
    """Return the width of the curves' 95 % intervals in words; there are too many for bands."""
    is_drawn = table["method"].isin([*_AS_PUBLISHED, *_GUARANTEED])
    is_drawn &= (table["metric"] == "recall_8") & (table["n"] >= TRIALS_FOR_A_BAND)
    rows = table[is_drawn]
    halves = half_width(rows["se"], rows["n"]).groupby(rows["experiment"], sort=False).median()
    widths = [f"{half:.2g} on {_data_set(name)}" for name, half in halves.items()]
    return f"Median half-width of the 95 % intervals: {', '.join(widths)}." if widths else ""


def _lines_as_measured(
    styles: Mapping[str, MethodStyle], tables: dict[str, pd.DataFrame]
) -> dict[str, MethodStyle]:
    """Return styles with dashes for methods with a guarantee weaker than the budget."""
    weak = weaker(pd.concat(tables.values()))
    return {name: replace(s, dash="--") if name in weak else s for name, s in styles.items()}


def _recall_row(
    figure: FigureBase,
    tables: dict[str, pd.DataFrame],
    table: pd.DataFrame,
    styles: Mapping[str, MethodStyle],
    methods: Sequence[str],
) -> Sequence[Axes]:
    """Draw Recall@8 against epsilon on each data set, with upper bound and chance."""
    axes = figure.subplots(1, len(tables), squeeze=False)[0]
    for axis, (name, trials) in zip(axes, tables.items(), strict=True):
        part = table[table["experiment"] == name]
        recall = part[(part["metric"] == "recall_8") & part["method"].isin(methods)]
        ceiling(axis, trials)
        mean_curves(axis, recall, "epsilon", methods, styles, has_bands=False)
        level = part.loc[part["metric"] == "chance_8", "mean"].mean()
        chance(axis, level)
        log_recall_scale(axis, min([level, *recall["mean"]]))
        axis.set_xlabel("privacy budget, ε")
    axes[0].set_ylabel("Recall@8 (log scale)")
    named_below(figure, axes[0], _WIDTH)
    return axes


def _levels_row(
    figure: FigureBase,
    tables: dict[str, pd.DataFrame],
    table: pd.DataFrame,
    styles: Mapping[str, MethodStyle],
) -> None:
    """Draw the mean Recall@8 of each method without privacy, with a row per method."""
    axes = figure.subplots(1, len(tables), squeeze=False, sharey=True)[0]
    for axis, name in zip(axes, tables, strict=True):
        part = table[table["experiment"] == name]
        recall = part[(part["metric"] == "recall_8") & part["method"].isin(_WITHOUT_PRIVACY)]
        means = recall.groupby("method")["mean"].mean()
        shown = [method for method in _WITHOUT_PRIVACY if method in means]
        for place, method in enumerate(shown):
            axis.plot(means[method], -place, "o", color=styles[method].color)
        labels = recall.drop_duplicates("method").set_index("method")["label"]
        axis.set_yticks(-np.arange(len(shown)), [labels[method] for method in shown])
        axis.axvline(part.loc[part["metric"] == "chance_8", "mean"].mean(), color="#999999")
        axis.set(xlim=(0.0, 1.05), ylim=(0.5 - len(shown), 0.5), xlabel="Recall@8")
        axis.set_title(_data_set(name))


def fig7(results: Results) -> Drawing:
    """Figure 7: the release of one query before and after alignment, at several epsilon."""
    ((experiment, trials),) = results.trials.items()
    rows = list(rows_of(results, experiment, "align"))
    # Reversed, so that the first trial of an epsilon overwrites the later ones.
    first = {trial["epsilon"]: (trial, arrays) for trial, arrays in reversed(rows)}
    epsilons = sorted(first)
    places = np.linspace(0, len(epsilons) - 1, min(_MOST_EPSILONS, len(epsilons)))
    shown = [epsilons[place] for place in np.unique(places.round().astype(int))]
    parts = []
    with canvas(_WIDTH, 5.4, results.trials) as figure:
        axes = figure.subplots(2, len(shown), squeeze=False)
        for panels, epsilon in zip(axes.T, shown, strict=True):
            trial, arrays = first[epsilon]
            parts.append(_released(panels, arrays).assign(epsilon=epsilon))
            panels[0].set_title(f"ε = {epsilon:g}")
            panels[1].set_title(f"residual {trial['residual']:.3f}")
        axes[0, 0].set_ylabel("released")
        axes[1, 0].set_ylabel("aligned")
        alpha, n_public = trial["alpha"], int(trial["n_public_images"])
        caption(
            figure,
            f"One query (cross) hidden among {n_public} public images, coloured by class; "
            f"{trials['label'].iloc[0]}, α = {alpha:g}. Grey: the server's embedding. Top: each "
            "embedding on its own scale. Bottom: in the server's coordinates. Residual: distance "
            "after alignment, relative to the server's spread, mean over queries; 1 means that "
            "nothing is in common.",
        )
    return Drawing(figure, pd.concat(parts, ignore_index=True))


def _released(axes: Sequence[Axes], arrays: dict[str, np.ndarray]) -> pd.DataFrame:
    """Draw public images and the query before and after alignment; return the points."""
    anchors, colors = arrays["anchors"], class_colors(arrays["labels"])
    grey = scaled(anchors)
    released, aligned = scaled(arrays["released"]), scaled(arrays["aligned"], by=anchors)
    points = pd.DataFrame({"class": [*map(str, arrays["labels"]), "query"]})
    for axis, name, rows in zip(axes, ("released", "aligned"), (released, aligned), strict=True):
        cloud(axis, grey, "#cccccc")
        cloud(axis, rows[:-1], colors)
        axis.plot(*rows[-1], "x", color="#000000", markersize=7)
        frame(axis, np.concatenate([grey, rows]))
        points[f"{name}_x"], points[f"{name}_y"] = rows.T
    return points


def tab2(results: Results) -> Drawing:
    """Settings in Table 2, and those of the runs here."""
    printed = results.printed
    if not printed.empty:
        printed = printed[printed["target"] == results.target]
    rows = []
    for name, trials in results.trials.items():
        used = trials[trials["method"] == "mail"]
        head = {"data set": _data_set(name)}
        if not printed.empty:
            values = printed[printed["experiment"] == name].set_index("metric")["value"]
            blank = dict.fromkeys([*_DATA_SIZES.values(), "data"], "")
            settings = {sign: cell(float(values[key])) for key, sign in _PRINTED.items()}
            rows.append(head | {"settings": "printed"} | settings | blank)
        settings = {sign: _range(used[key]) for key, sign in (_PRINTED | _DATA_SIZES).items()}
        source = used["source"].iloc[0]  # the note below has a substitute's name
        settings["data"] = "substitute" if is_substitute(source) else source
        rows.append(head | {"settings": "here"} | settings)
    table = pd.DataFrame(rows)
    count = counted(*results.trials.values())
    text = f"Settings of PrivateMail as printed in Table 2 and here: {count}"
    return table_drawing(results, table, table, text, (_WIDTH, 1.0 + 0.19 * len(table)))


def _range(values: pd.Series) -> str:
    low, high = values.min(), values.max()
    return cell(low) if low == high else f"{cell(low)} to {cell(high)}"


def leak(results: Results) -> Drawing:
    """Recall@8 of PrivateMail by features, and by use of the label after the noise."""
    control = next(name for name in results.trials if name.endswith("_control"))
    metrics = ["recall_8", "chance_8", "ceiling_8"]
    table = statistics(results.trials, ["epsilon"], metrics)
    table = table[table["method"].isin([name for part in _LEAKS.values() for name in part])]
    recalls = table[table["metric"] == "recall_8"]
    with canvas(_WIDTH, 5.2, results.trials) as figure:
        axes = figure.subplots(1, len(_LEAKS), sharey=True)
        for axis, (title, methods) in zip(axes, _LEAKS.items(), strict=True):
            kept = table[table["method"].isin(methods)]
            level = kept.loc[kept["metric"] == "chance_8", "mean"].mean()
            ceiling(axis, results.trials[control])
            for experiment in results.trials:
                curves = recalls[recalls["experiment"] == experiment]
                _leaking(axis, curves, methods, experiment == control, results.kinds)
            chance(axis, level)
            axis.set(title=title, xlabel="privacy budget, ε")
        log_recall_scale(axes[0], min([level, *recalls["mean"]]))
        axes[0].set_ylabel("Recall@8 (log scale), CIFAR-100")
        named_below(figure, axes[0], _WIDTH)
        caption(
            figure,
            f"{_mean_of(results)}. Class-free features contain no information on the image. "
            "Dashed: iterates after the noise use the query's private label. Shaded: above the "
            "upper bound for (ε, δ)-private queries that retrieve 9 images; with dummies, as "
            "printed, a query retrieves 9 images of each class.",
        )
    return Drawing(figure, table)


def _leaking(
    axis: Axes,
    curves: pd.DataFrame,
    methods: Mapping[str, tuple[str, str, str]],
    is_control: bool,
    kinds: Mapping[str, str],
) -> None:
    features = "class-free" if is_control else "real"
    names = {name: f"{features} features, {text}" for name, (text, *_) in methods.items()}
    curves = curves.assign(label=curves["method"].map(names))
    styles = {
        name: MethodStyle(_FEATURES[features], marker, dash)
        for name, (_, marker, dash) in methods.items()
    }
    mean_curves(axis, curves, "epsilon", list(methods), styles, kinds=kinds)


def sensitivity(results: Results) -> Drawing:
    """Theorem 2's bound and the largest change found, with M and with its square root."""
    (trials,) = results.trials.values()
    keys = ["method", "label", "n", "alpha", "sigma", "n_classes", "relation"]
    table = trials.groupby(keys, sort=False).agg(**_BOUNDS).reset_index()
    shown = table.drop(columns=["method", "label"]).rename(columns={"n_classes": "classes"})
    shown.insert(0, "kernel", table["method"].map(_KERNELS).fillna(table["label"]))
    text = (
        f"Bound of Theorem 2, M √(n + 1) ‖Q‖ / 2, and the largest change of the first iterate that "
        f"a search found in {counted(trials)}, each with its own start. A ratio below 1 violates "
        "the bound."
    )
    return table_drawing(results, table, shown, text, (_WIDTH, 1.1 + 0.19 * len(shown)))
