"""The file of a ledger: its lock, its chain of digests, and a note of its newest state.

Each entry contains its number and the digest of the previous entry; the first one contains the
digest of the limits. The file also contains the number of entries and the digest of the last one.
Each account notes both for every ledger in its own folder, so that an older copy is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from privclust.core.files import write_text

_FORMAT = "privclust budget 2"
_WITHOUT_CHAIN = "privclust budget 1"
_SEEN: dict[str, tuple[int, str]] = {}  # newest state that this process saw, by name of the ledger


class BudgetError(ValueError):
    """A ledger refused a fit or could not be read; nothing was released."""

    __module__ = "privclust.privacy.budget"  # its public name, also in tracebacks and pickles


def lock_path(path: Path) -> Path:
    """Return the file that is locked; it is not empty once there was a ledger."""
    return path.with_name(f"{path.name}.lock")


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the lock file of a file, since the file itself is replaced when written."""
    import fcntl  # not on Windows

    path.parent.mkdir(parents=True, exist_ok=True)
    # The file stays after the lock is released: if it were deleted, a process that waits for it and
    # one that makes it anew could both hold a lock.
    descriptor = os.open(lock_path(path), os.O_CREAT | os.O_RDWR, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            raise BudgetError(
                f"{path}: cannot be locked ({error.strerror}), so that two fits could spend the "
                "same budget: keep the ledger on a disk that has locks"
            ) from None
        yield
    finally:
        # releases the lock
        os.close(descriptor)


def begin(path: Path, limits: dict[str, Any]) -> None:
    _write(path, {"format": _FORMAT, "id": secrets.token_hex(16), **limits, "entries": []})


def append(path: Path, guarantee: dict[str, Any]) -> None:
    """Append an entry to a ledger whose lock is held; earlier entries are not changed."""
    content, chain = _load(path)
    entry = {"number": len(chain), "previous": chain[-1], "guarantee": guarantee}
    entry["nonce"] = secrets.token_hex(8)  # two copies with the same fit get different digests
    _write(path, content | {"entries": [*content["entries"], entry]})


def read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the limits of a ledger and its guarantees; its lock is held."""
    content, _ = _load(path)
    guarantees = [entry["guarantee"] for entry in content["entries"]]
    return {k: v for k, v in _head(content).items() if k not in ("format", "id")}, guarantees


def damaged(path: Path, flaw: str) -> BudgetError:
    return BudgetError(
        f"{path}: not a ledger, or a damaged one ({flaw}); what was spent is not known, so nothing "
        "more is released: restore it from a copy that counts all that was released"
    )


def _write(path: Path, content: dict[str, Any]) -> None:
    # digests are of the values that will be read: lists for tuples, floats for NumPy's
    content = json.loads(json.dumps(content, default=_plain))
    chain = _chain(path, content)
    content |= {"count": len(content["entries"]), "sha256": chain[-1]}
    write_text(path, json.dumps(content, indent=1) + "\n")
    # After the file: a run that stops here leaves a file ahead of the note, which is accepted.
    # If two copies are charged at the same time, the second one is refused here.
    _compare_and_note(path, content["id"], chain)


def _load(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the content of a ledger and its chain; an inconsistent file is refused."""
    if path.resolve() != path:  # writing would replace the link by a second file
        raise BudgetError(f"{path}: has become a symbolic link; open the ledger again")
    try:
        with path.open(encoding="utf-8") as file:
            names = os.fstat(file.fileno()).st_nlink
            if names > 1:
                raise BudgetError(
                    f"{path}: has {names} names (hard links), and each could be spent; delete the "
                    "others"
                )
            content = json.load(file)
        if content["format"] == _WITHOUT_CHAIN:
            raise BudgetError(
                f"{path}: has the older format, which does not show that entries were removed; "
                "begin a new ledger with the same limits at another path, and spend there each "
                'entry of this one: Guarantee.from_dict(entry) for entry in its "entries"'
            )
        if content["format"] != _FORMAT or not re.fullmatch("[0-9a-f]{32}", content["id"]):
            raise damaged(path, "its format is not known")
        chain = _chain(path, content)
        count = len(content["entries"])
        if content["count"] != count:
            raise damaged(path, f"it holds {count} entries, and its count is {content['count']}")
        if content["sha256"] != chain[-1]:
            raise damaged(path, "its last entry is not the one that was written")
    except FileNotFoundError:
        raise BudgetError(f"{path}: the ledger is gone; what was spent is not known") from None
    except BudgetError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise damaged(path, "its content is not that of a ledger") from None
    _compare_and_note(path, content["id"], chain)
    return content, chain


def _chain(path: Path, content: dict[str, Any]) -> list[str]:
    """Return the digest of the head and of each entry; refuse entries that do not follow."""
    chain = [_digest(_head(content))]
    for number, entry in enumerate(content["entries"], 1):
        if entry["number"] != number or entry["previous"] != chain[-1]:
            raise damaged(path, f"entry {number} does not follow from what is before it")
        chain.append(_digest(entry))
    return chain


def _compare_and_note(path: Path, name: str, chain: list[str]) -> None:
    """Refuse a file without entries that were seen in its ledger; note its state."""
    newest = len(chain) - 1, chain[-1]
    _compare(path, chain, _SEEN.get(name))
    try:
        # the XDG specification says to ignore paths that are not absolute
        base = os.environ.get("XDG_STATE_HOME", "")
        state = Path(base) if os.path.isabs(base) else Path.home() / ".local" / "state"
        note = state / "privclust" / "ledgers" / name
        # a ledger without entries is not noted: nothing was spent that an older copy could hide
        if newest != _compare(path, chain, _noted(note, path)) and newest[0]:
            with file_lock(note):
                # again: another process may have noted a newer state before the lock was held
                _compare(path, chain, _noted(note, path))
                write_text(note, f"{newest[0]} {newest[1]}\n")
    # RuntimeError: the account has no home folder
    except (BudgetError, OSError, RuntimeError) as error:
        # a refusal names the ledger; a note that cannot be locked is named by its own path
        if isinstance(error, BudgetError) and str(path) in str(error):
            raise
        warnings.warn(
            f"the state of the ledger cannot be saved ({error}): a later process will not notice "
            "if an older copy is restored; set XDG_STATE_HOME to a folder that can be written to",
            UserWarning,
            stacklevel=2,
        )
    _SEEN[name] = newest


def _compare(path: Path, chain: list[str], seen: tuple[int, str] | None) -> tuple[int, str] | None:
    """Return the last state that was seen; refuse a file that does not begin with it."""
    # a slice, because the chain may be shorter
    if seen and chain[seen[0] : seen[0] + 1] != [seen[1]]:
        raise BudgetError(
            f"{path}: is an older or another copy of its ledger: {seen[0]} entries were drawn, and "
            "they are not all in this file; put the newest copy back, or begin a new ledger and "
            "spend there all that was released"
        )
    return seen


def _noted(note: Path, path: Path) -> tuple[int, str] | None:
    try:
        count, digest = note.read_text(encoding="utf-8").split()
        return int(count), digest
    except FileNotFoundError:
        return None
    except ValueError:
        raise BudgetError(
            f"{note}: this note of the newest state of {path} cannot be read; delete it if that "
            "file is the newest copy of its ledger"
        ) from None


def _head(content: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in content.items() if k not in ("entries", "count", "sha256")}


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _plain(number: Any) -> float:
    return number.item()
