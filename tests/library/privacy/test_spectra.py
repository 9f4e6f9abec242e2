"""How far noise reaches."""

import numpy as np
import pytest

from privclust.privacy.measurements import second_moment_noise
from privclust.privacy.spectra import spectral_bound


@pytest.mark.parametrize("d", [1, 2, 5, 60])
@pytest.mark.parametrize("mod_sulq", [False, True])
def test_noise_seldom_passes_the_bound_and_comes_near_it(d, mod_sulq):
    """Of 2,000 matrices at most 1.3 are expected to; 8 have probability 2e-4."""
    noise = second_moment_noise(d, "add_remove", 1.0, 1e-6, mod_sulq=mod_sulq)
    n = 2000 if d < 60 else 100
    values = np.linalg.eigvalsh(noise.release(np.zeros((n, d, d)), np.random.default_rng(d)))
    norms, bound = np.abs(values).max(axis=1), spectral_bound(noise, d)
    assert (norms > bound).sum() < 8
    assert norms.max() > 0.4 * bound
    gaps = np.diff(np.column_stack([values, np.zeros(n)]) if d == 1 else values, axis=1)
    assert (np.abs(gaps) > bound).sum() < 8
