"""Runs of a mechanism on two data sets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_CHUNK = 50_000  # runs that a mechanism with `many` is asked for at once


def draw(mechanism, data, neighbour, n: int, rng, progress: Callable[[int], None]):
    """Return `n` outputs on `data` and `n` on `neighbour`, each a list or one array (n, ...).

    The two data sets have independent streams and take turns, so that a mechanism that drifts or
    keeps a state does so for both.
    """
    pair, streams = (data, neighbour), rng.spawn(2)
    batched = getattr(mechanism, "many", None)
    if batched is not None:
        pieces = ([], [])
        for start in range(0, n, _CHUNK):
            size = min(_CHUNK, n - start)
            for k in (0, 1):
                pieces[k].append(_batch(batched, pair[k], streams[k], size))
            progress(2 * size)
        return tuple(np.concatenate(piece) for piece in pieces)
    outputs = ([], [])
    for _ in range(n):
        for k in (0, 1):
            outputs[k].append(mechanism(pair[k], streams[k]))
        progress(2)
    return outputs


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


def _batch(batched, data, rng, size: int) -> np.ndarray:
    """Ask for `size` outputs at once and check that so many came."""
    outputs = np.asarray(batched(data, rng, size))
    if outputs.ndim == 0 or len(outputs) != size:
        raise ValueError(
            f"mechanism.many(data, rng, n) must return n={size} outputs along the first axis, "
            f"got shape {outputs.shape}"
        )
    return outputs


def _stack(outputs: list) -> np.ndarray:
    """One array of a list of outputs, of which each must have the first one's shape."""
    first = _array(outputs[0])
    stacked = [first]
    for output in outputs[1:]:
        array = _array(output)
        if array.shape != first.shape:
            raise _varying(first.shape, array.shape)
        stacked.append(array)
    return np.stack(stacked)


def _array(output) -> np.ndarray:
    """An output as an array; ragged ones have no shape at all."""
    try:
        return np.asarray(output)
    except ValueError as error:
        raise ValueError(f"an output of the mechanism is no array: {error}") from None


def _varying(first: tuple, other: tuple) -> ValueError:
    """Say that the shape of an output depends on the run, which may itself be the leak."""
    return ValueError(
        f"the mechanism's outputs vary in shape, got {first} and {other}; give a statistic that "
        "maps an output to a number (a shape that depends on the data can be the leak)"
    )
