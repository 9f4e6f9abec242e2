"""A ledger of privacy: what fits, sketches and commands have spent of a budget, and what is left.

Each fit on the same people costs again: refits, `partial_fit`, each candidate and fold of a search.
Inside ``with Budget(...)`` every private estimator of the package charges the ledger before it
looks at values, and the fit that would exceed the budget is refused.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from privclust.core.files import write_text
from privclust.core.validation import check_real
from privclust.privacy.accounting import check_delta
from privclust.privacy.guarantee import Guarantee
from privclust.privacy.sensitivity import Neighbours

_ROUNDING = 1e-9  # part of the budget by which a sum of charges may exceed it, for their rounding
_FORMAT = "privclust budget 1"
_LOCK = threading.RLock()
_open_ledgers: list[Budget] = []
_foreign: list[str] = []  # ledgers of the process that sent an estimator here, if it has any open


class BudgetError(ValueError):
    """A release is refused, since a ledger has not enough left or cannot count it."""


class Budget:
    """A privacy budget that fits draw on, with the guarantee of all of them together.

    While it is open, by ``with``, all private fits and releases of this process charge it, in any
    thread, before they look at values. One that would exceed the budget raises a `BudgetError` and
    releases nothing. One that fails later stays charged: what it released by then may have been
    seen. Several ledgers may be open: each is charged, or none.

    Charges add up by the tightest composition that is known (`Guarantee.compose`), evaluated at the
    ledger's delta. A ledger is for one set of people: fits on others' records are not its business.
    In the workers of a parallel search a ledger that is a file (`open`) is charged as here; a
    ledger in memory cannot be, so that fits there are refused: pass ``n_jobs=1``.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    delta : float
        In [0, 1). With 0, only pure differential privacy is counted.
    neighbours : {"replace_one", "add_remove"}
        For which neighbours all is counted. Fits for the other relation are turned into
        replace-one ones by group privacy, and refused by a ledger for add-remove.

    Attributes
    ----------
    epsilon, delta : float
    relation : Neighbours

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> from privclust.kmeans import DPLloyd
    >>> X = np.random.default_rng(0).uniform(size=(1000, 2))
    >>> with Budget(epsilon=1.0) as budget:
    ...     model = DPLloyd(2, epsilon=0.75, bounds=(0, 1), random_state=0).fit(X)
    ...     try:
    ...         model.fit(X)
    ...     except BudgetError as error:
    ...         print(error)
    budget: 0.75 of epsilon = 1 are spent, and this release would make it 1.5; 0.25 are left
    >>> budget.guarantee.epsilon
    0.75
    """

    def __init__(
        self, epsilon: float, delta: float = 0.0, *, neighbours: str = "replace_one"
    ) -> None:
        check_real("epsilon", epsilon)
        if delta != 0:
            check_delta(delta)
        self.epsilon, self.delta = float(epsilon), float(delta)
        self.relation = Neighbours.of(neighbours)
        self._entries: list[Guarantee] = []
        self._process = os.getpid()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        neighbours: str | None = None,
    ) -> Budget:
        """Return a ledger that is kept in a file, which processes and days share.

        Parameters
        ----------
        path : path-like
            A file of JSON; it is made if it is not there. It holds guarantees and no data.
        epsilon, delta, neighbours
            Of a new ledger, where an epsilon is needed; of one that is there they must agree.

        Raises
        ------
        BudgetError
            If the file is damaged or of another budget.
        """
        return _FileBudget(Path(path), epsilon, delta, neighbours)

    @property
    def entries(self) -> tuple[Guarantee, ...]:
        """What was charged, for the ledger's neighbours, in order."""
        return tuple(self._entries)

    @property
    def guarantee(self) -> Guarantee:
        """What all that was charged promises together."""
        return self._composed(list(self.entries))

    @property
    def spent(self) -> float:
        """Epsilon of all that was charged, at the ledger's delta."""
        return self._cost(list(self.entries))

    @property
    def remaining(self) -> float:
        """Epsilon less what is spent. By tighter composition more may fit at a delta above 0."""
        left = self.epsilon - self.spent
        return left if left > _ROUNDING * self.epsilon else 0.0

    def __str__(self) -> str:
        """Return a line for each charge, below one for the whole."""
        whole = f"{self.spent:.4g} of {self._name()} are spent ({self.relation} neighbours)"
        return "\n".join([whole, *(f"  {str(entry).splitlines()[0]}" for entry in self.entries)])

    def __enter__(self) -> Self:
        """Open the ledger: from now on fits charge it."""
        with _LOCK:
            if self in _open_ledgers:
                raise BudgetError("budget: this ledger is open already")
            _open_ledgers.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Close it; what was charged stays."""
        with _LOCK:
            _open_ledgers.remove(self)

    def spend(self, guarantee: Guarantee) -> None:
        """Charge a guarantee, such as of another package's release.

        Raises
        ------
        BudgetError
            If it exceeds what is left, or cannot be counted; nothing is charged then.
        """
        _charge([self], guarantee)

    def _name(self) -> str:
        """Return the budget in words."""
        delta = f", delta = {self.delta:g}" if self.delta else ""
        return f"epsilon = {self.epsilon:g}{delta}"

    def _composed(self, entries: list[Guarantee]) -> Guarantee:
        """Return what entries promise together, at the ledger's delta."""
        if not entries:
            nothing = "approximate" if self.delta else "pure"
            return Guarantee(nothing, self.relation, epsilon=0.0, delta=self.delta)
        whole = entries[0].compose(*entries[1:])
        return whole.to("approximate" if self.delta else "pure", delta=self.delta)

    def _cost(self, entries: list[Guarantee]) -> float:
        """Return the epsilon of entries."""
        return self._composed(entries).epsilon if entries else 0.0

    def _in_terms(self, guarantee: Guarantee) -> Guarantee:
        """Return a guarantee for the ledger's neighbours, or raise a BudgetError."""
        if guarantee.definition in ("none", "asymptotic"):
            reasons = "; ".join(guarantee.caveats) or "it promises nothing"
            raise BudgetError(f"budget: a release without a guarantee cannot be counted: {reasons}")
        if guarantee.relation is not self.relation:
            if self.relation is Neighbours.ADD_REMOVE:
                raise BudgetError(
                    "budget: the ledger is for rows added or removed, of which a guarantee for "
                    "replaced rows says nothing; fit with neighbours='add_remove'"
                )
            guarantee = guarantee.to_replace_one()
        if not self.delta and any(
            math.isinf(loss.epsilon) or loss.delta for loss in guarantee.losses
        ):
            raise BudgetError(
                "budget: the ledger has delta = 0, with which only pure releases can be counted; "
                "give the ledger a delta, or ask for Laplace noise"
            )
        return guarantee

    def _with(self, guarantee: Guarantee) -> list[Guarantee]:
        """Return the entries and one more, or raise a BudgetError if that exceeds the budget."""
        entries = [*self.entries, self._in_terms(guarantee)]
        cost = self._cost(entries)
        if not cost <= self.epsilon * (1.0 + _ROUNDING):
            raise BudgetError(
                f"budget: {self.spent:.4g} of {self._name()} are spent, and this release would "
                f"make it {cost:.6g}; {self.remaining:.4g} are left"
            )
        return entries

    def _keep(self, entries: list[Guarantee]) -> None:
        """Take the entries for what was charged."""
        self._entries = entries

    def _is_copy(self) -> bool:
        """Return whether this is another process's ledger, of which it would hear nothing."""
        return self._process != os.getpid()

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """Keep other processes away meanwhile."""
        yield


class _FileBudget(Budget):
    """A ledger in a file, which is read again at each look."""

    def __init__(self, path, epsilon, delta, neighbours):
        self.path = path.absolute()
        with self._held():
            known = self._read() if self.path.exists() else None
            if known is None and epsilon is None:
                raise BudgetError(f"{path}: there is no such ledger; give an epsilon to begin one")
            asked = {"epsilon": epsilon, "delta": delta, "neighbours": neighbours}
            defaults = known or {"delta": 0.0, "neighbours": "replace_one"}
            parameters = {k: defaults[k] if v is None else v for k, v in asked.items()}
            super().__init__(**parameters)
            if known is None:
                self._keep([])
            elif (self.epsilon, self.delta, self.relation) != self._budget_of(known):
                raise BudgetError(
                    f"{path}: is a ledger of epsilon = {known['epsilon']:g}, delta = "
                    f"{known['delta']:g}, {known['neighbours']}, not of what was asked for"
                )

    @staticmethod
    def _budget_of(known):
        return known["epsilon"], known["delta"], Neighbours.of(known["neighbours"])

    @property
    def entries(self):
        """What was charged, by any process."""
        return tuple(self._read()["entries"])

    def _read(self):
        """Return what the file holds, checked."""
        try:
            known = json.loads(self.path.read_text(encoding="utf-8"))
            if known.pop("format") != _FORMAT or set(known) != {
                "epsilon", "delta", "neighbours", "entries",
            }:  # fmt: skip
                raise ValueError
            known["entries"] = [Guarantee.from_dict(entry) for entry in known["entries"]]
            Budget(known["epsilon"], known["delta"], neighbours=known["neighbours"])
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise BudgetError(
                f"{self.path}: not a whole ledger; nothing is released on a ledger that cannot be "
                "read: restore the file"
            ) from None
        return known

    def _keep(self, entries):
        content: dict[str, Any] = {
            "format": _FORMAT,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbours": self.relation.value,
            "entries": [entry.as_dict() for entry in entries],
        }
        write_text(self.path, json.dumps(content, indent=1) + "\n")

    def _is_copy(self):
        return False

    @contextlib.contextmanager
    def _held(self):
        """Hold a lock beside the file; the file itself is replaced at each charge."""
        try:
            import fcntl
        except ImportError:
            raise BudgetError("budget: this system has no locks for ledgers in files") from None
        lock = self.path.with_name(f".{self.path.name}.lock")
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def charge(guarantee: Guarantee) -> None:
    """Draw a guarantee on the open ledgers, before anything private is released.

    Does nothing where no ledger is open. Raises a `BudgetError`, and charges none, if one of them
    refuses.
    """
    with _LOCK:
        ledgers = _open_ledgers + [Budget.open(path) for path in _foreign if path]
        copies = [ledger for ledger in ledgers if ledger._is_copy()]  # of a forked process
        if copies or "" in _foreign:
            raise BudgetError(
                "budget: a fit in another process cannot charge a ledger in memory: pass n_jobs=1, "
                "or keep the ledger in a file (Budget.open)"
            )
        _charge(ledgers, guarantee)


def _charge(ledgers: list[Budget], guarantee: Guarantee) -> None:
    """Charge all ledgers or none."""
    files = {str(getattr(ledger, "path", id(ledger))): ledger for ledger in ledgers}
    with _LOCK, contextlib.ExitStack() as stack:
        for name in sorted(files):  # in one order everywhere, so that none waits for another
            stack.enter_context(files[name]._held())
        kept = [(ledger, ledger._with(guarantee)) for ledger in files.values()]
        for ledger, entries in kept:
            ledger._keep(entries)


def ledgers_to_send() -> tuple[int, list[str]] | None:
    """Return what an estimator takes along to another process: ledgers that are open here."""
    with _LOCK:
        paths = [str(getattr(ledger, "path", "")) for ledger in _open_ledgers] + _foreign
    return (os.getpid(), paths) if paths else None


def receive_ledgers(sent: tuple[int, list[str]] | None) -> None:
    """Charge, from now on, the ledgers that an estimator brought from the process's parent."""
    with _LOCK:
        if sent is None or sent[0] == os.getppid():
            _foreign[:] = [] if sent is None else sent[1]
