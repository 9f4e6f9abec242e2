"""Progress of a long loop."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
_SECONDS_BETWEEN_LINES = 10.0

log = logging.getLogger(__name__)


def progress_over(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    """Iterate over items with a bar on a terminal, if tqdm is there, else with lines in the log."""
    if sys.stderr.isatty():
        try:
            from tqdm import tqdm
        except ImportError:
            pass
        else:
            yield from tqdm(items, total=total, desc=what, leave=False)
            return
    last = time.monotonic()
    for number, item in enumerate(items, start=1):
        yield item
        if time.monotonic() - last > _SECONDS_BETWEEN_LINES or number == total:
            log.info("%s: %d of %d", what, number, total)
            last = time.monotonic()
