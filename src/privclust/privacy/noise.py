r"""Sources of randomness: the operating system for releases, a seed for experiments.

A release draws OpenDP's noise from `SystemEntropy`. ``value + noise`` in floating point reveals the
value: the possible doubles, and their low-order bits, depend on it (Mironov, "On significance of
the least significant bits for differential privacy", CCS 2012). OpenDP therefore takes the value as
an integer, and adds an integer drawn from the discrete Laplace or Gaussian distribution, exactly
(Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", 2020). The sum is
rounded to a double afterwards. Sums over records are
`privclust.core.fixed_point.FixedPoint`, integer multiples of 2^-30 or 2^-32, so that nothing is
rounded between a record's own share and the noise. Doubles, which are integer multiples of 2^-1074,
are taken unchanged: the caller accounts for earlier rounding.

By theorems, noise of scale s on multiples of 2^-b has the privacy loss of continuous noise of that
scale, for pure losses and for zCDP of Gaussian noise. Otherwise the relative difference is about
(2^-b / s)^2. Laplace noise has steps of at most 2^-20 s, which its zCDP parameter includes
(`privclust.privacy.accounting.laplace_rho`). For a privacy loss distribution, the difference is
below the rounding of any number computed from it.

An experiment draws from a numpy Generator, so that it can be repeated. Such a run is not a release:
the noise is added in floating point, and known to anyone with the seed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, Self, TypeAlias, TypeGuard

import numpy as np

from privclust.core.fixed_point import FixedPoint
from privclust.core.hints import RandomState
from privclust.core.packages import how_to_install
from privclust.core.validation import as_generator
from privclust.privacy.accounting import LAPLACE_STEP, LARGEST_STEPPED

_MISSING = (
    "noise that may be released is drawn by OpenDP, which is not installed: "
    f"{how_to_install('opendp')}; or pass random_state for a seeded run, which is not for release"
)
_FEATURE = "contrib"  # feature flag that OpenDP's constructors of measurements require
_FEATURE_LOCK = threading.Lock()
_MOST_BITS = 62  # most bits of fixed-point numbers


Value: TypeAlias = np.ndarray | FixedPoint
"""A value before noise: finite floats or fixed-point integers, in any shape."""


class SystemEntropy:
    """Noise from the operating system's entropy, by samplers that resist the floating-point attack.

    It has no state: no draw can be repeated or predicted. Every method takes the value to be
    protected and returns it with noise; the module's description gives the reason. It is slower
    than a Generator by orders of magnitude: fast for sums, slow for millions of entries.

    Raises
    ------
    ImportError
        If OpenDP, the optional dependency (extra ``secure``), is not installed.

    Examples
    --------
    >>> noisy = SystemEntropy().add_laplace(np.zeros(3), scale=2.0)
    >>> noisy.shape, bool(np.isfinite(noisy).all())
    ((3,), True)
    """

    def __init__(self) -> None:
        if find_spec("opendp") is None:
            raise ImportError(_MISSING)

    def add_laplace(self, value: Value, scale: float) -> np.ndarray:
        """Return `value` plus Laplace noise of that scale."""
        from opendp.metrics import l1_distance

        if isinstance(value, FixedPoint):
            value = _in_small_steps(value, scale)
        with _constructors() as make:
            return _perturbed(make.make_laplace, l1_distance, value, scale)

    def add_gaussian(self, value: Value, sigma: float | np.ndarray) -> np.ndarray:
        """Return `value` plus Gaussian noise; sigma may differ for each entry of its last axis."""
        from opendp.metrics import l2_distance

        with _constructors() as make:
            if np.ndim(sigma) == 0:
                return _perturbed(make.make_gaussian, l2_distance, value, float(sigma))
            noisy = np.empty(value.shape)
            # OpenDP has one scale for all entries of a vector
            for each in np.unique(sigma):
                here = np.flatnonzero(sigma == each)
                part = _perturbed(make.make_gaussian, l2_distance, value[..., here], float(each))
                noisy[..., here] = part
            return noisy

    def select(self, scores: np.ndarray, scale: float) -> int:
        """Return index i with probability proportional to ``exp(scores[i] / scale)``.

        OpenDP's noisy maximum for zero-concentrated privacy has the distribution of the maximum
        under Gumbel noise, which is this one (for pure privacy it permutes and flips instead,
        another distribution). It proposes candidates uniformly and accepts one with probability
        ``exp((score - largest) / scale)``, in rational arithmetic: exact for any finite scores.
        """
        from opendp.measures import zero_concentrated_divergence
        from opendp.metrics import linf_distance

        with _constructors() as make:
            noisy_max = make.make_noisy_max(
                _float_vectors(),
                linf_distance(T=float),
                zero_concentrated_divergence(),
                scale=scale,
            )
        return int(noisy_max(scores.tolist()))

    def generator(self) -> np.random.Generator:
        """Return a numpy Generator seeded afresh by the operating system.

        For draws that privacy does not depend on, such as random starts; not for noise. Exception:
        the samplers of `privclust.bingham`, and guarantees for their draws say so.
        """
        return np.random.default_rng()


NoiseSource: TypeAlias = SystemEntropy | np.random.Generator
"""A source of noise."""


def noise_source(random_state: RandomState) -> NoiseSource:
    """Return the source of an estimator's noise.

    Parameters
    ----------
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None gives noise that may be released, anything else noise that can be repeated.

    Returns
    -------
    SystemEntropy or numpy.random.Generator

    Raises
    ------
    ImportError
        If `random_state` is None and OpenDP is not installed.
    ValueError
        If `random_state` is none of these.

    Examples
    --------
    >>> is_seeded(noise_source(None)), is_seeded(noise_source(7))
    (False, True)
    """
    return SystemEntropy() if random_state is None else as_generator(random_state)


class NoisyTransformer:
    """An estimator that draws fresh noise from `_source` whenever it is applied."""

    _source: NoiseSource
    guarantee_: Any

    def __sklearn_tags__(self) -> Any:
        """Declare that two calls of `transform` differ."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.non_deterministic = True
        return tags

    def with_noise_from(self, random_state: RandomState) -> Self:
        """Return a copy of the fitted estimator that draws its noise from another source.

        Draws of the fit, such as a public projection, are unchanged.

        Parameters
        ----------
        random_state : None, int, numpy.random.Generator or numpy.random.RandomState
            As for the constructor: None gives noise that may be released.

        Returns
        -------
        self
            Its guarantee states whether the noise is seeded.
        """
        # a shallow copy: both have the same fitted arrays, which a transform only reads
        other = copy(self)
        other._source = noise_source(random_state)
        other.guarantee_ = replace(self.guarantee_, seeded=is_seeded(other._source))
        return other


def is_seeded(source: NoiseSource) -> TypeGuard[np.random.Generator]:
    """Return whether noise from this source can be repeated, so that it is not for release.

    Raises
    ------
    ValueError
        If `source` is neither a `SystemEntropy` nor a numpy Generator.
    """
    if isinstance(source, SystemEntropy):
        return False
    if isinstance(source, np.random.Generator):
        return True
    raise ValueError(
        "source must be a SystemEntropy or a numpy.random.Generator (see noise_source), "
        f"got {source!r}"
    )


def add_laplace(value: Value, scale: float, source: NoiseSource) -> np.ndarray:
    """Return `value` plus Laplace noise of that scale."""
    if is_seeded(source):
        return np.asarray(value) + source.laplace(scale=scale, size=value.shape)
    return source.add_laplace(value, scale)


def add_gaussian(value: Value, sigma: float | np.ndarray, source: NoiseSource) -> np.ndarray:
    """Return `value` plus Gaussian noise; sigma may differ for each entry of its last axis."""
    if is_seeded(source):
        return np.asarray(value) + source.normal(scale=sigma, size=value.shape)
    return source.add_gaussian(value, sigma)


def select(scores: np.ndarray, scale: float, source: NoiseSource) -> int:
    """Return index i with probability proportional to ``exp(scores[i] / scale)``."""
    if is_seeded(source):
        with np.errstate(over="ignore"):  # -inf is correct for a very low score
            exponents = (scores - scores.max()) / scale
        # the largest of scores with Gumbel noise has the requested distribution
        return int(np.argmax(exponents + source.gumbel(size=scores.shape)))
    return source.select(scores, scale)


def unprotected_generator(source: NoiseSource) -> np.random.Generator:
    """Return a numpy Generator for draws that privacy does not depend on, from any source."""
    return source if is_seeded(source) else source.generator()


@contextmanager
def _constructors() -> Iterator[Any]:
    """Return OpenDP's measurements, with the required feature enabled only for these calls."""
    from opendp import measurements
    from opendp.mod import GLOBAL_FEATURES, disable_features, enable_features

    # features are global: another thread must not disable this one before it is used
    with _FEATURE_LOCK:
        was_enabled = _FEATURE in GLOBAL_FEATURES
        enable_features(_FEATURE)
        try:
            yield measurements
        finally:
            if not was_enabled:
                disable_features(_FEATURE)


def _float_vectors() -> Any:
    from opendp.domains import atom_domain, vector_domain

    return vector_domain(atom_domain(T=float, nan=False))


def _in_small_steps(value: FixedPoint, scale: float) -> FixedPoint:
    """Return the same numbers in steps of at most `LAPLACE_STEP` scales, if a loss requires it.

    It does if the scale is at least a step over `LARGEST_STEPPED`. The number of added bits depends
    only on the scale. Sums are clipped to 62 bits, which increases no difference.
    """
    steps = scale * 2.0**value.bits
    # First bound: below it, a change of one unit has an epsilon above LARGEST_STEPPED, and no loss
    # assumes small steps. Second bound: from it on, steps are small enough.
    if not 1.0 <= steps * LARGEST_STEPPED < LARGEST_STEPPED / LAPLACE_STEP:
        return value
    more = min(math.ceil(-math.log2(LAPLACE_STEP * steps)), _MOST_BITS - value.bits)
    limit = (1 << _MOST_BITS) >> more
    return FixedPoint(np.clip(value.integers, -limit, limit) << more, value.bits + more)


def _perturbed(make: Any, metric: Any, value: Value, scale: float) -> np.ndarray:
    """Apply a measurement on vectors to an array; a scalar stays one, as in numpy."""
    from opendp.domains import atom_domain, vector_domain

    if not isinstance(value, FixedPoint):
        noisy = make(_float_vectors(), metric(T=float), scale=scale)
        return np.reshape(noisy(value.ravel().tolist()), value.shape)[()]
    # sums are clipped to 64 bits after noise is added, which is post-processing
    integers = value.integers.ravel().tolist()
    # the integers' unit is 2^-bits, so the scale is multiplied by 2^bits
    if not np.isfinite(scale * 2.0**value.bits):
        raise ValueError(f"noise of scale {scale:.3g} is not representable: epsilon is too small")
    noisy = make(
        vector_domain(atom_domain(T="i64")), metric(T="i64"), scale=scale * 2.0**value.bits
    )
    noisy = np.array(noisy(integers), dtype=np.int64).reshape(value.shape)
    return np.asarray(FixedPoint(noisy, value.bits))[()]
