"""Where the data of a sketch are: mean and variances, from its low frequencies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from scipy.optimize import nnls

from privclust.decoding._atoms import LOGISTIC_EDGE, least_squares_problem, minimise, unpacked
from privclust.decoding._posterior import LEAST_LEVEL, posterior_modes

_EXTENT_POWER = 0.5  # mean squared moduli above it tell of the data's extent, not of clusters
_LEAST_POWER = 0.2  # squared moduli below it have no useful logarithm
_FEWEST_FREQUENCIES = 20  # that the extent is estimated from
_ROUNDING = 2.0**-104  # variance of features by rounding: less noise has no reciprocal
_LARGE_NOISE = 0.02  # variance; beyond it as many more are needed, though they tell of clusters too
_START_PLACES, _REFINED_PLACES = 500, 4  # of the mean
_LEAST_SQUARED_PHASE = 1e-2  # below it no frequency tells a spread from a point
_VARIANCE_LOG_STEP = 0.3  # of the variances at which a posterior is taken
_LARGEST_PHASE = 1e6  # over the box; from here on a frequency tells nothing
_NATS_PER_NUMBER = 5.0  # that a number of a Gaussian must explain, or noise may have made it
_MODEL_ERROR = 0.1  # by which data that are no Gaussian may differ from one
_LEAST_VARIANCE_RATIO = 1e-3  # of a feature to the largest
_HEAVY_WEIGHT, _FAR_RATIO = 0.6, 2.0  # of one cluster; of the variance of all to that of its own
_DAMPED = 4.0  # squared phase beyond which a Gaussian's features are next to nothing
_LEAST_FAR_VARIANCE = 1e-8  # in the box's
_FAR_WEIGHT, _FAR_VARIANCES = 0.2, (0.05, 0.3)  # that other rows are looked for with, in the box's


@dataclass(frozen=True)
class Moments:
    """Where the data are: what a decoder starts from.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    variances : ndarray of shape (d,)
        Of each feature.
    """

    mean: np.ndarray
    variances: np.ndarray

    @property
    def variance(self) -> float:
        """The mean variance of a feature."""
        return float(self.variances.mean())


def estimate_moments(features, frequencies, noise, box, rng, of_count=0.0) -> Moments:
    r"""Estimate where the data are from the features at low frequencies.

    Data with mean :math:`\mu` and variances :math:`v_i` have features near
    :math:`\exp(i \omega'\mu - \sum_i v_i \omega_i^2 / 2)` at frequencies too low to tell clusters
    apart. Without noise the mean and a common variance come from a least-squares fit of one
    Gaussian atom; with noise, in a box, from the posterior of `_posterior_moments`. Unless noise
    is large, the variance of each feature comes from a nonnegative linear fit of
    :math:`-\log |z_j|^2`. One Gaussian may be of one cluster that holds most rows: see
    `_with_far_rows`.

    Features (m,) at frequencies (d, m) have `noise`, a variance of real and imaginary parts, and
    were divided by a number of records of variance `of_count`, in squares of it. `box`, or None,
    says where to look, `rng` places from which the least-squares fit starts.
    """
    is_posterior = noise > 0.0 and box is not None
    if is_posterior:
        noise = max(noise, _ROUNDING)
        moments, level = _posterior_moments(features, frequencies, noise, of_count, box)
        features, noise = features / level, noise / level**2
        if noise > _LARGE_NOISE:  # squared moduli are mostly noise
            return _with_far_rows(moments, features, frequencies, noise, box)
    else:
        moments = None
    moments = _of_each_feature(moments, features, frequencies, noise, box, rng)
    if is_posterior:
        return _with_far_rows(moments, features, frequencies, noise, box)
    return moments


def _of_each_feature(moments, features, frequencies, noise, box, rng):
    """Return moments with a variance of each feature; one for all, or None, is known before."""
    d = len(frequencies)
    power = np.abs(features) ** 2 - 2.0 * noise
    squares = np.einsum("ij,ij->j", frequencies, frequencies)
    order = np.argsort(squares, kind="stable")
    fewest = (_FEWEST_FREQUENCIES + 2 * d) * max(1.0, noise / _LARGE_NOISE)
    low = order[: _number_of_low(power[order], int(min(fewest, len(power))))]
    if moments is not None:
        mean, variance = moments.mean, moments.variance
    else:
        mean, variance = _fitted_gaussian(
            features[low], frequencies[:, low], squares[low], box, rng
        )
    if noise > _LARGE_NOISE:
        return Moments(mean, np.full(d, variance))
    return Moments(mean, _variances(power[low], frequencies[:, low], variance, noise))


def _with_far_rows(moments, features, frequencies, noise, box):
    """Return the moments of all rows, where one Gaussian is that of a cluster with most of them.

    Features then have the power of that cluster's weight up to high frequencies, which one Gaussian
    of the weight 1 explains best if it is as narrow as the cluster. Two are fitted by least squares
    in place of it, with weights that add up to about 1. Their moments count where they explain more
    than it by more than noise lets their numbers explain; where, at frequencies at which the wider
    one is not damped to nothing, they explain more than it, and than one Gaussian of any weight
    (which explains as well that all features are too small, as by a wrong number of records); and
    where the narrow one has most of the weight, and all rows are spread much wider than it.
    Elsewhere clusters are told from one another later.
    """
    d, m = frequencies.shape
    unit = math.sqrt(float((box.half_widths**2).mean()))
    scaled, shifted = frequencies * unit, features * np.exp(-1j * (box.center @ frequencies))
    of_features = least_squares_problem(shifted, scaled)
    # at frequency 0, once for each other one, features are known to be 1
    known = np.append(shifted, np.ones(m)), np.hstack([scaled, np.zeros((d, m))])
    anchored = least_squares_problem(*known)
    bounds = math.log(_LEAST_FAR_VARIANCE), 2.0 * math.log(2.0)
    near, narrow = (moments.mean - box.center) / unit, moments.variance / unit**2

    def fitted(problem, weights, centers, variances):
        """Descend from here; return f and the point."""
        parts = (np.log(variances) - bounds[0]) / (bounds[1] - bounds[0])
        parts = np.clip(parts, LOGISTIC_EDGE, 1.0 - LOGISTIC_EDGE)
        logits = np.log(parts / (1.0 - parts))
        point = np.concatenate([np.sqrt(weights), np.ravel(centers), logits])
        return minimise(point, len(weights), *bounds, problem, 200, 1e-6), point

    alone, _ = fitted(anchored, [1.0], [near], [narrow])
    least, best = min(
        (
            fitted(anchored, [1.0 - _FAR_WEIGHT, _FAR_WEIGHT], [near, far], [narrow, wide])
            for wide in _FAR_VARIANCES
            for far in (np.zeros(d), near)
        ),
        key=itemgetter(0),
    )
    weights, centers, variances, _ = unpacked(best, 2, d, *bounds)
    k = int(np.argmin(variances))
    _, free = min(
        fitted(of_features, [1.0], [near], [narrow]),
        fitted(of_features, weights[k : k + 1], centers[k : k + 1], variances[k : k + 1]),
        key=itemgetter(0),
    )
    low = float(variances.max()) * np.einsum("ij,ij->j", scaled, scaled) < _DAMPED
    one = np.ones(1), near[None], np.array([narrow])
    left = [
        float((np.abs(shifted - _gaussians(*parts, scaled))[low] ** 2).sum())
        for parts in (one, unpacked(free, 1, d, *bounds)[:3], (weights, centers, variances))
    ]
    weights = weights / max(float(weights.sum()), LEAST_LEVEL)
    mean = weights @ centers
    spread = weights @ (variances[:, None] + (centers - mean) ** 2)
    is_more = alone - least > 2.0 * noise * _NATS_PER_NUMBER * (d + 2) and left[2] < min(left[:2])
    if not (is_more and weights[k] > _HEAVY_WEIGHT and spread.mean() > _FAR_RATIO * narrow):
        return moments
    center = np.clip(box.center + unit * mean, box.low, box.high)
    return Moments(center, np.minimum(unit**2 * spread, box.half_widths**2))


def _gaussians(weights, centers, variances, frequencies):
    squares = np.einsum("ij,ij->j", frequencies, frequencies)
    return weights @ np.exp(1j * (centers @ frequencies) - 0.5 * np.outer(variances, squares))


def _fitted_gaussian(features, frequencies, squares, box, rng):
    d, n_low = frequencies.shape
    unit = 1.0 / math.sqrt(max(float(squares.mean()), 1e-300))
    middle = np.zeros(d) if box is None else box.center
    reach = 3.0 * unit if box is None else box.half_widths
    shifted = features * np.exp(-1j * (middle @ frequencies))
    shifted = np.append(shifted, np.ones(n_low))  # at frequency 0 the feature is known
    scaled = np.hstack([frequencies * unit, np.zeros((d, n_low))])
    problem = least_squares_problem(shifted, scaled)
    if box is None:
        places = rng.standard_normal((_START_PLACES, d)) * (reach / unit)
    else:
        places = rng.uniform(-1.0, 1.0, (_START_PLACES, d)) * (reach / unit)
    places[0] = 0.0
    heights = (np.exp(-1j * (places @ scaled)) @ shifted).real
    widest = 1e2 if box is None else max(1e2, 1e2 * float((box.half_widths**2).max()) / unit**2)
    bounds = math.log(1e-6), math.log(widest)
    starts = [(place, 0.5) for place in places[np.argsort(-heights)[:_REFINED_PLACES]]]
    if box is not None:  # from afar too
        spread = float((box.half_widths**2).mean()) / (3.0 * unit**2)
        starts.append((np.zeros(d), spread))
    best, least = None, math.inf
    for place, spread in starts:
        part = (math.log(max(spread, 1e-300)) - bounds[0]) / (bounds[1] - bounds[0])
        part = min(max(part, LOGISTIC_EDGE), 1.0 - LOGISTIC_EDGE)
        point = np.concatenate([[1.0], place, [math.log(part / (1.0 - part))]])
        value = minimise(point, 1, *bounds, problem, 200, 1e-6)
        if value < least:
            best, least = point, value
    _, center, variance, _ = unpacked(best, 1, d, *bounds)
    mean, variance = middle + unit * center[0], float(variance[0]) * unit**2
    if box is not None:
        mean = np.clip(mean, box.low, box.high)
        variance = min(variance, float((box.half_widths**2).mean()))
    return mean, variance


def _posterior_moments(features, frequencies, noise, of_count, box):
    r"""Return the moments of a record, given a noisy sketch, and the features' level.

    Features are :math:`a \exp(i \omega'\mu - v |\omega|^2 / 2)` plus noise. The level a is 1
    where the number of records is known; a noisy number is one more measurement of it, of variance
    `of_count`. What clusters add to a Gaussian counts as noise too: up to a power of
    :math:`c (1 - e^{-v |\omega|^2})`, since k equal clusters have features of power 1 / k where
    they are told apart. A priori the mean has the box's moments, and v is uniform on logarithmic
    scale, from what no frequency tells from 0 to the box's.

    The posterior of mean and level is integrated by Laplace's method at each v of a grid. Its mode
    is followed from the widest v down, where there is but one, so that a narrow peak of noise
    elsewhere is not found. The moments are those of a new record, the law of total variance: what
    is not known of the mean adds to the spread. Where the features are not clearly more than noise,
    the peaks that noise has of its own cannot be ruled out, and data spread evenly over the box are
    assumed.
    """
    unit = math.sqrt(float(((box.half_widths / box.half_widths.max()) ** 2).mean() / 3.0))
    unit *= float(box.half_widths.max())
    scaled = frequencies * unit
    seen = (np.abs(scaled) < _LARGEST_PHASE).all(axis=0)  # the others turn within any spread
    if not seen.any():
        return moments_of_box(box), 1.0
    features, scaled = features[seen], scaled[:, seen]
    even = (box.half_widths / unit) ** 2 / 3.0
    shifted = features * np.exp(-1j * ((box.center / unit) @ scaled))
    problem = least_squares_problem(shifted, scaled)
    narrowest = _LEAST_SQUARED_PHASE / max(float(problem[1].max()), 1.0)
    steps = 1 + math.ceil(-math.log(narrowest) / _VARIANCE_LOG_STEP)
    precisions = 1.0 / np.maximum(even, _LEAST_VARIANCE_RATIO * float(even.max()))
    # a count without noise fixes the level; else the count tells as much as this of it
    of_level = 1.0 / of_count if of_count > _ROUNDING else 0.0
    grid = np.geomspace(1.0, narrowest, steps)
    evidences, gains, levels, means, variances = posterior_modes(
        grid, problem, noise, of_level, precisions
    )
    weights = np.exp(evidences - evidences.max())
    weights /= weights.sum()
    level = float(weights @ levels)
    if weights @ gains < _NATS_PER_NUMBER * (len(scaled) + 2):
        return moments_of_box(box), level
    mean = weights @ means
    spread = weights @ (variances + (means - mean) ** 2)
    center = np.clip(box.center + unit * mean, box.low, box.high)
    return Moments(center, unit**2 * np.minimum(spread, 1.0 / precisions)), level


def moments_of_box(box) -> Moments:
    least = 1e-6 * float((box.half_widths**2).max())
    return Moments(box.center, np.maximum(box.half_widths**2 / 3.0, least))


def _number_of_low(power, fewest):
    """Count the frequencies, in order of modulus, up to where features tell of clusters."""
    size = max(10, fewest // 2)
    for start in range(0, len(power), size):
        if power[start : start + size].mean() < _EXTENT_POWER:
            return min(len(power), max(fewest, start))
    return len(power)


def _variances(power, frequencies, variance, noise):
    """Fit a variance for each feature, held near a common one as far as noise leaves them open.

    Rows of the linear fit are weighted by |z|^2, which makes their errors about 2 sigma |z|; a row
    more for each feature says that its variance is the common one, give or take as much again.
    """
    d = len(frequencies)
    detected = power > _LEAST_POWER
    weight = power[detected]
    error = max(2.0 * math.sqrt(noise), _MODEL_ERROR)
    rows = np.vstack(
        [(frequencies[:, detected] ** 2).T * weight[:, None], np.eye(d) * error / variance]
    )
    aims = np.append(-np.log(np.minimum(weight, 1.0)) * weight, np.full(d, error))
    variances = nnls(rows, aims)[0]
    if not variances.any():  # beside numbers so much above 1 that the common variance has no weight
        return np.full(d, variance)
    return np.maximum(variances, variances.max() * _LEAST_VARIANCE_RATIO)
