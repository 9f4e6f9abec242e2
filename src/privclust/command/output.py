"""Messages of a command, and checks that its output can be written."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from privclust.core.files import atomic_path, why_unreadable
from privclust.core.printable import printable

_SECONDS_BETWEEN_LINES = 5.0
_FEW = 1000  # largest number that is written out
_ROOM = 1 << 20  # bytes of a small report, and of a part of a trial file
# bytes that each cluster adds: by coordinate; by panel of the picture, which is written twice, of
# at most ten (tests/library/command/test_room.py compares them with sizes of files)
_OF_NUMBER, _OF_PANEL, _MOST_PANELS = 1_000, 4_500, 10


def say(text: str) -> None:
    """Print to the standard error, if there is one, with control characters written out."""
    if sys.stderr is None:  # closed by the parent process; print would write to the output
        return
    with contextlib.suppress(OSError):  # a closed pipe must not end a fit
        for line in text.split("\n"):  # the standard output is for results
            print(printable(line), file=sys.stderr, flush=True)


def checked_folder(
    path: str,
    inputs: list[str | None],
    names: Iterable[str],
    force: bool,
    shape: tuple[int, int] = (0, 0),
) -> Path:
    """Check, before anything is read, that files can be written to a folder; create it.

    `shape` is that of the centers: there must be room for a report on them.
    """
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: is not a folder; name a folder to write into")
    real = [os.path.realpath(each) for each in inputs if each]
    for name in names:
        if os.path.realpath(folder / name) in real:
            raise ValueError(f"{folder / name}: is one of the inputs; name another folder")
        _check_free(folder / name, force)
    with written(path):
        folder.mkdir(parents=True, exist_ok=True)
    _check_room(folder, names, room_for(*shape))
    return folder


def room_for(n_clusters: int, n_coordinates: int) -> int:
    """Return a bound on the bytes of a report, with its sketch."""
    n_panels = min(max(n_coordinates * (n_coordinates - 1) // 2, 1), _MOST_PANELS)
    return _ROOM + n_clusters * (_OF_NUMBER * n_coordinates + _OF_PANEL * n_panels)


def _check_free(output: Path, force: bool) -> None:
    """Refuse to replace a file without --force, or a path that is no file."""
    if not os.path.lexists(output):
        return
    if os.path.exists(output) and not os.path.isfile(output):
        raise ValueError(f"{output}: is not a file; name another folder")
    if not force:
        raise ValueError(f"{output}: exists already; name another folder, or pass --force")


def _check_room(folder: Path, names: Iterable[str], room: int) -> None:
    """Write trial files, one as large as all of a report, and remove them."""
    trials = {name: folder / f".{name}.{os.getpid()}.trial" for name in names}
    try:
        for name, trial in trials.items():
            with (
                written(str(folder / name)),
                atomic_path(trial) as temporary,
                open(temporary, "wb") as file,
            ):
                for _ in range(-(-room // _ROOM)):
                    # random bytes, which a file system cannot compress
                    file.write(os.urandom(_ROOM))
            room = 0
    finally:
        for trial in trials.values():
            trial.unlink(missing_ok=True)


@contextlib.contextmanager
def delivered(folder: Path, names: Iterable[str], spent: str = "") -> Iterator[None]:
    """Remove earlier files; add to an error in the block `spent`, and which files there are."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
    try:
        yield
    except BaseException as error:
        there = [name for name in names if (folder / name).exists()]
        what = f"{folder} has {', '.join(there)}" if there else "nothing was written"
        error.add_note(f"{spent}{what}")
        raise


@contextlib.contextmanager
def written(output: str) -> Iterator[None]:
    """Turn a failure to write, such as on a full disk, into one line with the file's name."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"{output}: cannot be written ({error.strerror})") from None


def print_result(text: str) -> None:
    """Write a command's result to the standard output."""
    if sys.stdout is None:
        raise ValueError("the standard output: cannot be written (it is closed)")
    try:
        with written("the standard output"):
            print(text, end="", flush=True)
    except ValueError:
        with contextlib.suppress(OSError, ValueError):  # or exit would fail again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def check_readable(inputs: list[str | None]) -> None:
    """Check, before anything is read, that every input is a readable file."""
    for path in inputs:
        if path is not None and (reason := why_unreadable(path)):
            raise ValueError(f"{path}: {reason}")


@contextlib.contextmanager
def progress(total: int | None, unit: str = "records read") -> Iterator[Callable[[int], object]]:
    """Yield a function to report progress: a bar on a terminal, otherwise a line now and then."""
    try:
        from tqdm import tqdm
    except ImportError:
        tqdm = None
    if tqdm is not None and sys.stderr is not None and sys.stderr.isatty():
        how = {"unit": f" {unit.split()[0]}", "unit_scale": total is None or total > _FEW}
        with tqdm(total=total, file=sys.stderr, **how) as bar:
            yield bar.update
        return
    of = f" of {total:,}" if total is not None else ""
    done, last = 0, time.monotonic()

    def advance(count: int) -> None:
        nonlocal done, last
        done += count
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            say(f"{done:,}{of} {unit}")

    yield advance
