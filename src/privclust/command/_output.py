"""What a command prints beside its outcome, and whether its outcome can be written."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_SECONDS_BETWEEN_LINES = 5.0
_NOT_PRIVATE = (
    "NOT private: it holds exact sums, from which records can be told; keep it as the data "
    "themselves, or make it with --epsilon"
)


def say(text: str) -> None:
    """Print to the standard error: the standard output is for results."""
    print(text, file=sys.stderr, flush=True)


def count(sketch) -> str:
    """Number of records as it is read best; a decimal tells that it was noised."""
    n_samples = sketch.n_samples
    return f"{n_samples:,.1f}" if isinstance(n_samples, float) else f"{n_samples:,}"


def say_privacy(sketch) -> None:
    """Print what the sketch and all that is made from it promise."""
    say(_NOT_PRIVATE if sketch.guarantee is None else str(sketch.guarantee))


def check_output(output: str, inputs: list[str | None]) -> None:
    """Find out before hours of reading whether the outcome can be written."""
    target = Path(output)
    for path in inputs:
        if path is not None and os.path.realpath(path) == os.path.realpath(target):
            raise ValueError(f"{output}: is one of the inputs; name another file to write")
    if target.is_dir():
        raise ValueError(f"{output}: is a directory; name a file to write")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{output}: cannot be written ({error.strerror})") from None
    check_write(target, 0)


def check_write(target: Path, n_bytes: int) -> None:
    """Write so many bytes beside a file and remove them."""
    try:
        with tempfile.TemporaryFile(dir=target.parent) as file:
            file.write(os.urandom(n_bytes))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise ValueError(f"{target}: cannot be written ({error.strerror})") from None


@contextlib.contextmanager
def progress(total: int | None, unit: str = "records read") -> Iterator:
    """Give a function that is told how much more was done."""
    try:
        from tqdm import tqdm
    except ImportError:
        tqdm = None
    if tqdm is not None and sys.stderr.isatty():
        unit = f" {unit.split()[0]}"
        with tqdm(total=total, unit=unit, unit_scale=True, file=sys.stderr) as bar:
            yield bar.update
    else:
        yield _Lines(total, unit).advance


class _Lines:
    """Progress for logs: a line every few seconds."""

    def __init__(self, total: int | None, unit: str) -> None:
        self._total, self._unit = total, unit
        self._done = 0
        self._last = time.monotonic()

    def advance(self, count: int) -> None:
        """Count what was done."""
        self._done += count
        if time.monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            of = f" of {self._total:,}" if self._total is not None else ""
            say(f"{self._done:,}{of} {self._unit}")
