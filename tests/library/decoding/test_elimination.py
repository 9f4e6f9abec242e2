"""Backward elimination of atoms, against SciPy's nonnegative least squares at every deletion."""

import math

import numpy as np
import pytest
from scipy.optimize import nnls

from privclust.decoding._elimination import eliminated


def plainly_eliminated(products, correlations, n_left, least):
    """Refit all weights at each deletion, and delete the atom of least loss."""
    kept = np.arange(len(correlations))
    while True:
        inner = products[np.ix_(kept, kept)]
        inner = inner + np.eye(len(kept)) * 1e-10 * np.trace(inner) / len(kept)
        lower = np.linalg.cholesky(inner)
        weights = nnls(lower.T, np.linalg.solve(lower, correlations[kept]))[0]
        losses = weights**2 / np.diag(np.linalg.inv(inner))
        worst = int(np.argmin(losses))
        if len(kept) == n_left or losses[worst] > least:
            return weights, kept
        kept = np.delete(kept, worst)


def gram(n_atoms, rng):
    """Return the Gram matrix of Gaussian atoms and their products with three other ones."""
    omega = 2.0 * rng.standard_normal((2, 300))
    squares = (omega**2).sum(axis=0)
    atoms = np.exp(1j * (1.5 * rng.standard_normal((n_atoms, 2)) @ omega) - 0.1 * squares)
    true = np.exp(1j * (1.5 * rng.standard_normal((3, 2)) @ omega) - 0.05 * squares)
    features = true.mean(axis=0) + 0.01 * rng.standard_normal(300)
    return np.ascontiguousarray((atoms @ atoms.conj().T).real), (
        atoms @ features.conj()
    ).real.copy()


@pytest.mark.parametrize(("n_atoms", "n_left"), [(1, 1), (8, 3), (23, 3), (60, 40)])
@pytest.mark.parametrize("seed", range(5))
def test_atoms_and_weights_are_those_of_refitting(n_atoms, n_left, seed):
    task = gram(n_atoms, np.random.default_rng(seed))
    for least in (math.inf, 0.1):
        weights, kept = eliminated(*task, n_left, least)
        plain_weights, plain_kept = plainly_eliminated(*task, n_left, least)
        np.testing.assert_array_equal(kept, plain_kept)
        np.testing.assert_allclose(weights, plain_weights, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_atoms_does_not_matter(seed):
    """Each atom comes last in turn: it goes and comes back as it does elsewhere."""
    products, correlations = gram(23, np.random.default_rng(seed))
    weights, kept = eliminated(products, correlations, 3, math.inf)
    for last in range(23):
        order = np.roll(np.arange(23), 22 - last)
        turned, places = eliminated(
            products[np.ix_(order, order)].copy(), correlations[order].copy(), 3, math.inf
        )
        back = np.argsort(order[places])
        np.testing.assert_array_equal(order[places][back], kept)
        np.testing.assert_allclose(turned[back], weights, atol=1e-9)


def test_none_is_left_where_all_lower_the_residual_little():
    weights, kept = eliminated(np.eye(3), np.array([0.5, -1.0, 1.0]), 0, 1.5)
    assert len(weights) == len(kept) == 0
    weights, kept = eliminated(np.eye(3), np.array([0.5, -1.0, 1.0]), 0, 0.3)
    np.testing.assert_array_equal(kept, [2])
    np.testing.assert_allclose(weights, 1.0, atol=1e-9)


def test_atoms_that_vanish_go_first():
    products = np.diag([0.0, 1.0, 0.0, 1.0])
    weights, kept = eliminated(products, np.array([0.0, 2.0, 0.0, 1.0]), 2, math.inf)
    np.testing.assert_array_equal(kept, [1, 3])
    np.testing.assert_allclose(weights, [2.0, 1.0], atol=1e-9)
