"""A recorder of releases and their values, with replays that return the same releases."""

from __future__ import annotations

import functools
import secrets
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from privclust.core.fixed_point import FixedPoint
from privclust.privacy import measurements, noise
from privclust.privacy.measurements import Measurement
from privclust.privacy.noise import SystemEntropy

_RECORDING = threading.Lock()
_SOURCES = Path(__file__).resolve().parents[2]
_OURS = tuple(_SOURCES / name for name in ("privclust", "privclust_audit"))
_PASSED_OVER = (
    str(Path(measurements.__file__).parent),
    str(Path(noise.__file__)),
    str(Path(__file__).parent),
)
_SEEDLESS = "secrets.randbits", "secrets.randbelow"


@dataclass(frozen=True, eq=False)
class RecordedRelease:
    """One recorded release.

    Attributes
    ----------
    order : int
        From 0, within the fit.
    measurement : Measurement or None
        The noise, with its sensitivity, loss and count; None for a sampler.
    mechanism : str
        Its name.
    scale : float or ndarray
        Scale of the noise.
    value : FixedPoint or ndarray
        The value before noise, a copy.
    weight : float or ndarray
        Factor of the value before its change is measured.
    released : object
        The released value, a copy.
    where : str
        File, line and function of the caller.
    noise : ndarray or None
        The recorded noise values, which may be fewer than the entries.
    """

    order: int
    measurement: Measurement | None
    mechanism: str
    scale: Any
    value: FixedPoint | np.ndarray
    weight: Any
    released: Any
    where: str
    noise: np.ndarray | None = None

    @property
    def form(self) -> str:
        """Shape and type of the value, as text."""
        if isinstance(self.value, FixedPoint):
            return f"{self.value.shape}, multiples of 2^-{self.value.bits}"
        return f"{self.value.shape}, {self.value.dtype}"

    def differs(self, other: RecordedRelease) -> str:
        """Return differences of two releases that must not depend on data; empty if none."""
        if self.where != other.where:
            return f"it is asked for at {other.where} in place of {self.where}"
        if self.mechanism != other.mechanism:
            return f"it is {other.mechanism} in place of {self.mechanism}"
        if self.form != other.form:
            return f"the value that gets noise has the form {other.form} in place of {self.form}"
        if names := _other_noise(self, other):
            return f"its {', '.join(names)} differs"
        if np.shape(self.weight) != np.shape(other.weight) or np.any(self.weight != other.weight):
            return "the weights of its parts are others"
        return ""


class LooseDraw(NamedTuple):
    """A recorded draw that was not added to anything.

    `name` of the sampler, `where` it was called, and whether it `has_location`, which may be a
    value without noise.
    """

    name: str
    where: str
    has_location: bool


# Not an Exception: `except Exception` in the code of a fit must not swallow it.
class Diverged(BaseException):
    """The replay made a different release: nothing after it can be compared."""


class Recorder:
    """The records of a block `recording`.

    `releases` lists them, in order. `loose` has recorded draws that were not added to anything,
    `laws` the names of draws with a distribution that may depend on the data.
    """

    def __init__(
        self, seed: int = 0, *, quiet: bool = False, frozen: Sequence[RecordedRelease] | None = None
    ) -> None:
        self.releases: list[RecordedRelease] = []
        self.divergence = ""
        self.loose: list[LooseDraw] = []
        self.laws: list[str] = []
        self._seed, self._quiet, self._frozen = seed, quiet, frozen
        self._n_generators = 0
        # A measurement may be active in one thread while another draws on its own.
        self._inside = threading.local()

    def generator(self) -> np.random.Generator:
        """Return the next generator in place of the operating system's entropy."""
        # By number: the k-th generator of a replay gives the numbers of the k-th in the first run.
        self._n_generators += 1
        return np.random.default_rng([self._seed, self._n_generators])

    @property
    def is_inside(self) -> bool:
        """Whether a measurement is active: its draws are no separate releases."""
        return getattr(self._inside, "depth", 0) > 0

    def of_measurement(self, original, measurement, value, source, args, kwargs):
        """Return the result of a measurement's `release`, recorded or replayed.

        If it calls the `release` of another class, as a subclass does, only that call counts.
        """
        # Before the call: a measurement may add its noise in place.
        copied = _copied(value) if isinstance(value, FixedPoint) else np.array(value)
        before = len(self.releases)
        self._inside.depth = getattr(self._inside, "depth", 0) + 1
        try:
            result = original(measurement, value, source, *args, **kwargs)
        finally:
            self._inside.depth -= 1
        if len(self.releases) > before:
            return result
        weight = kwargs.get("weight", args[0] if args else 1.0)
        return self.record(
            measurement=measurement,
            mechanism=measurement.mechanism,
            scale=measurement.scale,
            value=copied,
            weight=np.array(weight) if np.ndim(weight) else weight,
            result=result,
        )

    def record(self, *, measurement, mechanism, scale, value, weight, result, noise=None):
        """Record a release, and return its result."""
        order = len(self.releases)
        if self._frozen is None:
            released = _without_noise(measurement, value, result) if self._quiet else result
        elif order < len(self._frozen):
            released = self._frozen[order].released
        else:
            # A release more than recorded: `_compare` ends the run before the fit sees it.
            released = None
        # A copy, because the fit may change the returned array in place.
        own = RecordedRelease(
            order, measurement, mechanism, scale, value, weight, _copied(released), caller(), noise
        )
        self.releases.append(own)
        if self._frozen is not None:
            self._compare(own)
        return _copied(released)

    def _compare(self, own):
        """End the replay if the release differs from the recorded one."""
        if own.order >= len(self._frozen):
            self.divergence = "a release more is made"
        else:
            self.divergence = self._frozen[own.order].differs(own)
        if self.divergence:
            raise Diverged(self.divergence)


@contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """Record every release of this process within the block, which cannot be nested.

    During the block, the `release` of every class of measurements is replaced, and so are the
    sources of randomness without a seed. Releases and results are the same as otherwise, except for
    those that the recorder replays. Outside of the block nothing changes.
    """
    if not _RECORDING.acquire(blocking=False):
        raise RuntimeError("releases are being recorded already; one recording at a time")
    state = np.random.get_state()  # noqa: NPY002 - of code that draws from NumPy's global state
    try:
        with ExitStack() as patches:
            for kind in _kinds(Measurement):
                if "release" in vars(kind):
                    release = _wrapped(kind, recorder)
                    patches.enter_context(mock.patch.object(kind, "release", release))

            def generator(source):
                return recorder.generator()

            patches.enter_context(mock.patch.object(SystemEntropy, "generator", generator))
            patches.enter_context(mock.patch.object(np.random, "default_rng", _seeded(recorder)))
            for name in _SEEDLESS:
                patches.enter_context(mock.patch(name, _from(recorder, name)))
            np.random.seed(recorder.generator().integers(2**32))  # noqa: NPY002
            yield recorder
    finally:
        np.random.set_state(state)  # noqa: NPY002
        _RECORDING.release()


def caller() -> str:
    """Return the file, line and function that called for a release, outside of noise code."""
    frame = sys._getframe(1)
    while frame is not None and is_passed_over(frame.f_code.co_filename):
        frame = frame.f_back
    return "?" if frame is None else place(frame.f_code.co_filename, frame.f_lineno, frame.f_code)


def is_passed_over(filename: str) -> bool:
    """Return whether a file generates or inspects noise, rather than requesting it."""
    return filename.startswith(_PASSED_OVER) or filename.startswith("<")


def place(filename: str, line: int, code: Any) -> str:
    """Return a place in the code without the folders of a machine."""
    path = Path(filename)
    inside = any(path.is_relative_to(package) for package in _OURS)
    name = path.relative_to(_SOURCES).as_posix() if inside else path.name
    return f"{name}:{line} in {code.co_name}"


def _wrapped(kind, recorder):
    original = vars(kind)["release"]

    @functools.wraps(original)
    def release(self, value, source, *args, **kwargs):
        return recorder.of_measurement(original, self, value, source, args, kwargs)

    return release


def _kinds(kind) -> Iterator[type]:
    yield kind
    for each in kind.__subclasses__():
        yield from _kinds(each)


def _seeded(recorder):
    """Return NumPy's `default_rng` that uses the recorder if it has no seed."""
    original = np.random.default_rng

    @functools.wraps(original)
    def default_rng(seed=None):
        return recorder.generator() if seed is None else original(seed)

    return default_rng


def _from(recorder, name):
    is_bits = name.endswith("randbits")

    def drawn(n):
        # 512 bits make the bias of the remainder negligible for any bound in use.
        whole = int.from_bytes(recorder.generator().bytes(n // 8 + 1 if is_bits else 64), "big")
        return whole % (2**n if is_bits else n)

    return functools.wraps(getattr(secrets, name.partition(".")[2]))(drawn)


def _copied(value):
    if isinstance(value, FixedPoint):
        return FixedPoint(value.integers.copy(), value.bits)
    return np.array(value) if isinstance(value, np.ndarray) else value


def _without_noise(measurement, value, result):
    """Return the release for noise 0, in the same form."""
    if measurement is None:
        return np.broadcast_to(value, np.shape(result)).astype(np.asarray(result).dtype)[()]
    if isinstance(result, int):  # the most likely candidate
        return int(np.argmax(value))
    return np.asarray(value).astype(np.asarray(result).dtype).reshape(np.shape(result))[()]


def _other_noise(one, other):
    """Return the numbers in which the noise differs; a smooth bound may depend on the data."""
    if one.measurement is None or other.measurement is None:
        same = np.array_equal(one.scale, other.scale)
        return [] if one.measurement is other.measurement and same else ["scale"]
    names = [each.name for each in fields(one.measurement)]
    if hasattr(one.measurement, "beta"):
        names.remove("bound")
    return [n for n in names if getattr(one.measurement, n) != getattr(other.measurement, n)]
