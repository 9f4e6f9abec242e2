"""Figures of the compressive k-means paper from made-up tables."""

from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import colors
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from privclust_papers.ckm import figures as ckm
from privclust_papers.ckm import panels as ckm_panels
from privclust_papers.pipeline.plan import styles_in
from privclust_papers.pipeline.tables import summary_table
from privclust_papers.report.drawing.style import Results, styles_of
from privclust_papers.settings.config import load_yaml

CONFIG = Path(__file__).parents[3] / "config/papers/ckm/paper.yaml"
FAMILIES = {
    "noise_full": "noise, alpha_r = 1",
    "noise_tenth": "noise, alpha_r = 0.1",
    "mask_only": "masks, sigma_xi = 0",
    "mask_noisy": "masks, sigma_xi = 2",
}
TRADEOFFS = {
    "ckm_l1_m10": "CKM, L = 1, m = 10kd",
    "ckm_l1_m10_a10": "CKM, L = 1, m = 10kd, alpha_r = 0.1",
    "ckm_l1_m20_a10": "CKM, L = 1, m = 20kd, alpha_r = 0.1",
    "ckm_l1_m20_a1": "CKM, L = 1, m = 20kd, alpha_r = 0.01",
    "ckm_l1_m5": "CKM, L = 1, m = 5kd",
    "ckm_l1_m20": "CKM, L = 1, m = 20kd",
    "ckm_l10_m10": "CKM, L = 10, m = 10kd",
    "ckm_l100_m10": "CKM, L = 100, m = 10kd",
    "ckm_l1000_m10": "CKM, L = 1000, m = 10kd",
    "dplloyd_uniform": "DPLloyd, uniform start",
    "dplloyd_separated": "DPLloyd, separated start",
    "eugkm_addremove": "EUGkM",
    "ckm_l1_m10_gaussian": "CKM, L = 1, m = 10kd, Gaussian atoms",
    "ckm_l1_m5_gaussian": "CKM, L = 1, m = 5kd, Gaussian atoms",
    "ckm_l1_m20_gaussian": "CKM, L = 1, m = 20kd, Gaussian atoms",
    "ckm_l100_m10_gaussian": "CKM, L = 100, m = 10kd, Gaussian atoms",
    "normal_l1_m10": "CKM, Gaussian noise, Gaussian atoms",
    "dplloyd_separated_corrected": "DPLloyd, replace-one",
    "eugkm": "EUGkM, replace-one",
    "lloyd": "Lloyd, 3 replicates",
}
PRIVATE = {
    "compressive": "CompressiveKMeans",
    "compressive_clompr": "CompressiveKMeans, Fourier, CL-OMPR",
    "dplloyd_uniform": "DPLloyd, uniform start",
    "dplloyd_separated": "DPLloyd, separated start",
    "eugkm": "EUGkM",
    "mixture_kmeans": "Gaussian means (PLD)",
    "adaptive": "adaptive frames",
    "lloyd": "Lloyd",
}
DECODERS = {
    "clompr": "CL-OMPR",
    "gaussian": "Gaussian atoms",
    "gaussian_shared": "Gaussian atoms, one variance",
    "lloyd": "Lloyd, 3 replicates",
}
SIZES = {"n_samples": 100_000, "n_clusters": 10, "n_features": 10}


def trials_of(methods, points, n_trials, values_of, source="made"):
    """Trials of all methods at all points; `values_of` returns the metrics of one row."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "method": method,
            "label": label,
            **point,
            "trial": trial,
            "source": source,
            **values_of(method, point, rng),
        }
        for method, label in methods.items()
        for point in points
        for trial in range(n_trials)
    ]
    return pd.DataFrame(rows)


def results_of(tables):
    summaries = {}
    for name, trials in tables.items():
        columns = list(trials.columns)
        metrics = columns[columns.index("source") + 1 :]
        axes = columns[2 : columns.index("trial")]
        summaries[name] = summary_table(trials, metrics, axes)
    styles = styles_of(styles_in(load_yaml(CONFIG), tables))
    return Results("t", tables, summaries, {}, pd.DataFrame(), styles=styles)


def both(value):
    return {"relative_sse": value, "relative_sse_true": 1.02 * value}


def snr_values(method, point, rng):
    if method.startswith("mask") and point["snr"] > 2000.0:
        return both(float("nan"))
    ours = 0.5 if method.endswith("_gaussian") else 1.0
    return both(1.0 + ours * 2.5 * rng.lognormal(0.0, 0.3) / (1.0 + point["snr"] / 4.0))


def grid_values(method, point, rng):
    if method == "lloyd":
        return both(1.0)
    strength = 30.0 if method == "clompr" else 100.0
    noise = 1.0 + 0.2 * rng.random() + strength / (point["snr"] * point["m_factor"]) ** 1.2
    return both(noise + 0.5 / point["m_factor"])


def privacy_values(method, point, rng):
    epsilon = point["epsilon"]
    if method == "lloyd":
        return both(1.0)
    if method.startswith("eugkm") and epsilon > 0.01:
        return both(float("nan"))
    place = list({**TRADEOFFS, **PRIVATE}).index(method)
    scale = 10.0 ** (-3.2 + 0.12 * (place % 10))
    return both(0.97 + 6.0 * rng.lognormal(0.0, 0.1) / (1.0 + (epsilon / scale) ** 1.5))


def snr_grid(n_snr, n_factors, n_trials):
    families = {
        **FAMILIES,
        **{f"{m}_gaussian": f"{n}, Gaussian atoms" for m, n in FAMILIES.items()},
    }
    snr = np.geomspace(1.0, 1e4, n_snr)
    factors = np.geomspace(0.5, 30.0, n_factors)
    grid = [{"snr": s, "m_factor": f, **SIZES} for s in snr for f in factors]
    methods = {name: DECODERS[name] for name in ("clompr", "gaussian", "lloyd")}
    return results_of(
        {
            "ckm_snr": trials_of(
                families, [{"snr": s, **SIZES} for s in snr], n_trials, snr_values
            ),
            "ckm_grid": trials_of(methods, grid, n_trials, grid_values),
        }
    )


def tradeoffs(n_epsilon, n_trials):
    points = [{"epsilon": e, **SIZES} for e in np.geomspace(1e-4, 1.0, n_epsilon)]
    return results_of({"ckm_privacy": trials_of(TRADEOFFS, points, n_trials, privacy_values)})


def measured_snr(n_settings, n_trials):
    rng = np.random.default_rng(1)
    points = [
        {
            "alpha_r": float(a),
            "sigma_xi": float(s),
            "n_devices": 2**i,
            "device_size": 10_000,
            "repeats": 20,
        }
        for i, (a, s) in enumerate(rng.random((n_settings, 2)))
    ]
    mixtures = [
        {"n_clusters": k, "n_features": d} for k in (2, 5, 10, 20, 50) for d in (2, 5, 10, 20)
    ]

    laws = {"fixed": "scale given", "estimated": "scale estimated"}

    def values(method, point, rng):
        snr = 1e4 * point["alpha_r"]
        ratio = float(rng.normal(1.0, 0.01))
        return {
            "snr_measured": ratio * snr,
            "snr_eq6": snr,
            "snr_eq7": snr,
            "ratio": ratio,
            "ratio_eq7": 1.1 * ratio,
            "error": abs(float(np.log(ratio))),
            "norm2": 0.33,
        }

    def norm(method, point, rng):
        norm2 = 0.30 + 0.05 * rng.random() + 0.01 * point["n_features"] / 10.0
        return {"norm2": norm2, "norm2_error": abs(norm2 - 0.35)}

    return results_of(
        {
            "ckm_tab_snr": trials_of({"sketch": "sketch"}, points, n_trials, values),
            "ckm_norm": trials_of(laws, mixtures, n_trials, norm),
        }
    )


def private_methods(n_epsilon, n_trials, shapes=("paper", "unequal", "elongated", "unbalanced")):
    values = np.geomspace(0.01, 10.0, n_epsilon)
    shaped = [{"shape": s, "epsilon": e, **SIZES} for s in shapes for e in values]
    plain = [{"n_clusters": 5, "epsilon": e} for e in values]
    tables = {"ckm_beyond": trials_of(PRIVATE, shaped, n_trials, privacy_values)}
    for name in ("ckm_s1", "ckm_gowalla", "ckm_lifesci"):
        source = "substitute: a part of Gowalla" if name == "ckm_gowalla" else "made"
        tables[name] = trials_of(PRIVATE, plain, n_trials, privacy_values, source)
    return results_of(tables)


def without_noise(n_trials):
    def values(method, point, rng):
        return both(1.0 if method == "lloyd" else float(1.0 + 0.2 * rng.exponential()))

    return results_of({"ckm_decoders": trials_of(DECODERS, [SIZES], n_trials, values)})


def goals(n_trials):
    methods = ("compressive", "dplloyd_uniform", "dplloyd_separated", "eugkm", "lloyd")
    points = [{"epsilon": e, **SIZES} for e in (0.01, 0.03, 0.1, 1.0)]
    kept = {name: PRIVATE[name] for name in methods}
    return results_of({"ckm_goal": trials_of(kept, points, n_trials, privacy_values)})


def sizes(ks, n_trials):
    methods = ("compressive", "dplloyd_separated", "eugkm", "lloyd")
    points = [
        {"epsilon": e, "n_samples": 1000, "n_clusters": k, "n_features": d}
        for k in ks
        for d in (2, 10)
        for e in (0.1, 1.0)
    ]
    kept = {name: PRIVATE[name] for name in methods}
    return results_of({"ckm_sizes": trials_of(kept, points, n_trials, privacy_values)})


def listed(n_statements, n_trials):
    points = [{"statement": f"proposition_1_as_printed_{i}"} for i in range(n_statements)]

    def values(method, point, rng):
        return {"excess": float(rng.normal())}

    return results_of({"ckm_statements": trials_of({"rules": "rules"}, points, n_trials, values)})


def timed(n_trials):
    points = [{"precision": p, **SIZES} for p in ("float64", "float32")]
    points.append({**points[1], "n_samples": 1_000_000})
    names = ("cost_sketch", "cost_tenth", "dplloyd_separated")

    def values(method, point, rng):
        seconds = point["n_samples"] / SIZES["n_samples"] * (1.0 + names.index(method))
        return {"cpu_s": seconds, "of_reference": 1.0}

    methods = {name: name for name in names}
    return results_of({"ckm_costs": trials_of(methods, points, n_trials, values)})


CROWDED = {
    "fig2": snr_grid(9, 12, 6),
    "fig3": tradeoffs(9, 5),
    "tab_snr": measured_snr(12, 4),
    "beyond": private_methods(7, 4),
    "decoders": without_noise(20),
    "goal": goals(5),
    "many_sizes": sizes((5, 20, 50), 5),
    "statements": listed(12, 4),
    "scale": listed(3, 1),
    "costs": timed(5),
}
SPARSE = {
    "fig2": snr_grid(3, 1, 1),
    "fig3": tradeoffs(1, 1),
    "tab_snr": measured_snr(1, 1),
    "beyond": private_methods(1, 1, ("paper",)),
    "decoders": without_noise(1),
    "goal": goals(1),
    "many_sizes": sizes((5,), 1),
    "statements": listed(1, 1),
    "scale": listed(1, 1),
    "costs": timed(1),
}


@cache
def crowded(name):
    """The drawing of a full run, laid out, which tests only read."""
    drawing = getattr(ckm, name)(CROWDED[name])
    drawing.figure.draw_without_rendering()
    return drawing


def drawn(name, results):
    """Draw everything, without the time that a layout takes."""
    drawing = getattr(ckm, name)(results)
    drawing.figure.set_layout_engine("none")
    drawing.figure.draw_without_rendering()
    return drawing


def edited(results, edit):
    tables = {name: edit(trials) for name, trials in results.trials.items()}
    return replace(results, trials=tables)


def texts(figure):
    """All letters of a figure that are drawn outside tables."""
    words = [figure.get_suptitle(), figure.get_supxlabel()]
    for part in figure.subfigs:
        words += texts(part)
    for axis in figure.axes:
        words += [axis.get_title("left"), *(text.get_text() for text in axis.texts)]
    return words


def legend_names(axis):
    legend = axis.get_legend()
    return [text.get_text() for text in legend.get_texts()] if legend else []


def line_named(axis, name):
    (line,) = [line for line in axis.lines if line.get_label() == name]
    return line


@pytest.mark.parametrize("name", list(SPARSE))
def test_one_trial_and_few_points_can_be_drawn(name):
    assert len(drawn(name, SPARSE[name]).table)


@pytest.mark.parametrize("name", ["fig2", "fig3", "beyond", "decoders", "goal", "many_sizes"])
def test_a_figure_without_finite_errors_says_so(name):
    columns = {metric: float("nan") for metric in ckm_panels.METRICS}
    results = edited(SPARSE[name], lambda trials: trials.assign(**columns))
    table = drawn(name, results).table
    assert (table["n"] == 0).all()


@pytest.mark.parametrize("name", ["fig2", "fig3", "beyond", "decoders", "goal", "many_sizes"])
def test_a_method_alone_can_be_drawn(name):
    first = {
        experiment: trials["method"].iloc[0] for experiment, trials in SPARSE[name].trials.items()
    }
    results = edited(SPARSE[name], lambda t: t[t["method"].isin(first.values())])
    assert set(drawn(name, results).table["method"]) == set(first.values())


@pytest.mark.parametrize("name", list(SPARSE))
def test_substitutes_are_named(name):
    results = edited(SPARSE[name], lambda trials: trials.assign(source="substitute: made here"))
    assert any(
        "substitute: made here" in text for text in texts(getattr(ckm, name)(results).figure)
    )


def test_statistics_leave_out_what_is_not_finite():
    trials = pd.DataFrame(
        {
            "method": "m",
            "label": "M",
            "x": [1, 1, 1, 1, 2],
            "relative_sse": [1.0, 2.0, 4.0, np.inf, np.nan],
        }
    )
    first, second = (row for _, row in ckm_panels.statistics(trials, ["x"]).iterrows())
    assert (first["n"], first["median"], first["max"]) == (3, 2.0, 4.0)
    assert first["q25"] == 1.5
    assert second["n"] == 0
    assert np.isnan(second["median"])


def test_fig2_has_a_panel_a_decoder_with_the_same_colours():
    results = CROWDED["fig2"]
    drawing = crowded("fig2")
    top, bottom = drawing.figure.subfigs
    published, ours = top.axes
    assert legend_names(published) == list(FAMILIES.values())
    assert legend_names(ours) == [f"{name}, Gaussian atoms" for name in FAMILIES.values()]
    for name in FAMILIES.values():
        twin = line_named(ours, f"{name}, Gaussian atoms")
        assert line_named(published, name).get_color() == twin.get_color()
    assert [axis.get_title("left").split(": ")[1] for axis in bottom.axes[:2]] == [
        DECODERS["clompr"],
        DECODERS["gaussian"],
    ]
    mine = results.trials["ckm_snr"].query("method == 'mask_only'")
    medians = mine.groupby("snr")["relative_sse"].median().dropna()
    drawn = line_named(published, FAMILIES["mask_only"])
    np.testing.assert_allclose(drawn.get_xdata(), medians.index)
    np.testing.assert_allclose(drawn.get_ydata(), medians)


def test_heat_maps_put_each_mean_in_the_cell_of_its_point():
    results = CROWDED["fig2"]
    axis = crowded("fig2").figure.subfigs[1].axes[0]
    mesh = axis.collections[0]
    corners = mesh.get_coordinates()
    trials = results.trials["ckm_grid"].query("method == 'clompr'")
    means = trials.groupby(["m_factor", "snr"])["relative_sse"].mean()
    values = mesh.get_array()
    assert values.size == len(means)
    for (factor, snr), mean in means.items():
        row = np.searchsorted(corners[:, 0, 1], factor) - 1
        column = np.searchsorted(corners[0, :, 0], snr) - 1
        assert values[row, column] == pytest.approx(mean)
    equal = line_named(axis, "m = kd")
    assert set(equal.get_ydata()) == {1.0}
    assert equal.get_linestyle() == "--"
    product = line_named(axis, "SNR m/(kd) = 100")
    np.testing.assert_allclose(product.get_xdata() * product.get_ydata(), 100.0)


def test_fig3_separates_devices_sketches_and_ours():
    devices, sketches, ours = crowded("fig3").figure.axes
    assert [len(legend_names(axis)) for axis in (devices, sketches, ours)] == [7, 7, 7]
    assert "EUGkM (up to 0.01)" in legend_names(devices)
    assert "EUGkM, replace-one (up to 0.01)" in legend_names(ours)
    assert not any("Lloyd, 3 replicates" in name for name in legend_names(ours))
    by_devices = [line_named(devices, f"CKM, L = {n}, m = 10kd") for n in (1, 10, 100, 1000)]
    assert len({line.get_color() for line in by_devices}) == 4
    one = [line for line in sketches.lines if str(line.get_label()).startswith("CKM, L = 1,")]
    assert len({(line.get_color(), line.get_marker()) for line in one}) == 6
    for axis in (devices, sketches):
        dashed = [line for line in axis.lines if line.get_linestyle() == "--"]
        assert {line.get_label().split(",")[0] for line in dashed} == {"CKM"}  # as in the paper
    assert line_named(sketches, "CKM, L = 1, m = 10kd, alpha_r = 0.1") not in dashed


def test_a_short_axis_names_each_budget_and_no_two_labels_meet():
    points = [{"epsilon": e, **SIZES} for e in (0.03, 0.1, 0.3)]
    results = results_of({"ckm_privacy": trials_of(TRADEOFFS, points, 1, privacy_values)})
    figure = ckm.fig3(results).figure
    figure.draw_without_rendering()
    for axis in figure.axes:
        shown = [label for label in axis.get_xticklabels(which="both") if label.get_text()]
        assert [label.get_text() for label in shown] == ["0.03", "0.1", "0.3"]
        boxes = [label.get_window_extent() for label in shown]
        assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_every_method_of_the_config_has_a_look_of_its_own():
    config = load_yaml(CONFIG)
    for name in ("ckm_snr", "ckm_privacy", "ckm_decoders", "ckm_beyond", "ckm_goal"):
        looks = dict(styles_in(config, [name]))
        assert looks.keys() == config["experiments"][name]["methods"].keys()
        published = {m: look for m, look in looks.items() if not m.endswith(ckm._OURS)}
        assert len({str(look) for look in published.values()}) == len(published)
        for method, look in published.items():  # with our decoder a method looks the same
            assert looks.get(method + ckm._OURS, look) == look
    assert {*ckm._DEVICES, *ckm._SKETCHES} <= set(config["experiments"]["ckm_privacy"]["methods"])


def test_curves_of_a_panel_look_different():
    for figure in (crowded("fig3").figure, crowded("beyond").figure):
        for axis in figure.axes:
            looks = [
                (colors.to_hex(line.get_color()), line.get_marker(), line.get_linestyle())
                for line in axis.lines
                if not str(line.get_label()).startswith("_")
            ]
            assert len(set(looks)) == len(looks)


def test_methods_come_in_one_order_whatever_that_of_the_table():
    def turned(trials):
        return trials.iloc[::-1].reset_index(drop=True)

    figure = ckm.fig3(edited(CROWDED["fig3"], turned)).figure
    for axis, expected in zip(figure.axes, crowded("fig3").figure.axes, strict=True):
        assert legend_names(axis) == legend_names(expected)


def test_a_panel_of_relative_sse_is_cut_high_up():
    def edit(trials):
        far = trials["epsilon"] < 1e-3
        return trials.assign(relative_sse=trials["relative_sse"].where(~far, 1e6))

    figure = ckm.fig3(edited(CROWDED["fig3"], edit)).figure
    assert figure.axes[0].get_ylim()[1] == 40.0
    assert "above 40 leave" in figure.get_suptitle()
    assert "above 40 leave" not in crowded("fig3").figure.get_suptitle()


def test_tab_snr_has_a_row_a_setting_and_a_map_a_law():
    drawing = crowded("tab_snr")
    top, bottom = drawing.figure.subfigs
    cells = top.axes[0].tables[0].get_celld()
    heads = [cells[0, column].get_text().get_text() for column in range(9)]
    assert heads[:5] == ["share α", "noise σ", "devices L", "measured", "eq. (6)"]
    assert max(row for row, _ in cells) == 12
    assert "device size = 10,000" in top.get_suptitle()
    assert [axis.get_title("left").split(": ")[0] for axis in bottom.axes] == [
        "scale given",
        "scale estimated",
    ]
    norms = drawing.table.query("metric == 'norm2' and experiment == 'ckm_norm'")
    assert len(norms) == 2 * 20
    means = norms.query("label == 'scale given'").sort_values(["n_clusters", "n_features"])["mean"]
    written = [float(text.get_text().split("\n")[0]) for text in bottom.axes[0].texts]
    np.testing.assert_allclose(written, means, atol=5e-4)


def test_costs_have_a_row_a_method_and_a_column_a_kind_of_rows():
    (axis,) = crowded("costs").figure.axes
    cells = axis.tables[0].get_celld()
    heads = [" ".join(cells[0, column].get_text().get_text().split()) for column in range(7)]
    assert heads[1:4] == [
        "100,000 rows, float64: CPU s",
        "100,000 rows, float32: CPU s",
        "1,000,000 rows, float32: CPU s",
    ]
    assert [cells[row, 1].get_text().get_text() for row in (1, 2, 3)] == ["3.000", "1.000", "2.000"]
    assert [cells[row, 3].get_text().get_text() for row in (1, 2, 3)] == [
        "30.000",
        "10.000",
        "20.000",
    ]


def test_tables_keep_settings_that_a_method_has_not():
    trials = trials_of(
        {"a": "A"}, [{"x": 1, "y": np.nan}, {"x": 1, "y": 2.0}], 2, lambda *_: {"ratio": 1.0}
    )
    wide = ckm._wide(ckm_panels.statistics(trials, ["x", "y"], ["ratio"]), ["x", "y"])
    assert list(wide.columns) == ["y", "ratio"]
    assert wide["y"].isna().tolist() == [True, False]


def test_a_data_set_alone_shares_the_width_with_the_names():
    whole = SPARSE["beyond"]
    drawing = ckm.beyond(replace(whole, trials={"ckm_s1": whole.trials["ckm_s1"]}))
    panel, names = drawing.figure.axes
    drawing.figure.draw_without_rendering()
    assert panel.get_position().width > 0.35
    assert len(names.get_legend().get_texts()) == whole.trials["ckm_s1"]["method"].nunique() - 1


def test_beyond_has_four_data_sets_and_marks_the_substitute():
    drawing = crowded("beyond")
    titles = [axis.get_title("left").split("\n")[0] for axis in drawing.figure.axes[:7]]
    assert titles[:4] == ["mixture", "S1", "Gowalla (substitute)", "Life Sciences"]
    assert titles[4:] == ["unequal", "elongated", "unbalanced"]
    names = [name.replace("\n", " ") for name in legend_names(drawing.figure.axes[7])]
    assert names == [label for method, label in PRIVATE.items() if method != "lloyd"]


def test_an_error_below_the_reference_is_on_the_lowest_tick():
    axis = crowded("beyond").figure.axes[0]
    heights = line_named(axis, "adaptive frames").get_ydata()
    assert heights[-1] == 1e-3
    (lowest,) = [tick for tick in axis.get_yticks() if np.isclose(tick, 1e-3)]
    assert axis.yaxis.get_major_formatter()(lowest, 0) == "1.001"
    assert axis.get_ylim()[0] < 1e-3


def test_names_have_room_if_long_or_all_places_are_taken():
    def renamed(trials):
        return trials.assign(label=trials["label"] + ", (epsilon, 1e-6)-DP by PLD")

    for results in (SPARSE["beyond"], edited(CROWDED["beyond"], renamed)):
        figure = ckm.beyond(results).figure
        figure.draw_without_rendering()
        boxes = [axis.get_window_extent() for axis in figure.axes[:-1]]
        (legend,) = [axis.get_legend() for axis in figure.axes if axis.get_legend()]
        place = legend.get_window_extent()
        assert figure.bbox.x0 <= place.x0
        assert place.x1 <= figure.bbox.x1
        assert not any(place.overlaps(box) for box in boxes)
        assert len({round(box.width) for box in boxes}) == 1


@pytest.mark.parametrize("name", ["fig2", "fig3", "goal"])
def test_names_below_neighbouring_panels_do_not_meet(name):
    figure = crowded(name).figure
    for part in [figure, *figure.subfigs]:
        legends = [axis.get_legend() for axis in part.axes if axis.get_legend()]
        places = [legend.get_window_extent() for legend in legends]
        assert not any(a.overlaps(b) for i, a in enumerate(places) for b in places[:i])
        assert all(figure.bbox.x0 <= p.x0 and p.x1 <= figure.bbox.x1 for p in places)


@pytest.mark.parametrize("name", ["tab_snr", "decoders", "goal"])
def test_tables_are_no_wider_than_their_panel(name):
    figure = crowded(name).figure
    renderer = FigureCanvasAgg(figure).get_renderer()
    for part in figure.subfigs:
        for axis in part.axes:
            for table in axis.tables:
                place = table.get_window_extent(renderer)
                assert part.bbox.x0 <= place.x0
                assert place.x1 <= part.bbox.x1


def test_decoders_show_every_trial_and_their_worst():
    results = CROWDED["decoders"]
    drawing = crowded("decoders")
    top, bottom = drawing.figure.subfigs
    points = [line for line in top.axes[0].lines if len(line.get_xdata()) == 20]
    assert len(points) == len(DECODERS)
    cells = bottom.axes[0].tables[0].get_celld()
    clompr = results.trials["ckm_decoders"].query("method == 'clompr'")
    written = [cells[1, column].get_text().get_text() for column in (1, 2, 3)]
    expected = clompr["relative_sse"].agg(["median", "mean", "max"])
    assert written == [f"{value:.3f}" for value in expected]


def test_goal_writes_medians_and_worst_against_the_true_means():
    results = CROWDED["goal"]
    bottom = crowded("goal").figure.subfigs[1]
    cells = bottom.axes[0].tables[0].get_celld()
    mine = results.trials["ckm_goal"].query("method == 'compressive' and epsilon == 0.03")
    values = mine["relative_sse_true"]
    assert cells[1, 2].get_text().get_text() == f"{values.median():.3f} ({values.max():.3f})"
    eugkm = [cells[4, column].get_text().get_text() for column in (3, 4)]
    assert eugkm == ["n/a", "n/a"]


def test_statements_have_a_row_each():
    drawing = crowded("statements")
    assert len(drawing.table) == 12
    cells = drawing.figure.axes[0].tables[0].get_celld()
    heads = [cells[0, column].get_text().get_text() for column in range(6)]
    assert heads == ["statement", "n", "mean", "median", "min", "max"]


def test_an_axis_between_two_ticks_has_ticks_of_its_own():
    table = pd.DataFrame({"n": [3, 3], "median": [49.7, 49.8]})
    axis = Figure().subplots()
    ckm_panels.excess_scale(axis, table)
    axis.figure.draw_without_rendering()
    assert [text.get_text() for text in axis.get_yticklabels()] == ["50.7", "50.8"]
