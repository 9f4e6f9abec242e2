import numpy as np
import pandas as pd
import pytest

from privclust.comparison import PRINTED_COLUMNS, bootstrap_interval, compare, select
from privclust.verdicts import judge

HEAD = {"id": "c", "paper": "p", "target": "t", "where": "w", "claim": "says"}


def trials(means, n=50, spread=0.02, source="real", seed=0):
    """Trials at two points; methods share the noise of a trial, as paired trials do."""
    rng = np.random.default_rng(seed)
    rows = []
    for d in (1, 2):
        common = spread * rng.standard_normal(n)
        for method, mean in means.items():
            noise = common + spread / 5 * rng.standard_normal(n)
            rows.append(
                pd.DataFrame(
                    {
                        "method": method,
                        "label": method.upper(),
                        "d": d,
                        "trial": range(n),
                        "n_motions": 2,
                        "source": source,
                        "error": mean + noise,
                    }
                )
            )
    return {"e": pd.concat(rows, ignore_index=True)}


def verdict(check, tables):
    """The verdict on one claim."""
    check = {"experiment": "e", "metric": "error", "method": "a", **check}
    return judge([{**HEAD, "check": check}], tables, pd.DataFrame()).iloc[0]


LOWEST = {"kind": "lowest", "against": ["b", "c"], "by": ["d"]}


def test_lowest_is_reproduced_when_every_paired_gain_is_beyond_its_error():
    row = verdict(LOWEST, trials({"a": 0.10, "b": 0.13, "c": 0.12}))
    assert row["verdict"] == "reproduced"
    assert "4 of 4" in row["decided_by"]


def test_lowest_is_not_reproduced_when_others_are_lower():
    assert verdict(LOWEST, trials({"a": 0.2, "b": 0.1, "c": 0.1}))["verdict"] == "not reproduced"


def test_lowest_is_partly_reproduced_when_trials_cannot_tell():
    assert verdict(LOWEST, trials({"a": 0.1, "b": 0.1, "c": 0.5}))["verdict"] == "partly"


def test_as_many_contradicted_as_held_is_not_reproduced():
    assert verdict(LOWEST, trials({"a": 0.1, "b": 0.0, "c": 0.5}))["verdict"] == "not reproduced"


def test_false_alarms_of_lowest_are_rare_when_methods_are_equal():
    # each of 4 comparisons holds by chance with 2.5 %; all four with less than 2.5 %
    found = [
        verdict(LOWEST, trials({"a": 0.1, "b": 0.1, "c": 0.1}, n=20, seed=seed))["verdict"]
        for seed in range(100)
    ]
    # binomial: more than 8 of 100 at 2.5 % once in 1000 runs
    assert found.count("reproduced") <= 8


def test_below_looks_at_the_mean_with_its_error():
    tables = trials({"a": 0.1})
    assert verdict({"kind": "below", "bound": 0.2, "by": ["d"]}, tables)["verdict"] == "reproduced"
    open_ = verdict({"kind": "below", "bound": 0.1, "by": ["d"]}, tables)
    assert open_["verdict"] == "not reproduced"
    assert "0 are contradicted" in open_["decided_by"]
    assert verdict({"kind": "below", "bound": 0.05}, tables)["verdict"] == "not reproduced"


def test_bounds_look_at_every_trial():
    tables = trials({"a": 0.1}, spread=0.0)
    at_most = {"kind": "at_most", "reason": "rounding"}
    assert verdict({**at_most, "bound": 0.1}, tables)["verdict"] == "reproduced"
    assert verdict({**at_most, "bound": 0.09}, tables)["verdict"] == "not reproduced"


def test_lower_compares_the_values_of_one_data_set():
    tables = {"e": trials({"a": 0.1, "b": 0.2, "c": 0.3}, n=1, spread=0.0)["e"].query("d == 1")}
    lower = {"kind": "lower", "against": ["c"]}
    assert verdict(lower, tables)["verdict"] == "reproduced"
    upper = {**lower, "method": "b", "against": ["a"]}
    assert verdict(upper, tables)["verdict"] == "not reproduced"


def test_substitutes_and_missing_results_are_not_judged():
    tables = trials({"a": 0.1, "b": 0.13, "c": 0.2}, source="substitute for x")
    assert verdict(LOWEST, tables)["verdict"] == "not comparable"
    assert verdict(LOWEST, {})["verdict"] == "not run"
    assert verdict(LOWEST, trials({"a": 0.1}))["verdict"] == "not run"
    nothing = trials({"a": np.nan})
    assert (
        verdict({"kind": "at_most", "bound": 1.0, "reason": "r"}, nothing)["verdict"] == "not run"
    )


def printed(value, statistic="mean", select="", n=100):
    """A table of one printed number."""
    row = ("t", "e", "a", "error", statistic, select, value, n)
    return pd.DataFrame([row], columns=list(PRINTED_COLUMNS))


@pytest.mark.parametrize(
    ("value", "expected"),
    [("10.0", "reproduced"), ("10.4", "reproduced"), ("12.0", "not reproduced")],
)
def test_printed_numbers_are_judged_by_the_standard_error(value, expected):
    # 100 trials of standard deviation about 2: standard error 0.2, tolerance 0.4
    tables = trials({"a": 0.1})
    rows = judge([{**HEAD, "check": {"kind": "printed"}}], tables, printed(value))
    assert rows["verdict"].tolist() == [expected]


def test_printed_numbers_on_a_part_of_the_trials_are_partly_reproduced():
    rows = judge([{**HEAD, "check": {"kind": "printed"}}], trials({"a": 0.1}), printed("10", n=155))
    assert rows["verdict"].tolist() == ["partly"]
    assert rows["decided_by"].str.contains("100 of 155").all()


def test_printed_numbers_agree_within_rounding():
    table = trials({"a": 0.0014}, spread=0.0)
    found = compare(pd.concat([printed("0.1"), printed("0.10")]), table)
    assert found["ours"].tolist() == pytest.approx([0.14, 0.14])
    assert found["agrees"].tolist() == [True, False]


@pytest.mark.parametrize(
    ("statistic", "standard_error"),
    [("mean", 1 / 20), ("median", np.sqrt(np.pi / 2) / 20), ("std", 1 / np.sqrt(800))],
)
def test_interval_has_the_width_that_theory_gives(statistic, standard_error):
    values = np.random.default_rng(0).standard_normal(400)
    low, high = bootstrap_interval(values, statistic)
    # a width from 400 trials is itself uncertain by up to a third for the median
    assert (high - low) / (2 * 1.96) == pytest.approx(standard_error, rel=0.35)
    assert (
        low < {"mean": values.mean(), "median": np.median(values), "std": values.std()}[statistic]
    )


def test_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(200):
        low, high = bootstrap_interval(rng.standard_normal(60), "mean")
        hits += low <= 0.0 <= high
    # binomial at 94 %: fewer than 174 or more than 199 of 200 about once in 1000 runs
    assert 174 <= hits <= 199


def test_one_trial_has_no_interval():
    assert np.isnan(bootstrap_interval(np.ones(1), "mean")).all()


def test_select_by_an_unknown_column_is_named():
    table = trials({"a": 0.1})["e"]
    assert len(select(table, "d=1")) == 50
    with pytest.raises(ValueError, match="'x=1'; the columns are"):
        select(table, "x=1")


WITHIN = {"kind": "within", "against": ["b"], "by": ["d"], "bound": 0.05, "reason": "made up"}


@pytest.mark.parametrize(
    ("mean", "expected"),
    [
        (0.13, "reproduced"),
        (0.05, "reproduced"),
        (0.30, "not reproduced"),
        (0.15, "not reproduced"),
    ],
)
def test_within_compares_the_paired_gap_with_the_bound(mean, expected):
    row = verdict(WITHIN, trials({"a": mean, "b": 0.10}))
    assert row["verdict"] == expected
    assert "made up" in row["tolerance"]


def test_a_paper_without_printed_numbers_has_no_verdict_on_them():
    claim = {**HEAD, "check": {"kind": "printed"}}
    empty = pd.DataFrame(columns=list(PRINTED_COLUMNS))
    assert judge([claim], trials({"a": 0.1}), empty).empty


@pytest.mark.parametrize(
    "check",
    [
        LOWEST,
        {"kind": "within", "against": ["b", "c"], "bound": 0.0, "reason": "r", "by": ["d"]},
        {"kind": "below", "bound": 0.11, "by": ["d"]},
    ],
)
def test_points_at_which_a_method_has_no_value_decide_nothing(check):
    table = trials({"a": 0.10, "b": 0.13, "c": 0.12})["e"]
    is_missing = (table["method"] == "a") & (table["d"] == 1)
    gone = table.assign(error=table["error"].where(~is_missing))
    row = verdict(check, {"e": gone})
    n_comparisons = len(check.get("against", ["bound"]))
    assert row["verdict"] == "reproduced"
    assert f"{n_comparisons} of {n_comparisons}" in row["decided_by"]
    nothing = table.assign(error=table["error"].where(table["method"] != "a"))
    assert verdict(check, {"e": nothing})["verdict"] == "not run"
