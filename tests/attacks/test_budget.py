"""Attacks on a ledger: ways to release more than it allows, or what it cannot count."""

import copy
import os
import pickle
import subprocess
import sys
import threading

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import cross_val_score

from privclust.kmeans import DPLloyd
from privclust.privacy import Budget, BudgetError, Guarantee, Loss, Release
from privclust.privacy.budget import charge

BEFORE = "There was no ledger: any number of fits at epsilon = 1 was allowed."


def pure(epsilon=1.0, relation="replace-one"):
    loss = Loss(epsilon**2 / 2, epsilon=epsilon)
    return Guarantee.of([Release("sums", "laplace", "s", "p", loss)], "pure", relation)


def estimator():
    """An estimator that draws on the ledger; of a local class, which workers get by value."""
    price = pure()

    class Private(BaseEstimator):
        def fit(self, X, y=None):
            charge(price)
            self.n_rows_ = len(X)
            return self

        def score(self, X, y=None):
            return float(self.n_rows_)

    return Private()


class Untouchable:
    """Data that must not be read."""

    def __len__(self):
        raise AssertionError("the data were touched")


@pytest.mark.attack(
    claim="With a ledger of epsilon = 2, at most 2 can be spent.",
    before=BEFORE,
    now="The third fit with epsilon = 1 is refused before it reads the data.",
)
def test_a_refit_exceeds_the_ledger():
    model = estimator()
    with Budget(epsilon=2) as budget:
        model.fit([[0.0]]).fit([[0.0]])
        with pytest.raises(BudgetError, match=r"2 of 2 is spent, 0 is left, the fit asks for 1"):
            model.fit(Untouchable())
    assert budget.spent == 2


@pytest.mark.attack(
    claim="Two processes cannot both spend the last epsilon of one file.",
    before=BEFORE,
    now="Two processes try 20 fits each, with budget for 20: exactly 20 fits are allowed in total.",
)
def test_two_processes_race_for_one_file(tmp_path):
    path = tmp_path / "budget.json"
    Budget.open(path, epsilon=20)
    program = (
        "import sys\n"
        "from privclust.privacy import Budget, BudgetError, Guarantee, Loss, Release\n"
        "loss = Loss(0.5, epsilon=1.0)\n"
        "one = Guarantee.of([Release('s', 'm', 'n', 'p', loss)], 'pure', 'replace-one')\n"
        "ledger, through = Budget.open(sys.argv[1]), 0\n"
        "for _ in range(20):\n"
        "    try:\n"
        "        ledger.spend(one)\n"
        "        through += 1\n"
        "    except BudgetError:\n"
        "        pass\n"
        "print(through)\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert sum(int(run.communicate(timeout=60)[0]) for run in runs) == 20
    assert Budget.open(path).spent == 20


@pytest.mark.attack(
    claim="Fits that joblib's processes make during a search are counted or refused.",
    before="Workers do not know the context of the caller: a ledger bound to that context counted "
    "0 of 4 fits.",
    now="A ledger in a file counts 4 of 4 fits, even those of workers started earlier. With a "
    "ledger in memory, the fits are refused.",
)
def test_workers_of_joblib(tmp_path):
    X, model = np.zeros((8, 1)), estimator()
    joblib.Parallel(n_jobs=2)(joblib.delayed(os.getpid)() for _ in range(2))  # workers run before
    search = {"cv": 4, "n_jobs": 2, "error_score": "raise"}
    with Budget.open(tmp_path / "budget.json", epsilon=4) as budget:
        cross_val_score(model, X, **search)
        assert budget.spent == 4
        with pytest.raises(BudgetError, match="4 of 4 is spent"):
            cross_val_score(model, X, **search)
    with Budget(epsilon=9) as in_memory, pytest.raises(BudgetError, match="another process"):
        joblib.Parallel(n_jobs=2)(joblib.delayed(charge)(pure()) for _ in range(2))
    assert in_memory.spent == 0


@pytest.mark.attack(
    claim="A forked process uses the ledger of its parent, or its fits are refused.",
    before="Each child spent its own copy of a ledger in memory: 4 of 4 fits were not counted.",
    now="A ledger in a file counts 4 of 4 fits. With a ledger in memory, all are refused.",
)
def test_forked_processes(tmp_path):
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        with Budget.open(tmp_path / "budget.json", epsilon=4) as budget:
            joblib.Parallel()(joblib.delayed(charge)(pure()) for _ in range(4))
        assert budget.spent == 4
        with Budget(epsilon=9) as budget, pytest.raises(BudgetError, match="another process"):
            joblib.Parallel()(joblib.delayed(charge)(pure()) for _ in range(4))
    assert budget.spent == 0


@pytest.mark.attack(
    claim="Fits that a search makes in threads are counted.",
    before="A thread has its own context: a ledger bound to the caller's context counted 0 of 4 "
    "fits.",
    now="4 of 4 fits are counted. Of 40 simultaneous threads, only as many fits are allowed as "
    "the budget covers.",
)
def test_threads_share_one_ledger():
    X, model = np.zeros((8, 1)), estimator()
    with Budget(epsilon=4) as budget, joblib.parallel_config("threading"):
        cross_val_score(model, X, cv=4, n_jobs=2, error_score="raise")
        assert budget.spent == 4

    through, start = [], threading.Barrier(40)

    def draw():
        start.wait()
        try:
            charge(pure())
            through.append(1)
        except BudgetError:
            pass

    with Budget(epsilon=10) as budget:
        threads = [threading.Thread(target=draw) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(through) == len(budget.entries) == 10


@pytest.mark.attack(
    claim="A ledger's file keeps everything that was spent.",
    before=BEFORE,
    now="A file that is empty, truncated, missing or changed in one digit is refused and left "
    "unchanged.",
)
def test_a_damaged_ledger_file_gives_no_new_budget(tmp_path):
    path = tmp_path / "budget.json"
    ledger = Budget.open(path, epsilon=2)
    ledger.spend(pure())
    whole = path.read_text()
    changed = whole.replace('"epsilon": 1.0', '"epsilon": 0.1')
    assert changed != whole
    for damaged in ("", whole[: len(whole) // 2], changed, "[]", "\0" * 10, '{"sha256": 1}'):
        path.write_text(damaged)
        for use in (lambda: Budget.open(path, epsilon=2), lambda: ledger.spend(pure(0.1))):
            with pytest.raises(BudgetError, match="damaged"):
                use()
        assert path.read_text() == damaged
    path.unlink()
    with pytest.raises(BudgetError, match="gone"):
        ledger.spend(pure(0.1))
    assert not path.exists()


@pytest.mark.attack(
    claim="A fit without a guarantee does not count as free in a ledger.",
    before=BEFORE,
    now='The guarantees "none" and "asymptotic" are refused. A privacy loss is counted even if it '
    "is charged without a list of its releases.",
)
def test_a_fit_without_a_guarantee_is_not_free():
    with Budget(epsilon=2) as budget:
        for empty in ("none", "asymptotic", "cdp"):
            with pytest.raises(BudgetError, match="refuses"):
                charge(Guarantee(empty, "replace-one", epsilon=0.1))
        assert budget.entries == ()
        charge(Guarantee("pure", "replace-one", epsilon=1.5))  # lists no release
        assert budget.spent == 1.5


@pytest.mark.attack(
    claim="An inner ledger does not hide fits from the outer ledger.",
    before=BEFORE,
    now="Both ledgers are charged. If either refuses, neither is charged.",
)
def test_a_ledger_within_a_ledger(tmp_path):
    with Budget(epsilon=2) as outer, Budget.open(tmp_path / "b.json", epsilon=9) as inner:
        charge(pure())
        charge(pure())
        with pytest.raises(BudgetError):
            charge(pure())
        assert (outer.spent, inner.spent) == (2, 2)
    with Budget(epsilon=9) as outer, Budget(epsilon=1), pytest.raises(BudgetError):
        charge(pure(1.1))
    assert outer.spent == 0


@pytest.mark.attack(
    claim="The guarantee for an added or removed record counts twice in a ledger for replaced "
    "records.",
    before=BEFORE,
    now="Epsilon = 1 for an added record costs 2 in a ledger for replaced records. The converse "
    "is refused.",
)
def test_neighbouring_relations_are_not_mixed():
    with Budget(epsilon=2) as budget:
        charge(pure(1.0, "add-remove"))
        assert budget.spent == 2
    with Budget(epsilon=2, neighbours="add-remove"), pytest.raises(BudgetError, match="add-remove"):
        charge(pure(0.1))


@pytest.mark.attack(
    claim="Deleting, copying or pickling a ledger gives no second budget.",
    before="A deleted file was started anew, and a deep copy had its own budget.",
    now="The lock file remembers a deleted ledger, copies are the same ledger, and pickles reopen "
    "its file.",
)
def test_a_second_budget_for_the_same_people(tmp_path):
    path = tmp_path / "budget.json"
    budget = Budget.open(path, epsilon=1.0)
    for other in (copy.copy(budget), copy.deepcopy({"budget": budget})["budget"]):
        assert other is budget
    price = Guarantee.of(
        [Release("sums", "laplace", "scale 1", "by hand", Loss(0.5, epsilon=1.0))],
        "pure",
        "replace-one",
    )
    pickle.loads(pickle.dumps(budget)).spend(price)
    assert budget.spent == 1.0
    with pytest.raises(BudgetError, match="another process"):
        pickle.dumps(Budget(1.0))
    path.unlink()
    for refused in (lambda: Budget.open(path, epsilon=1.0), lambda: budget.spend(price)):
        with pytest.raises(BudgetError):
            refused()
    assert not path.exists()


@pytest.mark.attack(
    claim="A refusal by the ledger states the remedy.",
    before="'asks for inf, with which it would be inf'.",
    now="The message says that the ledger counts guarantees without a delta.",
)
def test_a_ledger_without_delta_says_so():
    X = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    model = DPLloyd(2, bounds=(-1, 1), accounting="pld", delta=1e-6, random_state=0)
    with Budget(epsilon=1.0) as budget:
        with pytest.raises(BudgetError, match=r"guarantees without a delta.*delta is 1e-06"):
            model.fit(X)
        assert budget.spent == 0.0
