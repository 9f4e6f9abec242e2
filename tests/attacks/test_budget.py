"""Attacks on a ledger: refits, workers, races, damaged files, fits that promise nothing."""

import multiprocessing
import pickle
import subprocess
import sys

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.model_selection import cross_val_score

from privclust.kmeans import DPLloyd
from privclust.privacy import Budget, BudgetError

X = np.random.default_rng(0).choice([0.1, 0.9], (2000, 2))
START = [[0.2, 0.2], [0.8, 0.8]]


def lloyd(**options):
    options = {"epsilon": 0.4, "bounds": (0, 1), **options}
    return DPLloyd(2, max_iter=1, init=START, random_state=0, **options)


@pytest.mark.attack(
    claim="a budget of 1 is not exceeded",
    before="five fits and a search on the same rows each said epsilon = 1, without a word",
    now="refits, folds of a search and copies are charged; the one too many is refused",
)
def test_fitting_again_is_free():
    with Budget(1.0) as budget:
        model = lloyd().fit(X)
        model.fit(X)
        with pytest.raises(BudgetError, match=r"0\.8 of epsilon = 1 are spent"):
            model.fit(X)
        with pytest.raises(BudgetError):
            pickle.loads(pickle.dumps(model)).fit(X)
    assert len(budget.entries) == 2


@pytest.mark.attack(
    claim="fits in the workers of a search are counted",
    before="there was no ledger; one in memory hears nothing of other processes",
    now="a ledger in memory refuses them, one in a file is charged by them",
)
def test_workers_of_joblib_are_not_heard(tmp_path):
    with Parallel(n_jobs=2) as parallel:  # workers that are there before the ledger is
        assert parallel(delayed(abs)(-i) for i in range(2)) == [0, 1]
        with Budget(5.0) as budget, pytest.raises(ValueError, match="cannot charge a ledger"):
            cross_val_score(lloyd(), X, cv=2, n_jobs=2, scoring=_no_score)
        assert budget.entries == ()
    with Budget.open(tmp_path / "budget.json", 5.0) as budget:
        cross_val_score(lloyd(), X, cv=2, n_jobs=2, scoring=_no_score, error_score="raise")
    assert len(budget.entries) == 2


def _no_score(estimator, rows, target=None):
    return 0.0


def _fit_in_fork(results):
    try:
        lloyd().fit(X)
    except BudgetError:
        results.put("refused")
    else:
        results.put("free")


@pytest.mark.attack(
    claim="a forked process has no budget of its own",
    before="there was no ledger; a copy of one in memory would be charged and lost",
    now="a fit in the fork is refused",
)
def test_a_fork_spends_a_copy():
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with Budget(1.0):
        process = context.Process(target=_fit_in_fork, args=(results,))
        process.start()
        assert results.get(timeout=60) == "refused"
        process.join()


@pytest.mark.attack(
    claim="two processes cannot both spend the last epsilon of a file",
    before="there was no ledger",
    now="of forty charges of 0.1 by four processes on a budget of 1, ten come through",
)
def test_processes_race_for_the_last_epsilon(tmp_path):
    path = tmp_path / "budget.json"
    Budget.open(path, 1.0)
    code = (
        "from privclust.privacy import *\n"
        "g = Guarantee.of([Release('s', 'laplace', 'b', 'p', Loss(.005, epsilon=.1))], 'pure',"
        " 'replace-one')\n"
        f"budget = Budget.open({str(path)!r})\n"
        "for _ in range(10):\n"
        "    try:\n        budget.spend(g)\n        print('spent')\n"
        "    except BudgetError:\n        pass\n"
    )
    command = [sys.executable, "-c", code]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    spent = sum(process.communicate()[0].count("spent") for process in processes)
    assert spent == len(Budget.open(path).entries) == 10


@pytest.mark.attack(
    claim="a ledger that cannot be read lets nothing pass",
    before="there was no ledger",
    now="cut, emptied and altered files are refused, and stay as they are",
)
@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: text.replace('"epsilon"', '"epsilom"'),
        lambda text: text.replace("0.4", '"0.4"'),
        lambda text: text.replace('"releases"', '"release"'),
        lambda text: "[" * 100_000,
        lambda text: "\x00\xff",
    ],
)
def test_a_damaged_ledger_begins_anew(tmp_path, damage):
    path = tmp_path / "budget.json"
    with Budget.open(path, 1.0) as budget:
        lloyd().fit(X)
        path.write_text(damage(path.read_text()))
        damaged = path.read_bytes()
        with pytest.raises(BudgetError, match="not a whole ledger"):
            lloyd().fit(X)
    with pytest.raises(BudgetError, match="not a whole ledger"):
        Budget.open(path, 1.0)
    assert path.read_bytes() == damaged
    assert isinstance(budget, Budget)


@pytest.mark.attack(
    claim="what is counted has a guarantee",
    before="a fit whose bounds are those of the data only warned",
    now="under a ledger it is refused before it looks at a sum",
)
@pytest.mark.filterwarnings("ignore::privclust.privacy.PrivacyLeakWarning")
def test_a_fit_that_promises_nothing_is_counted_as_nothing():
    with Budget(1.0) as budget, pytest.raises(BudgetError, match="without a guarantee"):
        lloyd(bounds=None).fit(X)
    assert budget.spent == 0.0


@pytest.mark.attack(
    claim="a fit that ends in an error is paid for as well",
    before="there was no ledger",
    now="what was charged stays charged, since noise may have been seen by then",
)
def test_an_interrupted_fit_is_given_back(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("privclust.kmeans._dplloyd.nearest_center", interrupt)
    with Budget(1.0) as budget, pytest.raises(KeyboardInterrupt):
        lloyd().fit(X)
    assert budget.spent == 0.4
