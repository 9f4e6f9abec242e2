r"""The Gibbs chain of subspace clustering in the plane without Monte Carlo.

For d = 2, q = 1, k = 2 and few rows the chain on label vectors is a matrix. A sweep draws subspaces
given labels z, two independent angles of density :math:`\exp(\epsilon/2 \, u' A_l u)`, eq. (12),
then labels z' given the subspaces, eq. (11). Integrals over angles are sums over a uniform grid,
which converge faster than any power of its spacing for these periodic analytic functions.

After a sweep the subspaces are an exact draw given the labels, as under the target (10). The total
variation distance of a state (z, S) from the target is therefore that of its labels.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ive, logsumexp, softmax

from privclust.core.grassmann import residuals

_BLOCK_PAIRS = 1 << 14  # pairs of angles per block


def exact_chain(X: ArrayLike, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the transition matrix of the chain on labels and its stationary distribution.

    Both are computed independently: the matrix by quadrature over pairs of angles, the distribution
    from eq. (10) of Y. Wang, Y.-X. Wang and A. Singh, "Differentially private subspace clustering",
    NIPS 2015, with the subspaces integrated out, :math:`p(z) \propto \prod_l e^{\epsilon\, tr(A_l)
    / 4} I_0(\epsilon (\lambda_1 - \lambda_2)/4)` with the eigenvalues of :math:`A_l = \sum_{z_i =
    l} x_i x_i'`.

    `X` has a few rows in the plane, of norms at most 1. The matrix (2^n, 2^n) has the probability
    of labels z' (column) a sweep after z (row); bit i of an index is the label of row i.
    """
    X = np.asarray(X, dtype=np.float64)
    exponents = _exponents(X, epsilon)
    weights = _angle_weights(exponents)
    n_states = 2 ** len(X)
    transition = np.zeros((n_states, n_states))
    for pairs in _pairs(exponents):
        emission = _label_probabilities(exponents, pairs)
        joint = weights[0][:, pairs[0]] * weights[1][:, pairs[1]]
        transition += joint @ emission
    return transition, _stationary(X, epsilon)


def total_variation_curve(
    X: ArrayLike,
    epsilon: float,
    n_sweeps: int,
    init: Literal["random"] | ArrayLike = "random",
    *,
    is_ordered: bool = True,
) -> np.ndarray:
    r"""Return the distance of the chain's state from its target after sweeps 1, 2, ... (n_sweeps,).

    This is the total variation distance of labels and subspaces. If it is at most g for every
    possible data set, the chain is :math:`(\epsilon, (1 + e^\epsilon) g)`-differentially private.

    The chain starts at `init`: two uniform subspaces, or given bases, as in
    `GibbsSubspaceClustering`. If not `is_ordered`, given bases are in random order; since chain and
    target are symmetric in the labels, this ignores the order of subspaces.
    """
    X = np.asarray(X, dtype=np.float64)
    transition, stationary = exact_chain(X, epsilon)
    law = _first_labels(X, epsilon, init)
    if not is_ordered:
        law = 0.5 * (law + law[::-1])  # exchanged labels: all bits of the index flipped
    distances = np.empty(n_sweeps)
    for t in range(n_sweeps):
        distances[t] = 0.5 * np.abs(law - stationary).sum()
        law = law @ transition
    return distances


def labels_of_states(n_samples: int) -> np.ndarray:
    """Return the labels of all states, shape (2^n_samples, n_samples)."""
    return (np.arange(2**n_samples)[:, None] >> np.arange(n_samples)) & 1


def _first_labels(X, epsilon, init):
    if isinstance(init, str):
        exponents = _exponents(X, epsilon)
        parts = [_label_probabilities(exponents, pairs).sum(axis=0) for pairs in _pairs(exponents)]
        # Two independent uniform lines: every pair of angles has the same probability.
        return np.sum(parts, axis=0) / exponents.shape[1] ** 2
    # Eq. (11): labels given subspaces. Residuals are squared norms less (u' x)^2.
    chances = softmax(-0.5 * epsilon * residuals(X, np.asarray(init, dtype=np.float64)), axis=1)
    return chances[np.arange(len(X)), labels_of_states(len(X))].prod(axis=1)


def _exponents(X, epsilon):
    """Return epsilon / 2 (u' x)^2, (n_samples, n_angles), at angles over half a turn."""
    n_angles = math.ceil(16 + 10 * math.sqrt(epsilon * len(X)))  # only rounding errors remain
    angles = np.pi * np.arange(n_angles) / n_angles
    return 0.5 * epsilon * (X @ np.stack([np.cos(angles), np.sin(angles)])) ** 2


def _angle_weights(exponents):
    """Return the probability of each angle given each label vector, (2, 2^n, n_angles)."""
    labels = labels_of_states(len(exponents))
    logs = np.stack([1 - labels, labels]) @ exponents
    return np.exp(logs - logsumexp(logs, axis=2, keepdims=True))


def _pairs(exponents):
    n_angles = exponents.shape[1]
    for start in range(0, n_angles**2, _BLOCK_PAIRS):
        yield np.divmod(np.arange(start, min(start + _BLOCK_PAIRS, n_angles**2)), n_angles)


def _label_probabilities(exponents, pairs):
    """Return products over rows of label probabilities, (n_pairs, 2^n)."""
    products = np.ones((len(pairs[0]), 1))
    # the next row is the next higher bit
    for difference in exponents[:, pairs[1]] - exponents[:, pairs[0]]:
        products = np.hstack([products * expit(s * difference)[:, None] for s in (-1.0, 1.0)])
    return products


def _stationary(X, epsilon):
    """Return the distribution of labels under eq. (10), by Bessel functions."""
    labels = labels_of_states(len(X))
    logs = np.zeros(len(labels))
    for mine in (1 - labels, labels):
        moments = np.einsum("si,ia,ib->sab", mine, X, X)
        values = np.linalg.eigvalsh(moments)
        rho = 0.25 * epsilon * (values[:, 1] - values[:, 0])
        # `ive` is the Bessel function times e^-rho, which does not overflow.
        logs += 0.25 * epsilon * values.sum(axis=1) + np.log(ive(0, rho)) + rho
    return np.exp(logs - logsumexp(logs))
