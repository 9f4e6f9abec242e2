"""The search in single precision finds clusters as often as in double precision."""

import numpy as np
import pytest
from scipy.stats import binomtest

from privclust.decoding import _mixture_fit, decode
from privclust.sketches import Sketch, draw_frequencies


def both(monkeypatch, decoded):
    """What a decode gives in single precision, and where all of it is in double precision."""
    single = decoded()
    monkeypatch.setattr(_mixture_fit, "in_single_precision", lambda problem: problem)
    double = decoded()
    monkeypatch.undo()
    return single, double


def sketched(rng, centers, deviation, m, seed):
    """The sketch of 2,000 rows about centers."""
    labels = rng.integers(len(centers), size=2_000)
    X = centers[labels] + deviation * rng.standard_normal((2_000, centers.shape[1]))
    omega = draw_frequencies(centers.shape[1], m, variance=4 * deviation**2, random_state=seed)
    return Sketch.of(X, omega)


@pytest.mark.system
def test_narrow_clusters_are_found_as_often(monkeypatch):
    """A few of ten are missed; that one misses more by chance alone has a probability of 1e-4."""
    n_found = np.zeros((40, 2), dtype=bool)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        centers = rng.uniform(-0.8, 0.8, (2, 1))
        sketch = sketched(rng, centers, 0.003, 300, seed)
        how = {"bounds": (-1.0, 1.0), "random_state": seed}
        for i, run in enumerate(both(monkeypatch, lambda s=sketch, how=how: decode(s, 2, **how))):
            n_found[seed, i] = (np.abs(run.centers - centers.T).min(axis=0) < 0.01).all()
    single, double = n_found.T
    lost, gained = int((double & ~single).sum()), int((single & ~double).sum())
    assert double.sum() > 20
    assert lost + gained == 0 or binomtest(lost, lost + gained, alternative="greater").pvalue > 1e-4
