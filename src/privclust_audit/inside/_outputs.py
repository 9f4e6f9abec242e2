"""Bitwise comparison of any outputs of two fits."""

from __future__ import annotations

import pickle
import struct
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from privclust.privacy.noise import SystemEntropy

_DEEPEST = 40


def differences(first: Any, second: Any) -> Iterator[tuple[str, str]]:
    """Yield the place and kind of each difference of two outputs, without their entries.

    For estimators, everything released is compared: public fitted attributes except those in its
    `_NOT_RELEASED`, and the content of its pickles.
    """
    if not (is_estimator(first) and is_estimator(second)):
        yield from _compared(first, second, "output", {})
        return
    kept = set(getattr(first, "_NOT_RELEASED", ()))
    # A dictionary in place of a set keeps the order, and with it the order of the report.
    fitted = [name for name in {**vars(first), **vars(second)} if _is_fitted(name)]
    for name in fitted:
        if name not in kept:
            ours, theirs = (vars(one).get(name, _MISSING) for one in (first, second))
            yield from _compared(ours, theirs, name, {})
    states = [dict(_state(one)) for one in (first, second)]
    for name in {**states[0], **states[1]}:
        if name not in fitted or name in kept:
            ours, theirs = (state.get(name, _MISSING) for state in states)
            yield from _compared(ours, theirs, f"{name} (in pickles)", {})


def _is_fitted(name):
    return name.endswith("_") and not name.startswith("_")


def is_estimator(output: Any) -> bool:
    """Return whether an output is a user's fitted object with attributes."""
    return hasattr(output, "fit") and hasattr(output, "__dict__")


class _Missing:
    """Stands for an attribute that one of two compared objects lacks."""


_MISSING = _Missing()


def _state(thing):
    held = thing.__getstate__() if hasattr(thing, "__getstate__") else vars(thing)
    # `object.__getstate__` returns None for an object without attributes.
    return vars(thing) if held is None else held


def _compared(one, other, path, seen, depth=0):
    """Yield the paths at which two objects differ."""
    if one is other or depth > _DEEPEST or (id(one), id(other)) in seen:
        return
    seen[id(one), id(other)] = one, other  # kept alive, so that IDs are unique
    if type(one) is not type(other):
        yield path, f"{_kind(other)} in place of {_kind(one)}"
        return
    if isinstance(one, np.ndarray):
        yield from _arrays(one, other, path, seen, depth)
    elif isinstance(one, Mapping):
        # By text: a NaN as a key equals itself. The order of keys is released with them.
        if list(map(repr, one)) != list(map(repr, other)):
            yield path, "other keys, or in another order"
            return
        for key in one:
            yield from _compared(one[key], other[key], f"{path}[{key!r}]", seen, depth + 1)
    elif isinstance(one, list | tuple):
        if len(one) != len(other):
            yield path, f"{len(other)} entries in place of {len(one)}"
            return
        for i, (ours, theirs) in enumerate(zip(one, other, strict=True)):
            yield from _compared(ours, theirs, f"{path}[{i}]", seen, depth + 1)
    else:
        yield from _things(one, other, path, seen, depth)


def _arrays(one, other, path, seen, depth):
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        yield path, f"{other.shape} {other.dtype} in place of {one.shape} {one.dtype}"
    elif one.dtype.kind == "O":
        yield from _compared(one.tolist(), other.tolist(), path, seen, depth + 1)
    # By bytes: `==` equates 0 with -0, and NaN with nothing.
    elif one.tobytes() != other.tobytes():
        yield path, "other entries"


def _things(one, other, path, seen, depth):
    if isinstance(one, float | complex | np.generic):
        if _bits(one) != _bits(other):
            yield path, "another number"
    elif isinstance(one, bool | int | str | bytes | type(None)):
        if one != other:
            yield path, f"another {type(one).__name__}"
    elif isinstance(one, set | frozenset):
        # The order of a set of strings differs between processes without any leak.
        yield from _compared(sorted(map(repr, one)), sorted(map(repr, other)), path, seen, depth)
    elif isinstance(one, np.random.Generator):
        states = (each.bit_generator.state for each in (one, other))
        yield from _compared(*states, f"{path}.bit_generator.state", seen, depth + 1)
    elif isinstance(one, types.FunctionType | types.MethodType | type | SystemEntropy):
        if getattr(one, "__qualname__", "") != getattr(other, "__qualname__", ""):
            yield path, "another function or class"
    elif sparse.issparse(one):
        yield from _compared(one.toarray(), other.toarray(), path, seen, depth + 1)
    elif hasattr(one, "__dict__"):
        states = (_state(each) for each in (one, other))
        yield from _compared(*states, path, seen, depth + 1)
    elif pickle.dumps(one) != pickle.dumps(other):
        yield path, f"another {type(one).__name__}"


def _bits(number):
    """Return the bits of a number: NaN equals NaN, and -0 differs from 0."""
    if isinstance(number, np.generic):
        return number.tobytes()
    return struct.pack("dd", complex(number).real, complex(number).imag)


def _kind(thing):
    return "nothing" if isinstance(thing, _Missing) else type(thing).__name__
