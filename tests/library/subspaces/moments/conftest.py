"""Noisy sketches of moments."""

import numpy as np
import pytest

from privclust.privacy import Neighbours
from privclust.sketches.moment_release import measurement


@pytest.fixture
def noisy():
    """A function that adds the noise of a budget to a sketch."""

    def noisy(exact, epsilon, delta=1e-5, *, neighbours="replace_one", share=1.0, seed=0):
        relation = Neighbours.of(neighbours)
        noise = measurement(exact.n_features, exact.degree, relation, epsilon, delta, share)
        return exact.with_noise(noise, np.random.default_rng(seed))

    return noisy
