"""Decoding a sketch: where the data are, then which clusters explain it."""

from __future__ import annotations

import math
import warnings
from typing import Literal

import numpy as np
from scipy.optimize import nnls

from privclust.hints import Bounds, RandomState
from privclust.kmeans._atoms import minimise, unpacked
from privclust.kmeans._clompr import decode_diracs
from privclust.kmeans._decoder import (
    _EDGE,
    Decoded,
    Moments,
    decode_mixture,
    expected_residual,
)
from privclust.kmeans._sketch import Sketch
from privclust.privacy.bounds import checked_box
from privclust.validation import as_generator, check_integer, check_option

METHODS = ("gaussian", "clompr")
SPREADS = ("per_cluster", "shared")
_N_INIT = 5  # starts of the Gaussian decoder, unless one reaches the expected residual
_CLEAR = 0.5  # squared moduli above this on average tell of the data's extent, not of clusters
_FAINT = 0.2  # squared moduli below this have no useful logarithm
_FEWEST = 20  # frequencies that the extent is estimated from
_LOUD = 0.02  # noise from which on as many more are needed, although they tell of clusters too
_PLACES, _CLIMBS = 500, 4  # where the mean is looked for, and how many of them are refined
_UNSEEN = 1e-2  # squared phases below which no frequency tells a spread from a point
_LOG_STEP = 0.3  # of the variances at which a posterior is taken, in logarithms
_OF_CLUSTERS = 0.1  # power of features, where a Gaussian has none, that is taken for clusters
_FASTEST = 1e6  # phase over the box from which on a frequency tells nothing
_RIDGE = 1e-9  # in parts of the information on a coordinate
_LEAST_LEVEL = 0.05  # of features: a number of records is not 20 times as wrong
_SIGNIFICANT = 5.0  # nats that each number of a Gaussian must explain, or noise may have made it
_SCORING_STEPS, _HALVINGS, _SCORING_GAIN = 30, 12, 1e-3  # gain in nats
_MISFIT = 0.1  # by which data that are no Gaussian may differ from one
_FLATTEST = 1e-3  # least variance of a feature, in parts of the largest
_UNEXPLAINED = 2.0  # a residual so many times what is expected is looked at again
_BOX_IN_DEVIATIONS = 4.0  # the box without bounds, in standard deviations about the mean
_LEAST_REACH = 1e-12  # of that box, in parts of the mean: narrower ones vanish in rounding


def decode(
    sketch: Sketch,
    n_clusters: int,
    *,
    bounds: Bounds | None = None,
    method: Literal["gaussian", "clompr"] = "gaussian",
    spread: Literal["per_cluster", "shared"] = "per_cluster",
    n_init: int | None = None,
    moments: Moments | None = None,
    random_state: RandomState = None,
) -> Decoded:
    r"""Find the clusters that a sketch tells of.

    All of this is post-processing: it sees the sketch alone, and what it returns is as private as
    the sketch.

    Parameters
    ----------
    sketch : Sketch
        Of at least one record.
    n_clusters : int
        k.
    bounds : (low, high) or None
        Box that holds the data, each a number or an array of shape (n_features,). Centers are
        looked for, and end, in it. None: wherever the sketch says that the data are.
    method : {"gaussian", "clompr"}
        ``"gaussian"``: clusters with a spread (`privclust.kmeans._decoder`). ``"clompr"``: the
        published CL-OMPR, clusters as points (`privclust.kmeans._clompr`).
    spread : {"per_cluster", "shared"}
        Whether Gaussian clusters have a variance each; not used by CL-OMPR.
    n_init : int or None
        Most starts, of which the one of least residual counts. None: 5, but no further one once the
        residual is what noise and sampling explain; 1 for CL-OMPR, as published.
    moments : Moments or None
        Where the data are, if known; None estimates it from the sketch.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        Of the starts.

    Returns
    -------
    Decoded
        Centers, weights, variances and residual.

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
    >>> from privclust.kmeans import Sketch, draw_frequencies
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-3, 1, (500, 2)), rng.normal(3, 1, (500, 2))])
    >>> sketch = Sketch.of(X, draw_frequencies(2, 50, variance=4.0, random_state=0))
    >>> found = decode(sketch, 2, random_state=0)
    >>> np.sort(found.centers[:, 0]).round()
    array([-3.,  3.])
    """
    if not isinstance(sketch, Sketch):
        raise ValueError(f"sketch must be a Sketch, got {type(sketch).__name__}")
    check_integer("n_clusters", n_clusters, minimum=1)
    check_option("method", method, METHODS)
    check_option("spread", spread, SPREADS)
    if n_init is None:
        n_init = _N_INIT if method == "gaussian" else 1
    check_integer("n_init", n_init, minimum=1)
    warn_if_not_identifiable(n_clusters, sketch.n_features, sketch.n_frequencies)
    box = None if bounds is None else checked_box(bounds, sketch.n_features)
    if moments is not None:
        _check_moments(moments, sketch.n_features)
    rng = as_generator(random_state)
    features, noise, n_samples = mean_features(sketch)
    expected = expected_residual(features, n_samples, sketch.alpha_r, noise)
    guessed = moments is None
    if guessed and (box is None or method == "gaussian"):
        of_count = count_noise(sketch)
        moments = estimate_moments(features, sketch.frequencies, noise, box, rng, of_count)
    if method == "gaussian":
        task = features, sketch.frequencies, n_clusters
        how = {"spread": spread, "n_init": n_init, "rng": rng, "noisy": noise > 0.0}
        found = decode_mixture(*task, moments, expected, **how)
        if guessed and box is not None and found.residual > _UNEXPLAINED * expected:
            # clusters far apart: no frequency is low enough to tell where the data are
            again = decode_mixture(*task, _moments_of_box(box), expected, **how)
            found = min(found, again, key=lambda run: run.residual)
    else:
        found = _decode_clompr(sketch, features, n_clusters, box, moments, expected, n_init, rng)
    return found if box is None else found.drawn_in(box)


def mean_features(sketch: Sketch):
    """Return estimates of the mean of exp(i omega'x), their noise's variance, and n.

    A noisy number of records below 1 counts as 1: there is then nothing but noise, and centers
    come out that mean nothing, which is all that can be told.
    """
    if sketch.noise is None and sketch.n_samples < 1:
        raise ValueError("a sketch of no records has no clusters")
    n_samples = max(1.0, float(sketch.n_samples))
    features = sketch.sums / (sketch.alpha_r * n_samples)
    return features, sketch.noise_variance / (sketch.alpha_r * n_samples) ** 2, n_samples


def count_noise(sketch: Sketch) -> float:
    """Return the variance of a noisy number of records in squares of it; 0 where it is known."""
    if not isinstance(sketch.n_samples, float):
        return 0.0
    return sketch.noise_variance / max(1.0, sketch.n_samples) ** 2


def warn_if_not_identifiable(n_clusters: int, n_features: int, n_frequencies: int) -> None:
    """Warn where k clusters have more unknowns than m complex features can settle."""
    if n_clusters > n_frequencies / (n_features + 1):
        warnings.warn(
            f"{n_clusters} clusters with {n_features} features each are not identifiable from a "
            f"sketch of {n_frequencies} frequencies: take at least "
            f"{n_clusters * (n_features + 1)}, better {10 * n_clusters * n_features}",
            UserWarning,
            stacklevel=3,
        )


def _check_moments(moments: Moments, n_features: int) -> None:
    """Raise a ValueError unless they can be the moments of data with so many features."""
    if not isinstance(moments, Moments):
        raise ValueError(f"moments must be Moments or None, got {type(moments).__name__}")
    for name, array in (("mean", moments.mean), ("variances", moments.variances)):
        if np.shape(array) != (n_features,) or not np.isfinite(array).all():
            raise ValueError(f"moments: {name} must be {n_features} finite numbers, got {array!r}")
    if not (moments.variances > 0).all():
        raise ValueError(f"moments: variances must be positive, got {moments.variances!r}")


def _decode_clompr(sketch, features, n_clusters, box, moments, expected, n_init, rng):
    """CL-OMPR, the best of a number of starts."""
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
    total = weights.sum()
    weights = weights / total if total > 0.0 else np.full(n_clusters, 1.0 / n_clusters)
    return Decoded(centers, weights, np.zeros(n_clusters), residual, expected)


def estimate_moments(features, frequencies, noise, box, rng, of_count=0.0) -> Moments:
    r"""Estimate where the data are from the features at low frequencies.

    Data with mean :math:`\mu` and variances :math:`v_i` have features near
    :math:`\exp(i \omega'\mu - \sum_i v_i \omega_i^2 / 2)` at frequencies too low to tell clusters
    apart. Without noise the mean and a common variance come from a least-squares fit of one
    Gaussian atom; with noise, in a box, from the posterior of `_posterior_moments`. Unless noise is
    loud, the variance of each feature comes from a nonnegative linear fit of :math:`-\log |z_j|^2`.

    Parameters
    ----------
    features : ndarray of shape (m,), complex
    frequencies : ndarray of shape (d, m)
    noise : float
        Variance of the noise on real and imaginary parts.
    box : Box or None
        Where to look.
    rng : Generator
        Of the places that the least-squares fit starts from.
    of_count : float
        Variance of the number of records that features were divided by, in squares of it.
    """
    d = len(frequencies)
    if noise > 0.0 and box is not None:
        moments, level = _posterior_moments(features, frequencies, noise, of_count, box)
        features, noise = features / level, noise / level**2
        if noise > _LOUD:  # squared moduli are mostly noise
            return moments
    power = np.abs(features) ** 2 - 2.0 * noise
    squares = np.einsum("ij,ij->j", frequencies, frequencies)
    order = np.argsort(squares, kind="stable")
    fewest = (_FEWEST + 2 * d) * max(1.0, noise / _LOUD)
    low = order[: _number_of_low(power[order], int(min(fewest, len(power))))]
    if noise > 0.0 and box is not None:
        mean, variance = moments.mean, moments.variance
    else:
        mean, variance = _fitted_gaussian(
            features[low], frequencies[:, low], squares[low], box, rng
        )
    if noise > _LOUD:
        return Moments(mean, np.full(d, variance))
    return Moments(mean, _variances(power[low], frequencies[:, low], variance, noise))


def _fitted_gaussian(features, frequencies, squares, box, rng):
    """Fit one Gaussian atom; return its mean and variance."""
    d, n_low = frequencies.shape
    unit = 1.0 / math.sqrt(max(float(squares.mean()), 1e-300))
    middle = np.zeros(d) if box is None else box.center
    reach = 3.0 * unit if box is None else box.half_widths
    shifted = features * np.exp(-1j * (middle @ frequencies))
    shifted = np.append(shifted, np.ones(n_low))  # at frequency 0 the feature is known
    scaled = np.hstack([frequencies * unit, np.zeros((d, n_low))])
    problem = (
        scaled / (2.0 * math.pi),
        np.einsum("ij,ij->j", scaled, scaled),
        np.ascontiguousarray(shifted.real),
        np.ascontiguousarray(shifted.imag),
    )
    if box is None:
        places = rng.standard_normal((_PLACES, d)) * (reach / unit)
    else:
        places = rng.uniform(-1.0, 1.0, (_PLACES, d)) * (reach / unit)
    places[0] = 0.0
    heights = (np.exp(-1j * (places @ scaled)) @ shifted).real
    widest = 1e2 if box is None else max(1e2, 1e2 * float((box.half_widths**2).max()) / unit**2)
    bounds = math.log(1e-6), math.log(widest)
    starts = [(place, 0.5) for place in places[np.argsort(-heights)[:_CLIMBS]]]
    if box is not None:  # from afar too
        spread = float((box.half_widths**2).mean()) / (3.0 * unit**2)
        starts.append((np.zeros(d), spread))
    best, least = None, math.inf
    for place, spread in starts:
        part = (math.log(max(spread, 1e-300)) - bounds[0]) / (bounds[1] - bounds[0])
        part = min(max(part, _EDGE), 1.0 - _EDGE)
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
    seen = (np.abs(scaled) < _FASTEST).all(axis=0)  # the others turn within any spread
    if not seen.any():
        return _moments_of_box(box), 1.0
    features, scaled = features[seen], scaled[:, seen]
    squares = np.einsum("ij,ij->j", scaled, scaled)
    even = (box.half_widths / unit) ** 2 / 3.0
    narrowest = _UNSEEN / max(float(squares.max()), 1.0)
    steps = 1 + math.ceil(-math.log(narrowest) / _LOG_STEP)
    precisions = 1.0 / np.maximum(even, _FLATTEST * float(even.max()))
    shifted = features * np.exp(-1j * ((box.center / unit) @ scaled))
    mean = np.zeros(len(scaled))
    evidences, gains, levels, means, variances = [], [], [], [], []
    for v in np.geomspace(1.0, narrowest, steps):
        damping = np.exp(-0.5 * v * squares)
        errors = noise + 0.5 * _OF_CLUSTERS * (1.0 - damping**2)
        evidence, gain, level, mean, covariance = _laplace(
            shifted, scaled, damping, errors, of_count, precisions, mean
        )
        evidences.append(evidence)
        gains.append(gain)
        levels.append(level)
        means.append(mean)
        variances.append(v + np.diag(covariance))
    weights = np.exp(np.array(evidences) - max(evidences))
    weights /= weights.sum()
    level = float(weights @ np.array(levels))
    if weights @ np.array(gains) < _SIGNIFICANT * (len(mean) + 2):
        return _moments_of_box(box), level
    mean = weights @ np.array(means)
    spread = weights @ (np.array(variances) + (np.array(means) - mean) ** 2)
    found = np.clip(box.center + unit * mean, box.low, box.high)
    return Moments(found, unit**2 * np.minimum(spread, 1.0 / precisions)), level


def _laplace(features, frequencies, damping, errors, of_count, precisions, mean):
    """Climb to the mode of mean and level of one Gaussian.

    Steps are those of Fisher's scoring, halved until they climb; `errors` are variances of real and
    imaginary parts. Returns the evidence, the nats that the mode explains, its level and mean, and
    the covariance of the mean.
    """
    known = 1.0 / of_count if of_count > 0.0 else 0.0
    power = float((damping**2 / errors).sum()) + known
    information = (frequencies * (damping**2 / errors)) @ frequencies.T
    prior = np.diag(precisions + _RIDGE * np.diag(information))  # few frequencies leave it singular

    def climb(mean):
        turned = features * np.exp(-1j * (mean @ frequencies)) * (damping / errors)
        match = float(turned.real.sum()) + known
        level = max(match / power, _LEAST_LEVEL) if known else 1.0
        gain = level * match - 0.5 * level**2 * power
        height = gain - 0.5 * float(precisions @ mean**2)
        return height, gain, level, level * (frequencies @ turned.imag) - precisions * mean

    height, gain, level, gradient = climb(mean)
    for _ in range(_SCORING_STEPS):
        step = np.linalg.solve(level**2 * information + prior, gradient)
        for _ in range(_HALVINGS):
            found = climb(mean + step)
            if found[0] > height:
                break
            step *= 0.5
        else:
            break
        climbed, mean = found[0] - height, mean + step
        height, gain, level, gradient = found
        if climbed < _SCORING_GAIN:
            break
    hessian = level**2 * information + prior
    evidence = height - 0.5 * float(np.linalg.slogdet(hessian)[1]) - float(np.log(errors).sum())
    evidence -= 0.5 * float((np.abs(features) ** 2 / errors).sum())
    if known:
        evidence -= 0.5 * math.log(power)
    return evidence, gain - 0.5 * known, level, mean, np.linalg.inv(hessian)


def _moments_of_box(box) -> Moments:
    """Return the moments of data spread evenly over a box."""
    least = 1e-6 * float((box.half_widths**2).max())
    return Moments(box.center, np.maximum(box.half_widths**2 / 3.0, least))


def _number_of_low(power, fewest):
    """Count the frequencies, in order of modulus, up to where features tell of clusters."""
    size = max(10, fewest // 2)
    for start in range(0, len(power), size):
        if power[start : start + size].mean() < _CLEAR:
            return min(len(power), max(fewest, start))
    return len(power)


def _variances(power, frequencies, variance, noise):
    """Fit a variance for each feature, held near a common one as far as noise leaves them open.

    Rows of the linear fit are weighted by |z|^2, which makes their errors about 2 sigma |z|; a row
    more for each feature says that its variance is the common one, give or take as much again.
    """
    d = len(frequencies)
    clear = power > _FAINT
    weight = power[clear]
    error = max(2.0 * math.sqrt(noise), _MISFIT)
    rows = np.vstack(
        [(frequencies[:, clear] ** 2).T * weight[:, None], np.eye(d) * error / variance]
    )
    aims = np.append(-np.log(np.minimum(weight, 1.0)) * weight, np.full(d, error))
    found = nnls(rows, aims)[0]
    if not found.any():  # beside numbers so much above 1 that the common variance has no weight
        return np.full(d, variance)
    return np.maximum(found, found.max() * _FLATTEST)
