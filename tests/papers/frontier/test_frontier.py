"""The frontier's table: its protocol, its printed numbers, and its picture."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from privclust.kmeans import CompressiveKMeans, LloydKMeans
from privclust_papers.datasets import fastlloyd
from privclust_papers.frontier import data, figures
from privclust_papers.frontier.printed import PRIVATE, ROUNDING, SCORES, best_private
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.report.drawing.style import Results, styles_of
from privclust_papers.settings.config import ConfigError

SPEC = {"seed": 1, "paper": "frontier", "experiment": "frontier_synthetic", "swept": []}
SPEC["method"] = {"name": "compressive"}
STREAMS = TrialStreams(SPEC, {}, 0)
CONFIG = Path(__file__).parents[3] / "config" / "papers" / "frontier"


def trial(name, scaling="data", k=None):
    made = data.synthetic_trial({"set": name, "scaling": scaling}, 0, None, None)
    if k is not None:
        made.extra["n_clusters"] = k
    return made


@pytest.mark.parametrize("name", [name for name in SCORES if name.startswith("sklearn")])
def test_sets_have_the_clusters_and_features_of_their_name(name):
    k, d = map(int, name.split("_")[1:])
    if d > 64:
        pytest.skip("the same with more features")
    made = trial(name)
    assert made.X.shape == (20_000, d)
    assert made.extra["n_clusters"] == k
    assert np.linalg.norm(made.X, axis=1).max() == pytest.approx(1.0)
    assert np.abs(made.X.mean(axis=0)).max() < 1e-12
    raw = trial(name, "public")
    assert (np.abs(raw.X) <= raw.extra["bounds"][1]).all()
    np.testing.assert_array_equal(raw.X, raw.X.round(4))


def test_iris():
    made = trial("iris", "public")
    low, high = made.extra["bounds"]
    assert len(made.X) == 150
    assert low < made.X.min() < made.X.max() < high


@pytest.mark.parametrize(
    ("name", "k", "shape"),
    [("g2_64", 2, (2048, 64)), ("birch2", 100, (25_000, 2)), ("scale_16_4", 16, (10_000, 4))],
)
def test_sets_of_files(name, k, shape):
    sets = fastlloyd.generate_g2(1) | fastlloyd.generate_real(1) | fastlloyd.generate_scale(1)
    point = {"set": name, "scaling": "data"}
    made = data.archived_trial(point, 0, None, sets | {"source": "drawn"})
    assert made.X.shape == shape
    assert (made.extra["n_clusters"], made.source) == (k, "drawn")
    assert np.linalg.norm(made.X, axis=1).max() == pytest.approx(1.0)
    if name.startswith("g2_"):
        raw = data.archived_trial(point | {"scaling": "public"}, 0, None, sets | {"source": "x"})
        assert raw.extra["bounds"][0] < raw.X.min() < raw.X.max() < raw.extra["bounds"][1]
    else:
        with pytest.raises(ConfigError, match="nothing public"):
            data.archived_trial(point | {"scaling": "public"}, 0, None, sets | {"source": "x"})


def test_the_gas_turbines_have_a_year_or_not():
    rows = np.random.default_rng(0).normal(size=(20, 12))
    for name, width in (("gas", 12), ("gas_11", 11)):
        made = data.archived_trial(
            {"set": name, "scaling": "data"}, 0, None, {"X": rows, "source": "drawn"}
        )
        centered = rows[:, -width:] - rows[:, -width:].mean(axis=0)
        np.testing.assert_allclose(made.X, centered / np.linalg.norm(centered, axis=1).max())


def test_a_constant_loss_counts_by_the_length_of_the_epsilons():
    X = np.array([[-1.0], [1.0]])
    made = TrialData(X, None, "", extra={"scale": 2.0})
    at_zero = data.evaluate_budgets(made, {"centers": np.zeros((5, 1, 1))})
    assert at_zero["loss_0_25"] == at_zero["loss_4"] == 0.25
    assert at_zero["score"] == 3.75 * 0.25
    centers = np.zeros((5, 1, 1))
    centers[0] = 1.0  # twice the loss at the first budget: half an interval of 0.25 more
    assert data.evaluate_budgets(made, {"centers": centers})["score"] == 0.25 * (3.75 + 0.125)


def test_losses_are_in_the_same_units_however_rows_are_scaled():
    scores = []
    for scaling in ("data", "public"):
        made = trial("iris", scaling)
        outputs = data.fit_budgets(LloydKMeans, {"n_init": 20}, made, STREAMS)
        assert outputs["centers"].shape == (5, 3, 4)
        scores.append(data.evaluate_budgets(made, outputs)["score"])
    assert scores[0] == pytest.approx(scores[1], rel=1e-3)
    assert scores[0] == pytest.approx(SCORES["iris"][0], rel=0.02)  # the best start of theirs too


def test_each_budget_is_spent_on_a_fit_of_its_own():
    budgets = []

    class Noted(CompressiveKMeans):
        def fit(self, X, y=None):
            budgets.append((self.epsilon, self.delta, self.neighbours))
            self.cluster_centers_ = np.full((self.n_clusters, X.shape[1]), self.epsilon)
            return self

    outputs = data.fit_budgets(Noted, {"neighbours": "add_remove"}, trial("iris"), STREAMS)
    assert [epsilon for epsilon, *_ in budgets] == list(data.EPSILONS)
    assert {delta for _, delta, _ in budgets} == {150**-1.1}
    assert outputs["centers"][:, 0, 0].tolist() == list(data.EPSILONS)


def test_claims_and_printed_numbers_are_those_of_the_table():
    claims = yaml.safe_load((CONFIG / "claims.yaml").read_text())
    checks = {
        claim["id"].removeprefix("frontier_"): claim["check"]
        for claim in claims
        if claim["check"].get("metric") == "score"
    }
    assert {(check["kind"], check["rounding"]) for check in checks.values()} == {
        ("below", ROUNDING)
    }
    names = {name: name.removesuffix("_front") for name in checks}  # by another method of ours
    for name, check in checks.items():  # of an experiment of one set, or of its own rows
        assert check.get("select", f"set={names[name]}") == f"set={names[name]}"
        assert "select" in check or name == "letter"
    assert {name: check["bound"] for name, check in checks.items()} == {
        name: best_private(row) for name, row in names.items()
    }
    assert set(names.values()) == set(SCORES)
    printed = pd.read_csv(CONFIG / "printed.csv")
    names = printed["select"].str.removeprefix("set=").fillna("letter")
    assert printed["value"].tolist() == [round(100 * SCORES[name][0], 2) for name in names]
    assert set(names) == {name for name in SCORES if name.startswith(("sklearn", "iris", "letter"))}
    assert all(len(row) == 1 + len(PRIVATE) for row in SCORES.values())


@pytest.mark.parametrize("n_trials", [1, 3])
def test_the_table_has_a_line_for_each_set(n_trials):
    rows = [
        {"set": name, "method": method, "label": method, "score": 0.1 + 0.01 * i, "source": "x"}
        for name in ("sklearn_4_4", "g2_4")
        for method in ("compressive", "lloyd")
        for i in range(n_trials)
    ]
    made = pd.DataFrame(rows)
    letter = made[made["set"] == "g2_4"].drop(columns="set")
    trials = {"frontier_synthetic": made, "frontier_letter": letter}
    looks = [("compressive", {"colour": "vermillion", "marker": "o", "promise": "private"})]
    looks.append(("lloyd", {"colour": "black", "promise": "none"}))
    results = Results("frontier_tab1", trials, {}, {}, pd.DataFrame(), styles=styles_of(looks))
    drawing = figures.scores(results)
    table = drawing.table
    assert list(dict.fromkeys(table["set"])) == ["sklearn_4_4", "letter", "g2_4"]
    assert (table["n"] == n_trials).all()
    assert table.loc[table["set"] == "letter", "PE"].tolist() == [0.2852] * 2
    (axis,) = drawing.figure.axes
    assert [text.get_text() for text in axis.get_yticklabels()] == ["g2_4", "letter", "sklearn_4_4"]
