"""Figures of the image retrieval paper from made-up tables."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color

from privclust.report.figures import save_figure
from privclust_papers.pipeline.plan import styles_in
from privclust_papers.pipeline.runner import TrialData
from privclust_papers.privatemail import figures as privatemail
from privclust_papers.privatemail import panels as privatemail_panels
from privclust_papers.privatemail.metrics import evaluate_retrieval
from privclust_papers.report.drawing.style import Results, save, styles_of
from privclust_papers.settings.config import load_yaml

CONFIG = "config/papers/privatemail/paper.yaml"
VALUES = "config/papers/privatemail/printed.csv"
DATA_SETS = ("cifar100", "cub200", "cars196")
PUBLISHED = ("mail", "code", "dsne", "pca", "pca_gaussian", "projection")
LEVELS = ("smlq", "smlq_code", "tsne", "features", "pixels")
GUARDED = (
    *("mail_unlabelled", "code_unlabelled", "corrected", "dsne_corrected"),
    *("pca_corrected", "projection_corrected", "label_response"),
)
IN_TABLE = "corrected_embedding"
RECALL = (*PUBLISHED, *LEVELS, *GUARDED, IN_TABLE)
ALL = (*RECALL, "mail_bare")
WEAK = {"code": np.inf, "pca": np.inf, "pca_gaussian": np.inf}
WEAK |= {"projection": 50.0, "code_unlabelled": 400.0}
CONTROL = ("mail", "mail_bare", "mail_unlabelled", "code", "code_unlabelled")
READINGS = (
    *("integer", "one_hot", "integer_shuffled", "one_hot_shuffled", "integer_private"),
    "one_hot_private",
)
ITERATES = ("iterates", "iterates_code", "iterates_unsupervised", "iterates_random")
SETTINGS = ("smlq", "client", "mail", "mail_unlabelled", "code")
DEFAULTS = {"n_components": 2, "alpha": 0.6, "sigma": 6.0}
WEIGHTS = {"n_components": 0.1, "alpha": 0.01, "sigma": 0.001}
TABLE2 = {
    "alpha": 0.6,
    "sigma": 6.0,
    "n_components": 2,
    "init_scale": 1e-8,
    "n_iter": 5,
    "delta": 1e-5,
    "n_images": 900,
    "n_public_images": 1000,
    "n_classes": 100,
    "n_public_classes": 99,
}


def trials_table(methods, points, n_trials, values_of, source="made"):
    """Trials of methods at points; numbers that `values_of` gives for a method, point and trial."""
    rows = [
        {"method": m, "label": m.upper(), "trial": t, "source": source, **p, **values_of(m, p, t)}
        for m in methods
        for p in points
        for t in range(n_trials)
    ]
    return pd.DataFrame(rows)


def results_of(tables, arrays=None, printed=None, target="t"):
    printed = pd.DataFrame() if printed is None else printed
    styles = styles_of(styles_in(load_yaml(CONFIG), tables))
    return Results(target, tables, {}, arrays or {}, printed, styles=styles)


def level_of(method, epsilon, trial):
    """Recall that tells the method, the point and the trial apart."""
    return 0.1 + 0.02 * ALL.index(method) + 0.001 * np.log10(epsilon) + 0.0001 * trial


def recall_table(methods, epsilons, n_trials, source="made", shift=0.0):
    def values(method, point, trial):
        epsilon = point["epsilon"]
        guaranteed = np.nan if method in LEVELS else epsilon * WEAK.get(method, 1.0)
        ceiling = np.nan if method in LEVELS else 0.1 + 0.01 * (3 + np.log10(epsilon))
        return {
            "recall_8": level_of(method, epsilon, trial) + shift,
            "chance_8": 0.08,
            "ceiling_8": ceiling,
            "guaranteed_epsilon": guaranteed,
            "n_queries": 500.0,
        }

    points = [{**TABLE2, "epsilon": e} for e in epsilons]
    return trials_table(methods, points, n_trials, values, source)


def recalls(epsilons, n_trials, source="made"):
    tables = {
        f"privatemail_{d}": recall_table(RECALL, epsilons, n_trials, source) for d in DATA_SETS
    }
    control = recall_table(CONTROL, epsilons, n_trials)
    return results_of({**tables, "privatemail_control": control})


def leaks(epsilons, n_trials):
    tables = {
        "privatemail_cifar100": recall_table(ALL, epsilons, n_trials),
        "privatemail_control": recall_table(CONTROL, epsilons, n_trials, shift=0.01),
    }
    return results_of(tables)


def settings(values, n_trials):
    """One axis at a time; recall is 0.1 k + 0.01 alpha + 0.001 sigma."""

    def found(method, point, trial):
        level = sum(weight * point[axis] for axis, weight in WEIGHTS.items())
        return {"recall_8": level + 0.0001 * trial, "chance_8": 0.08}

    tables = {}
    for data_set in DATA_SETS:
        points = {tuple({**DEFAULTS, a: v}.items()) for a, vs in values.items() for v in vs}
        points = [{"epsilon": 0.1, **dict(point)} for point in sorted(points)]
        tables[f"privatemail_settings_{data_set}"] = trials_table(SETTINGS, points, n_trials, found)
    return results_of(tables)


def iterates(n_trials, data_sets=DATA_SETS, n_classes=12, n_shown=120, last=-1.0):
    """Recall t / 100 + the method's place; the objective falls from 1 to `last`."""
    tables, arrays = {}, {}
    for data_set in data_sets:
        name = f"privatemail_iterates_{data_set}"
        recall = np.arange(11) / 100
        counts = {f"recall_8_{t}": value for t, value in enumerate(recall)}
        facts = {"n_classes": n_classes, "n_images": 5000}
        tables[name] = trials_table(ITERATES, [facts], n_trials, lambda *_, counts=counts: counts)
        rng = np.random.default_rng(0)
        for place, method in enumerate(ITERATES):
            found = {}
            for row in range(n_trials):
                one = {
                    "recall": recall + place + row,
                    "objective": np.linspace(1.0, last, 11),
                    "shown": 1e-8 * rng.normal(size=(3, n_shown, 2)),
                    "shown_labels": np.arange(n_shown) % n_classes,
                }
                found |= {f"array/{row:05d}/{key}": value for key, value in one.items()}
            arrays[name, method] = found
    return results_of(tables, arrays)


def alignment(epsilons, n_trials, n_public=60, n_components=2):
    methods = ("align", "align_code")
    points = [{**TABLE2, "n_public_images": n_public, "epsilon": e} for e in epsilons]
    table = trials_table(
        methods, points, n_trials, lambda m, p, t: {"residual": 1 / (1 + p["epsilon"])}
    )
    rng, arrays = np.random.default_rng(0), {}
    for method in methods:
        own = table[table["method"] == method].reset_index(drop=True)
        found = {}
        for row in range(len(own)):
            anchors = 3.0 + rng.normal(size=(n_public, n_components))
            one = {
                "anchors": anchors,
                "gallery": anchors,
                "released": 1e-8 * rng.normal(size=(n_public + 1, n_components)),
                "aligned": np.vstack([anchors, anchors[:1]]),
                "labels": np.arange(n_public) % 7,
            }
            found |= {f"array/{row:05d}/{key}": value for key, value in one.items()}
        arrays["privatemail_alignment", method] = found
    return results_of({"privatemail_alignment": table}, arrays)


def bounds(n_trials):
    points = [
        {"n": 1000, "alpha": 0.6, "sigma": 6.0, "n_classes": c, "relation": r}
        for c in (98, 100)
        for r in ("add-remove", "replace-one")
    ]

    def values(method, point, trial):
        ratio = 2.0 + trial
        found = {"constant": 0.25, "bound": 10.0, "change": 10.0 / ratio, "ratio": ratio}
        return {**found, "root_ratio": 2 * ratio}

    table = trials_table(("search", "search_printed"), points, n_trials, values)
    return results_of({"privatemail_sensitivity": table})


def readings(sigmas, n_trials, widths=("sigma", "sigma^2", "2 sigma^2")):
    """Recall is sigma / 100 plus the method's place; what is private is not defined below 1."""

    def found(method, point, trial):
        recall = point["sigma"] / 100 + 0.1 * READINGS.index(method) + 0.0001 * trial
        if method.endswith("_private") and point["sigma"] < 1:
            recall = np.nan
        return {
            "recall_8": recall,
            "best_8": recall,
            "gap_7": 0.0,
            "chance_8": 0.08,
            "density": 1.0,
        }

    points = [
        {"reading": f"{u}, {k}", "sigma": s, "n_images": 1000, "n_public_images": 900}
        for u in ("unit", "raw")
        for k in widths
        for s in sigmas
    ]
    return results_of({"privatemail_readings": trials_table(READINGS, points, n_trials, found)})


def without_control(results):
    return results_of({n: t for n, t in results.trials.items() if not n.endswith("_control")})


def settings_printed(root):
    printed = pd.read_csv(root / VALUES, dtype=str, keep_default_na=False)
    return results_of(without_control(recalls((0.1, 1.0), 2)).trials, None, printed, TAB2)


TAB2 = "privatemail_tab2"
AXES = {"n_components": (1, 2, 16), "alpha": (0.0, 0.6, 1.0), "sigma": (2.0, 6.0, 20.0)}
EPSILONS = (0.001, 0.1, 10.0)
DRAWINGS = {
    "fig2": iterates(2, ("cub200",)),
    "fig3": iterates(6),
    "fig5": settings(AXES, 6),
    "fig6": recalls(EPSILONS, 6),
    "fig7": alignment([10.0**power for power in range(-2, 7)], 2),
    "leak": leaks(EPSILONS, 6),
    "readings": readings((0.1, 1.0, 6.0), 6),
    "sensitivity": bounds(3),
}
SPARSE = {
    "fig2": iterates(1, ("cub200",), n_classes=1, n_shown=1),
    "fig3": iterates(1, ("cifar100",), last=0.1),
    "fig5": settings({"alpha": (0.6,)}, 1),
    "fig6": recalls((0.1,), 1),
    "fig7": alignment((0.1,), 1, n_public=2),
    "leak": leaks((0.1,), 1),
    "readings": readings((6.0,), 1, ("sigma",)),
    "sensitivity": bounds(1),
}


def drawn(name, results, is_laid_out=True):
    """Draw without a warning; panels make room for their labels where `is_laid_out`."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawing = getattr(privatemail, name)(results)
        if not is_laid_out:
            drawing.figure.set_layout_engine("none")
        drawing.figure.draw_without_rendering()
    return drawing


@cache
def standard(name):
    return drawn(name, DRAWINGS[name])


def lines_named(axis):
    return {line.get_label(): line for line in axis.lines if line.get_label()[0] != "_"}


def at_points(axis, n):
    return {name: line for name, line in lines_named(axis).items() if len(line.get_xdata()) == n}


def ceiling_of(epsilon, n_classes):
    """The ceiling that a trial with so many equal classes records."""
    y = np.repeat(np.arange(n_classes), 2)
    outputs = {"ranks": np.zeros(len(y)), "queries": np.arange(len(y))}
    outputs["claimed"] = np.array([epsilon, TABLE2["delta"]])
    return evaluate_retrieval(TrialData(None, y, "made"), outputs)["ceiling_8"]


def legend_boxes(figure):
    """The extents of a figure's legends, and of its subfigures'."""
    parts = [figure, *figure.subfigs]
    return [legend.get_window_extent() for part in parts for legend in part.legends]


@pytest.mark.parametrize("name", ["fig2", "fig7"])
def test_the_same_tables_give_the_same_bytes(name, tmp_path):
    first, second = (getattr(privatemail, name)(DRAWINGS[name]) for _ in range(2))
    save(first, *(tmp_path / f"a.{end}" for end in ("svg", "png", "csv")))
    save_figure(second.figure, tmp_path / "b.svg", "svg")  # what a PNG has besides, others compare
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    pd.testing.assert_frame_equal(first.table, second.table)


@pytest.mark.parametrize("name", list(SPARSE))
def test_one_trial_and_point_can_be_drawn(name):
    assert len(drawn(name, SPARSE[name], is_laid_out=False).table)


@pytest.mark.parametrize("name", list(DRAWINGS))
def test_letters_stay_within_the_figure(name):
    figure = standard(name).figure
    width, height = figure.bbox.width, figure.bbox.height
    legends = legend_boxes(figure)
    parts = [figure, *figure.subfigs]
    boxes = [*legends, *(axis._left_title.get_window_extent() for axis in figure.axes)]
    boxes += [part._suptitle.get_window_extent() for part in parts if part._suptitle]
    for box in boxes:
        assert box.x0 >= -1
        assert box.y0 >= -1
        assert box.x1 <= width + 1
        assert box.y1 <= height + 1
    for legend in legends:
        assert not any(legend.overlaps(axis.get_window_extent()) for axis in figure.axes)
    titles = [
        axis._left_title.get_window_extent() for axis in figure.axes if axis.get_title("left")
    ]
    for number, box in enumerate(titles):
        assert not any(box.overlaps(other) for other in titles[number + 1 :])


def test_substitutes_are_named_below():
    for name in ("fig6", "tab2"):
        results = without_control(recalls((0.1, 1.0), 2, "substitute: flowers"))
        figure = getattr(privatemail, name)(results).figure
        notes = [legend.get_title().get_text() for legend in figure.legends]
        note = "Not comparable with the paper: substitute: flowers"
        assert note in [figure.get_supxlabel(), *notes]


def test_few_trials_have_no_band():
    few = privatemail.leak(leaks((0.1, 1.0), 2))
    shaded = [len(d.figure.axes[0].collections) for d in (standard("leak"), few)]
    assert shaded == [2 * len(privatemail._LEAKS["as printed"]) + 1, 1]  # and above the ceiling


def test_recall_against_epsilon_states_its_intervals():
    said = {n: privatemail.fig6(recalls((0.1, 1.0), n)).figure for n in (2, 6)}
    for n, figure in said.items():
        assert len(figure.axes[0].collections) == 1  # above the ceiling
        text = " ".join(part._suptitle.get_text() for part in figure.subfigs).replace("\n", " ")
        assert ("Median half-width of the 95 % intervals: " in text) == (n == 6)


# --- figures 2 and 7: embeddings -----------------------------------------------------------------


def test_embeddings_are_drawn_to_their_own_scale_and_by_class():
    drawing = standard("fig2")
    assert len(drawing.figure.axes) == 9
    for axis in drawing.figure.axes:
        (points,) = axis.collections
        rows = points.get_offsets()
        np.testing.assert_allclose(rows.mean(axis=0), 0.0, atol=1e-12)
        assert np.mean((rows**2).sum(axis=1)) == pytest.approx(1.0)
        colors = points.get_facecolors()
        assert len(np.unique(colors, axis=0)) == 12
        np.testing.assert_array_equal(colors[0], colors[12])
        assert not len(axis.get_xticks())
        assert not len(axis.get_yticks())
    titles = [axis.get_title("left") for axis in drawing.figure.axes[:3]]
    assert titles == [f"iterate {t}: Recall@8 {t / 100:.3f}" for t in (1, 2, 3)]
    assert set(drawing.table["method"]) == {"iterates", "iterates_code", "iterates_random"}
    assert len(drawing.table) == 9 * 120


@pytest.mark.parametrize("n_classes", [1, 20, 21, 100])
def test_each_class_has_a_colour(n_classes):
    colors = privatemail_panels.class_colors(np.arange(n_classes))
    assert len(np.unique(colors, axis=0)) == n_classes


def test_clouds_without_spread_can_be_scaled():
    np.testing.assert_array_equal(privatemail_panels.scaled(np.ones((4, 3))), np.zeros((4, 2)))
    found = privatemail_panels.scaled(np.array([[1.0], [3.0]]))
    np.testing.assert_array_equal(found, [[-1.0, 0.0], [1.0, 0.0]])
    found = privatemail_panels.scaled(np.array([[5.0, 0.0]]), by=np.array([[1.0, 0.0], [3.0, 0.0]]))
    np.testing.assert_array_equal(found, [[3.0, 0.0]])


def test_alignment_is_shown_at_five_epsilon():
    drawing = standard("fig7")
    titles = [axis.get_title("left") for axis in drawing.figure.axes]
    assert titles[:5] == [f"ε = {e:g}" for e in (0.01, 1.0, 100.0, 1e4, 1e6)]
    assert titles[5] == f"residual {1 / 1.01:.3f}"
    for axis in drawing.figure.axes[5:]:
        grey, aligned = (points.get_offsets() for points in axis.collections)
        # made so that what is aligned lies where the server has it
        np.testing.assert_allclose(grey, aligned)
        (query,) = axis.lines
        np.testing.assert_allclose(np.ravel(query.get_data()), grey[0])
    table = drawing.table
    assert table.groupby("epsilon").size().tolist() == [61] * 5
    assert (table["class"] == "query").sum() == 5


def test_one_dimension_can_be_aligned():
    assert len(drawn("fig7", alignment((0.1, 1.0), 1, n_components=1)).table) == 2 * 61


# --- figures 3, 5 and 6: curves ------------------------------------------------------------------


def test_curves_along_iterates_are_means_over_trials():
    drawing = standard("fig3")
    top, bottom = drawing.figure.axes[0], drawing.figure.axes[3]
    curves = at_points(top, 11)
    assert list(curves) == [name.upper() for name in ITERATES]
    for place, line in enumerate(curves.values()):
        np.testing.assert_array_equal(line.get_xdata(), np.arange(11))
        np.testing.assert_allclose(line.get_ydata(), np.arange(11) / 100 + place + 2.5)
    # starts: places 0 to 3 and trials 0 to 5
    assert lines_named(top)["random starts"].get_ydata()[0] == pytest.approx(4.0)
    assert bottom.get_yscale() == "symlog"
    assert drawn("fig3", SPARSE["fig3"]).figure.axes[1].get_yscale() == "log"
    assert len(drawing.table) == 3 * 4 * 11 * 2


def test_each_panel_varies_one_setting():
    drawing = standard("fig5")
    figure = drawing.figure
    assert len(figure.axes) == 9
    assert figure.axes[0].get_title("left") == "CIFAR-100, 6 trials: k = 2, α = 0.6, σ = 6"
    middle = sum(WEIGHTS[name] * DEFAULTS[name] for name in WEIGHTS)
    for axis, (name, values) in zip(figure.axes[:3], AXES.items(), strict=True):
        line = lines_named(axis)["MAIL"]
        np.testing.assert_array_equal(line.get_xdata(), values)
        expected = middle + WEIGHTS[name] * (np.array(values) - DEFAULTS[name]) + 0.00025
        np.testing.assert_allclose(line.get_ydata(), expected)
        assert lines_named(axis)["chance: a random order"].get_ydata()[0] == pytest.approx(0.08)
    assert figure.axes[0].get_xscale() == "log"
    assert figure.axes[1].get_xscale() == "linear"
    assert len(drawing.table) == 3 * 3 * 3 * len(SETTINGS)


def test_what_is_not_private_is_dashed_and_no_privacy_apart():
    axes = standard("fig6").figure.axes
    assert len(axes) == 9
    for axis in axes[:3]:
        curves = at_points(axis, 3)
        for method in PUBLISHED:
            expected = "-" if method in ("mail", "dsne") else "--"
            assert curves[method.upper()].get_linestyle() == expected, method
        assert not {name.lower() for name in lines_named(axis)} & {*LEVELS}
    for axis in axes[3:6]:
        curves = at_points(axis, 3)
        for method in GUARDED:
            expected = "--" if method == "code_unlabelled" else "-"
            assert curves[method.upper()].get_linestyle() == expected, method
        shown = {name.lower() for name in lines_named(axis)}
        assert not shown & {*PUBLISHED, *LEVELS}


def test_recall_against_epsilon_beside_ceiling_and_chance():
    drawing = standard("fig6")
    for axis, methods in zip(drawing.figure.axes[:6:3], (PUBLISHED, GUARDED), strict=True):
        named = lines_named(axis)
        for method in methods:
            expected = [level_of(method, e, 2.5) for e in EPSILONS]
            np.testing.assert_allclose(named[method.upper()].get_ydata(), expected)
        ceiling = named["upper bound for (ε, δ)-private queries"]
        x, y = ceiling.get_data()
        expected = [ceiling_of(epsilon, TABLE2["n_classes"]) for epsilon in x]
        np.testing.assert_allclose(y, expected)
        assert (x[0], x[-1]) == (pytest.approx(0.0008), pytest.approx(12.5))
        assert named["chance: a random order"].get_ydata()[0] == pytest.approx(0.08)
        assert axis.get_xscale() == "log"
    without_privacy = drawing.figure.axes[6]
    names = [label.get_text() for label in without_privacy.get_yticklabels()]
    level = without_privacy.lines[names.index("TSNE")].get_xdata()[0]
    assert level == pytest.approx(np.mean([level_of("tsne", e, 2.5) for e in EPSILONS]))
    assert not (drawing.table["experiment"] == "privatemail_control").any()


def test_each_reading_has_its_panel():
    drawing = standard("readings")
    axes = drawing.figure.axes
    assert len(axes) == 6
    for axis in axes:
        named = lines_named(axis)
        np.testing.assert_allclose(named["INTEGER"].get_xdata(), [0.1, 1.0, 6.0])
        np.testing.assert_allclose(named["ONE_HOT_PRIVATE"].get_xdata(), [1.0, 6.0])
    assert len(drawing.table) == 6 * 3 * len(READINGS) * 5


# --- the leak, and tables ------------------------------------------------------------------------


def test_panels_of_the_leak_cross_features_with_the_label():
    axes = standard("leak").figure.axes
    for axis, methods in zip(axes, privatemail._LEAKS.values(), strict=True):
        named = lines_named(axis)
        for features, shift in (("real", 0.0), ("class-free", 0.01)):
            for own, (label, _, dash) in methods.items():
                line = named[f"{features} features, {label}"]
                expected = [level_of(own, e, 2.5) + shift for e in EPSILONS]
                np.testing.assert_allclose(line.get_ydata(), expected)
                assert line.get_linestyle() == dash
        last = "no dummies, no label"
        colors = [named[f"{f} features, {last}"].get_color() for f in ("real", "class-free")]
        assert not same_color(*colors)


def test_settings_are_told_as_printed_and_as_used(request):
    table = drawn("tab2", settings_printed(request.config.rootpath)).table
    assert table["settings"].tolist() == ["printed", "here"] * 3
    printed = table[table["settings"] == "printed"].set_index("data set")
    assert printed["σ"].to_dict() == {"CIFAR-100": "6", "CUB-200-2011": "5", "Cars196": "6"}
    assert printed["α"].to_dict() == {"CIFAR-100": "0.6", "CUB-200-2011": "0.5", "Cars196": "0.6"}
    for sign, value in {"k": "2", "σq": "1e-08", "T": "5", "ε": "0.1", "δ": "1e-05"}.items():
        assert set(printed[sign]) == {value}
    here = table[table["settings"] == "here"].iloc[0]
    assert here["ε"] == "0.1 to 1"
    assert (here["public images"], here["gallery"], here["queries"]) == ("1,000", "900", "500")
    assert here["data"] == "made"
    alone = drawn("tab2", without_control(recalls((0.1,), 1))).table
    assert alone["settings"].tolist() == ["here"] * 3


def test_the_printed_bound_is_beside_the_largest_change():
    table = standard("sensitivity").table
    assert len(table) == 8
    # ratios 2, 3, 4
    row = table.iloc[0]
    assert row["largest change"] == pytest.approx(5.0)
    assert (row["bound/change: mean"], row["least"]) == (pytest.approx(3.0), 2.0)
    assert (row["with √M: mean"], row["least with √M"]) == (pytest.approx(6.0), 4.0)


def test_every_method_that_is_drawn_is_run(request):
    document = load_yaml(request.config.rootpath / CONFIG)
    experiments = document["experiments"]
    drawn_methods = {
        *privatemail._AS_PUBLISHED,
        *privatemail._WITHOUT_PRIVACY,
        *privatemail._GUARANTEED,
    }
    for data_set in DATA_SETS:
        looks = dict(styles_in(document, [f"privatemail_{data_set}"]))
        assert all("colour" in looks[method] for method in drawn_methods)
        for name, methods in (("iterates", ITERATES), ("settings", SETTINGS)):
            looks = dict(styles_in(document, [f"privatemail_{name}_{data_set}"]))
            assert looks.keys() == set(methods)
            assert all("colour" in look for look in looks.values())
    assert set(CONTROL) == set(experiments["privatemail_control"]["methods"])
    assert set(privatemail._KERNELS) == set(experiments["privatemail_sensitivity"]["methods"])
    assert drawn_methods == set(RECALL) - {IN_TABLE}
