"""The ledger: composition, limits, files; what tries to get round it is among the attacks."""

import doctest
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import cross_val_score

from privclust.privacy import Budget, BudgetError, Guarantee, Loss, Release, composed_epsilon
from privclust.privacy.budget import charge


def normal(rho, *, delta=1e-6, seeded=False):
    release = Release("means", "gaussian", "sigma 3", "by hand", Loss(rho=rho))
    return Guarantee.of([release], "approximate", "replace-one", delta=delta, seeded=seeded)


def pure(epsilon):
    release = Release("sums", "laplace", "scale 1", "p", Loss(epsilon**2 / 2, epsilon=epsilon))
    return Guarantee.of([release], "pure", "replace-one")


def test_without_a_ledger_nothing_happens():
    charge(Guarantee("none", "replace-one"))


def test_spent_is_the_best_composition_at_the_ledgers_delta():
    with Budget(epsilon=2, delta=1e-6) as budget:
        charge(normal(0.01, delta=1e-5))
        charge(normal(0.01, delta=1e-9))
        charge(pure(0.1))
    losses = [Loss(rho=0.01), Loss(rho=0.01), Loss(0.005, epsilon=0.1)]
    assert budget.spent == budget.guarantee.epsilon == composed_epsilon(losses, 1e-6)
    assert budget.guarantee.delta == 1e-6
    assert budget.remaining() == 2 - budget.spent


def test_no_delta_takes_pure_guarantees_only():
    with Budget(epsilon=2) as budget:
        with pytest.raises(
            BudgetError, match="counts guarantees without a delta, and the fit's delta is 1e-06"
        ):
            charge(normal(1e-6))
        charge(pure(0.5))
    assert budget.guarantee.definition == "pure"
    assert budget.remaining() == 1.5


def test_tenths_add_up_to_the_whole():
    with Budget(epsilon=1) as budget:
        for _ in range(10):
            charge(pure(0.1))
        with pytest.raises(BudgetError):
            charge(pure(1e-6))
    assert len(budget.entries) == 10


def test_an_empty_ledger():
    for budget in (Budget(epsilon=1), Budget(epsilon=1, delta=1e-6)):
        assert budget.spent == 0
        assert budget.remaining() == 1
        assert budget.guarantee.releases == ()


def test_a_failed_fit_stays_counted():
    budget = Budget(epsilon=2)

    def fails():
        with budget:
            charge(pure(1))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert budget.spent == 1


def test_a_search_turns_a_refusal_into_no_score():
    class Private(BaseEstimator):
        def fit(self, X, y=None):
            charge(pure(1))
            return self

        def score(self, X, y=None):
            return 1.0

    with Budget(epsilon=2) as budget, pytest.warns(FitFailedWarning):
        scores = cross_val_score(Private(), np.zeros((8, 1)), cv=4)
    assert budget.spent == 2
    assert np.isnan(scores).tolist() == [False, False, True, True]


def test_seeded_fits_are_counted_and_said():
    with Budget(epsilon=2, delta=1e-6) as budget:
        charge(normal(0.01, seeded=True))
    assert budget.guarantee.seeded
    assert "for reproduction" in str(budget)
    assert "of 2 spent" in str(budget)


def test_a_closed_ledger_counts_no_more():
    with Budget(epsilon=2) as budget:
        pass
    charge(pure(1))
    assert budget.spent == 0
    assert "PRIVCLUST_LEDGERS" not in os.environ


def test_the_same_ledger_within_itself_is_charged_once(tmp_path):
    path = tmp_path / "b.json"
    with Budget(epsilon=2) as budget, budget, Budget.open(path, 2) as first, Budget.open(path):
        charge(pure(1))
        assert (budget.spent, first.spent) == (1, 1)


def test_a_file_keeps_its_limits_and_what_was_spent(tmp_path):
    path = tmp_path / "budget.json"
    with Budget.open(path, epsilon=2, delta=1e-6, neighbours="replace_one") as budget:
        charge(normal(0.01, seeded=True))
        charge(pure(0.5))
    again = Budget.open(path)
    assert again.entries == budget.entries
    assert (again.epsilon, again.delta, again.spent) == (2, 1e-6, budget.spent)
    assert json.loads(path.read_text())["neighbours"] == "replace-one"
    with pytest.raises(BudgetError, match="epsilon 2, not 3"):
        Budget.open(path, epsilon=3)
    with pytest.raises(BudgetError, match="no such ledger"):
        Budget.open(tmp_path / "other.json")


def test_equal_fits_are_composed_at_once(tmp_path):
    with Budget.open(tmp_path / "budget.json", epsilon=3, delta=1e-6) as budget:
        for _ in range(30):
            charge(pure(0.1))
    assert budget.spent == composed_epsilon([Loss(0.1**2 / 2, 0.1, count=30)], 1e-6) < 3


def test_numbers_of_numpy_are_written(tmp_path):
    loss = Loss(np.float32(0.5), np.float64(1), count=np.int64(2))
    with Budget.open(tmp_path / "budget.json", epsilon=np.int64(2)) as budget:
        charge(Guarantee.of([Release("s", "m", "n", "p", loss)], "pure", "replace-one"))
    assert Budget.open(budget.path, epsilon=2).spent == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"epsilon": float("nan")},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "neighbours": "both"},
    ],
)
def test_wrong_limits_are_refused(wrong):
    with pytest.raises(ValueError, match=r"epsilon|delta|neighbours"):
        Budget(**wrong)


def test_the_example_of_the_page_is_so():
    page = Path(__file__).parents[3] / "docs" / "budget.md"
    results = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert results.attempted > 5
    assert results.failed == 0


@pytest.mark.skipif(os.name != "posix", reason="needs the children of a process")
def test_an_open_ledger_starts_no_process():
    code = """
import os, sklearn.cluster
from privclust.privacy import Budget
with Budget(epsilon=1.0):
    pass
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    raise SystemExit(0)
raise SystemExit(1)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
