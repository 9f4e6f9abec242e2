"""What no decoder of a sketch can do better: against decoders, and by its own law."""

import numpy as np
import pytest

from privclust.metrics import wasserstein_distance
from privclust.sketches import MomentSketch
from privclust.sketches.moment_sums import HarmonicSums
from privclust.subspaces import decode, least_error
from privclust.synthetic.subspaces import subspace_mixture

N, K, D, Q = 4000, 2, 4, 2


@pytest.fixture(scope="module")
def mixture():
    return subspace_mixture(N, K, D, Q, np.random.default_rng(3), noise=0.05)


def sketch_of(rows):
    return MomentSketch.from_sums(HarmonicSums(D, 4).add(rows))


def bound_at(noisy, mixture, epsilon, **more):
    sketch = noisy(sketch_of(mixture[0]), epsilon)
    return least_error(sketch, *mixture, random_state=0, **more)


@pytest.mark.system
def test_a_decoder_comes_near_it_and_not_below(mixture, noisy):
    """Root mean square of 24 fresh data sets; their chi-square has some 4 Q K degrees each."""
    _, _, truth = mixture
    rng = np.random.default_rng(0)
    squares = []
    for seed in range(24):
        labels = rng.integers(K, size=N)
        within = rng.standard_normal((N, Q))
        within /= np.linalg.norm(within, axis=1, keepdims=True)
        rows = np.einsum("ndq,nq->nd", truth[labels], within) + 0.05 * rng.standard_normal((N, D))
        sketch = noisy(sketch_of(rows), 1.0, seed=seed)
        bases = decode(sketch, K, Q, random_state=seed).subspaces
        squares.append(wasserstein_distance(bases, truth) ** 2)
    rms, bound = np.sqrt(np.mean(squares)), bound_at(noisy, mixture, 1.0)
    half = 1.96 * np.std(squares) / np.sqrt(len(squares)) / (2.0 * rms)
    assert bound - 2.0 * half < rms < 1.15 * bound + 2.0 * half


def test_it_is_in_proportion_to_noise_where_that_is_all(noisy):
    """Many rows and a small epsilon: sampling does not count; priors do not yet."""
    mixture = subspace_mixture(40000, K, D, Q, np.random.default_rng(3), noise=0.05)
    errors, sigmas = [], []
    for epsilon in (0.05, 0.1):
        errors.append(bound_at(noisy, mixture, epsilon))
        sigmas.append(noisy(sketch_of(mixture[0]), epsilon).sigma)
    assert errors[0] / errors[1] == pytest.approx(sigmas[0] / sigmas[1], rel=0.1)


def test_the_bound_does_not_depend_on_order_or_names(noisy, mixture):
    X, labels, truth = mixture
    again = bound_at(noisy, (X[::-1], 1 - labels[::-1], truth[::-1]), 3.0)
    assert again == pytest.approx(bound_at(noisy, mixture, 3.0), rel=0.02)


def test_what_does_not_fit_in_memory_is_refused(noisy):
    X, labels, truth = subspace_mixture(100, 5, 50, 9, np.random.default_rng(0))
    sketch = noisy(MomentSketch.of(X), 1.0)
    with pytest.raises(ValueError, match="too many for a bound"):
        least_error(sketch, X, labels, truth)
