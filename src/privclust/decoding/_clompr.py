r"""CL-OMPR, the published decoder: a sketch as a sum of Dirac masses, found greedily.

Features are :math:`z_j \approx \sum_k \alpha_k e^{i \omega_j' c_k}`. There are 2 k rounds of

1. a new center: the largest :math:`\Re \langle A \delta_c, r \rangle` over c in the box, by
   gradient ascent from a random point, r being the residual;
2. from round k + 1 on, k of k + 1 centers are kept: those of largest weight in a nonnegative least
   squares fit (hard thresholding, the "replacement" of OMPR);
3. nonnegative least squares for the weights;
4. gradient descent on centers (in the box) and weights together.

Source: N. Keriven, N. Tremblay, Y. Traonmilin and R. Gribonval, "Compressive K-means", ICASSP 2017,
Algorithm 1; the compressive k-means paper uses it throughout. It leaves the optimiser (here
L-BFGS-B) and its number of steps open.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize, nnls

from privclust.decoding._atoms import (
    correlation_and_gradient,
    in_single_precision,
    least_squares_problem,
    mixture_atoms,
    residual_and_gradient,
)

_ASCENT_STEPS, _DESCENT_STEPS, _LAST_STEPS = 100, 200, 1000  # most steps of the optimiser


def decode_diracs(features, frequencies, n_clusters, low, high, rng):
    """Decode mean features (m,) at frequencies (d, m) by CL-OMPR, centers from low to high.

    Returns centers (k, d), weights (k,) and the squared residual of features of modulus 1.
    """
    # the origin in the middle of the box, and its largest half-width as unit
    middle, unit = 0.5 * (low + high), 0.5 * float((high - low).max())
    shifted = features * np.exp(-1j * (middle @ frequencies))
    problem = least_squares_problem(shifted, frequencies * unit)
    rough = in_single_precision(problem)
    reach = np.maximum((high - low) / (2.0 * unit), 1e-12)
    centers = np.empty((0, len(low)))
    residual = problem[2:]
    for turn in range(2 * n_clusters):
        start = rng.uniform(-reach, reach)
        centers = np.vstack([centers, _ascend(start, residual, problem, reach)])
        if len(centers) > n_clusters:
            # stable: many weights may be 0; sorted: centers keep the order in which they were found
            order = np.argsort(_weights(centers, problem), kind="stable")
            centers = centers[np.sort(order[-n_clusters:])]
        weights = _weights(centers, problem)
        how = (rough, _DESCENT_STEPS) if turn < 2 * n_clusters - 1 else (problem, _LAST_STEPS)
        weights, centers, value = _descend(weights, centers, *how, reach)
        cosines, sines = _atoms(centers, problem)
        residual = problem[2] - weights @ cosines, problem[3] - weights @ sines
    return middle + unit * centers, weights, value


def _atoms(centers, problem):
    return mixture_atoms(problem[0], problem[1], centers, np.zeros(len(centers)))


def _weights(centers, problem):
    """Fit weights by nonnegative least squares on the Gram matrix; atoms have equal norms."""
    cosines, sines = _atoms(centers, problem)
    gram = cosines @ cosines.T + sines @ sines.T
    # a ridge, since centers may coincide
    gram += np.eye(len(gram)) * (1e-10 * np.trace(gram) / len(gram))
    lower = np.linalg.cholesky(gram)
    right = cosines @ problem[2] + sines @ problem[3]
    # |L'w - L^-1 b| has the normal equations G w = b, with G = L L'
    return nnls(lower.T, np.linalg.solve(lower, right))[0]


def _ascend(start, residual, problem, reach):
    """Climb to the center of largest correlation with the residual."""
    scale = 1.0 / max(np.abs(residual[0]).sum() + np.abs(residual[1]).sum(), 1e-300)

    def loss(center):
        gradient = np.empty(center.size)
        value = correlation_and_gradient(center, problem[0], *residual, gradient)
        return -value * scale, -scale * gradient

    return _minimised(loss, start, -reach, reach, _ASCENT_STEPS).x


def _descend(weights, centers, problem, steps, reach):
    """Fit weights and centers together, weights nonnegative and centers in the box."""
    k, d = centers.shape
    no_spread, by_spread = np.zeros(k), np.empty(k)
    scale = 1.0 / max(float(problem[2] @ problem[2] + problem[3] @ problem[3]), 1e-300)

    def loss(point):
        gradient = np.empty(point.size)
        gradients = gradient[:k], gradient[k:].reshape(k, d), by_spread
        centers = point[k:].reshape(k, d)
        value = residual_and_gradient(point[:k], centers, no_spread, True, problem, gradients)
        return value * scale, scale * gradient

    low = np.concatenate([np.zeros(k), np.tile(-reach, k)])
    high = np.concatenate([np.full(k, np.inf), np.tile(reach, k)])
    start = np.concatenate([weights, centers.ravel()])
    best = _minimised(loss, start, low, high, steps)
    return best.x[:k], best.x[k:].reshape(k, d), float(best.fun) / scale


def _minimised(loss, start, low, high, steps):
    bounds = np.stack([low, high], axis=1)
    return minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps}
    )
