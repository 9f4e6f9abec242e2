"""How often claims that are true, tied and false get each verdict: seeded, rates stated."""

import importlib.util
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "benchmarks"
REPEATS = 40


@pytest.fixture(scope="module")
def rates():
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location("verdict_rates", FOLDER / "verdicts.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FOLDER))
    return module.rates


KINDS = (
    *("lowest", "lowest, by medians", "within", "below", "below, a share of trials", "falls"),
    *("stable", "alike"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tied_claim_is_left_open(rates, kind):
    """At most 2.5 % hold in part and 2.5 % are contradicted: over 8 of 40 once in 2,000 runs."""
    assert rates(kind, "tied", 20, 4, REPEATS)["too few trials"] >= 1.0 - 8 / REPEATS


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_false_by_one_deviation_is_found_out(rates, kind):
    found = rates(kind, "false", 20, 4, REPEATS)
    assert found["reproduced"] == found["consistent"] == 0.0
    assert found["not reproduced"] >= 0.6


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_true_by_one_deviation_is_not_contradicted(rates, kind):
    found = rates(kind, "true", 20, 4, REPEATS)
    assert found["not reproduced"] == found["partly"] == 0.0
    assert found["reproduced"] + found["consistent"] >= 0.6


@pytest.mark.parametrize("n_trials", [2, 5, 100])
def test_the_number_of_trials_makes_no_false_claim_true(rates, n_trials):
    """Two trials hardly decide; a hundred find each claim that is false by one deviation."""
    found = rates("lowest", "false", n_trials, 1, REPEATS)
    assert found["reproduced"] + found["consistent"] <= 2 / REPEATS
    least, most = {2: (0.0, 0.3), 5: (0.2, 0.7), 100: (1.0, 1.0)}[n_trials]
    assert least <= found["not reproduced"] <= most


@pytest.mark.parametrize("n_trials", [2, 5])
def test_few_medians_decide_nothing(rates, n_trials):
    """An interval of a median needs six trials."""
    assert rates("lowest, by medians", "true", n_trials, 1, 10)["too few trials"] == 1.0


@pytest.mark.parametrize("n_trials", [2, 20, 100])
def test_a_right_printed_number_agrees_in_19_of_20_runs(rates, n_trials):
    """The interval has 95 %: over 7 of 40 contradicted once in 1,400 runs."""
    found = rates("printed", "true", n_trials, 1, REPEATS)
    assert found["not reproduced"] <= 7 / REPEATS


@pytest.mark.parametrize(("n_trials", "least", "most"), [(2, 0.0, 0.3), (20, 0.9, 1.0)])
def test_a_wrong_printed_number_agrees_only_with_few_trials(rates, n_trials, least, most):
    """It is wrong by one deviation; with two trials the interval is too wide to tell."""
    found = rates("printed", "false", n_trials, 1, REPEATS)
    assert least <= found["not reproduced"] <= most
    assert found["reproduced"] + found["not reproduced"] == 1.0
