"""Releases of code without measurements, recorded at the samplers of NumPy.

A draw is recorded when it is added to the value before noise, or subtracted from it; their sum is
the release. No sensitivity is known, so the change is not compared with one; it is reported in
units of the noise, and all changes together may be compared with a claim. A draw with a
distribution that may depend on the data (a choice, a compared uniform number) is named.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np

from privclust_audit.inside._recorder import LooseDraw, Recorder, caller

# the first parameters of each sampler
_SAMPLERS: dict[str, tuple[str, ...]] = {
    "laplace": ("loc", "scale"),
    "normal": ("loc", "scale"),
    "standard_normal": (),
    "exponential": ("scale",),
}
_OF_A_LAW = ("random", "uniform", "choice", "binomial", "geometric", "poisson", "multinomial")


class _Draw(np.ndarray):
    """Noise that cannot be written into; the first value to which it is added is recorded.

    A multiple of it is another draw. Views, copies and results of every other operation have its
    numbers only, so that it stays among the loose draws.
    """

    _is_loose = False

    @classmethod
    def of(cls, recorder, entry, scale, numbers):
        """Return numbers as a loose draw."""
        draw = np.array(numbers).view(cls)
        # A view of a writeable base could be made writeable again.
        draw.base.flags.writeable = draw.flags.writeable = False
        draw._recorder, draw._entry, draw._scale, draw._is_loose = recorder, entry, scale, True
        recorder.loose.append(entry)
        return draw

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        plain = [_plain(each) for each in inputs]
        if out is not None:
            kwargs["out"] = tuple(map(_plain, out))
            plain = copy.deepcopy(plain)  # the result may overwrite an input
        loose = [each for each in inputs if isinstance(each, _Draw) and each._is_loose]
        is_known = len(loose) == 1 and _is_followed(ufunc, inputs[0] is loose[0])
        # Reductions such as `np.add.reduce` mix entries, so that no noise value is for one entry.
        is_known = is_known and method == "__call__" and not any(map(np.iscomplexobj, plain))
        is_known = is_known and not kwargs.keys() - {"out"}  # `where` leaves some numbers
        result = getattr(ufunc, method)(*plain, **kwargs)
        if not is_known:
            return result
        (draw,) = loose
        i = 0 if inputs[0] is draw else 1
        if ufunc in (np.add, np.subtract):
            signs = (1.0, 1.0 if ufunc is np.add else -1.0)
            # For value - draw the noise is the negative draw; for draw - value the value is
            # negative.
            value = signs[1 - i] * np.array(plain[1 - i], dtype=np.float64)
            released = draw.released(value, signs[i] * plain[i], result)
            if out is None:
                return released
            np.copyto(result, released)  # a replay returns another number
            return result
        draw._settle()
        # A multiple of a draw is a draw whose scale is multiplied in the same way.
        plain[i] = draw._scale
        return _Draw.of(draw._recorder, draw._entry, ufunc(*plain), result)

    def released(self, value, noise, released):
        """Record that the value became the released one."""
        self._settle()
        return self._recorder.record(
            measurement=None,
            mechanism=self._entry.name,
            scale=np.abs(self._scale),
            value=value,
            weight=1.0,
            result=released,
            noise=np.array(noise),
        )

    def _settle(self):
        self._is_loose = False
        self._recorder.loose.remove(self._entry)


def _is_followed(ufunc, is_first):
    """Return whether the result of a draw has a known distribution; divided, the draw is first."""
    return ufunc in (np.add, np.subtract, np.multiply, np.negative) or (
        ufunc is np.true_divide and is_first
    )


def _plain(thing):
    return thing.view(np.ndarray) if isinstance(thing, _Draw) else thing


class _SeenGenerator(np.random.Generator):
    """A generator with recorded samplers."""

    def __init__(self, bit_generator, recorder: Recorder) -> None:
        super().__init__(bit_generator)
        self._recorder = recorder
        plain = np.random.Generator(bit_generator)  # its samplers may call one another
        for name in _SAMPLERS:
            setattr(self, name, _recorded(recorder, name, getattr(plain, name)))
        for name in _OF_A_LAW:
            setattr(self, name, _named(recorder, name, getattr(plain, name)))

    def spawn(self, n_children):
        return [
            _SeenGenerator(each, self._recorder) for each in self.bit_generator.spawn(n_children)
        ]

    def __deepcopy__(self, memo):
        return _SeenGenerator(copy.deepcopy(self.bit_generator, memo), self._recorder)


@contextmanager
def seen_samplers(recorder: Recorder) -> Iterator[Recorder]:
    """Record draws of NumPy within the block as releases of unknown sensitivity.

    Recorded are generators made by ``numpy.random.default_rng`` within the block, and the functions
    of ``numpy.random``. Not recorded: generators made otherwise or before, samplers that a module
    imported by their own name, other samplers. A location is the value before noise, unless it is
    Python's 0. A draw is read-only: writing into it raises a ValueError. A draw of one number is an
    array without dimensions, of which ``round``, ``hash`` and ``json.dumps`` raise a TypeError.
    """
    with ExitStack() as patches:
        made = np.random.default_rng

        @functools.wraps(made)
        def default_rng(seed=None):
            return _SeenGenerator(made(seed).bit_generator, recorder)

        patches.enter_context(mock.patch.object(np.random, "default_rng", default_rng))
        for name in _SAMPLERS:
            sampler = _recorded(recorder, name, getattr(np.random, name))
            patches.enter_context(mock.patch.object(np.random, name, sampler))
        yield recorder


def _recorded(recorder, name, original):
    """Return a sampler with noise that is recorded, unless it is drawn within a measurement."""

    @functools.wraps(original)
    def sampler(*args, **kwargs):
        drawn = original(*args, **kwargs)
        if recorder.is_inside:
            return drawn
        given = dict(zip(_SAMPLERS[name], args, strict=False)) | kwargs
        scale, loc = (
            np.asarray(given.get(key, default), dtype=np.float64)
            for key, default in (("scale", 1.0), ("loc", 0.0))
        )
        # A literal 0 is no value of the data, but an array or a NumPy number of 0 may be one.
        is_value = type(given.get("loc", 0.0)) not in (int, float) or loc != 0.0
        value = np.array(np.broadcast_to(loc, np.shape(drawn)))
        entry = LooseDraw(f"NumPy's {name}", caller(), "loc" in given)
        # NumPy adds the location itself, so that the noise is the difference.
        draw = _Draw.of(recorder, entry, scale, drawn - value if is_value else drawn)
        return draw.released(value, draw, drawn) if is_value else draw

    return sampler


def _named(recorder, name, original):
    """Return a sampler with a possibly data-dependent distribution, which adds to nothing."""

    @functools.wraps(original)
    def sampler(*args, **kwargs):
        if not recorder.is_inside and (name != "choice" or kwargs.get("p") is not None):
            recorder.laws.append(f"NumPy's {name}")
        return original(*args, **kwargs)

    return sampler
