"""Ledgers: what is charged, what is refused, and who is counted."""

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from privclust.kmeans import DPLloyd
from privclust.privacy import Budget, BudgetError, Guarantee, Loss, Release
from privclust.privacy.budget import charge

X = np.random.default_rng(0).choice([0.1, 0.9], (2000, 2))
START = [[0.2, 0.2], [0.8, 0.8]]


def pure(epsilon, relation="replace-one"):
    release = Release("sums", "laplace", "scale", "by hand", Loss(epsilon**2 / 2, epsilon=epsilon))
    return Guarantee.of([release], "pure", relation)


def normal(rho, relation="replace-one"):
    release = Release("sums", "gaussian", "sigma", "by hand", Loss(rho))
    return Guarantee.of([release], "approximate", relation, delta=1e-6)


def lloyd(epsilon=0.5, **options):
    return DPLloyd(2, epsilon=epsilon, bounds=(0, 1), init=START, random_state=0, **options)


def test_without_a_ledger_nothing_is_charged():
    charge(pure(100.0))
    budget = Budget(1.0)
    charge(pure(100.0))
    assert (budget.spent, budget.remaining, budget.entries) == (0.0, 1.0, ())
    assert (budget.guarantee.definition, budget.guarantee.epsilon) == ("pure", 0.0)


def test_charges_add_up_to_the_budget_and_not_beyond():
    with Budget(1.0) as budget:
        for _ in range(10):
            charge(pure(0.1))  # whose floating-point sum is not 1
        with pytest.raises(BudgetError, match=r"1 of epsilon = 1 are spent.* 0 are left"):
            charge(pure(1e-6))
    assert budget.spent == pytest.approx(1.0)
    assert len(budget.entries) == 10
    assert str(budget).count("0.1-differential privacy") == 10
    charge(pure(5.0))  # it is closed


def test_composition_is_the_tightest_at_the_ledgers_delta():
    one = normal(0.01)
    with Budget(10.0, 1e-6) as budget:
        for _ in range(9):
            charge(one)
    whole = one.compose(*[one] * 8)
    assert budget.spent == pytest.approx(whole.epsilon_at(1e-6))
    assert budget.spent < 9 * one.epsilon / 2
    assert budget.guarantee.delta == 1e-6


@pytest.mark.parametrize(
    ("ledger", "guarantee", "message"),
    [
        ({}, Guarantee("none", "replace-one", caveats=("no noise",)), "no noise"),
        ({}, Guarantee("asymptotic", "replace-one", epsilon=0.1), "without a guarantee"),
        ({}, normal(0.001), "only pure releases"),
        ({"neighbours": "add_remove"}, pure(0.1), "says nothing; fit with neighbours"),
        ({"delta": 1e-9}, normal(2.0), "are left"),
    ],
)
def test_what_cannot_be_counted_is_refused(ledger, guarantee, message):
    with Budget(1.0, **ledger) as budget, pytest.raises(BudgetError, match=message):
        charge(guarantee)
    assert budget.entries == ()


def test_guarantees_for_rows_added_cost_a_replacement_twice():
    with Budget(1.0) as budget:
        charge(pure(0.3, "add-remove"))
    assert budget.spent == pytest.approx(0.6)
    with Budget(1.0, neighbours="add-remove") as budget:
        charge(pure(0.3, "add-remove"))
    assert budget.spent == pytest.approx(0.3)


@pytest.mark.parametrize("bad", [{"epsilon": 0.0}, {"epsilon": math.inf}, {"delta": 1.0}])
def test_bad_budgets_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        Budget(**{"epsilon": 1.0, **bad})


def test_of_nested_ledgers_all_are_charged_or_none():
    with Budget(1.0) as outer:
        charge(pure(0.7))
        with Budget(1.0) as inner:
            with pytest.raises(BudgetError):
                charge(pure(0.5))
            charge(pure(0.2))
    assert outer.spent == pytest.approx(0.9)
    assert inner.spent == 0.2
    with pytest.raises(BudgetError, match="open already"), outer, outer:
        pass


def test_a_file_is_shared_and_stays(tmp_path):
    path = tmp_path / "budget.json"
    with pytest.raises(BudgetError, match="give an epsilon"):
        Budget.open(path)
    with Budget.open(path, 1.0, 1e-6):
        charge(pure(0.4))
        code = (
            "from privclust.privacy import Budget, BudgetError\n"
            f"budget = Budget.open({str(path)!r})\n"
            "try:\n    budget.spend(budget.entries[0].compose(budget.entries[0]))\n"
            "except BudgetError as error:\n    print(error)\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "this release would make it" in done.stdout, done.stderr
        charge(pure(0.4))
    again = Budget.open(path, 1.0)
    assert 0.79 < again.spent <= 0.8  # by the privacy loss distribution a little less than the sum
    assert [entry.epsilon for entry in again.entries] == [0.4, 0.4]
    with pytest.raises(BudgetError, match="not of what was asked for"):
        Budget.open(path, 2.0)


def test_threads_spend_no_more_than_there_is():
    def spend(_):
        try:
            charge(pure(0.1))
        except BudgetError:
            return 0
        return 1

    with Budget(1.0) as budget, ThreadPoolExecutor(8) as executor:
        assert sum(executor.map(spend, range(50))) == 10
    assert budget.spent == pytest.approx(1.0)


def test_fits_are_charged_before_they_look_at_values():
    with Budget(1.0) as budget:
        model = lloyd().fit(X)
        lloyd().fit(X)
        seen = dict(vars(model))
        with pytest.raises(BudgetError):
            model.fit(X)
    assert budget.spent == pytest.approx(1.0)
    assert model.cluster_centers_ is seen["cluster_centers_"]


def test_a_search_is_charged_for_each_candidate_and_fold():
    search = GridSearchCV(lloyd(0.1), {"max_iter": [1, 2]}, cv=2, scoring=lambda *_: 0.0)
    with Budget(10.0) as budget:
        search.fit(X)
    assert len(budget.entries) == 2 * 2 + 1  # and the refit
    assert budget.spent == pytest.approx(0.5)
