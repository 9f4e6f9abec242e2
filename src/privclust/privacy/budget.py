"""A privacy ledger: the budget spent by fits, sketches and commands, and the budget left.

Open ledgers are known to all threads of the process and, through an environment variable, to the
processes that it starts.
"""

from __future__ import annotations

import contextlib
import json
import math
import multiprocessing
import os
import secrets
import sys
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from privclust.privacy import _ledger_file
from privclust.privacy._ledger_file import BudgetError as BudgetError
from privclust.privacy._ledger_file import file_lock, lock_path
from privclust.privacy.accounting import Loss, composed_epsilon, pure_rho, total_epsilon
from privclust.privacy.groups import ROW
from privclust.privacy.guarantee import Guarantee, Release
from privclust.privacy.sensitivity import Neighbours

_VARIABLE = "PRIVCLUST_LEDGERS"
_ROUNDING = 1e-9  # relative excess of the limit that is ignored: ten fits at 0.1 are within 1
# reentrant: a charge holds it while it opens the ledgers of parent processes
_LOCK = threading.RLock()  # protects open ledgers, and budgets spent in memory
_OPEN: list[Budget] = []
_TOKEN = secrets.token_hex(8)  # process IDs are reused; a forked process has the same token


def _new_lock() -> None:
    """Give a forked process its own lock: a thread of the parent may hold the old one."""
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


class Budget:
    """A ledger that counts the releases within its block and refuses those that exceed it.

    Each private fit, sketch or release within the block is charged before it releases anything:
    fits in all threads of this process, refits, and each fit of a scikit-learn
    search. A fit that would exceed the limit raises `BudgetError`. (A search with ``error_score``
    other than ``"raise"`` turns this into a score of nan.)

    A fit that fails after its charge stays counted, because its releases may have been seen. Nested
    ledgers are all charged, or none is. A ledger is for one set of records; use one ledger for each
    of several disjoint sets of people.

    The limit is proved for fits that are chosen beforehand. If their privacy losses depend on
    earlier releases, it is proved at delta = 0 (addition) [1]_; for other deltas the composed
    epsilon is that of the same fits chosen beforehand.

    Workers in other processes (joblib with ``n_jobs``) charge a ledger in a file (`open`). A ledger
    in memory refuses them, because they cannot write to it. Processes started before the block do
    not know the ledger; joblib's own are started again.

    A file in which an entry was changed, removed or moved is refused. So is an older copy, as long
    as the account that runs this has seen a newer one: each account notes the newest state of its
    ledgers in ``$XDG_STATE_HOME/privclust/ledgers`` (``~/.local/state`` if unset). A file cannot
    prevent the use of an older copy on another machine, in another account or after the note was
    deleted, nor a second ledger for the same records.

    Parameters
    ----------
    epsilon : float
        In nats, greater than 0: the limit of the composed epsilon at `delta`.
    delta : float, default=0
        In [0, 1). At 0 only pure guarantees are accepted.
    neighbours : {"replace-one", "add-remove"} or Neighbours, default="replace-one"
        Relation of the limit. Guarantees for added or removed records are converted to replaced
        records; the converse is refused.

    Raises
    ------
    ValueError
        For a parameter out of its range.

    References
    ----------
    .. [1] R. Rogers, A. Roth, J. Ullman and S. Vadhan, "Privacy odometers and filters:
       pay-as-you-go composition", NeurIPS 2016.

    Examples
    --------
    >>> from privclust.privacy.guarantee import Guarantee, Release
    >>> from privclust.privacy.accounting import Loss
    >>> sums = Release("sums", "laplace", "scale 1", "by hand", Loss(0.5, epsilon=1.0))
    >>> guarantee = Guarantee.of([sums], "pure", "replace-one")
    >>> with Budget(epsilon=1.5) as budget:
    ...     charge(guarantee)  # what each private fit does
    >>> budget.spent, budget.remaining()
    (1.0, 0.5)
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        neighbours: Neighbours | str = Neighbours.REPLACE_ONE,
    ) -> None:
        if not 0 < epsilon < math.inf:
            raise ValueError(f"epsilon: must be a finite number greater than 0, got {epsilon!r}")
        if not 0 <= delta < 1:
            raise ValueError(f"delta: must be from 0 to less than 1, got {delta!r}")
        self.epsilon, self.delta = epsilon, delta
        self.neighbours = Neighbours.of(neighbours, "neighbours")
        self.path: Path | None = None
        self._entries: tuple[Guarantee, ...] = ()
        self._process = os.getpid()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        neighbours: Neighbours | str | None = None,
    ) -> Budget:
        """Return the ledger in a file; the file is created if it does not exist.

        Processes that charge it at the same time wait for one another (a lock on the file
        ``<path>.lock``). Its limits are fixed at creation. A symbolic link is followed, and the
        lock is that of its target.

        Parameters
        ----------
        path : path
            JSON file with guarantees and no data.
        epsilon, delta, neighbours
            As for the class. For an existing ledger they may be left out.

        Raises
        ------
        BudgetError
            If the file is damaged (it is never replaced), is older than a copy already seen, has a
            second name (a hard link), has the format of 0.1.0 or other limits; or if there is
            neither a file nor a limit.
        """
        path = Path(path).resolve()
        given: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
        given = {name: value for name, value in given.items() if value is not None}
        if neighbours is not None:
            given["neighbours"] = Neighbours.of(neighbours, "neighbours")
        if not path.exists() and epsilon is None:
            raise BudgetError(
                f"{path}: no such ledger; begin one in Python: privclust.privacy.Budget.open(path, "
                "epsilon=..., delta=...)"
            )
        with _LOCK, file_lock(path):
            if not path.exists():
                # the lock gets a text when its ledger is begun, and is empty before
                if lock_path(path).stat().st_size:
                    raise BudgetError(
                        f"{path}: the ledger that was here is gone; restore it, or delete "
                        f"{lock_path(path).name} as well to begin one anew"
                    )
                ledger = cls(**given)
                ledger.path = path
                limits = {"epsilon": ledger.epsilon, "delta": ledger.delta}
                _ledger_file.begin(path, limits | {"neighbours": ledger.neighbours.value})
                lock_path(path).write_text("there is a ledger beside this lock\n")
                return ledger
            ledger = _read(path)
        for name, value in given.items():
            if getattr(ledger, name) != value:
                raise BudgetError(
                    f"{path}: is a ledger with {name} {getattr(ledger, name)}, not {value}; limits "
                    "are fixed when a ledger is begun"
                )
        return ledger

    @property
    def entries(self) -> tuple[Guarantee, ...]:
        """The guarantees charged, in order, in the ledger's relation."""
        if self.path is None:
            return self._entries
        with _LOCK, file_lock(self.path):
            return _read(self.path)._entries

    @property
    def guarantee(self) -> Guarantee:
        """The total guarantee of all charges."""
        return self._composed(self.entries)

    @property
    def spent(self) -> float:
        """Composed epsilon at the ledger's delta."""
        return self._cost(self.entries)

    def remaining(self) -> float:
        """Return the budget left: the limit minus the budget spent, at least 0.

        A fit that asks for this or less, without a delta, is always accepted. One that asks for
        slightly more may be, because Gaussian noise composes better than by addition.
        """
        return max(0.0, self.epsilon - self._cost(self.entries))

    def spend(self, guarantee: Guarantee) -> None:
        """Charge a guarantee only to this ledger, such as that of a release by other software.

        Raises
        ------
        BudgetError
            If it exceeds the limit, guarantees nothing, or is for another relation.
        """
        _spend([self], guarantee)

    def __copy__(self) -> Budget:
        """A copy would be a second budget for the same records."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Budget:
        return self

    def __reduce__(self) -> Any:
        """Pickle the path of a file; refuse a ledger in memory."""
        if self.path is None:
            raise _other_process()
        return Budget.open, (self.path,)

    def __enter__(self) -> Budget:
        with _LOCK:
            _OPEN.append(self)
            _tell_workers()
        return self

    def __exit__(self, *error: Any) -> None:
        with _LOCK:
            # the innermost one, because the block of a ledger may be entered again inside
            last = max(i for i, ledger in enumerate(_OPEN) if ledger is self)
            del _OPEN[last]
            _tell_workers()

    def __str__(self) -> str:
        """Return the budget spent and left, and a line for each fit."""
        entries = self.entries
        spent = self._cost(entries)
        lines = [
            f"{self._unit} {spent:.6g} of {self.epsilon:.6g} spent, "
            f"{max(0.0, self.epsilon - spent):.6g} left ({self.neighbours} neighbours)"
        ]
        for entry in entries:
            names = ", ".join(release.name for release in entry.releases)
            seeded = "; seeded: for reproduction, not for release" if entry.seeded else ""
            lines.append(f"  {self._cost((entry,)):.6g}: {names}{seeded}")
        return "\n".join(lines)

    @property
    def _unit(self) -> str:
        return f"epsilon at delta {self.delta:g}" if self.delta else "epsilon"

    def _composed(self, entries: tuple[Guarantee, ...]) -> Guarantee:
        """Compose in the ledger's sense, at its delta whatever the deltas of the entries."""
        definition = "approximate" if self.delta else "pure"
        start = Guarantee.of((), definition, self.neighbours, delta=self.delta)
        return start.compose(*(replace(entry, delta=self.delta) for entry in entries))

    def _cost(self, entries: tuple[Guarantee, ...]) -> float:
        """Epsilon of a composition; infinite if it has none at the ledger's delta."""
        counts = Counter()  # group equal losses: a search of many fits is composed at once
        for loss in (loss for entry in entries for loss in entry.losses):
            counts[replace(loss, count=1)] += loss.count
        losses = [replace(loss, count=count) for loss, count in counts.items()]
        if self.delta:
            return composed_epsilon(losses, self.delta)
        return math.inf if any(loss.delta for loss in losses) else total_epsilon(losses)

    def _extended(self, guarantee: Guarantee) -> tuple[Guarantee, ...]:
        """Return the entries with a new one, or refuse it; the ledger is locked."""
        # a forked process has a copy of the ledger, and its charges would not reach the parent
        if self.path is None and os.getpid() != self._process:
            raise _other_process()
        entries = self._entries if self.path is None else _read(self.path)._entries
        entries = (*entries, self._counted(guarantee))
        spent, after = self._cost(entries[:-1]), self._cost(entries)
        if math.isinf(after):
            raise BudgetError(
                "the ledger refuses this fit, which has not begun: it counts guarantees without a "
                f"delta, and the fit's delta is {guarantee.delta:g}; begin a ledger with a delta"
            )
        # `not ... <=` in place of `>`, which is false for NaN
        if not after <= self.epsilon * (1 + _ROUNDING):
            raise BudgetError(
                f"the ledger refuses this fit, which has not begun: {self._unit}: {spent:.6g} of "
                f"{self.epsilon:.6g} is spent, {max(0.0, self.epsilon - spent):.6g} is left, the "
                f"fit asks for {self._cost(entries[-1:]):.6g}; the total would be {after:.6g}"
            )
        return entries

    def _counted(self, guarantee: Guarantee) -> Guarantee:
        """Return a guarantee in the ledger's relation, with losses that can be added up."""
        if guarantee.definition in ("none", "asymptotic"):
            why = f" ({'; '.join(guarantee.caveats)})" if guarantee.caveats else ""
            raise BudgetError(
                f"the ledger refuses this fit: its guarantee is {guarantee.definition!r}{why}, so "
                "its privacy loss cannot be counted; run it outside of the ledger, or choose "
                "private options"
            )
        guarantee = _with_losses(guarantee)
        if guarantee.unit != ROW and self.neighbours is Neighbours.ADD_REMOVE:
            raise BudgetError(
                "the ledger refuses this fit: it counts added or removed records, but another row "
                "of a group changes a record instead; use a ledger with neighbours='replace-one'"
            )
        if guarantee.relation is self.neighbours:
            # replacing a row of a group replaces the group
            return replace(guarantee, unit=ROW)
        if self.neighbours is Neighbours.REPLACE_ONE:
            return replace(guarantee.to_replace_one(), unit=ROW)
        raise BudgetError(
            "the ledger refuses this fit: it counts added or removed records (add-remove), and "
            "the fit hides a replaced one only; fit with neighbours='add-remove', or take a "
            "ledger with neighbours='replace-one'"
        )


def charge(guarantee: Guarantee) -> None:
    """Charge a guarantee to the open ledgers, before anything private is released.

    Does nothing if no ledger is open.

    Raises
    ------
    BudgetError
        If one of them refuses it; then none is charged.
    """
    with _LOCK:
        ledgers = [*_OPEN, *_inherited()]
    if ledgers:
        _spend(ledgers, guarantee)


def is_open() -> bool:
    """Return whether a ledger is open, so that fits are charged."""
    with _LOCK:
        return bool(_OPEN or _inherited())


def _spend(ledgers: list[Budget], guarantee: Guarantee) -> None:
    """Charge all ledgers or none; files first, since writing them may fail."""
    # a ledger that is open twice, or in two objects, is charged once
    distinct = {ledger.path or id(ledger): ledger for ledger in ledgers}.values()
    files = sorted((ledger for ledger in distinct if ledger.path), key=lambda one: one.path)
    memory = [ledger for ledger in distinct if not ledger.path]
    with _LOCK, contextlib.ExitStack() as locks:
        for ledger in files:  # always in the same order, to avoid deadlocks
            locks.enter_context(file_lock(ledger.path))
        # every ledger must accept before the first is written
        after = [(ledger, ledger._extended(guarantee)) for ledger in (*files, *memory)]
        for ledger, entries in after:
            if ledger.path:
                _ledger_file.append(ledger.path, entries[-1].as_dict())
            else:
                ledger._entries = entries


def _with_losses(guarantee: Guarantee) -> Guarantee:
    """Count a guarantee without releases as one release of that loss, not as nothing."""
    if guarantee.releases:
        return guarantee
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if guarantee.definition == "zcdp":
        loss = Loss(rho=guarantee.rho)
    elif guarantee.definition == "pure":
        loss = Loss(rho=pure_rho(epsilon), epsilon=epsilon)
    elif guarantee.definition == "approximate" and delta:
        loss = Loss(epsilon=epsilon, delta=delta)
    else:
        raise BudgetError("the ledger refuses this fit: its guarantee lists no releases to count")
    stated = Release("stated as a whole", "not given", "not given", "not given", loss)
    return replace(guarantee, releases=(stated,))


def _tell_workers() -> None:
    """Name open ledgers to processes that start from now on; make joblib start new ones."""
    ours = [{"process": _process(), "path": ledger.path and str(ledger.path)} for ledger in _OPEN]
    # entries of other processes are ledgers of parents, which also count here
    listed = [entry for entry in _listed() if entry["process"] != _process()] + ours
    if listed:
        os.environ[_VARIABLE] = json.dumps(listed)
    else:
        os.environ.pop(_VARIABLE, None)
    # Workers that joblib keeps alive have read the environment at their start: unless restarted,
    # they would fit without a ledger. Without children there are none, and the call would start a
    # process of its own.
    if "joblib" in sys.modules and multiprocessing.active_children():
        with contextlib.suppress(ImportError, OSError):  # without semaphores there are no workers
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor().shutdown(wait=True)


def _process() -> str:
    return f"{os.getpid()}-{_TOKEN}"


def _listed() -> list[dict[str, Any]]:
    return json.loads(os.environ.get(_VARIABLE, "[]"))


def _inherited() -> list[Budget]:
    """Return ledgers that were opened by parent processes."""
    listed = [entry for entry in _listed() if entry["process"] != _process()]
    if any(entry["path"] is None for entry in listed):
        raise _other_process()
    return [Budget.open(entry["path"]) for entry in listed]


def _other_process() -> BudgetError:
    return BudgetError(
        "the ledger refuses this fit: it is in the memory of another process and cannot be "
        "written from here; keep it in a file (Budget.open), or fit in one process (n_jobs=1, or "
        'joblib.parallel_config("threading"))'
    )


def _read(path: Path) -> Budget:
    try:
        limits, guarantees = _ledger_file.read(path)
        ledger = Budget(**limits)
        entries = tuple(Guarantee.from_dict(guarantee) for guarantee in guarantees)
    except BudgetError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _ledger_file.damaged(path, "its content is not that of a ledger") from None
    ledger.path, ledger._entries = path, entries
    return ledger
