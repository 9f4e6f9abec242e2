"""Progress of a long loop: occasional lines in the log, or a bar on a terminal.

Lines have the level INFO of the logger ``privclust``, silent by default; they contain the numbers
of steps done and in total, and no data.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
_SECONDS_BETWEEN_LINES = 10.0

log = logging.getLogger(__name__)


def logged(items: Iterable[Item], total: int, what: str, *, ends: bool = False) -> Iterator[Item]:
    """Iterate over items, with a line every ten seconds; with `ends` also one at the end.

    Examples
    --------
    >>> sum(logged(range(4), 4, "adding up"))
    6
    """
    last = time.monotonic()
    for number, item in enumerate(items, start=1):
        # the caller works on the item before the next line is reached, so the item is done there
        yield item
        if time.monotonic() - last > _SECONDS_BETWEEN_LINES or (ends and number == total):
            log.info("%s: %d of %d", what, number, total)
            last = time.monotonic()


def progress_over(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    """Iterate over items with a bar on a terminal, if tqdm is installed, or with log lines."""
    # Python without a console has no stderr
    if sys.stderr and sys.stderr.isatty():
        try:
            from tqdm import tqdm
        except ImportError:
            pass
        else:
            yield from tqdm(items, total=total, desc=what, leave=False)
            return
    yield from logged(items, total, what, ends=True)
