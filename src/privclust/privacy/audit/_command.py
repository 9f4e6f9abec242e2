"""The command ``privclust audit``: mechanism, data and statistic named on the command line."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable

import numpy as np

from privclust.privacy.audit._audit import AuditResult, audit_mechanism

_PAIR = "pair"  # what a module may call its two data sets


def audit(args, progress: Callable) -> AuditResult:
    """Run the audit that parsed arguments describe; `progress` as `audit_mechanism` takes it.

    Raises
    ------
    ValueError
        If something named cannot be found, or is not what it must be.
    """
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)  # as `python -m` does
    mechanism = _callable(args.mechanism, "(data, rng)", 2)
    statistic = None
    if args.statistic is not None:
        statistic = _callable(args.statistic, "(output)", 1)
    data, neighbour = _pair(args)
    return audit_mechanism(
        mechanism,
        data,
        neighbour,
        args.epsilon,
        args.delta,
        args.trials,
        statistic,
        args.seed,
        confidence=args.confidence,
        progress=progress,
    )


def _pair(args) -> tuple:
    """The two data sets: two files, an object, or the mechanism's module's ``pair``."""
    if args.data is not None and len(args.data) == 2:
        return _file(args.data[0]), _file(args.data[1])
    if args.data is not None:
        name = args.data[0]
        if ":" not in name:
            raise ValueError(f"--data {name}: must be MODULE:PAIR, or two files")
        pair = _object(name)
    else:
        module = args.mechanism.partition(":")[0]
        name = f"{module}:{_PAIR}"
        try:
            pair = _object(name)
        except ValueError:
            raise ValueError(
                f"two neighbouring data sets are needed: --data FILE FILE, --data MODULE:PAIR, or "
                f"an attribute {_PAIR!r} of module {module}"
            ) from None
    if callable(pair):
        pair = pair()
    if not isinstance(pair, tuple | list | np.ndarray) or len(pair) != 2:
        raise ValueError(f"{name}: must be two data sets (data, neighbour), got {_short(pair)}")
    return pair[0], pair[1]


def _file(path: str) -> np.ndarray:
    """All records of a file (n, d)."""
    from privclust.streams import chunks

    stream = chunks(path)
    records = list(stream)
    return np.concatenate(records) if records else np.zeros((0, stream.n_features))


def _callable(name: str, signature: str, n_arguments: int) -> Callable:
    """An object that can be called with so many arguments."""
    found = _object(name)
    if not callable(found):
        raise ValueError(f"{name}: must be callable as {signature}, got {_short(found)}")
    try:
        accepted = inspect.signature(found)
    except (TypeError, ValueError):  # a compiled function need not have one
        return found
    try:
        accepted.bind(*[None] * n_arguments)
    except TypeError as error:
        raise ValueError(
            f"{name}: must be callable as {signature}, got {accepted} ({error})"
        ) from None
    return found


def _object(name: str):
    """The object that MODULE:NAME stands for; NAME may have dots."""
    module_name, colon, path = name.partition(":")
    if not colon or not module_name or not path:
        raise ValueError(
            f"{name}: must be of the form MODULE:NAME, such as package.module:function"
        )
    try:
        found = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise ValueError(f"{name}: importing {module_name} failed ({error})") from error
        raise ValueError(f"{name}: there is no module {error.name}") from None
    except Exception as error:  # whatever a module does when it is imported
        raise ValueError(
            f"{name}: importing {module_name} failed ({type(error).__name__}: {error})"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{name}: module {module_name} has no {path}")
        found = getattr(found, part)
    return found


def _short(value) -> str:
    """An object in a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
