"""A lower bound on the error of any decoder of a noisy sketch, for known true subspaces."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.hints import RandomState
from privclust.core.validation import as_generator
from privclust.privacy.bounds import directions
from privclust.sketches._harmonics import n_moments
from privclust.sketches._moment_sketch import MomentSketch
from privclust.subspaces.moments._decoding import MOST_FEATURES
from privclust.subspaces.moments._features import factor_features, row_features
from privclust.subspaces.moments._likelihood import Likelihood
from privclust.subspaces.moments.union import Union

_MOST_DERIVATIVES = 1 << 27  # largest number of derivatives, for the memory


def least_error(
    sketch: MomentSketch,
    X: ArrayLike,
    labels: ArrayLike,
    subspaces: ArrayLike,
    *,
    random_state: RandomState = None,
) -> float:
    r"""Return the Cramér-Rao bound on the distance of subspaces decoded from a sketch.

    Noisy moments are nearly normal. Their mean is that of the true union, with the rows'
    amplitudes. Their covariance is that of the noise and, for up to 1,000 moments, of the rows'
    mean (for more it is omitted, which lowers the bound). With I the information on tangents,
    amplitudes and ratios unknown, the mean of :math:`\sum_j \|U_j U_j' - V_j V_j'\|_F^2` of an
    unbiased decoder is at least :math:`2\,tr\,I^{-1}`. The decoder's priors count as information,
    so a sketch of pure noise has a bound, too. Rows are assumed to be spread evenly within their
    subspaces and in the noise around them.

    For simulations: it uses the rows and their labels and is not private.

    Parameters
    ----------
    sketch : MomentSketch
        A noisy sketch; only its noise is used.
    X : array-like of shape (n_samples, n_features)
    labels : array-like of shape (n_samples,)
        The true subspace of each row, from 0 to k - 1; each has at least one row.
    subspaces : array-like of shape (k, n_features, q)
        The true subspaces, as orthonormal columns.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        For rows drawn for the covariance.

    Returns
    -------
    float
        The root of the bound on the mean square.

    Raises
    ------
    ValueError
        If there are too many moments and parameters for the memory.

    References
    ----------
    H. L. Van Trees, "Detection, Estimation, and Modulation Theory, Part I", Wiley 1968, Section 2.4
    (bounds with priors).

    Examples
    --------
    >>> from privclust.privacy import Neighbours
    >>> from privclust.sketches.moment_release import measurement
    >>> from privclust.synthetic.subspaces import subspace_mixture
    >>> X, labels, truth = subspace_mixture(3000, 2, 4, 2, np.random.default_rng(0))
    >>> exact, source = MomentSketch.of(X), np.random.default_rng(0)
    >>> noise = measurement(4, 6, Neighbours.REPLACE_ONE, 1.0, 1e-5)
    >>> 0.0 < least_error(exact.with_noise(noise, source), X, labels, truth, random_state=0) < 0.2
    True
    """
    bases = np.asarray(subspaces, dtype=np.float64)
    k, d, q = bases.shape
    means = sketch.means()
    n_features = sum(n_moments(d, degree) for degree in means)
    if n_features * k * (d - q) * q > _MOST_DERIVATIVES:
        raise ValueError(
            f"{n_features} moments of {k} subspaces in {d} dimensions are too many for a bound"
        )
    likelihood = Likelihood(means, sketch.deviations(), sketch.n_samples)
    union = _union_of_rows(directions(np.asarray(X)), np.asarray(labels), bases, list(means))
    if n_features <= MOST_FEATURES:
        likelihood.whiten(union, as_generator(random_state))
    by_noise, by_rows = likelihood.errors(union, union.complements)
    return math.sqrt(2.0 * float(np.trace(by_noise) + np.trace(by_rows)))


def _union_of_rows(rows, labels, bases, degrees):
    """Return the true union with the amplitudes that these rows have."""
    k, _, q = bases.shape
    amplitudes = np.array(
        [
            [
                _projected(rows[labels == j], basis @ basis.T, degree) / len(rows)
                for j, basis in enumerate(bases)
            ]
            for degree in degrees
        ]
    )
    sums = amplitudes.sum(axis=1)
    ratios = {
        degree: math.log(total / sums[0])
        for degree, total in zip(degrees[1:], sums[1:], strict=True)
    }
    return Union(bases, np.ones((k, q)), amplitudes[0], ratios)


def _projected(rows, projection, degree):
    """Return the sum of rows' moments along those of a factor."""
    of_factor = factor_features(projection, degree)
    blocks = np.array_split(rows, max(1, len(rows) * len(of_factor) >> 22))
    total = sum(float((of_factor @ row_features(block, degree)).sum()) for block in blocks)
    return total / float(of_factor @ of_factor)
