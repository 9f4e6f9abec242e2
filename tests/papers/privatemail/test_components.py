"""Principal components as features."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from privclust_papers.privatemail.components import pca_features


@pytest.mark.parametrize("shape", [(40, 7), (7, 40)])
def test_components_are_those_of_a_singular_value_decomposition(shape):
    X = np.random.default_rng(0).standard_normal(shape) * np.linspace(1, 3, shape[1]) + 5
    found = pca_features(X, 5)
    expected = PCA(5, svd_solver="full").fit_transform(X)
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, expected * signs, atol=1e-8)
    np.testing.assert_array_equal(found, pca_features(X, 5))
    assert (np.diff(found.var(axis=0)) < 0).all()


def test_components_that_are_not_there_are_zero():
    X = np.outer([1.0, 2.0, 3.0], np.ones(6))
    found = pca_features(X, 3)
    np.testing.assert_allclose(np.abs(found[:, 0]), np.sqrt(6) * np.array([1, 0, 1]), atol=1e-12)
    np.testing.assert_allclose(found[:, 1:], 0, atol=1e-6)
