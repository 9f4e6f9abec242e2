"""Figures of the DP-EM paper from made-up tables."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.scale import SymmetricalLogTransform

from privclust.report.figures import save_figure
from privclust_papers.dpem import figures as dpem
from privclust_papers.pipeline.plan import styles_in
from privclust_papers.report.drawing.style import Results, save, styles_of
from privclust_papers.settings.config import load_yaml

CONFIG = load_yaml("config/papers/dpem/paper.yaml")
STYLES = styles_of(styles_in(CONFIG, CONFIG["experiments"]))
METHODS = {"em": 0.0, "cdp": 0.4, "dp": 1.0, "adaptive_cdp": 0.01}
FLOORS = dict.fromkeys(("floored_weights", "floored_means", "floored_covariances"), 0.1)


def parameters(rng):
    return {
        "weights": np.full(3, 1 / 3),
        "means": rng.uniform(-0.5, 0.5, (3, 2)),
        "covariances": np.full(3, 0.01),
    }


def results_of(axis, values, row_of, arrays_of, methods=METHODS):
    """Trials and arrays of all methods along one axis, two trials each."""
    rows, arrays = [], {}
    rng = np.random.default_rng(0)
    for method in methods:
        method_arrays = {}
        for index, (value, trial) in enumerate((v, t) for v in values for t in range(2)):
            rows.append(
                {
                    "method": method,
                    "label": method.upper(),
                    axis: value,
                    "trial": trial,
                    "source": "made",
                    **row_of(method, value),
                }
            )
            for name, array in arrays_of(rng).items():
                method_arrays[f"array/{index:05d}/{name}"] = array
        arrays["e", method] = method_arrays
    trials = pd.DataFrame(rows)
    return Results("t", {"e": trials}, {"e": trials}, arrays, pd.DataFrame(), styles=STYLES)


def likelihood_row(method, n):
    gap = METHODS.get(method, 0.5) * 1000.0 / n
    return {
        "loss": gap,
        "lower_quartile": -gap - 0.1,
        "upper_quartile": -gap + 0.1,
        "mean_error": gap,
        "beyond": float(gap > 0.05),
        "worst": gap,
        "variance": 0.01,
        **FLOORS,
    }


def written(draw, results, tmp_path):
    """Draw and write twice, and return the table; the bytes must be the same."""
    save(draw(results), *(tmp_path / f"a.{end}" for end in ("svg", "png", "csv")))
    save_figure(draw(results).figure, tmp_path / "b.svg", "svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    return pd.read_csv(tmp_path / "a.csv")


def test_fig2_tells_where_each_method_meets_em(tmp_path):
    results = results_of("n_samples", [1000, 8000, 64000], likelihood_row, parameters)
    table = written(dpem.fig2, results, tmp_path)
    crossing = table.groupby("method")["n_within_005_of_em"].first()
    assert crossing["em"] == crossing["adaptive_cdp"] == 1000
    # gaps of 0.4 at 1000 and 0.05 at 8000; and of 1.0, 0.125, 0.0156
    assert crossing["cdp"] == pytest.approx(8000)
    high, near, low = SymmetricalLogTransform(10, 0.05, 1.0).transform([0.125, 0.05, 1 / 64])
    assert crossing["dp"] == pytest.approx(8000 * 8 ** ((high - near) / (high - low)))


def test_a_method_that_never_meets_em_has_no_crossing():
    assert np.isnan(dpem._crossing(pd.Series([1.0, 0.5], index=[10, 20])))
    # a lucky point does not count: what matters is where it stays near
    assert dpem._crossing(pd.Series([0.0, 1.0, 0.0], index=[10, 20, 40])) > 20


def test_fig4_keeps_the_floors_in_its_table(tmp_path):
    results = results_of(
        "epsilon", [0.1, 1.0], lambda m, e: likelihood_row(m, 1000 * e), parameters
    )
    table = written(dpem.fig4, results, tmp_path)
    assert set(FLOORS) <= set(table.columns)
    assert (table["n"] == 2).all()


def test_fig3_shows_points_and_counts_centers_outside(tmp_path):
    def arrays(rng):
        return {
            "points": rng.uniform(-0.3, 0.3, (50, 2)),
            "centers": np.array([[0.0, 0.0], [2.0, 0.0]]),
        }

    results = results_of(
        "epsilon",
        [0.01, 1.0],
        lambda m, e: {"nicv": 0.1 / e},
        arrays,
        methods=("cdplap", "cdpgau", "dplloyd"),
    )
    table = written(dpem.fig3, results, tmp_path)
    assert {"nicv_q25", "nicv_q50", "nicv_q75"} <= set(table.columns)
    titles = [axis.get_title("left") for axis in dpem.fig3(results).figure.subfigs[1].axes]
    assert all("1 of 2 centers off the panel" in title for title in titles)


def test_fig1_and_tables(tmp_path):
    def arrays(rng):
        return {
            "points": rng.uniform(-0.3, 0.3, (9, 2)),
            "categories": np.arange(9) % 3,
            **parameters(rng),
        }

    results = results_of(
        "n_copies",
        [1, 50],
        lambda m, n: {
            "start": "uniform",
            "exposure": 0.1,
            "hidden": 1.0,
            "mean_error": 0.1,
            "em_distance": 0.1,
            **FLOORS,
        },
        arrays,
    )
    assert len(written(dpem.fig1, results, tmp_path)) == 2 * len(METHODS)
    # the box about Germany, in degrees: 6.56 of them are the ball's radius
    panel = dpem.fig1(results).figure.axes[0]
    people = panel.lines[0].get_xydata()
    assert (people > [5.5, 47.0]).all()
    assert (people < [15.5, 55.5]).all()


def test_components_are_ellipses_of_one_standard_deviation():
    """A circle, an upright and a turned one: points on each are as far from the mean as that."""
    mean, turned = np.array([0.1, -0.2]), np.array([[0.05, 0.03], [0.03, 0.04]])
    for covariances in np.array([0.04]), np.array([[0.01, 0.09]]), turned[None]:
        axis = Figure().subplots()
        arrays = {"means": mean[None], "covariances": covariances}
        dpem._ellipses(axis, arrays, STYLES["dp"], "fitted")
        (ellipse,) = axis.patches
        on_curve = ellipse.get_path().vertices[:24:3]  # the others are control points
        away = ellipse.get_patch_transform().transform(on_curve) - mean
        covariance = turned if covariances.ndim == 3 else np.diag(np.resize(covariances, 2))
        squared = (away @ np.linalg.inv(covariance) * away).sum(axis=1)
        np.testing.assert_allclose(squared, 1.0)


def test_an_indefinite_covariance_is_drawn_flat():
    shape = dpem._shape(np.array([[1.0, 1.0], [1.0, 1.0 - 1e-15]]))
    assert shape["width"] == 0.0
    assert shape["height"] == pytest.approx(2.0 * np.sqrt(2.0))


def test_means_off_a_panel_are_counted():
    axis = Figure().subplots()
    axis.set(xlim=(0.0, 1.0), ylim=(0.0, 2.0))
    points = np.array([[0.5, 1.5], [1.5, 1.0], [0.5, -0.1]])
    assert dpem._off_panel(axis, points, "means") == "2 of 3 means off the panel"
    assert dpem._off_panel(axis, points[:1], "means") == ""


def test_accuracy_tells_the_budget_that_each_method_needs(tmp_path):
    results = results_of(
        "epsilon", [1.0, 8.0, 64.0], lambda m, e: likelihood_row(m, 1000 * e), parameters
    )
    table = written(dpem.accuracy, results, tmp_path)
    assert set(table["method"]) == set(METHODS) - {"em"}
    assert table.groupby("method")["epsilon_needed"].first()["cdp"] == pytest.approx(8.0)


def test_geometry_has_a_crossing_for_each_method_and_geometry(tmp_path):
    results = results_of("n_samples", [1000, 8000, 64000], likelihood_row, parameters)
    trials = results.trials["e"]
    both = pd.concat([trials.assign(geometry="apart"), trials.assign(geometry="close")])
    results = Results("t", {"e": both}, {"e": both}, {}, pd.DataFrame(), styles=STYLES)
    table = written(dpem.geometry, results, tmp_path)
    assert len(table) == 2 * (len(METHODS) - 1)
    assert set(table["n_largest"]) == {64000}
    wide = trials[trials["n_samples"] == 64000].groupby("method")["loss"].mean()
    gaps = table.set_index(["geometry", "method"])["gap_there"]
    assert gaps["close", "dp"] == pytest.approx(wide["dp"] - wide["em"])


def test_table_has_a_row_a_point(tmp_path):
    summary = pd.DataFrame(
        [
            {
                "method": "rules",
                "label": "rules",
                "statement": s,
                "metric": "excess",
                "n": 3,
                "mean": 0.5,
                "median": 0.5,
                "std": 0.1,
                "se": 0.1,
                "min": 0.1,
                "max": 0.9,
            }
            for s in ("weights", "trace")
        ]
    )
    trials = pd.DataFrame({"method": ["rules"], "source": ["arithmetic"]})
    results = Results("t", {"e": trials}, {"e": summary}, {}, pd.DataFrame())
    table = written(dpem.table, results, tmp_path)
    assert table["statement"].tolist() == ["weights", "trace"]
