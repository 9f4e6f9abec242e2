"""Runs of a mechanism on two data sets."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Callable, Iterator

import numpy as np

LABELS = ("data", "neighbour")  # names of the two data sets in messages
_CHUNK = 50_000  # runs at a time of a mechanism with `many`


def draw(mechanism, data, neighbour, n: int, rng, progress: Callable[[int], None]):
    """Return `n` outputs on `data` and `n` on `neighbour`, each a list or one array (n, ...).

    The two data sets have independent streams and take turns, so that a mechanism that drifts or
    keeps a state does so for both.
    """
    if not callable(mechanism):
        raise ValueError(f"mechanism must be callable as mechanism(data, rng), got {mechanism!r}")
    pair, streams = (data, neighbour), rng.spawn(2)
    name, batched = name_of(mechanism), getattr(mechanism, "many", None)
    if batched is not None:
        pieces = ([], [])
        for start in range(0, n, _CHUNK):
            size = min(_CHUNK, n - start)
            for k in (0, 1):
                with _naming(f"{name}.many", LABELS[k]):
                    outputs = batched(pair[k], streams[k], size)
                pieces[k].append(_batch(outputs, size))
            progress(2 * size)
        return tuple(np.concatenate(piece) for piece in pieces)
    outputs = ([], [])
    for _ in range(n):
        for k in (0, 1):
            with _naming(name, LABELS[k]):
                outputs[k].append(mechanism(pair[k], streams[k]))
        progress(2)
    return outputs


def name_of(function) -> str:
    """Return the name of a mechanism or a statistic in messages."""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{function.__module__}:{name}" if getattr(function, "__module__", None) else name


@contextlib.contextmanager
def _naming(name: str, label: str) -> Iterator[None]:
    """Name the mechanism that raised, the data set and the place; its message may contain cells."""
    try:
        yield
    # A lack of memory says nothing about the mechanism.
    except MemoryError:
        raise
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        raise ValueError(
            f"mechanism {name} raised {type(error).__name__} on {label} "
            f"({os.path.basename(at.filename)}, line {at.lineno}); it must return an output on "
            "both data sets. If it raises on only one of them, that is a leak: let it return some "
            "output instead, and audit it again"
        ) from error


def is_nan_alone(outputs) -> bool:
    """Return whether all runs gave NaN; NaN in only some runs is an output like any other."""
    return all(_is_nan(output) for one in outputs for output in one)


def nan_alone(name: str, n_trials: int) -> ValueError:
    """Return the message that all runs of a mechanism gave only NaN."""
    return ValueError(
        f"mechanism {name} returned only NaN in all {n_trials:,} runs on each data set, which is "
        "no test of its privacy; let it return its release"
    )


def _is_nan(output) -> bool:
    """Return whether an output consists of numbers that are all NaN."""
    try:
        numbers = np.asarray(output)
    except ValueError:
        return False
    return numbers.dtype.kind in "fc" and numbers.size > 0 and bool(np.isnan(numbers).all())


def as_arrays(outputs) -> list[np.ndarray]:
    """Return outputs as two arrays (n, ...), of numbers and of one shape or a ValueError."""
    arrays = [one if isinstance(one, np.ndarray) else _stack(one) for one in outputs]
    for array in arrays:
        if array.dtype.kind not in "biufc":
            raise ValueError(
                "without a statistic, the mechanism must return numbers or arrays of numbers, "
                f"got dtype {array.dtype}; give a statistic that maps an output to a number"
            )
    if arrays[0].shape[1:] != arrays[1].shape[1:]:
        raise _varying(arrays[0].shape[1:], arrays[1].shape[1:])
    return arrays


def _batch(outputs, size: int) -> np.ndarray:
    """Return the outputs of `many`, after a check of their number."""
    outputs = np.asarray(outputs)
    if outputs.ndim == 0 or len(outputs) != size:
        raise ValueError(
            f"mechanism.many(data, rng, n) must return n={size} outputs along the first axis, "
            f"got shape {outputs.shape}"
        )
    return outputs


def _stack(outputs: list) -> np.ndarray:
    """Return one array of a list of outputs, which must all have the same shape."""
    try:
        arrays = [np.asarray(output) for output in outputs]
    except ValueError as error:  # ragged ones have no shape at all
        raise ValueError(f"an output of the mechanism is no array: {error}") from None
    for array in arrays:
        if array.shape != arrays[0].shape:
            raise _varying(arrays[0].shape, array.shape)
    return np.stack(arrays)


def _varying(first: tuple, other: tuple) -> ValueError:
    """Return the message that output shapes differ between runs, which may itself be the leak."""
    return ValueError(
        f"the mechanism's outputs vary in shape, got {first} and {other}; give a statistic that "
        "maps an output to a number (a shape that depends on the data can be the leak)"
    )
