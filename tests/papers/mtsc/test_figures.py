import dataclasses

import numpy as np
import pandas as pd
import pytest

from privclust_papers.mtsc import figures as mtsc
from privclust_papers.pipeline.plan import styles_in
from privclust_papers.report.drawing.style import Results, save, styles_of
from privclust_papers.settings.config import load_yaml

SOURCE = "substitute for hopkins155"
METHODS = {"mtsc": "MTSC", "ssc": "SSC", "mine": "Mine"}
LOOKS = styles_in(load_yaml("config/papers/mtsc/paper.yaml"), ["mtsc_synthetic"])
STYLES = styles_of([look for look in LOOKS if look[0] in METHODS], ["mine"])


@pytest.fixture
def synthetic():
    rng = np.random.default_rng(0)
    rows = []
    points = [(13, 4, n) for n in (15, 20)] + [(d, 4, 16) for d in (9, 11)] + [(11, 3, 16)]
    for method, label in METHODS.items():
        for metric in ("l2_error", "l1_error", "segmentation_error"):
            for d, k, n in points:
                rows.append((method, label, d, k, n, metric, 100, rng.random(), 0.01, "generated"))
    columns = [
        *("method", "label", "dimension", "n_subspaces", "n_per_subspace", "metric", "n", "mean"),
        *("se", "source"),
    ]
    table = pd.DataFrame(rows, columns=columns)
    return Results("mtsc_fig1", {"e": table}, {"e": table}, {}, pd.DataFrame(), styles=STYLES)


@pytest.fixture
def motions():
    rng = np.random.default_rng(1)
    rows = [
        (method, label, k, split, trial, f"{k}{split}{trial % 4}", SOURCE, *rng.random(3))
        for method, label in METHODS.items()
        for k in (2, 3)
        for split in ("tuning", "report")
        for trial in range(6)
    ]
    columns = ["method", "label", "n_motions", "split", "trial", "scene", "source", "l2_error"]
    columns += ["segmentation_error", "segmentation_error_unit_columns"]
    printed = pd.DataFrame(
        [
            ("mtsc_tab2", "e", method, "segmentation_error", statistic, "n_motions=2", "1.60", 120)
            for method in ("mtsc", "ssc")
            for statistic in ("mean", "median", "std")
        ],
        columns=[
            *("target", "experiment", "method", "metric", "statistic", "select", "value", "trials"),
        ],
    )
    trials = pd.DataFrame(rows, columns=columns)
    trials["trial"] += 6 * (trials["split"] == "report") + 12 * (trials["n_motions"] == 3)
    return Results("mtsc_tab2", {"e": trials}, {}, {}, printed, styles=STYLES)


def test_fig1_draws_a_line_per_method_and_panel(synthetic):
    drawing = mtsc.fig1(synthetic)
    axes = drawing.figure.axes
    assert len(axes) == 9
    assert all(
        axis.get_ylim()[1] > max(np.max(line.get_ydata()) for line in axis.lines) for axis in axes
    )
    ends = [0, 0, 0, 1, 1, 1, 1, 1, 1]  # of the paper's axes
    assert [len(axis.lines) - len(METHODS) for axis in axes] == ends
    assert set(drawing.table["panel"]) == set("abcdef")
    line = next(line for line in axes[0].lines if line.get_label() == "MTSC")
    part = drawing.table[(drawing.table["panel"] == "a") & (drawing.table["label"] == "MTSC")]
    part = part[part["metric"] == "l2_error"]
    np.testing.assert_allclose(line.get_ydata(), part["mean"])


def test_fig2_shows_both_matrices_and_names_the_sequence():
    rng = np.random.default_rng(2)
    table = pd.DataFrame(
        {
            "method": ["mtsc", "ssc"],
            "label": ["MTSC", "SSC"],
            "sequence": "arm",
            "source": "hopkins155",
            "l2_error": 0.01,
            "segmentation_error": 0.0,
        }
    )
    arrays = {
        ("e", method): {
            "array/00000/sorted_magnitudes": rng.random((20, 20)),
            "array/00000/motion_sizes": np.array([12, 8]),
        }
        for method in ("mtsc", "ssc")
    }
    results = Results("mtsc_fig2", {"e": table}, {}, arrays, pd.DataFrame(), styles=STYLES)
    drawing = mtsc.fig2(results)
    assert sum(len(axis.images) for axis in drawing.figure.axes[:2]) == 2
    assert "arm" in drawing.figure.axes[0].get_xlabel()
    assert set(drawing.table["label"]) == {"MTSC", "SSC"}


def test_tables_have_ours_the_printed_and_substitutes(motions):
    drawing = mtsc.printed_table(motions)
    assert len(drawing.table) == 6
    assert drawing.table["n"].eq(12).all()
    assert drawing.table["n_report_split"].eq(6).all()
    assert "Not comparable" in drawing.figure._supxlabel.get_text()


def test_tables_compare_with_mtsc_on_the_same_sequences(motions):
    drawing = mtsc.printed_table(motions)
    means = drawing.table[drawing.table["statistic"] == "mean"].set_index("method")
    trials = motions.trials["e"].query("n_motions == 2")
    wide = trials.pivot_table(index="trial", columns="method", values="segmentation_error")
    more = 100.0 * (wide["ssc"] - wide["mtsc"])
    assert means.loc["ssc", "more_than_mtsc"] == pytest.approx(more.mean())
    assert means.loc["ssc", "printed_more"] == 0.0
    assert means.loc["ssc", "more_low"] < more.mean() < means.loc["ssc", "more_high"]
    assert np.isnan(means.loc["mtsc", "more_than_mtsc"])


def test_affinities_are_compared_on_both_splits(motions):
    drawing = mtsc.unit_columns(motions)
    assert len(drawing.table) == len(METHODS) * 2 * 2 * 3
    assert drawing.table.query("split == 'all'")["n"].eq(12).all()


def test_few_sequences_may_be_of_one_split(motions, tmp_path):
    (trials,) = motions.trials.values()
    for few in (trials[trials["split"] == "report"], trials[trials["n_motions"] == 2]):
        drawing = mtsc.unit_columns(dataclasses.replace(motions, trials={"e": few}))
        save(drawing, *(tmp_path / f"t.{suffix}" for suffix in ("svg", "png", "csv")))
        assert (drawing.table["n"] > 0).all()
        assert len(drawing.table) >= 4 * len(METHODS)


def test_a_users_method_has_no_printed_number(motions, tmp_path):
    drawing = mtsc.printed_table(dataclasses.replace(motions, own=("mine",)))
    save(drawing, *(tmp_path / f"t.{suffix}" for suffix in ("svg", "png", "csv")))
    table = pd.read_csv(tmp_path / "t.csv", dtype=str, keep_default_na=False).set_index("method")
    for column in ("value", "trials", "printed", "agrees"):
        assert set(table.loc["mine", column]) == {""}
        assert "" not in set(table.drop("mine")[column])
    assert set(table.loc["ssc", "trials"]) == {"120"}
    assert set(table.loc["mine", "n"]) == {"12"}


def test_settings_are_drawn_with_their_means_and_intervals(motions):
    drawing = mtsc.settings(motions)
    assert len(drawing.figure.axes) == 2
    assert len(drawing.table) == 2 * len(METHODS)
    assert drawing.table["n"].eq(12).all()
    assert (drawing.table["low"] < drawing.table["mean"]).all()
    assert (drawing.table["mean"] < drawing.table["high"]).all()


def test_figure_2_is_compared_with_ssc(motions):
    trials = motions.trials["e"]
    rng = np.random.default_rng(2)
    names = ("off_block_energy", "connectivity", "effective_entries")
    more = {name: rng.random(len(trials)) for name in names}
    rows = np.where(trials["method"] == "mtsc", 0.25, 1.0)
    trials = trials.assign(active_rows=rows, **more)
    results = dataclasses.replace(motions, target="mtsc_blocks", trials={"e": trials})
    table = mtsc.blocks(results).table.set_index(["metric", "n_motions", "label"])
    assert table.loc[("active_rows", 2, "MTSC"), "from_ssc"] == pytest.approx(-0.75)
    assert table.loc[("active_rows", 3, "MTSC"), "n_below_ssc"] == 12
    assert np.isnan(table.loc[("active_rows", 2, "SSC"), "from_ssc"])
    wide = trials[trials["n_motions"] == 3].pivot(index="trial", columns="method")["connectivity"]
    expected = (wide["mine"] - wide["ssc"]).mean()
    assert table.loc[("connectivity", 3, "Mine"), "from_ssc"] == pytest.approx(expected)


def test_ends_of_descents_are_those_of_methods_that_descend(motions):
    trials = motions.trials["e"]
    own = {name: np.where(trials["method"] == "mtsc", 1.0, np.nan) for name in mtsc._OF_DESCENTS}
    results = dataclasses.replace(motions, trials={"e": trials.assign(**own)})
    table = mtsc.descents(results).table
    assert set(table["label"]) == {"MTSC"}
    assert "from_ssc" not in table
    assert (table["mean"] == 1.0).all()


def test_every_sequence_is_in_the_tables_with_its_errors(motions):
    trials = motions.trials["e"].assign(l1_error=0.5)
    trials["sequence"] = trials["trial"].map("clip {}".format)
    results = dataclasses.replace(motions, trials={"e": trials})
    drawing, unseen = mtsc.sequences(results), mtsc.unseen(results)
    n_sequences = trials["trial"].nunique()
    assert len(drawing.table) == 3 * n_sequences
    row = trials.iloc[0]
    table = drawing.table.query("sequence == @row.sequence and metric == 'l2_error'")
    assert table[row["label"]].tolist() == [row["l2_error"]]
    assert len(unseen.table) == 3 * len(METHODS) * (1 + n_sequences)
    means = unseen.table.query("sequence == 'mean of all' and metric == 'l2_error'")
    wide = trials.pivot_table(index="trial", columns="label", values="l2_error")
    found = means.set_index("label")["from_mtsc"]
    assert found["SSC"] == pytest.approx((wide["SSC"] - wide["MTSC"]).mean())
    assert len(drawing.figure.axes) == 2


def test_intervals_keep_the_range_of_their_metric(motions):
    kinds = load_yaml("config/papers/mtsc/paper.yaml")["kinds"]
    trials = motions.trials["e"]
    one = {"segmentation_error": np.where(trials["trial"] % 12 == 0, 1.0, 0.0), "converged": 1.0}
    rest = dict.fromkeys(("objective", "n_iter", "best_run"), 0.0)
    trials = trials.assign(**one, **rest).drop(columns="scene")
    results = dataclasses.replace(motions, trials={"e": trials}, kinds=kinds)
    errors = mtsc.settings(results).table.query("metric == 'segmentation_error'")
    mean, half = 100.0 / 12.0, 2.200985 * 100.0 / 12.0  # Student's t, 11 degrees of freedom
    assert errors["low"].tolist() == [0.0] * len(errors)
    assert errors["high"].to_numpy() == pytest.approx(mean + half)
    shares = mtsc.descents(results).table.set_index("metric")
    exact = 0.025 ** (1 / 12)  # Clopper and Pearson, 12 of 12
    assert shares.loc["converged", "low"].to_numpy() == pytest.approx(exact)
    assert (shares.loc["converged", "high"] == 1.0).all()
    assert shares.loc["best_run", "high"].to_numpy() == pytest.approx(1.0 - exact)
