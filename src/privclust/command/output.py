"""Messages of a command, and checks that its output can be written."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from privclust.core.files import atomic_path, why_unreadable
from privclust.core.printable import printable

_SECONDS_BETWEEN_LINES = 5.0
_FEW = 1000  # largest number that is written out
_NOT_PRIVATE = (
    "NOT private: it holds exact sums, which can reveal records; protect it like the data "
    "themselves, or make it with --epsilon"
)
_ROOM = 1 << 20  # approximate largest size of a report, in bytes
_FORMATS = {
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), "HDF5"),
    **dict.fromkeys((".parquet", ".pq"), "Parquet"),
    **dict.fromkeys((".npy", ".npz"), "NumPy's"),
    **dict.fromkeys((".gz", ".bz2", ".xz", ".zip", ".zst"), "compressed"),
    **dict.fromkeys((".xls", ".xlsx"), "Excel's"),
    ".csv": "CSV",
    ".tsv": "tab-separated",
    ".json": "JSON",
}


def say(text: str) -> None:
    """Print to the standard error, if there is one, with control characters written out."""
    if sys.stderr is None:  # closed by the parent process; print would write to the output
        return
    with contextlib.suppress(OSError):  # a closed pipe must not end a fit
        for line in text.split("\n"):  # the standard output is for results
            print(printable(line), file=sys.stderr, flush=True)


def count(sketch: Any) -> str:
    """Return the number of records or groups in words; a noisy number has a decimal."""
    n_samples = sketch.n_samples
    number = f"{n_samples:,.1f}" if isinstance(n_samples, float) else f"{n_samples:,}"
    return f"{number} {'records' if sketch.unit == 'row' else 'groups of records'}"


def say_left_out(sketch: Any) -> None:
    """Print the number of records left out, if any."""
    left_out, what = sketch.left_out, "records" if sketch.unit == "row" else "groups"
    if isinstance(left_out, int) and left_out:
        say(f"{left_out:,} {what} are left out: an entry is missing or cannot be read")
    elif left_out is not None and not isinstance(left_out, int):
        width = f"{left_out.value:,.0f} ± {1.96 * left_out.deviation:,.0f}"
        say(f"about {width} {what} are left out: an entry is missing or cannot be read")


def say_privacy(sketch: Any) -> None:
    """Print the guarantee of the sketch and of all its results."""
    say(_NOT_PRIVATE if sketch.guarantee is None else str(sketch.guarantee))


def add_output(add: Callable[..., Any], metavar: str, description: str, **settings: Any) -> None:
    """Add the arguments that `check_output` uses."""
    add("-o", "--output", metavar=metavar, help=description, **settings)
    add("--force", action="store_true", help="replace an existing file")


def check_output(output: str, inputs: list[str | None], written_format: str, force: bool) -> None:
    """Check, before hours of reading, that the output can be written."""
    target = Path(output)
    for path in inputs:
        if path is not None and os.path.realpath(path) == os.path.realpath(target):
            raise ValueError(f"{output}: is one of the inputs; name another file to write")
    if target.is_dir():
        raise ValueError(f"{output}: is a directory; name a file to write")
    suffix = target.suffix.lower()
    if _FORMATS.get(suffix, written_format) != written_format:
        raise ValueError(
            f"{output}: would be written as {written_format}, but {suffix} is {_FORMATS[suffix]}; "
            "name a file of another suffix"
        )
    check_free(output, force)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{output}: cannot be written ({error.strerror})") from None
    check_write(target, 0)


def check_free(output: str, force: bool) -> None:
    """Refuse to replace a file without --force, or a path that is no file."""
    if not os.path.lexists(output):
        return
    if os.path.exists(output) and not os.path.isfile(output):
        raise ValueError(f"{output}: is not a file; name a file to write")
    if not force:
        raise ValueError(f"{output}: exists already; name another file, or pass --force")


def check_write(target: Path, n_bytes: int) -> None:
    """Write a trial file of this size in the target's folder, and remove it."""
    with written(str(target)):
        trial = target.with_name(f".{target.name}.{os.getpid()}.trial")
        try:
            with atomic_path(trial) as temporary:
                temporary.write_bytes(os.urandom(n_bytes))
        finally:
            trial.unlink(missing_ok=True)


def checked_folder(path: str, inputs: list[str | None], names: Iterable[str], force: bool) -> Path:
    """Check, before anything is read, that files can be written to a folder; create it."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: is not a folder; name a folder to write into")
    real = [os.path.realpath(each) for each in inputs if each]
    for name in names:
        if os.path.realpath(folder / name) in real:
            raise ValueError(f"{folder / name}: is one of the inputs; name another folder")
        check_free(str(folder / name), force)
    with written(path):
        folder.mkdir(parents=True, exist_ok=True)
    check_write(folder / next(iter(names)), _ROOM)
    return folder


@contextlib.contextmanager
def written(output: str) -> Iterator[None]:
    """Turn a failure to write, such as on a full disk, into one line with the file's name."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"{output}: cannot be written ({error.strerror})") from None


def print_result(text: str) -> None:
    """Write a command's result to the standard output."""
    try:
        with written("the standard output"):
            sys.stdout.write(text)
            sys.stdout.flush()
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
