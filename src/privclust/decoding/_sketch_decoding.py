"""Decoding a sketch into clusters, by one of two decoders."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np

from privclust.core.hints import Bounds, RandomState
from privclust.core.threads import one_blas_thread
from privclust.core.validation import check_integer, check_option
from privclust.core.warn import warn_caller
from privclust.decoding._clompr import decode_diracs
from privclust.decoding._gaussians import GaussianMixture
from privclust.decoding._mixture_decoder import (
    Decoded,
    decode_mixture,
    expected_residual,
    fit_density,
)
from privclust.decoding._mixture_fit import MixtureFit
from privclust.decoding._moments import Moments, estimate_moments, moments_of_box
from privclust.decoding._seed import decoding_generator
from privclust.decoding._sketch_check import is_outside, least_loss
from privclust.privacy.bounds import Box, checked_box
from privclust.privacy.hidden import noise_message
from privclust.sketches._sketch import Sketch

METHODS = ("gaussian", "clompr")
SPREADS = ("per_cluster", "shared")
_DEFAULT_STARTS, _STARTED_CLUSTERS = 5, 50  # most starts: 5, or 50 / k if that is less
_RESIDUAL_DEVIATIONS = 2.0  # excess of a poor residual, in its standard deviations
_POOR_FIT_RATIO = 2.0  # ratio of a poor residual to the expected one
_MUCH_LESS = 0.5  # ratio of residuals for another start to win although both are poor
_BOX_IN_DEVIATIONS = 4.0  # half-width of the box without bounds, in standard deviations
_LEAST_REACH = 1e-12  # half-width of that box, relative to the mean: less vanishes in rounding
OUTSIDE = "data lie outside the bounds, where no center is looked for: widen them"


@one_blas_thread
def decode(
    sketch: Sketch,
    n_clusters: int,
    *,
    bounds: Bounds | None = None,
    method: Literal["gaussian", "clompr"] = "gaussian",
    spread: Literal["per_cluster", "shared"] = "per_cluster",
    covariances: bool = True,
    n_init: int | None = None,
    moments: Moments | None = None,
    random_state: RandomState = None,
) -> Decoded:
    r"""Find the clusters that explain a sketch.

    This is post-processing: it uses nothing but the sketch, and the result is as private.

    Parameters
    ----------
    sketch : Sketch
        A sketch of at least one record.
    n_clusters : int
        k.
    bounds : (low, high) or None
        Bounds of the data, each a number or an array of shape (n_features,). Centers are within
        them. None: no bounds.
    method : {"gaussian", "clompr"}
        ``"gaussian"``: clusters with a spread (`privclust.decoding._mixture_decoder`).
        ``"clompr"``: the published CL-OMPR, clusters as points (`privclust.decoding._clompr`).
    spread : {"per_cluster", "shared"}
        Whether each Gaussian cluster has its own variance; not used by CL-OMPR.
    covariances : bool
        Whether Gaussian clusters have covariances if that explains more, in many times the time;
        not used with a shared variance, nor by CL-OMPR.
    n_init : int or None
        Largest number of starts; the one of least residual is kept. None: 5, or for Gaussian
        clusters 50 / k if that is less. Starts of Gaussian clusters end once noise and sampling
        explain the residual.
    moments : Moments or None
        Mean and variances of the data, if known; None estimates them from the sketch.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        Seed of the starts. None derives it from the sketch and the other arguments, so that the
        same call gives the same clusters, in any process.

    Returns
    -------
    Decoded
        Centers, weights, variances, residual, and the agreement of other starts.

    Raises
    ------
    ValueError
        If an argument is not as described, or the sketch has no records.

    Warns
    -----
    UserWarning
        If k > m / (d + 1): there are fewer features than unknowns.

    Examples
    --------
    >>> from privclust.sketches import Sketch, draw_frequencies
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-3, 1, (500, 2)), rng.normal(3, 1, (500, 2))])
    >>> sketch = Sketch.of(X, draw_frequencies(2, 50, variance=4.0, random_state=0))
    >>> decoded = decode(sketch, 2, random_state=0)
    >>> np.sort(decoded.centers[:, 0]).round()
    array([-3.,  3.])
    """
    if not isinstance(sketch, Sketch):
        raise ValueError(f"sketch must be a Sketch, got {type(sketch).__name__}")
    check_integer("n_clusters", n_clusters, minimum=1)
    check_option("method", method, METHODS)
    check_option("spread", spread, SPREADS)
    if n_init is None:
        n_init = _starts_of_gaussians(n_clusters) if method == "gaussian" else _DEFAULT_STARTS
    check_integer("n_init", n_init, minimum=1)
    warn_if_not_identifiable(n_clusters, sketch.n_features, sketch.n_frequencies)
    box = None if bounds is None else checked_box(bounds, sketch.n_features)
    if moments is not None:
        _check_moments(moments, sketch.n_features)
    where = () if box is None else (box.low, box.high)
    if moments is not None:
        where = *where, moments.mean, moments.variances
    settings = n_clusters, method, spread, covariances, n_init, *where
    rng = decoding_generator(random_state, sketch, *settings)
    features, noise, n_samples = mean_features(sketch)
    expected = expected_residual(features, n_samples, sketch.alpha_r, noise)
    guessed = moments is None
    if guessed and (box is None or method == "gaussian"):
        of_count = count_noise(sketch)
        moments = estimate_moments(features, sketch.frequencies, noise, box, rng, of_count)
    if method == "gaussian":
        task = features, sketch.frequencies, n_clusters
        how = {"spread": spread, "n_init": n_init, "rng": rng, "noisy": noise > 0.0}
        how |= {"covariances": covariances, "box": box}
        decoded = _explaining(
            lambda moments: decode_mixture(*task, moments, expected, **how), moments, box, sketch
        )
    else:
        decoded = _decode_clompr(sketch, features, n_clusters, box, moments, expected, n_init, rng)
    if box is None:
        return decoded
    return replace(decoded.clipped(box), is_outside=leaves_box(sketch, box), box=box)


@one_blas_thread
def decode_density(
    sketch: Sketch,
    n_clusters: int,
    moments: Moments,
    box: Box,
    rng: np.random.Generator,
    *,
    covariances: bool,
) -> GaussianMixture:
    """Return the density of which `decode` returns the centers."""
    features, noise, n_samples = mean_features(sketch)
    expected = expected_residual(features, n_samples, sketch.alpha_r, noise)
    task = features, sketch.frequencies, n_clusters
    n_init = _starts_of_gaussians(n_clusters)
    how = {"spread": "per_cluster", "n_init": n_init, "rng": rng, "noisy": noise > 0.0}
    how["covariances"] = covariances
    fit = _explaining(
        lambda moments: fit_density(*task, moments, expected, **how), moments, box, sketch
    )
    return fit.density


def _starts_of_gaussians(n_clusters):
    """Return the largest number of starts for k Gaussian clusters."""
    return max(1, min(_DEFAULT_STARTS, _STARTED_CLUSTERS // n_clusters))


def _explaining(search, moments, box, sketch):
    """Return the result of a search from moments, or from those of the box if that explains more.

    Estimated moments are wrong if clusters are so far apart that no frequency is low enough, or if
    small clusters are far from one with most rows.
    """
    first = search(moments)
    if box is None or not _is_poor(first, sketch):
        return first
    again = search(moments_of_box(box))
    return again if _explains_more(again, first, sketch) else first


def _of_detected_atom(decoded, sketch):
    """Return the least decrease of the residual by a detected atom."""
    of_one_number = 0.5 * decoded.expected_residual / sketch.n_frequencies
    return least_loss(np.ones(1), sketch.n_features, of_one_number)


def _is_poor(decoded, sketch):
    """Return whether a residual exceeds its expectation by noise and a detectable atom."""
    expected = decoded.expected_residual
    deviation = expected / math.sqrt(sketch.n_frequencies)
    beyond = max(_RESIDUAL_DEVIATIONS * deviation, _of_detected_atom(decoded, sketch))
    return decoded.residual > min(_POOR_FIT_RATIO * expected, expected + beyond)


def _explains_more(other, decoded, sketch):
    """Return whether another fit is good, and better by a detected atom, or far better."""
    explains = other.residual <= _POOR_FIT_RATIO * other.expected_residual
    if explains and other.residual < decoded.residual - _of_detected_atom(decoded, sketch):
        return True
    return other.residual < _MUCH_LESS * decoded.residual


def moments_of_pilot(pilot: Sketch, box: Box, rng: np.random.Generator) -> Moments:
    """Return moments of the data from a sketch at `privclust.decoding._sizes.pilot_frequencies`."""
    features, noise, _ = mean_features(pilot)
    return estimate_moments(features, pilot.frequencies, noise, box, rng, count_noise(pilot))


def leaves_box(sketch: Sketch, box: Box) -> bool:
    features, noise, n_samples = mean_features(sketch)
    of_masks = (1.0 - sketch.alpha_r) / (sketch.alpha_r * n_samples)
    return is_outside(features, sketch.frequencies, noise + of_masks, count_noise(sketch), box)


def hidden_by_noise(sketch: Sketch, decoded: Decoded) -> str:
    """Return a message on clusters hidden by noise; empty if there are none, or no noise."""
    if sketch.noise is None:
        return ""
    clusters = noise_message(decoded.is_detected)
    outside = OUTSIDE if decoded.is_outside else ""
    starts = "" if decoded.starts is None else decoded.starts.message()
    return "; ".join(filter(None, [outside, clusters, starts]))


def mean_features(sketch: Sketch):
    """Return estimates of the mean of exp(i omega'x), the variance of their noise, and n.

    A noisy number of records below 1 counts as 1: the sketch is then mere noise, and so are the
    centers.
    """
    if sketch.noise is None and sketch.n_samples < 1:
        raise ValueError("a sketch of no records has no clusters")
    n_samples = max(1.0, float(sketch.n_samples))
    features = sketch.sums / (sketch.alpha_r * n_samples)
    return features, sketch.noise_variance / (sketch.alpha_r * n_samples) ** 2, n_samples


def count_noise(sketch: Sketch) -> float:
    """Return the relative variance of a noisy number of records; 0 if it is exact."""
    if not isinstance(sketch.n_samples, float):
        return 0.0
    return sketch.noise_variance / max(1.0, sketch.n_samples) ** 2


def warn_if_not_identifiable(n_clusters: int, n_features: int, n_frequencies: int) -> None:
    """Warn if k clusters have more unknowns than m complex features determine."""
    if n_clusters > n_frequencies / (n_features + 1):
        warn_caller(
            f"{n_clusters} clusters with {n_features} features each are not identifiable from a "
            f"sketch of {n_frequencies} frequencies: take at least "
            f"{n_clusters * (n_features + 1)}, better {10 * n_clusters * n_features}"
        )


def _check_moments(moments: Moments, n_features: int) -> None:
    """Raise a ValueError if moments are not valid for this number of features."""
    if not isinstance(moments, Moments):
        raise ValueError(f"moments must be Moments or None, got {type(moments).__name__}")
    for name, array in (("mean", moments.mean), ("variances", moments.variances)):
        if np.shape(array) != (n_features,) or not np.isfinite(array).all():
            raise ValueError(f"moments: {name} must be {n_features} finite numbers, got {array!r}")
    if not (moments.variances > 0).all():
        raise ValueError(f"moments: variances must be positive, got {moments.variances!r}")


def _decode_clompr(sketch, features, n_clusters, box, moments, expected, n_init, rng):
    if box is None:
        reach = _BOX_IN_DEVIATIONS * np.sqrt(moments.variances)
        reach = np.maximum(reach, _LEAST_REACH * np.abs(moments.mean))
        low, high = moments.mean - reach, moments.mean + reach
    else:
        low, high = box.low, box.high
    runs = [
        decode_diracs(features, sketch.frequencies, n_clusters, low, high, rng)
        for _ in range(n_init)
    ]
    centers, weights, residual = min(runs, key=lambda run: run[2])
    problem = MixtureFit(features, sketch.frequencies, moments_of_box(Box(low, high)), "shared")
    atoms = weights, (centers - problem.origin) / problem.unit, np.zeros(n_clusters)
    of_one_number = 0.5 * expected / sketch.n_frequencies
    is_detected = np.zeros(n_clusters, dtype=bool)
    is_detected[problem.detected_atoms(*atoms[1:], of_one_number)[1]] = True
    smallest = problem.least_weight(atoms[2], atoms[2], of_one_number)
    total = weights.sum()
    weights = weights / total if total > 0.0 else np.full(n_clusters, 1.0 / n_clusters)
    points = np.zeros(n_clusters)
    told = residual, expected, is_detected, 0.0, smallest
    return Decoded(centers, weights, points, *told)
