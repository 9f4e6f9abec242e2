"""Mixtures that the tests of this folder share."""

import numpy as np
import pytest

from privclust.mixtures import MixtureParameters


@pytest.fixture
def random_mixture():
    """Return a function that draws a mixture with overlapping components."""

    def draw(covariance_type, n_components, n_features, seed):
        rng = np.random.default_rng(seed)
        k, d = n_components, n_features
        roots = rng.standard_normal((k, d, d))
        full = roots @ roots.transpose(0, 2, 1) / d + 0.5 * np.eye(d)
        diagonals = np.diagonal(full, axis1=1, axis2=2)
        covariances = {"spherical": diagonals[:, 0], "diag": diagonals, "full": full}
        means = 2.0 + rng.standard_normal((k, d))
        return MixtureParameters(
            rng.dirichlet(np.ones(k)), means, covariances[covariance_type], covariance_type
        )

    return draw
