"""Warnings that point to the user's line."""

from __future__ import annotations

import sys
import warnings

_PACKAGE = __name__.partition(".")[0]


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line on the stack outside of this package.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_caller("too few rows")
    >>> str(caught[0].message), caught[0].category.__name__
    ('too few rows', 'UserWarning')
    """
    level, frame = 1, sys._getframe()
    # without a caller outside, as in a command, the last frame of the stack
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_ours(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == _PACKAGE
