"""What the tests of decoding share: least squares problems, frequencies of all scales."""

import numpy as np
import pytest

from privclust.decoding._atoms import least_squares_problem


@pytest.fixture
def problem_of():
    """What kernels take: frequencies in turns, squared moduli, parts of the features."""

    return lambda frequencies, features: least_squares_problem(features, frequencies)


@pytest.fixture
def frequencies_of_all_scales():
    """Frequencies (d, m) as of a pilot for rows within -1 and 1."""

    def drawn(d, rng):
        directions = rng.standard_normal((d, 64 + 4 * d))
        directions /= np.linalg.norm(directions, axis=0)
        return directions * np.logspace(-0.7, 2.3, 64 + 4 * d)

    return drawn
