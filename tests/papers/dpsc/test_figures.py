"""Figures of the private subspace clustering paper from made-up tables."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color

from privclust_papers.dpsc import figures as dpsc
from privclust_papers.pipeline.plan import styles_in
from privclust_papers.report.drawing.style import Results, styles_of
from privclust_papers.settings.config import load_yaml

CONFIG = "config/papers/dpsc/paper.yaml"
SIZES = {
    "dpsc_d5": {"n_samples": 5000, "n_clusters": 3, "n_features": 5, "dimension": 3},
    "dpsc_d10": {"n_samples": 1000, "n_clusters": 3, "n_features": 10, "dimension": 3},
    "dpsc_yale": {"n_samples": 320, "n_clusters": 5, "n_features": 50, "dimension": 9},
}
UTILITY = (
    *("kplanes", "kplanes_ssc", "sa_ssc", "sa_tsc", "sa_lrr", "sa_ssc_corrected", "exp_ssc"),
    *("exp_lrr", "gibbs_random", "gibbs_sulq", "moments", "sulq_10", "sulq_50"),
    *("sulq_10_classical", "sulq_50_classical", "sulq_10_mod", "sulq_50_mod"),
)
CHAINS = ("gibbs_random", "exp_lrr", "exp_ssc", "gibbs_again")


def trials_table(methods, points, n_trials, values_of, source="made"):
    """Trials of methods at points; numbers that `values_of` gives for a method, point and trial."""
    rows = [
        {"method": m, "label": m.upper(), "trial": t, "source": source, **p, **values_of(m, p, t)}
        for m in methods
        for p in points
        for t in range(n_trials)
    ]
    return pd.DataFrame(rows)


def results_of(tables, arrays=None):
    styles = styles_of(styles_in(load_yaml(CONFIG), tables))
    return Results("t", tables, {}, arrays or {}, pd.DataFrame(), styles=styles)


def utility(epsilons, n_trials, source="made"):
    def values(method, point, trial):
        level = 1.0 / (1.0 + point["epsilon"]) + 0.01 * UTILITY.index(method)
        found = dict.fromkeys(dpsc._METRICS, level + 0.1 * trial)
        return found | {"cost_last": 2 * found["cost"], "distance_last": 2 * found["distance"]}

    tables = {
        name: trials_table(
            UTILITY, [{**sizes, "epsilon": e} for e in epsilons], n_trials, values, source
        )
        for name, sizes in SIZES.items()
    }
    return results_of(tables)


def mixing(epsilons, n_trials, n_records=20):
    """Chains whose distance is 10 times their method's place at epsilon 1."""
    sizes = {**SIZES["dpsc_d10"], "noise": 0.1}
    points = [{**sizes, "epsilon": e} for e in epsilons]

    def values(method, point, trial):
        return {
            "final_statistic": 0.01,
            "final_aligned": 0.9,
            "rhat": 1.01,
            "unmixed": 0.0,
            "separation": 1.0,
        }

    table = trials_table(CHAINS, points, n_trials, values)
    arrays = {}
    for place, method in enumerate(CHAINS):
        own = table[table["method"] == method].reset_index(drop=True)
        found = {}
        for row, epsilon in enumerate(own["epsilon"]):
            paths = {name: np.full(n_records, 10 * place + epsilon) for name in PATHS}
            paths["sweep"] = np.arange(1, n_records + 1)
            found |= {f"array/{row:05d}/{name}": values for name, values in paths.items()}
        arrays["dpsc_mixing", method] = found
    return results_of({"dpsc_mixing": table}, arrays)


PATHS = ("statistic", "aligned", "cost_path", "distance_path")


def exact(epsilons, shapes=("lines", "circle")):
    methods = ("chain_random", "chain_optimum")
    points = [{"n_samples": 6, "shape": s, "epsilon": e} for s in shapes for e in epsilons]
    table = trials_table(methods, points, 2, lambda m, p, t: {"final_distance": 0.1 * t})
    arrays = {}
    for method in methods:
        found = {}
        for row in range(len(points) * 2):
            found[f"array/{row:05d}/sweep"] = np.array([1, 10, 100])
            found[f"array/{row:05d}/total_variation"] = np.array([0.5, 1e-3, 0.0])
        arrays["dpsc_chain", method] = found
    return results_of({"dpsc_chain": table}, arrays)


def circle(numbers):
    values = {"distance": 1.4, "gap": 0.0}
    table = trials_table(("lines",), [{"n_points": n} for n in numbers], 1, lambda *_: values)
    found = {}
    for row, n in enumerate(numbers):
        angles = 2 * np.pi * np.arange(n) / n
        found[f"array/{row:05d}/points"] = np.column_stack([np.cos(angles), np.sin(angles)])
        found[f"array/{row:05d}/added"] = np.eye(2)
        found[f"array/{row:05d}/lines"] = np.stack([np.eye(2), [[0.6, 0.8], [-0.8, 0.6]]])
    return results_of({"dpsc_circle": table}, {("dpsc_circle", "lines"): found})


def dimensions(n_features, epsilons, n_trials):
    """Distances that say in which dimension and on how many rows they are."""

    def values(method, point, trial):
        return {"relative_distance": point["n_features"] / 100 + point["n_samples"] / 1e6}

    sizes = {"n_clusters": 3, "dimension": 3, "noise": 0.01}
    tables = {}
    for name, methods, numbers, budgets in (
        ("dpsc_scaling", ("sulq_10", "exp_ssc", "kplanes_ssc"), (1000,), epsilons),
        ("dpsc_rows", ("sulq_10", "moments"), (1000, 10000), (1.0,)),
    ):
        points = [
            {**sizes, "n_samples": n, "n_features": d, "epsilon": e}
            for n in numbers
            for d in n_features
            for e in budgets
        ]
        tables[name] = trials_table(methods, points, n_trials, values)
    return results_of(tables)


def frontier(epsilons, n_trials):
    """Distances that say of which data set they are; those of Figure 2 beside them."""

    def values(method, point, trial):
        stated = 0.1 if method == "moments" else np.nan
        return {
            "distance": 0.1 * point["n_features"],
            "relative_distance": 0.5,
            "stated": stated,
            "last_round": stated,
        }

    points = [
        {**SIZES["dpsc_d5"], "n_features": d, "noise": 0.01, "epsilon": e}
        for d in (5, 20)
        for e in epsilons
    ]
    table = trials_table(("moments", "bound", "sulq_10"), points, n_trials, values)
    beside = utility((*epsilons, 1000.0), n_trials).trials
    return results_of({"dpsc_frontier": table, "dpsc_d5": beside["dpsc_d5"]})


def faces(rows, noises, epsilons, n_trials):
    points = [
        {**SIZES["dpsc_yale"], "rows": r, "noise": s, "epsilon": e}
        for r in rows
        for s in noises
        for e in epsilons
    ]
    values = {"distance": 1.0, "relative_cost": 1.0}
    table = trials_table(("exp_ssc", "sulq_10"), points, n_trials, lambda *_: values)
    return results_of({"dpsc_faces": table})


def threshold(numbers, n_trials):
    """Distances at d = 50 that say which noise they are of; graphs at d = 10 all wrong."""
    points = [
        {"n_features": d, "n_samples": n, "noise": s, "decay": f}
        for n in numbers
        for d, s, f in ((50, 0.1, 0), (50, 0.1, 1), (50, 0.5, 1), (10, 0.1, 0))
    ]

    def values(method, point, trial):
        return {
            "distance": point["noise"] + point["decay"],
            "mismatch": float(point["n_features"] == 10),
        }

    table = trials_table(("tsc_points", "tsc_rows"), points, n_trials, values)
    return results_of({"dpsc_tsc": table})


DRAWINGS = {
    "fig1": circle((5, 16, 64)),
    "fig2": utility((0.1, 1.0, 1000.0), 6),
    "fig3": mixing((0.1, 1.0, 10.0, 100.0), 3),
    "beyond": utility((0.1, 1.0, 1000.0), 6),
    "scaling": dimensions((5, 10, 50), (1.0, 10.0), 6),
    "frontier": frontier((0.1, 1.0, 10.0), 6),
    "chain": exact((0.1, 1.0, 10.0)),
    "faces": faces(("unit", "largest"), (0.0, 0.01), (1000.0,), 6),
    "threshold": threshold((300, 1000, 3000), 6),
}
SPARSE = {
    "fig1": circle((16,)),
    "fig2": utility((1.0,), 1),
    "fig3": mixing((1.0,), 1, n_records=1),
    "beyond": utility((1.0,), 1),
    "scaling": dimensions((5,), (1.0,), 1),
    "frontier": frontier((1.0,), 1),
    "chain": exact((1.0,), shapes=("lines",)),
    "faces": faces(("unit",), (0.0,), (10.0,), 1),
    "threshold": threshold((300,), 1),
}


@cache
def standard(name):
    """Return the example of a figure, drawn and laid out, which tests only read."""
    drawing = getattr(dpsc, name)(DRAWINGS[name])
    drawing.figure.draw_without_rendering()
    return drawing


def lines_named(axis):
    return {line.get_label(): line for line in axis.lines if line.get_label()[0] != "_"}


@pytest.mark.parametrize("name", list(SPARSE))
def test_one_trial_and_point_can_be_drawn(name):
    drawing = getattr(dpsc, name)(SPARSE[name])
    drawing.figure.set_layout_engine("none")
    drawing.figure.draw_without_rendering()
    assert len(drawing.table)


@pytest.mark.parametrize("name", list(DRAWINGS))
def test_letters_stay_within_the_figure(name):
    figure = standard(name).figure
    width, height = figure.bbox.width, figure.bbox.height
    boxes = [legend.get_window_extent() for legend in figure.legends]
    boxes += [axis.title.get_window_extent() for axis in figure.axes]
    boxes += [axis._left_title.get_window_extent() for axis in figure.axes]
    boxes.append(figure._suptitle.get_window_extent() if figure._suptitle else figure.bbox)
    for box in boxes:
        assert box.x0 >= -1
        assert box.y0 >= -1
        assert box.x1 <= width + 1
        assert box.y1 <= height + 1


def test_mechanisms_that_are_not_private_are_dashed():
    for name, others in (("fig2", "-"), ("beyond", "-")):
        figure = standard(name).figure
        for method, line in lines_named(figure.axes[0]).items():
            method = method.lower()
            printed = method in ("sa_ssc", "sa_tsc", "sa_lrr", "exp_ssc", "exp_lrr")
            expected = "--" if printed else ":" if method.startswith("kplanes") else others
            assert line.get_linestyle() == expected, method
    shown = {line.lower() for line in lines_named(standard("beyond").figure.axes[0])}
    assert not shown & {"sa_ssc", "sa_tsc", "sa_lrr", "exp_ssc", "exp_lrr"}


def test_a_printed_mean_is_of_samples():
    printed = lines_named(standard("fig2").figure.axes[0])["SULQ_10_CLASSICAL"].get_ydata()
    released = lines_named(standard("beyond").figure.axes[0])["SULQ_10"].get_ydata()
    # trials 0 to 5: the mean is that of epsilon, the method's place, and 0.25
    curve = 1.0 / (1.0 + np.array([0.1, 1.0, 1000.0])) + 0.25
    np.testing.assert_allclose(printed, curve + 0.01 * UTILITY.index("sulq_10_classical"))
    np.testing.assert_allclose(released, 2 * (curve + 0.01 * UTILITY.index("sulq_10")))


def test_figure_2_has_seven_lines_a_panel():
    for axis in standard("fig2").figure.axes:
        assert len(lines_named(axis)) == 7
    last = {name for name in lines_named(standard("fig2").figure.axes[-1])}
    calibrations = {name for name in map(str.upper, UTILITY) if name.startswith("SULQ")}
    assert last == {*calibrations, "KPLANES_SSC"}


def test_tables_have_every_method_metric_and_point():
    table = standard("fig2").table
    assert len(table) == 3 * len(UTILITY) * 3 * len(dpsc._METRICS)
    assert (table["n"] == 6).all()
    row = table.query("experiment == 'dpsc_d5' and method == 'sa_ssc' and metric == 'cost'").iloc[0]
    trials = np.arange(6) * 0.1
    assert row["se"] == pytest.approx(trials.std(ddof=1) / np.sqrt(6))
    assert row["q75"] - row["q25"] == pytest.approx(0.25)
    assert row["median"] == pytest.approx(row["mean"])


def test_the_condition_of_the_theorem_is_shown():
    # 2 D / sqrt(m) with D = 45 and m = 5000 / 18, rounded down
    assert dpsc._condition(5000, 3, 5, 3) == pytest.approx(90 / np.sqrt(277))
    figure = standard("fig2").figure
    assert figure.axes[0].get_title("left").endswith("2D/√m = 5.41")
    assert figure.axes[2].get_title("left").endswith("2D/√m = 2,598")


def test_few_trials_have_no_band():
    assert len(standard("fig2").figure.axes[0].collections) == 7
    last = standard("fig2").figure.axes[-1]  # k-plane, the same at every epsilon, has none
    assert len(last.collections) == len(lines_named(last)) - 1
    assert not dpsc.fig2(utility((0.1, 1.0), 2)).figure.axes[0].collections


def test_panels_of_a_threshold_are_by_noise():
    figure = standard("threshold").figure
    titles = ["σ = 0.1", "σ = 0.1 · log 300 / log n", "σ = 0.5 · log 300 / log n"]
    assert [axis.get_title("left") for axis in figure.axes] == titles
    for axis, level in zip(figure.axes, (0.1, 1.1, 1.5), strict=True):
        for line in lines_named(axis).values():
            np.testing.assert_allclose(line.get_ydata(), level)
    assert "100.0% at d = 10" in figure._suptitle.get_text().replace("\n", " ")


def test_the_frontier_shows_each_data_set():
    figure = standard("frontier").figure
    upper, lower = np.reshape(figure.axes, (2, 2))
    for axis, others in zip(upper, ({"SA_SSC", "EXP_SSC"}, set()), strict=True):
        lines = lines_named(axis)
        assert set(lines) == {"SULQ_10"} | others
        for name in others:
            assert lines[name].get_linestyle() == "--"
            assert max(lines[name].get_xdata()) == 10.0
    for axis, level in zip(lower, (0.5, 2.0), strict=True):
        lines = lines_named(axis)
        assert set(lines) == {"MOMENTS", "BOUND", "SULQ_10"}
        np.testing.assert_allclose(lines["MOMENTS"].get_ydata(), level)
        assert lines["BOUND"].get_linestyle() == ":"
    table = standard("frontier").table
    assert set(table.loc[table["metric"] == "stated", "method"]) == {"moments"}


def test_scaling_has_a_panel_for_each_setting():
    figure = standard("scaling").figure
    titles = [axis.get_title("left") for axis in figure.axes]
    assert titles == ["ε = 1", "ε = 10", "d = 5", "d = 10", "d = 50"]
    rows = lines_named(figure.axes[4])["MOMENTS"]
    np.testing.assert_allclose(rows.get_xdata(), [1000, 10000])
    np.testing.assert_allclose(rows.get_ydata(), [0.501, 0.51])


def test_substitutes_are_named_below():
    figure = dpsc.fig2(utility((0.1, 1.0), 2, "substitute: surfaces")).figure
    notes = [legend.get_title().get_text() for legend in figure.legends]
    note = "Not comparable with the paper: substitute: surfaces"
    assert note in [figure.get_supxlabel(), *notes]


def test_panels_of_chains_show_what_they_say():
    figure = standard("fig3").figure
    starts = {"A": "exp_ssc", "B": "exp_ssc", "C": "exp_ssc", "D": "exp_ssc", "E": "gibbs_random"}
    for axis, (letter, method) in zip(figure.axes, starts.items(), strict=False):
        assert axis.get_title("left").startswith(letter)
        chains = [line for line in axis.lines if len(line.get_xdata()) == 20]
        assert len(chains) == 4 * 3
        levels = {line.get_ydata()[0] for line in chains}
        assert levels == {10 * CHAINS.index(method) + e for e in (0.1, 1.0, 10.0, 100.0)}
        for line in chains:  # one colour an epsilon
            same = [other for other in chains if same_color(other.get_color(), line.get_color())]
            assert len({other.get_ydata()[0] for other in same}) == 1
    assert list(lines_named(figure.axes[5])) == ["EXP_SSC", "EXP_LRR", "GIBBS_AGAIN"]


def test_every_method_that_is_drawn_is_run(request):
    document = load_yaml(request.config.rootpath / CONFIG)
    experiments = document["experiments"]
    for name in SIZES:
        assert set(dpsc._PRINTED) | set(dpsc._CORRECTED_METHODS) <= set(
            experiments[name]["methods"]
        )
    assert set(CHAINS) == set(experiments["dpsc_mixing"]["methods"])
    lines = [look["line"] for _, look in styles_in(document, ["dpsc_chain"])]
    assert lines == ["solid", "dashed"]
    for name in (
        *SIZES,
        "dpsc_scaling",
        "dpsc_rows",
        "dpsc_frontier",
        "dpsc_starts",
        "dpsc_starts_yale",
    ):
        looks = dict(styles_in(document, [name]))
        drawn = [m for m in looks if m not in ("ssc", "lrr", "tsc")]  # whose clusters are refined
        assert all(looks[method]["colour"] for method in drawn)
    assert dpsc._SHOWN_POINTS in experiments["dpsc_circle"]["grid"][0]["n_points"]
