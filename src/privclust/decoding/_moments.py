"""Mean and variances of the data of a sketch, from its low frequencies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from scipy.optimize import nnls

from privclust.decoding._atoms import LOGISTIC_EDGE, least_squares_problem, minimise, unpacked
from privclust.decoding._posterior import LEAST_LEVEL, posterior_modes

# benchmarks/ablation.py measures the effect of these constants on the loss
_EXTENT_POWER = 0.5  # mean squared modulus below which frequencies resolve clusters
_LEAST_POWER = 0.2  # squared moduli below it have no useful logarithm
_FEWEST_FREQUENCIES = 20  # fewest frequencies for the extent of the data, plus 2 d
_ROUNDING = 2.0**-104  # variance of features by rounding: less noise has no reciprocal
_LARGE_NOISE = 0.02  # variance above which more frequencies are used, though they resolve clusters
_START_PLACES, _REFINED_PLACES = 500, 4  # places at which a mean is tried; number that are refined
_LEAST_SQUARED_PHASE = 1e-2  # squared phase below which a spread looks like a point
_VARIANCE_LOG_STEP = 0.3  # step of log v between the points of the posterior's grid
_LARGEST_PHASE = 1e6  # phase over the box from which a frequency has no information
_NATS_PER_NUMBER = 5.0  # nats that a number of a Gaussian must explain, or it may be noise
_MODEL_ERROR = 0.1  # error of squared moduli that allows for data that are not Gaussian
_LEAST_VARIANCE_RATIO = 1e-3  # least variance of a feature, relative to the largest
# least weight of a main cluster; least ratio of the variance of all rows to its own
_HEAVY_WEIGHT, _FAR_RATIO = 0.6, 2.0
_DAMPED = 4.0  # squared phase beyond which features of a Gaussian are nearly 0
_LEAST_FAR_VARIANCE = 1e-8  # least variance of a Gaussian, relative to the box
# initial weight and variances of the Gaussian of the other rows, relative to the box
_FAR_WEIGHT, _FAR_VARIANCES = 0.2, (0.05, 0.3)


@dataclass(frozen=True)
class Moments:
    """Mean and variances of the data, from which a decoder starts.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    variances : ndarray of shape (d,)
        Variance of each feature.
    """

    mean: np.ndarray
    variances: np.ndarray

    @classmethod
    def of_rows(cls, rows: np.ndarray) -> Moments:
        """Return the moments of rows (n, d), which are not private."""
        mean, variances = (f(axis=0, dtype=np.float64) for f in (rows.mean, rows.var))
        least = float(variances.max()) * 1e-12 or 1.0  # equal rows have no scale
        return cls(mean, np.maximum(variances, least))

    @property
    def variance(self) -> float:
        """The mean variance of a feature."""
        return float(self.variances.mean())


def estimate_moments(features, frequencies, noise, box, rng, of_count=0.0) -> Moments:
    r"""Estimate mean and variances of the data from features at low frequencies.

    Data with mean :math:`\mu` and variances :math:`v_i` have features near
    :math:`\exp(i \omega'\mu - \sum_i v_i \omega_i^2 / 2)` at frequencies too low to resolve
    clusters. Without noise the mean and a common variance come from a least-squares fit of one
    Gaussian atom; with noise and a box, from the posterior of `_posterior_moments`. Unless noise
    is large, the variance of each feature comes from a nonnegative linear fit of
    :math:`-\log |z_j|^2`. The Gaussian may be that of one cluster with most rows: see
    `_with_far_rows`.

    `noise` is the variance of real and imaginary parts of the features (m,) at frequencies (d, m).
    They were divided by a number of records of relative variance `of_count`. `box`, or None, bounds
    the data. `rng` draws starts of the least-squares fit.
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
    """Return moments with a variance for each feature, from moments with a common one or None."""
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
    """Return the moments of all rows if the given ones are of one cluster with most rows.

    The features of such a cluster have the power of its weight up to high frequencies. One Gaussian
    of weight 1 fits this best if it is as narrow as the cluster. So two Gaussians, with weights
    that add up to about 1, are fitted by least squares as well. Their moments are returned on three
    conditions. They explain more than the single Gaussian, by more than noise does per number. They
    also do so at frequencies at which the wider one is not damped to 0, compared with one Gaussian
    of any weight (which allows for a wrong number of records). The narrow one has most of the
    weight, and all rows are spread much wider than it.
    """
    d, m = frequencies.shape
    unit = math.sqrt(float((box.half_widths**2).mean()))
    scaled, shifted = frequencies * unit, features * np.exp(-1j * (box.center @ frequencies))
    of_features = least_squares_problem(shifted, scaled)
    # features at frequency 0 are known to be 1: m such equations fix the sum of weights
    known = np.append(shifted, np.ones(m)), np.hstack([scaled, np.zeros((d, m))])
    anchored = least_squares_problem(*known)
    # deviations from 1e-4 to 2 half-widths of the box
    bounds = math.log(_LEAST_FAR_VARIANCE), 2.0 * math.log(2.0)
    near, narrow = (moments.mean - box.center) / unit, moments.variance / unit**2

    def fitted(problem, weights, centers, variances):
        """Minimise f from these atoms; return f and the point."""
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
    # of the variance, in squared units
    bounds = math.log(1e-6), math.log(widest)
    order = np.argsort(-heights, kind="stable")
    starts = [(place, 0.5) for place in places[order[:_REFINED_PLACES]]]
    if box is not None:  # also as wide as the box
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
    r"""Return the posterior moments of a record given a noisy sketch, and the features' level.

    Features are :math:`a \exp(i \omega'\mu - v |\omega|^2 / 2)` plus noise. The level a is 1 if the
    number of records is known; a noisy number is one more measurement of it, of variance
    `of_count`. The difference of clusters from a Gaussian counts as noise too, of power up to
    :math:`c (1 - e^{-v |\omega|^2})`, since k equal clusters have features of power 1 / k at
    frequencies that resolve them. The prior of the mean has the moments of the box. That of log v
    is uniform, from the least v that some frequency resolves to that of the box.

    The posterior of mean and level is integrated by Laplace's method at each v of a grid. Its mode
    is followed from the widest v, where it is unique, to the narrowest, so that a narrow peak of
    noise elsewhere is not found. The moments are those of a new record (law of total variance):
    uncertainty of the mean adds to the spread. If the features are not clearly distinguishable from
    noise, a peak may be noise, and the moments are those of a uniform density on the box.
    """
    # the deviation of a uniform density on the box; squares of its widths may overflow
    unit = math.sqrt(float(((box.half_widths / box.half_widths.max()) ** 2).mean() / 3.0))
    unit *= float(box.half_widths.max())
    scaled = frequencies * unit
    seen = (np.abs(scaled) < _LARGEST_PHASE).all(axis=0)  # others have no information
    if not seen.any():
        return moments_of_box(box), 1.0
    features, scaled = features[seen], scaled[:, seen]
    even = (box.half_widths / unit) ** 2 / 3.0
    shifted = features * np.exp(-1j * ((box.center / unit) @ scaled))
    problem = least_squares_problem(shifted, scaled)
    narrowest = _LEAST_SQUARED_PHASE / max(float(problem[1].max()), 1.0)
    steps = 1 + math.ceil(-math.log(narrowest) / _VARIANCE_LOG_STEP)
    precisions = 1.0 / np.maximum(even, _LEAST_VARIANCE_RATIO * float(even.max()))
    # the information of a noisy count on the level; an exact count fixes it
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
    """Count the frequencies, in order of modulus, that are too low to resolve clusters."""
    size = max(10, fewest // 2)
    for start in range(0, len(power), size):
        if power[start : start + size].mean() < _EXTENT_POWER:
            return min(len(power), max(fewest, start))
    return len(power)


def _variances(power, frequencies, variance, noise):
    """Fit a variance for each feature, shrunk to a common one as far as noise is large.

    Equations of the linear fit are weighted by |z|^2, which makes their errors about 2 sigma |z|.
    One more equation for each feature sets its variance to the common one, with an error of 100 %.
    """
    d = len(frequencies)
    detected = power > _LEAST_POWER
    weight = power[detected]
    error = max(2.0 * math.sqrt(noise), _MODEL_ERROR)
    rows = np.vstack(
        [(frequencies[:, detected] ** 2).T * weight[:, None], np.eye(d) * error / variance]
    )
    # noise may raise a modulus above 1, where the logarithm asks for a negative variance
    aims = np.append(-np.log(np.minimum(weight, 1.0)) * weight, np.full(d, error))
    variances = nnls(rows, aims)[0]
    if not variances.any():  # huge squared frequencies leave the common variance no weight
        return np.full(d, variance)
    return np.maximum(variances, variances.max() * _LEAST_VARIANCE_RATIO)
