"""Figure and table of the audit from made-up trials."""

import numpy as np
import pandas as pd
import pytest

from privclust_papers.audit import figures as audit
from privclust_papers.audit.cases import sweeps as audit_cases_sweeps
from privclust_papers.pipeline import words
from privclust_papers.pipeline.plan import styles_in
from privclust_papers.report.drawing.style import Results, save, styles_of
from privclust_papers.settings.config import load_yaml

CONFIG = load_yaml("config/papers/audit/paper.yaml")
FOUND = {
    "claimed_epsilon": 1.0,
    "claimed_delta": 0.0,
    "epsilon_bound": 0.7,
    "delta_bound": 0.0,
    "verdict": 0.0,
    "claimant": 0.0,
    "is_private": 1.0,
    "hits": 50.0,
    "other_hits": 20.0,
    "certifying": 100.0,
    "draws": 200.0,
    "excess": 0.0,
    "shortfall": 0.3,
    "is_surprise": 0.0,
}
CASES = {
    "control_laplace": {},
    "dpem_gamma": {
        "verdict": 1.0, "claimant": 1.0, "epsilon_bound": 3.456, "excess": 2.456,
        "delta_bound": 0.6,
    },
    "dpem_em_full": {"verdict": 1.0, "claimant": 2.0, "epsilon_bound": 0.4, "delta_bound": 0.25},
    "privatemail_pca": {"verdict": 2.0, "epsilon_bound": 0.0},
}  # fmt: skip


def trials():
    return pd.DataFrame(
        {"method": name, "label": name.upper(), "trial": 0, "source": "made", **FOUND, **values}
        for name, values in CASES.items()
    )


def costs(table):
    return pd.DataFrame({"method": table["method"], "cpu_seconds": np.arange(len(table)) + 0.26})


def results(table, name="audit_mechanisms"):
    return Results("t", {name: table}, {}, {}, pd.DataFrame(), {name: costs(table)})


def test_numbers_of_metrics_mean_the_same_as_before():
    assert words.AUDIT_VERDICTS == ("consistent", "violated", "cannot tell")
    assert words.CLAIMANTS == ("ours", "paper", "code", "copy", "nobody")


def test_no_probability_is_rounded_to_1():
    assert [audit._lower(delta) for delta in (0.126, 0.9949, 0.9958)] == ["0.13", "0.99", "0.996"]


def test_all_cases_have_a_family():
    methods = CONFIG["experiments"]["audit_mechanisms"]["methods"]
    assert {name.split("_")[0] for name in methods} == set(audit.FAMILIES)


def test_a_case_of_ones_own_stands_by_itself():
    table, name = trials(), "mine"
    mine = table.iloc[[0]].assign(method=name, label="mine")
    table = pd.concat([table, mine], ignore_index=True)
    found = audit.mechanisms_table(table, costs(table)).set_index("method")
    assert found.loc[name, "paper"] == "of your own"
    assert found.loc[name, "claim_by"] == "you"
    assert "of your own" not in set(found.drop(name)["paper"])
    axes = audit.mechanisms(results(table)).figure.axes
    titles = [axis.get_title(loc="left") for axis in axes]
    assert titles == ["controls", "DP-EM", "PrivateMail", "of your own"]
    assert [text.get_text() for text in axes[-1].get_yticklabels()] == ["mine"]


def test_the_table_says_what_was_found():
    table = audit.mechanisms_table(trials(), costs(trials())).set_index("method")
    assert list(table["cpu_seconds"]) == [0.3, 1.3, 2.3, 3.3]
    assert list(table["verdict"]) == [
        "consistent",
        "violated by at least 2.5",
        "violated: delta at least 0.25",
        "cannot tell",
    ]
    assert list(table["claim_by"]) == ["ours", "paper", "code", "ours"]
    assert table.loc["dpem_gamma", "paper"] == "DP-EM"
    assert table.loc["dpem_gamma", "epsilon_at_least"] == 3.456
    assert table.loc["control_laplace", ["hits", "other_hits", "draws"]].tolist() == [50, 20, 200]


def test_the_figure_groups_cases_and_marks_violations(tmp_path):
    drawing = audit.mechanisms(results(trials()))
    axes = drawing.figure.axes
    assert [axis.get_title(loc="left") for axis in axes] == ["controls", "DP-EM", "PrivateMail"]
    names = [label.get_text() for label in axes[1].get_yticklabels()]
    assert names == ["DPEM_GAMMA (paper)", "DPEM_EM_FULL (code)"]
    claims = [line for line in axes[1].lines if line.get_marker() == "|"]
    arrows = [line for line in axes[1].lines if line.get_marker() == ">"]
    assert [line.get_xdata()[0] for line in claims] == [1.0, 1.0]
    assert [line.get_xdata()[0] for line in arrows] == [3.456, 0.4]
    assert {line.get_color() for line in arrows}.isdisjoint(
        line.get_color() for line in axes[0].lines
    )
    assert "δ at least 0.6, claimed 0" in [text.get_text() for text in axes[1].texts]
    assert [text.get_text() for text in axes[0].texts] == ["0.3 s"]
    paths = [tmp_path / f"t.{ending}" for ending in ("svg", "png", "csv")]
    save(drawing, *paths)
    assert len(pd.read_csv(paths[2])) == len(CASES)


@pytest.mark.parametrize(
    ("largest", "verdict"), [(1.0, "not exceeded"), (1.0 + 1e-12, "not exceeded"), (2, "exceeded")]
)
def test_sensitivities(largest, verdict):
    table = pd.DataFrame(
        [
            {
                "method": "search", "label": "search", "trial": 0, "source": "made",
                "about": "counts", "claimant": 1.0, "largest": largest, "bound": 1.0,
                "ratio": largest, "exceeds": largest - 1.0, "tried": 40.0, "is_surprise": 0.0,
            }
        ]
    )  # fmt: skip
    drawing = audit.sensitivities(results(table, "audit_sensitivities"))
    row = drawing.table.iloc[0]
    assert (row["statistic"], row["stated_by"], row["verdict"]) == ("counts", "paper", verdict)
    assert row["pairs"] == 40


# --- against sweeps ----------------------------------------------------------------------------


def swept():
    rows = [
        {
            "method": method, "label": method.upper(), "trial": 0, "source": "made",
            "pair": pair, "n_sweeps": t, "n_rows": 4, **FOUND, "verdict": float(verdict),
            "excess": 0.25 * verdict, "epsilon_bound": 1.0 / t, "exact_epsilon": 2.0 / t,
            "exact_delta": 0.01, "limit_loss": 0.5, "is_convicted": float(verdict == 1),
        }
        for method in ("sweeps_random", "sweeps_data")
        for pair in ("best", "stray")
        for t, verdict in ((1, 1 if (method, pair) == ("sweeps_data", "best") else 2), (4, 2))
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    arrays = {
        ("audit_sweeps", method): {
            f"array/{i:05d}/loss_path": 2.0 / np.arange(1, t + 1)
            for i, t in enumerate(part["n_sweeps"])
        }
        for method, part in table.groupby("method")
    }
    styles = styles_of(styles_in(CONFIG, ["audit_sweeps"]))
    return Results("t", {"audit_sweeps": table}, {}, arrays, pd.DataFrame(), styles=styles)


def test_sweeps_are_drawn_beside_the_exact_loss(tmp_path):
    drawing = audit.sweeps(swept())
    first, second = drawing.figure.axes
    assert first.get_title(loc="left").startswith("A  the record decides")
    exact = [line for line in first.lines if len(line.get_xdata()) == 4]
    assert len(exact) == 2
    np.testing.assert_allclose(exact[0].get_ydata(), [2.0, 1.0, 2.0 / 3.0, 0.5])
    filled = [
        [line.get_markerfacecolor() for line in axis.lines if line.get_marker() == "s"]
        for axis in (first, second)
    ]
    color = exact[1].get_color()
    assert filled == [[color, "#ffffff"], ["#ffffff", "#ffffff"]]
    marks = [line for line in first.lines if line.get_marker() == "o"]
    assert [(m.get_xdata()[0], m.get_ydata()[0]) for m in marks] == [(1, 1.0), (4, 0.25)]
    labels = [text.get_text() for text in drawing.figure.legends[0].get_texts()]
    assert {"claimed", "exact loss, SWEEPS_DATA", "at least, SWEEPS_RANDOM"} <= set(labels)
    save(drawing, *[tmp_path / f"t.{ending}" for ending in ("svg", "png", "csv")])


def test_the_table_of_sweeps():
    results = swept()
    results.arrays["audit_sweeps", "sweeps_data"]["array/00003/loss_path"][2] = 7.0  # stray, 4
    table = audit.sweeps_table(results.trials["audit_sweeps"], results.arrays)
    assert len(table) == 8
    assert list(table.columns[:4]) == ["start", "pair", "rows", "sweeps"]
    row = table[(table["start"] == "SWEEPS_DATA") & (table["pair"] == "best")].iloc[0]
    assert (row["sweeps"], row["verdict"]) == (1, "violated by at least 0.25")
    assert (row["exact_epsilon"], row["epsilon_at_least"]) == (2.0, 1.0)
    assert (table["verdict"] == "cannot tell").sum() == 7
    data = table[table["start"] == "SWEEPS_DATA"]
    assert list(data["sweeps"]) == [1, 4, 1, 4]
    assert list(data["largest_epsilon"]) == [2.0, 2.0, 2.0, 7.0]
    assert list(data["largest_at"]) == [1, 1, 1, 3]


def test_panels_of_sweeps_are_those_of_the_cases():
    assert set(audit._PAIRS) == set(audit_cases_sweeps.PAIRS)
    looks = [look for _, look in styles_in(CONFIG, ["audit_sweeps"])]
    assert len({look["colour"] for look in looks}) == len(looks) == len(audit._SIZES)
