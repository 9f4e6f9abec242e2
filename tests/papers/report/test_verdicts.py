import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest

from privclust_papers.report import checks, comparison
from privclust_papers.report.comparison import (
    PRINTED_COLUMNS,
    bootstrap_interval,
    compare,
    mean_interval,
    median_interval,
    select,
)
from privclust_papers.report.page import _parts
from privclust_papers.report.verdicts import judge
from privclust_papers.settings.config import load_yaml

PAPERS = Path(__file__).parents[3] / "config/papers"
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
    check = {"experiment": "e", "metric": "error", "method": "a", **check}
    return judge([{**HEAD, "check": check}], tables, pd.DataFrame()).iloc[0]


LOWEST = {"kind": "lowest", "against": ["b", "c"], "by": ["d"]}


def test_lowest_is_reproduced_when_every_gain_is_clear():
    row = verdict(LOWEST, trials({"a": 0.10, "b": 0.13, "c": 0.12}))
    assert row["verdict"] == "reproduced"
    assert "4 of 4" in row["decided_by"]


def test_lowest_is_not_reproduced_when_others_are_lower():
    assert verdict(LOWEST, trials({"a": 0.2, "b": 0.1, "c": 0.1}))["verdict"] == "not reproduced"


def test_what_holds_in_part_is_consistent():
    row = verdict(LOWEST, trials({"a": 0.1, "b": 0.1, "c": 0.5}))
    assert row["verdict"] == "consistent"
    assert "2 of 4 comparisons hold, none is contradicted" in row["decided_by"]
    assert "counted with 98.75 % intervals, because there are 4 comparisons" in row["tolerance"]


def test_as_many_contradicted_as_held_is_partly():
    assert verdict(LOWEST, trials({"a": 0.1, "b": 0.0, "c": 0.5}))["verdict"] == "partly"
    both = {"a": 0.1, "b": 0.0, "c": 0.0}
    assert verdict(LOWEST, trials(both))["verdict"] == "not reproduced"


def test_trials_that_cannot_tell_convict_nobody():
    row = verdict(LOWEST, trials({"a": 0.1, "b": 0.1, "c": 0.1}, seed=1))
    assert row["verdict"] == "too few trials"
    assert "0 of 4 comparisons hold, none is contradicted" in row["decided_by"]
    assert "at most 2.5 % of such claims would have a comparison that holds" in row["tolerance"]
    one = trials({"a": 0.1, "b": 0.5, "c": 0.5}, n=1)
    assert verdict(LOWEST, one)["verdict"] == "too few trials"


@pytest.mark.parametrize(
    ("held", "failed", "n", "expected"),
    [
        (3, 0, 3, "reproduced"),
        (1, 0, 3, "consistent"),
        (0, 0, 3, "too few trials"),
        (1, 1, 3, "partly"),
        (1, 2, 3, "not reproduced"),
        (0, 1, 3, "not reproduced"),
        (0, 1, 2, "not reproduced"),
    ],
)
def test_verdicts_follow_from_outcomes(held, failed, n, expected):
    """Means of 20 trials at n points are far below a bound, far above it, or anywhere."""
    away = np.tile([-1.0, 1.0], 10)
    outcomes = [-9.0 + away] * held + [9.0 + away] * failed + [9.0 * away] * (n - held - failed)
    table = pd.concat(
        trials({"a": 0.0}, n=20)["e"].query("d == 1").assign(d=d, error=error)
        for d, error in enumerate(outcomes)
    )
    below = {"kind": "below", "bound": 0.0, "reason": "r", "by": ["d"]}
    assert verdict(below, {"e": table})["verdict"] == expected


@pytest.mark.parametrize("kind", ["within", "below", "stable"])
def test_chance_is_told_only_where_the_bound_is_no_difference(kind):
    check = {"kind": kind, "bound": 0.05, "reason": "r", "against": ["b"], "by": ["d"]}
    check |= {"along": "d"} if kind == "stable" else {}
    assert "chance" not in verdict(check, trials({"a": 0.1, "b": 0.1}))["tolerance"]


def test_comparisons_at_chance_are_vacuous():
    chance = {"metric": "gain", "value": 0.02, "reason": "made up"}
    check = {**LOWEST, "chance": chance}
    tables = trials({"a": 0.10, "b": 0.13, "c": 0.12})
    table = tables["e"]
    table["gain"] = 0.01 + table["error"] - table.groupby("method")["error"].transform("mean")
    assert verdict(check, tables)["verdict"] == "vacuous"
    better = {"e": table.assign(gain=table["gain"] + 0.2 * (table["method"] == "a"))}
    assert verdict(check, better)["verdict"] == "reproduced"
    # a and b are at chance: their order says nothing
    better = {"e": table.assign(gain=table["gain"] + 0.2 * (table["method"] == "c"))}
    found = verdict(check, better)
    assert found["verdict"] == "consistent"
    assert "2 of 4 comparisons hold, none is contradicted" in found["decided_by"]
    # the order of methods at chance means nothing, whichever it is
    above = {**check, "method": "b", "against": ["a", "c"]}
    assert verdict(above, tables)["verdict"] == "vacuous"
    assert verdict(above, better)["verdict"] == "not reproduced"
    # wide intervals reach chance, but do not show it
    away = np.where(table["trial"] % 2, 9.0, -8.0)
    assert verdict(check, {"e": table.assign(gain=away)})["verdict"] == "reproduced"


def test_claims_at_chance_leave_the_others_of_a_row_to_decide():
    chance = {"metric": "gain", "value": 0.02, "reason": "made up"}
    table = trials({"a": 0.10, "b": 0.13})["e"].assign(gain=0.0)
    check = {**LOWEST, "experiment": "e", "metric": "error", "method": "a", "against": ["b"]}
    deciding = {"under": HEAD["id"], "decides": True}
    claims = [
        HEAD,
        {**HEAD, **deciding, "id": "sound", "check": check},
        {**HEAD, **deciding, "id": "at_chance", "check": {**check, "chance": chance}},
    ]
    rows = judge(claims, {"e": table}, pd.DataFrame()).set_index("id")["verdict"]
    assert rows.tolist() == ["consistent", "reproduced", "vacuous"]


def test_whose_claim_it_is_is_told_or_follows_from_the_target():
    tables, check = trials({"a": 0.10, "b": 0.13}), {**LOWEST, "against": ["b"]}
    check |= {"experiment": "e", "metric": "error", "method": "a"}
    claims = [{**HEAD, "check": check}, {**HEAD, "of": "code", "reading": "so", "check": check}]
    rows = judge(claims, tables, pd.DataFrame())
    assert rows["of"].tolist() == ["paper", "code"]
    assert rows["claim"].tolist() == ["says", "says (reading: so)"]
    assert judge(claims, tables, pd.DataFrame(), ["t"])["of"].tolist() == ["ours", "code"]


@pytest.mark.parametrize("n", [2, 3, 5, 20])
def test_intervals_of_few_trials_cover_as_often_as_they_say(n):
    rng = np.random.default_rng(n)
    draws = [mean_interval(rng.normal(3.0, 2.0, n)) for _ in range(2000)]
    hits = sum(low <= 3.0 <= high for low, high in draws)
    # binomial at 95 %: outside of 1868 to 1930 once in 1000 runs
    assert 1868 <= hits <= 1930


def test_trials_of_a_scene_count_as_one():
    rng = np.random.default_rng(0)
    values = rng.standard_normal(30)
    ends = mean_interval(values)
    width = ends[1] - ends[0]
    scenes = np.repeat(np.arange(30), 3)
    assert mean_interval(np.repeat(values, 3), scenes) == pytest.approx(ends)
    assert np.diff(mean_interval(np.repeat(values, 3)))[0] < 0.6 * width
    low, high = bootstrap_interval(np.repeat(values, 3), "mean", scenes)
    assert (high - low) / width == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("level", [0.95, 0.99])
@pytest.mark.parametrize("hits", [0, 3, 20])
def test_shares_of_trials_have_exact_intervals(hits, level):
    values = np.repeat([1.0, 0.0], [hits, 20 - hits])
    exact = binomtest(hits, 20).proportion_ci(level)
    assert mean_interval(values, level=level, kind="share") == pytest.approx(tuple(exact))


def test_equal_trials_have_the_interval_of_their_kind():
    most = 1.0 - 0.025 ** (1 / 20)  # Clopper and Pearson
    assert mean_interval(np.zeros(20), kind="share") == (0.0, pytest.approx(most))
    of_difference = mean_interval(np.zeros(20), kind="difference of shares")
    assert of_difference == pytest.approx((-most, most))
    for kind in ("", "fraction", "positive", "difference of fractions"):
        assert mean_interval(np.zeros(20), kind=kind) == (0.0, 0.0)


def test_a_difference_of_shares_is_as_sure_as_the_sign_test():
    values = np.repeat([1.0, 0.0], [5, 15])  # five of five: 1 / 32 on one side
    low, high = mean_interval(values, kind="difference of shares")
    assert low < 0.0 < high == pytest.approx(0.25)
    assert mean_interval(np.repeat([1.0, 0.0], [6, 14]), kind="difference of shares")[0] > 0.0


@pytest.mark.parametrize("kind", ["positive", "fraction", "difference of fractions"])
def test_intervals_keep_the_range_of_their_quantity(kind):
    low, high = mean_interval(np.array([0.0, 0.9, 0.1]), kind=kind)
    least, most = comparison.RANGES[kind]
    assert least <= low < high <= most


@pytest.mark.parametrize(("n", "k"), [(6, 1), (20, 6), (41, 14)])
def test_the_interval_of_a_median_covers_it(n, k):
    """The k-th smallest of n and the k-th largest, by the largest k that misses in at most 5 %."""
    expected, next_one = 2.0 * binom.cdf([k - 1, k], n, 0.5)
    assert expected <= 0.05 < next_one
    rng = np.random.default_rng(n)
    ends = [median_interval(rng.exponential(size=n)) for _ in range(1000)]
    misses = sum(not low <= np.log(2.0) <= high for low, high in ends)
    least, most = binom.ppf([5e-4, 1.0 - 5e-4], 1000, expected)
    assert least <= misses <= most


def test_a_number_as_near_as_others_is_partly_reproduced():
    # ours is 10 +- 0.4
    table = printed("10.1")
    others = [printed(value).assign(method=name) for name, value in (("b", "10.2"), ("c", "15.0"))]
    tables = trials({"a": 0.1, "b": 0.2, "c": 0.2})
    rows = judge([{**HEAD, "check": {"kind": "printed"}}], tables, pd.concat([table, *others]))
    assert rows["verdict"].tolist() == ["consistent", "not reproduced", "not reproduced"]
    assert rows["tolerance"][0].endswith("includes 1 of the 2 numbers printed for other methods")
    rows = judge([{**HEAD, "check": {"kind": "printed"}}], tables, pd.concat([table, others[1]]))
    assert rows["verdict"].tolist() == ["reproduced", "not reproduced"]


def test_equal_numbers_of_others_do_not_count_against():
    table = printed("0").assign(statistic="median")
    zeros = trials({"a": 0.0, "b": 0.0})
    zeros["e"]["error"] = 0.0
    both = pd.concat([table, table.assign(method="b")])
    rows = judge([{**HEAD, "check": {"kind": "printed"}}], zeros, both)
    assert rows["verdict"].tolist() == ["reproduced", "reproduced"]


@pytest.mark.parametrize(
    ("value", "verdicts"),  # ours is 10.1 +- 0.4, the difference of two means +- 0.7
    [("10.7", ["reproduced"]), ("9.5", ["reproduced"]), ("11.0", ["not reproduced"])],
)
def test_a_printed_mean_of_other_starts_has_an_error_too(value, verdicts):
    tables, table = trials({"a": 0.1}), printed(value, n=50)
    claim = {**HEAD, "check": {"kind": "printed", "own_starts": True}}
    rows = judge([claim], tables, table)
    assert rows["verdict"].tolist() == verdicts
    assert "widened by the sampling error of the printed mean and by half" in rows["tolerance"][0]
    fixed = judge([{**HEAD, "check": {"kind": "printed"}}], tables, table)
    assert fixed["verdict"].tolist() == ["not reproduced"]


@pytest.mark.parametrize(
    ("value", "verdicts"),
    [("10", ["reproduced"]), ("12", ["too few trials"]), ("8", ["not reproduced"])],
)
def test_equal_starts_leave_a_larger_printed_mean_open(value, verdicts):
    """A start that is too rare for ours may have raised it, and none can have lowered it."""
    tables = trials({"a": 0.1})
    tables["e"]["error"] = 0.1
    claim = {**HEAD, "check": {"kind": "printed", "own_starts": True}}
    assert judge([claim], tables, printed(value, n=50))["verdict"].tolist() == verdicts


def test_a_few_of_the_papers_trials_judge_no_printed_number():
    claim = {**HEAD, "check": {"kind": "printed"}}
    for value in ("10", "50"):
        few = judge([claim], trials({"a": 0.1}, n=6), printed(value, n=155))
        assert few["verdict"].tolist() == ["too few trials"]
        whole = judge([claim], trials({"a": 0.1}, n=6), printed(value, n=12))
        assert whole["verdict"].tolist() == ["reproduced" if value == "10" else "not reproduced"]


@pytest.mark.parametrize(("n", "verdicts"), [(19, ["too few trials"]), (20, ["consistent"])])
def test_20_of_the_papers_trials_judge_a_number_and_a_margin(n, verdicts):
    table = trials({"a": 0.1}, n=n)["e"].query("d == 1")
    claim = {**HEAD, "check": {"kind": "printed"}}
    assert judge([claim], {"e": table}, printed("10", n=21))["verdict"].tolist() == verdicts
    margin = margins_of({"a": np.zeros(n), "b": 0.02 + np.zeros(n)}, n_printed=21)
    assert [margin["verdict"]] == verdicts


@pytest.mark.parametrize("kind", ["lowest", "within"])
def test_a_method_that_cannot_run_hides_no_other(kind):
    check = {**LOWEST, "kind": kind, "bound": 0.01, "reason": "any"}
    tables = trials({"a": 0.10, "b": 0.13, "c": 0.12})
    e = tables["e"]
    e.loc[(e["method"] == "b") & (e["d"] == 2), "error"] = np.nan
    row = verdict(check, tables)
    assert row["verdict"] == "reproduced"
    assert "3 of 3" in row["decided_by"]
    e.loc[e["method"] == "a", "error"] = np.nan
    assert verdict(check, tables)["verdict"] == "not run"


@pytest.mark.parametrize("kind", ["lowest", "within", "alike"])
def test_methods_without_a_trial_in_common_are_not_compared(kind):
    check = {**LOWEST, "kind": kind, "against": ["b"], "statistic": "mean", "scale": "log"}
    tables = trials({"a": 0.10, "b": 0.13})
    e = tables["e"]
    e.loc[(e["method"] == "a") & (e["trial"] < 25), "error"] = np.nan
    e.loc[(e["method"] == "b") & (e["trial"] >= 25), "error"] = np.nan
    assert verdict({**check, "bound": 2.0, "reason": "any"}, tables)["verdict"] == "not run"


def test_a_median_of_logarithms_takes_a_zero():
    tables = trials({"a": 0.10})
    tables["e"].loc[7, "error"] = 0.0
    check = {"kind": "below", "bound": 0.2, "reason": "any", "statistic": "median", "scale": "log"}
    assert verdict({**check, "by": ["d"]}, tables)["verdict"] == "reproduced"


def test_false_alarms_of_lowest_are_rare_when_methods_are_equal():
    # each of 4 comparisons holds by chance with 2.5 %; all four with less than 2.5 %
    found = [
        verdict(LOWEST, trials({"a": 0.1, "b": 0.1, "c": 0.1}, n=20, seed=seed))["verdict"]
        for seed in range(100)
    ]
    # binomial: more than 8 of 100 at 2.5 % once in 1000 runs
    assert found.count("reproduced") <= 8


def test_below_looks_at_the_mean_with_its_error():
    tables, below = trials({"a": 0.1}), {"kind": "below", "reason": "r"}
    assert verdict({**below, "bound": 0.2, "by": ["d"]}, tables)["verdict"] == "reproduced"
    open_ = verdict({**below, "bound": 0.1, "by": ["d"]}, tables)
    assert open_["verdict"] == "too few trials"
    assert "none is contradicted" in open_["decided_by"]
    assert verdict({**below, "bound": 0.05}, tables)["verdict"] == "not reproduced"


@pytest.mark.parametrize(
    ("mean", "expected"),
    [(0.0774, "reproduced"), (0.07777, "too few trials"), (0.07783, "too few trials"),
     (0.0779, "not reproduced")],
)  # fmt: skip
def test_a_printed_bound_is_all_that_rounds_to_it(mean, expected):
    check = {"kind": "below", "bound": 0.0778, "rounding": 0.00005, "reason": "printed"}
    row = verdict(check, trials({"a": mean}, spread=1e-5))
    assert row["verdict"] == expected
    said = "error below the printed 0.0778 (0.07775 to 0.07785 before rounding) for A. Found: 0.077"
    assert said in row["decided_by"]


def test_bounds_look_at_every_trial():
    tables = trials({"a": 0.1}, spread=0.0)
    at_most = {"kind": "at_most", "reason": "rounding"}
    assert verdict({**at_most, "bound": 0.1}, tables)["verdict"] == "reproduced"
    assert verdict({**at_most, "bound": 0.09}, tables)["verdict"] == "not reproduced"


def test_no_trial_exceeds_a_bound_point_by_point():
    table = trials({"a": 0.1}, n=8, spread=0.0)["e"]
    table.loc[table.index[-1], "error"] = 9.0  # one trial, at d = 2
    check = {"kind": "at_most", "bound": 1.0, "reason": "r"}
    one_by_one, by_point = (verdict({**check, **by}, {"e": table}) for by in ({}, {"by": ["d"]}))
    assert "15 of 16 comparisons hold, 1 is contradicted" in one_by_one["decided_by"]
    assert "1 of 2 comparisons hold, 1 is contradicted" in by_point["decided_by"]
    assert "Found: 9 at d = 2, the largest of 16 values." in by_point["decided_by"]
    assert by_point["verdict"] == "partly"


def test_a_median_counts_trials_of_a_scene_as_one():
    """Nine of twelve trials are lower, but they are of one scene; the other three are of three."""
    table = trials({"a": 0.1, "b": 0.2}, n=12, spread=0.0)["e"].query("d == 1").copy()
    others = table["trial"] >= 9
    table.loc[others & (table["method"] == "a"), "error"] = 0.3
    check = {"against": ["b"], "statistic": "median"}
    by_trial = verdict({**LOWEST, **check}, {"e": table})["decided_by"]
    assert "lower by 0.1" in by_trial
    assert "12 trials)" in by_trial
    scenes = table["trial"].where(others, 0).astype(str)
    by_scene = verdict({**LOWEST, **check}, {"e": table.assign(scene=scenes)})["decided_by"]
    assert "higher by 0.1" in by_scene
    assert "4 scenes)" in by_scene


def test_substitutes_and_missing_results_are_not_judged():
    tables = trials({"a": 0.1, "b": 0.13, "c": 0.2}, source="substitute for x")
    assert verdict(LOWEST, tables)["verdict"] == "not comparable"
    assert verdict(LOWEST, {})["verdict"] == "not run"
    assert verdict(LOWEST, trials({"a": 0.1}))["verdict"] == "not run"
    tables = trials({"a": 0.1, "b": 0.13, "c": 0.2}, source="part of x")
    assert verdict(LOWEST, tables)["verdict"] == "reproduced"  # an order: the same images, smaller
    nothing = trials({"a": np.nan})
    assert (
        verdict({"kind": "at_most", "bound": 1.0, "reason": "r"}, nothing)["verdict"] == "not run"
    )


def printed(value, statistic="mean", select="", n=100):
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


def test_numbers_on_some_trials_are_partly_reproduced():
    rows = judge([{**HEAD, "check": {"kind": "printed"}}], trials({"a": 0.1}), printed("10", n=155))
    assert rows["verdict"].tolist() == ["consistent"]
    assert rows["decided_by"].str.contains("from 100 of the paper's 155 trials").all()


def test_the_page_reads_our_numbers_from_verdict_texts():
    both = pd.concat([printed("10"), printed("12").assign(method="b")])
    rows = judge([{**HEAD, "check": {"kind": "printed"}}], trials({"a": 0.1, "b": 0.12}), both)
    ours, other = _parts.numbers(rows.assign(row=""))
    assert (float(ours["ours"]), float(other["ours"])) == pytest.approx((10.0, 12.0), abs=0.5)
    assert re.fullmatch(r"\S+ to \S+", ours["interval"])
    assert ours["trials"] == "100 of 100"
    assert ours["others"] == "0 of 1"


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


def test_2_5_percent_of_resamples_are_left_at_either_end():
    """Means of 300 resampled uniform values are normal; 40 sets give their quantiles to 0.01."""
    rng = np.random.default_rng(2)
    ends = []
    for n in range(300, 340):  # resamples of as many values are the same ones
        values = rng.uniform(-1.0, 1.0, n)
        interval = np.array(bootstrap_interval(values, "mean"))
        ends.append((interval - values.mean()) / (values.std() / np.sqrt(n)))
    np.testing.assert_allclose(np.mean(ends, axis=0), [-1.96, 1.96], atol=0.04)


def test_intervals_in_tables_keep_the_range_of_their_quantity():
    table = pd.DataFrame({"method": "a", "label": "A", "source": "s", "error": [0.0, 0.0, 0.3]})
    table["right"] = [1.0, 1.0, 1.0]
    entries = pd.concat([printed("10"), printed("99").assign(metric="right")])
    entries = entries.assign(select="")
    free = compare(entries, {"e": table})
    kept = compare(entries, {"e": table}, kinds={"error": "fraction", "right": "share"})
    mean, half = 10.0, 4.302653 * 10.0  # Student's t with 2 degrees of freedom, standard error 10
    assert free[["low", "high"]].iloc[0].tolist() == pytest.approx([mean - half, mean + half])
    assert kept[["low", "high"]].iloc[0].tolist() == pytest.approx([0.0, mean + half])
    assert free[["low", "high"]].iloc[1].tolist() == [100.0, 100.0]
    exact = 100.0 * 0.025 ** (1 / 3)  # Clopper and Pearson, 3 of 3
    assert kept[["low", "high"]].iloc[1].tolist() == pytest.approx([exact, 100.0])
    starts = compare(entries, {"e": table}, own_starts=True, kinds={"error": "fraction"})
    assert starts["low"].iloc[0] == 0.0


def test_one_trial_has_no_interval():
    assert np.isnan(bootstrap_interval(np.ones(1), "mean")).all()


def test_select_by_an_unknown_column_is_named():
    table = trials({"a": 0.1})["e"]
    assert len(select(table, "d=1")) == 50
    assert len(select(table, "d=2|1")) == 100
    with pytest.raises(ValueError, match="'x=1'; the columns are"):
        select(table, "x=1")


WITHIN = {"kind": "within", "against": ["b"], "by": ["d"], "bound": 0.05, "reason": "made up"}


@pytest.mark.parametrize(
    ("mean", "expected"),
    [
        (0.13, "reproduced"),
        (0.05, "reproduced"),
        (0.30, "not reproduced"),
        (0.15, "too few trials"),
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
        {"kind": "below", "bound": 0.11, "reason": "r", "by": ["d"]},
    ],
)
def test_points_at_which_a_method_has_no_value_decide_nothing(check):
    table = trials({"a": 0.10, "b": 0.13, "c": 0.12})["e"]
    is_missing = (table["method"] == "a") & (table["d"] == 1)
    gone = table.assign(error=table["error"].where(~is_missing))
    row = verdict(check, {"e": gone})
    n_comparisons = len(check.get("against", ["bound"]))
    assert row["verdict"] == "reproduced"
    of_all = f"{n_comparisons} of {n_comparisons} comparisons hold"
    said = of_all if n_comparisons > 1 else "at d = 2. The interval is on the expected side."
    assert said in row["decided_by"]
    nothing = table.assign(error=table["error"].where(table["method"] != "a"))
    assert verdict(check, {"e": nothing})["verdict"] == "not run"


# --- along an axis -----------------------------------------------------------------------------


def curve(means, n=50, spread=0.02, seed=0, **columns):
    """Trials of method a along epsilon; points of a trial share its noise."""
    rng = np.random.default_rng(seed)
    common = spread * rng.standard_normal(n)
    parts = [
        pd.DataFrame(
            {
                "method": "a",
                "label": "A",
                "epsilon": epsilon,
                "trial": range(n),
                "source": "real",
                "error": mean + common + spread / 5 * rng.standard_normal(n),
                **columns,
            }
        )
        for epsilon, mean in means.items()
    ]
    return pd.concat(parts, ignore_index=True)


FALLS = {"kind": "falls", "along": "epsilon"}
STABLE = {"kind": "stable", "along": "epsilon", "bound": 0.05, "reason": "made up"}
VARIES = {**STABLE, "kind": "varies"}


@pytest.mark.parametrize(
    ("means", "expected", "held", "failed"),
    [
        ({0.1: 0.30, 1.0: 0.28, 10.0: 0.20}, "reproduced", 2, 0),
        ({10.0: 0.20, 0.1: 0.30, 1.0: 0.28}, "reproduced", 2, 0),
        ({0.1: 0.30, 1.0: 0.30, 10.0: 0.20}, "consistent", 1, 0),
        ({0.1: 0.30, 1.0: 0.35, 10.0: 0.20}, "partly", 1, 1),
        ({0.1: 0.10, 1.0: 0.20, 10.0: 0.30}, "not reproduced", 0, 2),
    ],
)
def test_falls_compares_each_point_with_the_next(means, expected, held, failed):
    row = verdict(FALLS, {"e": curve(means)})
    assert row["verdict"] == expected
    contradicted = {0: "none is", 1: "1 is", 2: "2 are"}[failed]
    assert f"{held} of 2 comparisons hold, {contradicted} contradicted." in row["decided_by"]


def test_falls_names_the_smallest_fall():
    row = verdict(FALLS, {"e": curve({0.1: 0.9, 1.0: 0.4, 10.0: 0.3}, spread=0.0)})
    assert row["decided_by"] == (
        "Expected: error falls as epsilon grows, for A. Found: lower by 0.1 (95 % interval 0.1 to "
        "0.1, 50 trials) at epsilon = 10 than at 1, the least favourable of 2 comparisons. 2 of 2 "
        "comparisons hold, none is contradicted."
    )


def test_falls_pairs_points_by_trial():
    """A spread over trials of 1 leaves a fall of 0.05 to be seen, if it is common to the points."""
    means = {0.1: 0.30, 1.0: 0.25}
    table = curve(means, n=20, spread=1.0)
    table["error"] = table["error"].groupby(table["trial"]).transform("mean") + table[
        "epsilon"
    ].map(means)
    assert verdict(FALLS, {"e": table})["verdict"] == "reproduced"
    # without trials in common nothing can be compared
    apart = table.assign(trial=table["trial"] + 100 * (table["epsilon"] > 0.5))
    row = verdict(FALLS, {"e": apart})
    assert row["verdict"] == "too few trials"
    assert "lower by an unknown amount (no trial has both values)" in row["decided_by"]


def test_false_alarms_of_falls_are_rare_where_nothing_falls():
    # one comparison holds by chance with 2.5 %
    flat = {0.1: 0.3, 1.0: 0.3}
    found = [verdict(FALLS, {"e": curve(flat, n=20, seed=seed)})["verdict"] for seed in range(200)]
    # binomial: more than 13 of 200 at 2.5 % once in 1000 runs
    assert found.count("reproduced") <= 13


@pytest.mark.parametrize(
    ("means", "stable", "varies"),
    [
        ({0.1: 0.30, 1.0: 0.28, 10.0: 0.30}, "reproduced", "not reproduced"),
        ({0.1: 0.30, 1.0: 0.20, 10.0: 0.30}, "not reproduced", "reproduced"),
        ({0.1: 0.30, 1.0: 0.25, 10.0: 0.30}, "too few trials", "too few trials"),
    ],
)
def test_the_spread_along_an_axis_is_compared_with_a_bound(means, stable, varies):
    table = {"e": curve(means)}
    assert verdict(STABLE, table)["verdict"] == stable
    row = verdict(VARIES, table)
    assert row["verdict"] == varies
    assert "than at 1, the largest difference. The interval" in row["decided_by"]
    assert "0.05 (made up)" in row["tolerance"]


@pytest.mark.parametrize(
    ("means", "grows", "grows_less"),
    [
        ({0.1: 0.20, 1.0: 0.10, 10.0: 0.21}, "not reproduced", "reproduced"),  # not from 1 to 10
        ({0.1: 0.40, 1.0: 0.10, 10.0: 0.20}, "not reproduced", "reproduced"),
        ({0.1: 0.20, 1.0: 0.25, 10.0: 0.30}, "reproduced", "not reproduced"),
        ({0.1: 0.20, 1.0: 0.10, 10.0: 0.25}, "too few trials", "too few trials"),
    ],
)
def test_growth_is_from_the_first_point_to_the_last(means, grows, grows_less):
    table = {"e": curve(means)}
    row = verdict({**STABLE, "kind": "grows"}, table)
    assert row["verdict"] == grows
    assert "error grows by more than 0.05 along epsilon, for A." in row["decided_by"]
    assert "at epsilon = 10 than at 0.1. The interval" in row["decided_by"]
    assert verdict({**STABLE, "kind": "grows_less"}, table)["verdict"] == grows_less


def test_the_spread_is_taken_at_each_point_of_other_axes():
    steep, flat = curve({0.1: 0.4, 1.0: 0.2}, d=1), curve({0.1: 0.2, 1.0: 0.21}, d=2)
    row = verdict({**STABLE, "by": ["d"]}, {"e": pd.concat([steep, flat])})
    assert row["verdict"] == "partly"
    assert "the largest difference at d = 1, the least favourable of 2" in row["decided_by"]
    assert "1 of 2 comparisons hold, 1 is contradicted" in row["decided_by"]


def test_only_points_with_the_stated_axes_count():
    means = {0.1: 0.30, 1.0: 0.30}
    own, other = curve(means, k=2, alpha=0.6), curve({0.1: 0.9, 1.0: 0.1}, k=8, alpha=0.6)
    tables = {"e": pd.concat([own, other])}
    assert verdict({**STABLE, "at": {"k": 2, "alpha": 0.6}}, tables)["verdict"] == "reproduced"
    assert verdict({**STABLE, "at": {"k": 8, "alpha": 0.6}}, tables)["verdict"] == "not reproduced"
    assert verdict({**STABLE, "at": {"k": 4}}, tables)["verdict"] == "not run"


@pytest.mark.parametrize("check", [FALLS, STABLE, VARIES])
def test_one_point_of_an_axis_decides_nothing(check):
    assert verdict(check, {"e": curve({0.1: 0.3})})["verdict"] == "not run"
    gone = curve({0.1: 0.3, 1.0: np.nan})
    assert verdict(check, {"e": gone})["verdict"] == "not run"
    for wrong in ({"along": "sigma"}, {"at": {"sigma": 6}}):
        with pytest.raises(ValueError, match="got 'sigma'; the columns are method, label"):
            verdict({**check, **wrong}, {"e": curve({0.1: 0.3, 1.0: 0.2})})


@pytest.mark.parametrize(("check", "mean"), [(FALLS, -0.005), (STABLE, 0.045), (VARIES, 0.055)])
def test_differences_within_their_error_are_left_open(check, mean):
    """Ten differences of a mean, 0.02 to either side: half the interval is 2.26 errors, 0.015."""
    table = curve({0.1: 0.3, 1.0: 0.3}, n=10, spread=0.0)
    off = mean + 0.02 * (-1.0) ** table["trial"]
    table["error"] += off.where(table["epsilon"] < 0.5, 0.0)
    row = verdict(check, {"e": table})
    assert row["verdict"] == "too few trials"
    assert row["decided_by"].endswith(". The interval includes both sides.")
    low, high = re.search(r"95 % interval (\S+) to (\S+), 10 trials", row["decided_by"]).groups()
    assert float(high) - float(low) == pytest.approx(2 * 0.0151, abs=2e-4)


def margins_of(values, printed_values=("5.0", "3.0"), n_printed=40, scenes=None, source="data"):
    """Judge the printed margin of b over a; each method's values in a dict."""
    names = ("b", "a")
    rows = [
        printed(value, n=n_printed).assign(method=name)
        for name, value in zip(names, printed_values, strict=True)
    ]
    table = pd.concat(
        pd.DataFrame({"method": name, "label": name.upper(), "trial": np.arange(len(part)),
                      "source": source if name == "b" else "data", "error": part})
        for name, part in values.items()
    )  # fmt: skip
    if scenes is not None:
        table["scene"] = np.tile(scenes, len(values))
    printed_rows = pd.concat(rows, ignore_index=True).assign(metric="error")
    claim = {**HEAD, "check": {"kind": "printed_margins", "method": "a"}}
    (row,) = judge([claim], {"e": table}, printed_rows).to_dict("records")
    return row


def test_margins_are_judged_by_paired_differences():
    rng = np.random.default_rng(0)
    common = rng.standard_normal(40)  # far wider than the difference, and the same for both
    noise = 0.01 * rng.standard_normal(40)
    holds = margins_of({"a": common, "b": common + noise - noise.mean() + 0.02})
    assert holds["verdict"] == "reproduced"
    assert holds["claim"].endswith("2.00")
    other = margins_of({"a": common, "b": common + noise - noise.mean() + 0.10})
    assert other["verdict"] == "not reproduced"
    wide = rng.standard_normal(40)
    assert (
        margins_of({"a": common, "b": common + wide})["verdict"] == "consistent"
    )  # so would none at all
    part = margins_of({"a": common, "b": common + noise - noise.mean() + 0.02}, n_printed=155)
    assert part["verdict"] == "consistent"


def test_a_printed_margin_counts_trials_of_a_scene_as_one():
    base = np.zeros(40)
    more = 0.02 + np.repeat([0.05, -0.05, 0.05, -0.05], 10)
    assert margins_of({"a": base, "b": more})["verdict"] == "reproduced"
    assert (
        margins_of({"a": base, "b": more}, scenes=np.repeat(np.arange(4), 10))["verdict"]
        == "consistent"
    )


def test_a_printed_margin_of_a_substitute_is_not_comparable():
    """The margin of b over a is b's, with its label and its data."""
    values = {"a": np.zeros(40), "b": 0.02 + np.zeros(40)}
    row = margins_of(values, source="substitute: made up")
    assert row["verdict"] == "not comparable"
    assert row["data"] == "substitute: made up"
    assert "B" in row["claim"]


def test_a_printed_margin_without_both_methods_is_not_run():
    assert margins_of({"b": np.zeros(40)})["verdict"] == "not run"
    few = margins_of({"a": np.zeros(6), "b": 0.02 + np.zeros(6)})
    assert few["verdict"] == "too few trials"


@pytest.mark.parametrize("n", [2, 6, 20])
def test_as_many_trials_as_the_papers_judge_a_margin(n):
    whole = margins_of({"a": np.zeros(n), "b": 0.02 + np.zeros(n)}, n_printed=n)
    assert whole["verdict"] == "reproduced"
    other = margins_of({"a": np.zeros(n), "b": 0.04 + np.zeros(n)}, n_printed=n)
    assert other["verdict"] == "not reproduced"


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        (0.2, "not reproduced"),
        (1.0, "reproduced"),
        (2.0, "too few trials"),
        (5.0, "not reproduced"),
    ],
)
def test_spreads_are_compared_by_their_ratio(scale, factor, expected):
    rng = np.random.default_rng(0)
    a, b = scale * rng.standard_normal((2, 200))
    columns = ["method", "trial", "error", "source"]
    table = pd.DataFrame(
        [("a", t, v, "data") for t, v in enumerate(a)]
        + [("b", t, 7.0 + factor * v, "data") for t, v in enumerate(b)],
        columns=columns,
    )
    check = {"kind": "alike", "experiment": "e", "metric": "error", "method": "a", "against": ["b"]}
    claim = {**HEAD, "check": {**check, "statistic": "std", "bound": 2.0, "reason": "r"}}
    (row,) = judge([claim], {"e": table}, printed("1")).to_dict("records")
    assert row["verdict"] == expected
    (said,) = re.findall(r"Found: a factor of (\S+) ", row["decided_by"])
    ratio = np.std(a) / (factor * np.std(b))
    assert float(said) == pytest.approx(max(ratio, 1.0 / ratio), rel=5e-3)


def test_the_interval_of_a_ratio_covers_as_stated():
    rng = np.random.default_rng(1)
    misses = 0
    for _ in range(400):
        log_ratio, error = checks._log_ratio_of_spreads(rng.standard_normal((20, 2)) * (1.0, 2.0))
        low, high = checks._around(log_ratio, error, 20, 0.95)
        misses += not low <= np.log(0.5) <= high
    assert 7 <= misses <= 36  # a binomial of 400 at 5 % is outside in 1 of 1,000 runs


def test_several_conditions_select_what_meets_all():
    table = trials({"a": 0.5})["e"]
    halves = [table.assign(x=x, y=y) for x in (1, 2) for y in (1, 2)]
    wide = pd.concat([halves[0], *(half.assign(error=9.0) for half in halves[1:])])
    check = {"kind": "below", "experiment": "e", "metric": "error", "method": "a", "bound": 1.0}
    check["reason"] = "r"
    for conditions, expected in ((["x=1", "y=1"], "reproduced"), ("x=1", "not reproduced")):
        claim = {**HEAD, "check": {**check, "select": conditions}}
        assert judge([claim], {"e": wide}, printed("1"))["verdict"].tolist() == [expected]


# --- sentences ---------------------------------------------------------------------------------


def sentence(check, tables, kind="", **quantities):
    check = {"experiment": "e", "metric": "error", "method": "a", **check}
    words = {"quantities": {"p": quantities}, "kinds": {"p": {"error": kind}}}
    row = judge([{**HEAD, "check": check}], tables, pd.DataFrame(), **words)
    return row["decided_by"][0]


def test_a_sentence_says_what_was_expected_and_found():
    table = trials({"a": 0.1}, n=2, spread=0.0)["e"]
    table["error"] = [1.0, 1.0, 1.0, 0.0]  # a share of trials, at d = 1 and at d = 2
    check = {"kind": "below", "bound": 0.5, "reason": "r", "by": ["d"]}
    said = sentence(check, {"e": table}, "share", error="the share", d="size")
    assert said == (
        "Expected: the share below 0.5 for A. Found: 1 (95 % interval 0.158 to 1, 2 trials) at "
        "size = 1, the highest of 2 comparisons. 0 of 2 comparisons hold, none is contradicted."
    )


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (
            {"kind": "lowest", "against": ["b", "c"], "by": ["d"]},
            "Expected: error lower for A than for B and C. Found: lower by 0.02 (95 % interval "
            "0.02 to 0.02, 3 trials) than for C at d = 1, the least favourable of 4 comparisons. 4",
        ),
        (
            {"kind": "lowest", "method": "c", "against": ["a"], "select": "d=1"},
            "Expected: error lower for C than for A. Found: higher by 0.02 (95 % interval 0.02 to "
            "0.02, 3 trials) than for A. The interval is on the other side.",
        ),
        (
            {"kind": "within", "against": ["b"], "bound": 0.5, "reason": "r", "select": "d=2"},
            "Expected: error higher by less than 0.5 for A than for B. Found: lower by 0.03 (95 % "
            "interval 0.03 to 0.03, 3 trials) than for B. The interval is on the expected side.",
        ),
        (
            {"kind": "at_most", "bound": 0.2, "reason": "r"},
            "Expected: error at most 0.2 in every trial for A. Found: 0.1, the largest of 6 "
            "values. 6 of 6",
        ),
    ],
)
def test_each_kind_has_its_sentence(check, said):
    tables = trials({"a": 0.10, "b": 0.13, "c": 0.12}, n=3, spread=0.0)
    assert sentence(check, tables).startswith(said)


def test_names_of_many_methods_are_counted():
    tables = trials({"a": 0.1, "b": 0.2, "c": 0.2, "d2": 0.2, "f": 0.2}, n=3)
    check = {"kind": "lowest", "against": ["b", "c", "d2", "f"], "by": ["d"]}
    assert "lower for A than for 4 other methods. Found: " in sentence(check, tables)
    assert "for B, C and D2. " in sentence({**check, "against": ["b", "c", "d2"]}, tables)


@pytest.mark.parametrize("file", sorted(PAPERS.glob("*/claims.yaml")), ids=lambda f: f.parent.name)
def test_a_row_with_other_readings_says_what_decides(file):
    targets = load_yaml(file.with_name("paper.yaml"))["targets"]
    claims = load_yaml(file)
    rows = {claim.get("under") for claim in claims}
    for claim in claims:
        whose = claim.get("of", "ours" if targets[claim["target"]].get("ours") else "paper")
        if claim["id"] in rows and "under" not in claim and whose == "paper":
            assert "judged_by" in claim, claim["id"]


@pytest.mark.parametrize("file", sorted(PAPERS.glob("*/claims.yaml")), ids=lambda f: f.parent.name)
def test_every_metric_that_is_judged_is_said_in_words(file):
    paper = load_yaml(file.with_name("paper.yaml"))
    judged = {claim.get("check", {}).get("metric") for claim in load_yaml(file)} - {None}
    assert paper.get("kinds", {}).keys() | judged <= paper["quantities"].keys()


@pytest.mark.parametrize("gaps", [0.0, 0.5, 1.0], ids=["every value", "half of them", "none"])
@pytest.mark.parametrize("n", [0, 1, 40])
@pytest.mark.parametrize("scenes", [["one", "two"], None, [np.nan]], ids=["scenes", "", "unnamed"])
def test_means_by_trial_are_those_of_a_pivot_table(n, scenes, gaps):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"trial": rng.integers(3, size=n), "method": rng.choice(["b", "a"], n)})
    index = ["trial"]
    if scenes:
        table["scene"], index = rng.choice(scenes, n), ["trial", "scene"]
    table["error"] = np.where(rng.random(n) < gaps, np.nan, rng.random(n))
    expected = table.pivot_table(index=index, columns="method", values="error")
    pd.testing.assert_frame_equal(checks._by_trial(table, "method", "error"), expected)


# --- rows --------------------------------------------------------------------------------------


def entry(name, **more):
    """One claim that a's error is below a bound, or a row that others decide."""
    claim = {**HEAD, "id": name, **more}
    if bound := claim.pop("bound", None):
        check = {"kind": "below", "experiment": "e", "metric": "error", "method": "a", "by": ["d"]}
        claim["check"] = {**check, "bound": bound, "reason": "r"}
    return claim


def test_a_row_is_judged_by_the_claims_under_it_that_decide():
    claims = [
        entry("row", judged_by="the first two"),
        entry("one", under="row", decides=True, bound=0.2),
        entry("two", under="row", decides=True, bound=0.1),
        entry("other", under="row", bound=0.05),
    ]
    rows = judge(claims, trials({"a": 0.1}), pd.DataFrame()).set_index("id")
    assert rows["verdict"].to_dict() == {
        "row": "consistent",
        "one": "reproduced",
        "two": "too few trials",
        "other": "not reproduced",
    }
    assert rows["row"].tolist() == ["", "row", "row", "row"]
    assert rows.loc["row", "judged_by"] == "the first two"
    said = rows.loc["row", "decided_by"]
    assert said.startswith("2 claims together. Expected of the least favourable: error below 0.1")
    assert said.endswith("2 of 4 comparisons hold, none is contradicted.")
    assert "Found: 0.1" in said or "Found: 0.09" in said
    assert judge(claims, {}, pd.DataFrame())["verdict"].eq("not run").all()


def test_a_substitute_decides_no_row_that_the_papers_data_can():
    real, other = trials({"a": 0.1})["e"], trials({"a": 9.0}, source="substitute for x")["e"]
    tables = {"e": real, "other": other}
    claims = [entry("row", judged_by="both")]
    claims += [entry(name, under="row", decides=True, bound=0.2) for name in ("one", "two")]
    claims[2]["check"]["experiment"] = "other"
    rows = judge(claims, tables, pd.DataFrame())
    assert rows["verdict"].tolist() == ["reproduced", "reproduced", "not comparable"]
    assert judge(claims, {"other": other}, pd.DataFrame())["verdict"][0] == "not comparable"


@pytest.mark.parametrize(("n_sets", "expected"), [(2, "reproduced"), (3, "partly")])
def test_a_sentence_without_names_is_judged_where_it_fits_best(n_sets, expected):
    errors = {"one": 9.0, "two": 0.1, "three": 0.1}
    tables = {name: trials({"a": error}, source=name)["e"] for name, error in errors.items()}
    claims = [entry("row", judged_by="the best", data_sets=n_sets)]
    claims += [entry(f"on_{name}", under="row", decides=True, bound=0.2) for name in errors]
    for claim, name in zip(claims[1:], errors, strict=True):
        claim["check"]["experiment"] = name
    assert judge(claims, tables, pd.DataFrame())["verdict"][0] == expected


def test_another_reading_of_a_printed_number_is_under_it():
    table = printed("10")
    claims = [entry("l2", check={"kind": "printed"}), entry("l1", under="l2", target="u")]
    claims[1]["check"] = {"kind": "printed"}
    rows = judge(claims, trials({"a": 0.1}), pd.concat([table, table.assign(target="u")]))
    assert rows["row"].tolist() == ["", "l2/a/mean/"]
    assert rows["id"].tolist() == ["l2/a/mean/", "l1/a/mean/"]


def test_medians_and_factors_are_compared_where_a_check_says_so():
    tables = trials({"a": 0.1, "b": 0.1}, n=20, spread=0.001)
    tables["e"].loc[tables["e"]["trial"] == 0, "error"] = 5.0  # one trial that failed
    below = {"kind": "below", "bound": 0.2, "reason": "r", "by": ["d"]}
    assert verdict(below, tables)["verdict"] == "too few trials"
    assert verdict({**below, "statistic": "median"}, tables)["verdict"] == "reproduced"
    factor = {"kind": "alike", "against": ["b"], "by": ["d"], "reason": "r", "scale": "log"}
    row = verdict({**factor, "statistic": "median", "bound": 1.1}, tables)
    assert row["verdict"] == "reproduced"
    assert "within a factor of 1.1 for A and B. Found: a factor of " in row["decided_by"]
    twice = trials({"a": 0.2, "b": 0.1}, n=20, spread=0.001)
    assert verdict({**factor, "statistic": "mean", "bound": 1.1}, twice)["verdict"] == (
        "not reproduced"
    )
    said = verdict({**WITHIN, "scale": "log", "bound": 1.1}, twice)["decided_by"]
    assert "higher by less than a factor of 1.1 for A than for B" in said
    assert "Found: higher by a factor of 2 (95 % interval" in said


CORRELATED = {"kind": "correlated", "along": "epsilon"}


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ({0.1: 0.30, 1.0: 0.20, 10.0: 0.20, 100.0: 0.20}, "reproduced"),  # then a plateau
        ({0.1: 0.20, 1.0: 0.30, 10.0: 0.40, 100.0: 0.50}, "not reproduced"),
    ],
)
def test_correlated_allows_a_plateau(means, expected):
    row = verdict(CORRELATED, {"e": curve(means)})
    assert row["verdict"] == expected
    assert "a negative rank correlation of error with epsilon, for A" in row["decided_by"]


def test_correlated_counts_only_trials_with_all_points():
    table = curve({0.1: 0.3, 1.0: 0.1}, n=30)
    row = verdict(CORRELATED, {"e": table[(table["trial"] > 9) | (table["epsilon"] < 0.5)]})
    assert "Found: -1 (95 % interval -1 to -1, 20 trials)" in row["decided_by"]


def test_correlated_is_left_open_where_nothing_falls():
    flat = dict.fromkeys((0.1, 1.0, 10.0, 100.0), 0.3)
    found = [
        verdict(CORRELATED, {"e": curve(flat, n=20, seed=seed)})["verdict"] for seed in range(100)
    ]
    # binomial: more than 8 of 100 at 2.5 % once in 1000 runs
    assert found.count("reproduced") <= 8


BELOW_BOTH = {"kind": "below", "reason": "r", "bound": 0.1, "wide_bound": 0.3}


@pytest.mark.parametrize(
    ("mean", "expected"), [(0.05, "reproduced"), (0.2, "undecided"), (0.4, "not reproduced")]
)
def test_a_word_without_a_number_is_undecided_within_bounds(mean, expected):
    row = verdict(BELOW_BOTH, trials({"a": mean}))
    assert row["verdict"] == expected
    said = "With the narrow bound: Expected: error below 0.1 for A."
    assert row["decided_by"].startswith(said) == (expected == "undecided")
    assert row["decided_by"].count("Expected: error below 0.3") == (expected == "undecided")


def test_a_wide_bound_does_not_add_a_better_verdict():
    row = verdict({**BELOW_BOTH, "by": ["d"], "bound": 0.2}, trials({"a": 0.2}))
    assert row["verdict"] == "too few trials"  # by the wide bound it is reproduced


INDEPENDENT = {"kind": "independent", "along": "epsilon"}


@pytest.mark.parametrize("step", [0.1, -0.1])
def test_independent_is_contradicted_by_a_trend_either_way(step):
    table = curve({0.1: 0.3, 1.0: 0.3 + step, 10.0: 0.3 + 2 * step})
    row = verdict(INDEPENDENT, {"e": table})
    assert row["verdict"] == "not reproduced"
    assert "no rank correlation of error with epsilon, for A" in row["decided_by"]


def test_independent_is_never_reproduced():
    flat = dict.fromkeys((0.1, 1.0, 10.0, 100.0), 0.3)
    found = [
        verdict(INDEPENDENT, {"e": curve(flat, n=20, seed=seed)})["verdict"] for seed in range(100)
    ]
    assert set(found) <= {"too few trials", "not reproduced"}
    # binomial: more than 13 of 100 at 5 % once in 1000 runs
    assert found.count("not reproduced") <= 13


def test_independent_is_judged_at_each_point():
    flat, falling = (curve({0.1: 0.3, 1.0: 0.3 - fall}) for fall in (0.0, 0.2))
    both = pd.concat([flat.assign(d=1), falling.assign(d=2)])
    row = verdict({**INDEPENDENT, "by": ["d"]}, {"e": both})
    assert row["verdict"] == "not reproduced"
    assert "at d = 2, the strongest of 2 comparisons" in row["decided_by"]
