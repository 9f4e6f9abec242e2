"""Release of harmonic moments: sensitivity, noise and guarantee."""

from __future__ import annotations

import math

import numpy as np

from privclust.core.validation import DELTA, Real, check_integer, check_real
from privclust.privacy import Neighbours
from privclust.privacy.measurements import Gaussian, gaussian_share
from privclust.privacy.sensitivity import Sensitivity
from privclust.sketches._harmonics import largest_move, roots_of_counts, squared_length
from privclust.sketches._measurement import SketchMeasurement
from privclust.sketches.moment_sums import HarmonicSums, rounding_margin

_WEIGHTS = {4: {2: 0.2, 4: 0.8}, 6: {2: 0.1, 4: 0.5, 6: 0.4}}
_WEIGHT_OF_COUNT = 0.02  # if the number of rows is noisy as well
_FEW_FEATURES = 6  # up to this number degree 6 improves results
MOST_FEATURES = {4: 64, 6: 10}
_PROOF = "privclust.subspaces.moments: |phi(x) - phi(y)|^2 = 2 (1 - K(x'y)), |phi(x)| = 1"


def default_degree(n_features: int) -> int:
    """Return the default degree of moments for this number of features."""
    return 6 if n_features <= _FEW_FEATURES else 4


def feature_weights(degree: int, relation: Neighbours) -> dict[int, float]:
    """Return the squared norm of the features of each degree; the values add up to 1."""
    weights = _WEIGHTS[degree]
    if relation is Neighbours.REPLACE_ONE:
        return weights
    left = 1.0 - _WEIGHT_OF_COUNT
    return {0: _WEIGHT_OF_COUNT} | {each: left * weight for each, weight in weights.items()}


def sensitivity(n_features: int, degree: int, relation: Neighbours) -> Sensitivity:
    """Return the l2 sensitivity of the sum of features to one row.

    Examples
    --------
    >>> round(sensitivity(10, 4, Neighbours.REPLACE_ONE).value, 3)
    1.43
    >>> round(sensitivity(10, 4, Neighbours.ADD_REMOVE).value, 3)
    1.0
    """
    weights = feature_weights(degree, relation)
    margin = rounding_margin(n_features, weights)
    if relation is Neighbours.ADD_REMOVE:
        return Sensitivity(1.0 + margin, "l2", relation, _PROOF)
    # both rows of a replacement are rounded
    value = largest_move(n_features, weights) + 2.0 * margin
    return Sensitivity(value, "l2", relation, _PROOF)


def check_size(n_features: int, degree: int) -> None:
    """Raise a ValueError unless moments of this degree fit in memory."""
    check_integer("n_features", n_features, minimum=1)
    if n_features < 2:
        raise ValueError(f"rows must have at least 2 features, got n_features={n_features}")
    if not isinstance(degree, int) or degree not in MOST_FEATURES:
        raise ValueError(f"degree must be 4 or 6, got {degree!r}")
    if n_features > MOST_FEATURES[degree]:
        raise ValueError(
            f"moments of degree {degree} are for at most {MOST_FEATURES[degree]} features, got "
            f"{n_features}: project the rows by a map that is known without the data"
        )


def measurement(
    n_features: int,
    degree: int,
    relation: Neighbours,
    epsilon: float,
    delta: float,
    share: float = 1.0,
) -> SketchMeasurement:
    """Return the noise of a release that spends a share of a budget."""
    check_real("epsilon", epsilon)
    DELTA("delta", delta, {})
    Real(at_most=1.0)("share", share, {})
    whole = gaussian_share(float(epsilon), float(delta))
    bound = sensitivity(n_features, degree, relation)
    return moment_measurement(Gaussian.of_share(bound, whole * math.sqrt(share)), delta)


def moment_measurement(noise: Gaussian, delta: float) -> SketchMeasurement:
    """Return the measurement of harmonic moments with this noise."""
    return SketchMeasurement(noise, "harmonic moments", delta, {"units": "features of norm 1"})


def weighted_features(sums: HarmonicSums, relation: Neighbours) -> np.ndarray:
    """Return the sum of the features of rows, in the coordinates to which noise is added."""
    d, parts = sums.n_features, []
    for degree, weight in feature_weights(sums.degree, relation).items():
        exact = sums.moments(0) if degree == 0 else sums.harmonics(degree)
        parts.append(coordinate_weights(d, degree, weight) * np.asarray(exact))
    return np.concatenate(parts)


def degrees(degree: int) -> tuple[int, ...]:
    """Return the degrees of moments that decoders use."""
    return tuple(range(2, degree + 1, 2))


def coordinate_weights(n_features: int, degree: int, weight: float) -> np.ndarray:
    """Return the factors that turn entries into coordinates of features."""
    if degree == 0:
        return np.array([math.sqrt(weight)])
    scale = math.sqrt(weight / squared_length(n_features, degree))
    return scale * roots_of_counts(n_features, degree)
