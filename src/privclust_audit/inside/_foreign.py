"""Releases of code without measurements, recorded at the samplers of NumPy and OpenDP.

A draw of NumPy is an array that records its use: the first array or number to which it is added, or
from which it is subtracted, is the value before noise, and their sum is the release. For OpenDP's
measurements the argument is the value. No sensitivity is known, so the change is not compared with
one; it is reported in units of the noise, and all changes together may be compared with a claim. A
draw with a distribution that may depend on the data (a choice, a compared uniform number) is named.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np

from privclust_audit.inside._recorder import Recorder

_SAMPLERS = {"laplace": 1.0, "normal": 1.0, "standard_normal": None, "exponential": 1.0}
_OF_A_LAW = ("random", "uniform", "choice", "binomial", "geometric", "poisson", "multinomial")
_GLOBAL = ("laplace", "normal", "standard_normal", "exponential")


class _Noise(np.ndarray):
    """A random draw waiting to be added to the value it perturbs."""

    def __array_finalize__(self, other):
        self._pending = None

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        plain = [_plain(each) for each in inputs]
        if out is not None:
            kwargs["out"] = tuple(map(_plain, out))
        result = getattr(ufunc, method)(*plain, **kwargs)
        draws = [each for each in inputs if isinstance(each, _Noise)]
        pending = next((each._pending for each in draws if each._pending), None)
        if method != "__call__" or pending is None:
            return result
        is_noise = [isinstance(each, _Noise) and each._pending for each in inputs]
        values = [each for each, waits in zip(plain, is_noise, strict=True) if not waits]
        if ufunc in (np.add, np.subtract) and values:
            result = pending(np.array(values[0], dtype=np.float64), result)
            if out is not None:
                np.copyto(kwargs["out"][0], result)
                result = kwargs["out"][0]
        elif ufunc in (np.multiply, np.true_divide, np.negative):  # noise scaled by the caller
            factor = values[0] if values else 1.0
            result = _with_pending(result, _rescaled(pending, ufunc, factor, result))
        else:
            return result
        for each in draws:
            each._pending = None
        return result


class _Pending:
    def __init__(self, recorder, name, scale, noise):
        self.recorder, self.name, self.scale, self.noise = recorder, name, scale, noise
        recorder.loose.append(name)

    def __call__(self, value, released):
        self.recorder.loose.remove(self.name)
        return self.recorder.record(
            measurement=None,
            mechanism=self.name,
            scale=np.abs(self.scale),
            value=value,
            weight=1.0,
            result=released,
            noise=np.array(self.noise),
        )


class _SeenGenerator(np.random.Generator):
    recorder: Recorder

    def __deepcopy__(self, memo):
        return seen_generator(copy.deepcopy(self.bit_generator, memo), self.recorder)


def _seen(name, default):
    """Return a sampler of the generator with recorded noise."""

    def sampler(self, *args, **kwargs):
        drawn = getattr(np.random.Generator, name)(self, *args, **kwargs)
        return _noise(self.recorder, name, default, drawn, args, kwargs)

    return sampler


def _of_a_law(name):
    """Return a sampler with a possibly data-dependent distribution, which adds to nothing."""

    def sampler(self, *args, **kwargs):
        if not self.recorder.is_inside and (name != "choice" or kwargs.get("p") is not None):
            self.recorder.laws.append(f"NumPy's {name}")
        return getattr(np.random.Generator(self.bit_generator), name)(*args, **kwargs)

    return sampler


for _name, _default in _SAMPLERS.items():
    setattr(_SeenGenerator, _name, _seen(_name, _default))
for _name in _OF_A_LAW:
    setattr(_SeenGenerator, _name, _of_a_law(_name))


def seen_generator(bit_generator, recorder: Recorder) -> np.random.Generator:
    """Return a generator with noise seen by a recorder."""
    generator = _SeenGenerator(bit_generator)
    generator.recorder = recorder
    return generator


@contextmanager
def seen_samplers(recorder: Recorder) -> Iterator[Recorder]:
    """Record draws of NumPy and of OpenDP within the block as releases of unknown sensitivity.

    Recorded are generators made by ``numpy.random.default_rng`` within the block, the functions of
    ``numpy.random``, and called measurements of OpenDP. Not recorded: generators made otherwise or
    before, samplers that a module imported by their own name, other samplers.
    """
    with ExitStack() as patches:
        made = np.random.default_rng

        @functools.wraps(made)
        def default_rng(seed=None):
            return seen_generator(made(seed).bit_generator, recorder)

        patches.enter_context(mock.patch.object(np.random, "default_rng", default_rng))
        for name in _GLOBAL:
            sampler = _of_module(recorder, name, getattr(np.random, name))
            patches.enter_context(mock.patch.object(np.random, name, sampler))
        if "opendp.mod" in sys.modules:
            kind = sys.modules["opendp.mod"].Measurement
            patches.enter_context(mock.patch.object(kind, "__call__", _of_opendp(recorder, kind)))
        yield recorder


def _of_module(recorder, name, original):
    """Return a function of ``numpy.random`` with recorded noise."""

    @functools.wraps(original)
    def sampler(*args, **kwargs):
        return _noise(recorder, name, _SAMPLERS[name], original(*args, **kwargs), args, kwargs)

    return sampler


def _of_opendp(recorder, kind):
    """Return the call of a measurement of OpenDP, recorded."""
    original = kind.__call__

    @functools.wraps(original)
    def call(self, argument):
        result = original(self, argument)
        if recorder.is_inside:
            return result
        try:
            scale = 1.0 / float(self.map(1))
        except Exception:  # another metric: the sensitivity is unknown
            scale = np.nan
        return recorder.record(
            measurement=None,
            mechanism="OpenDP",
            scale=scale,
            value=np.array(argument, dtype=np.float64),
            weight=1.0,
            result=result,
        )

    return call


def _noise(recorder, name, default, drawn, args, kwargs):
    """Return a draw that is recorded once it is added to a value; not within a measurement."""
    if recorder.is_inside:
        return drawn
    if default is None:
        scale = 1.0
    elif name == "exponential":
        scale = kwargs.get("scale", args[0] if args else default)
    else:
        scale = kwargs.get("scale", args[1] if len(args) > 1 else default)
    loc = kwargs.get("loc", args[0] if args and name in ("laplace", "normal") else 0.0)
    seen, scale = f"NumPy's {name}", np.asarray(scale, dtype=np.float64)
    if isinstance(loc, np.ndarray | np.generic | list) or loc != 0.0:  # the location is the value
        value = np.broadcast_to(np.asarray(loc, dtype=np.float64), np.shape(drawn))
        return _Pending(recorder, seen, scale, drawn - value)(np.array(value), drawn)
    return _with_pending(drawn, _Pending(recorder, seen, scale, drawn))


def _with_pending(drawn, pending):
    """Return an array marked as noise."""
    noise = np.asarray(drawn, dtype=np.float64).view(_Noise)
    noise._pending = pending
    return noise


def _rescaled(pending, ufunc, factor, result):
    """Return noise after multiplication, division or negation."""
    if ufunc is np.negative:
        pending.noise = result
        return pending
    scale = pending.scale * factor if ufunc is np.multiply else pending.scale / factor
    pending.recorder.loose.remove(pending.name)
    return _Pending(pending.recorder, pending.name, scale, result)


def _plain(thing):
    return thing.view(np.ndarray) if isinstance(thing, _Noise) else thing
