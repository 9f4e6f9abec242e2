"""Mironov's attack on the low-order bits of Laplace noise, CCS 2012.

The textbook draws u from the multiples of 2^-53 and returns ``value - sign * scale * log(u)``. Not
every double is such a sum, and which ones are depends on the value: an output that cannot come from
one of two values excludes it.
"""

import numpy as np
import pytest

from privclust.privacy.noise import add_gaussian, add_laplace, noise_source
from privclust_audit.black_box import audit_mechanism
from privclust_audit.faults import batched

GRID = 2.0**53
NEAR = np.arange(-6, 7)  # multiples of 2^-53 around the one that real numbers would give
CERTAIN = 1 - 1e-6


def textbook(data, rng, n):
    """Laplace noise of scale 1 by inversion in floating point."""
    u = rng.integers(1, 2**53, size=n, endpoint=True) / GRID
    return data + rng.choice([-1.0, 1.0], size=n) * np.log(u)


def numpy_laplace(data, rng, n):
    return add_laplace(np.full(n, data), 1.0, rng)


def system_laplace(data, rng, n):
    return add_laplace(np.full(n, data), 1.0, noise_source(None))


def reachable(outputs, value):
    """Whether the textbook sampler can return an output in (-3, 4) for this value, 0 or 1."""
    noise = outputs - value
    k = np.round(np.exp(-np.abs(noise)) * GRID)[:, None] + NEAR
    sums = value + np.sign(noise)[:, None] * -np.log(np.clip(k, 1, GRID) / GRID)
    return (sums == outputs[:, None]).any(axis=1)


def excludes(output):
    """1 where an output excludes the value 1, -1 where it excludes 0, 0 where neither or both."""
    return excludes.many(np.asarray(output)[None])[0]


def _excludes_many(outputs):
    scores = reachable(outputs, 0.0).astype(float) - reachable(outputs, 1.0)
    return np.where((outputs > -3) & (outputs < 4), scores, 0.0)


excludes.many = _excludes_many


def test_the_textbook_sampler_reaches_every_output():
    """Else the attack would exclude wrongly; and many are not reachable from the other value."""
    for value in (0.0, 1.0):
        outputs = textbook(value, np.random.default_rng(0), 20_000)
        outputs = outputs[(outputs > -3) & (outputs < 4)]
        assert reachable(outputs, value).all()
        assert not reachable(outputs, 1 - value).all()


def test_the_attack_convicts_the_textbook_sampler():
    result = audit_mechanism(
        batched(textbook), 0.0, 1.0, 1.0, 0.0, 20_000, excludes, 0, confidence=CERTAIN
    )
    assert result.verdict == "violated"
    assert result.epsilon_event.other_hits == 0
    assert result.epsilon_lower_bound > 4


def test_the_attack_does_not_convict_the_sampler_of_releases():
    """Unseeded: fails by chance with a probability below 10^-6."""
    pytest.importorskip("opendp")
    result = audit_mechanism(
        batched(system_laplace), 0.0, 1.0, 1.0, 0.0, 20_000, excludes, 0, confidence=CERTAIN
    )
    assert result.verdict != "violated"


def fine(output):
    """1 where an output near 0 is no multiple of 2^-53, as ``1 + noise`` in floating point is."""
    return fine.many(np.asarray(output)[None])[0]


fine.many = lambda outputs: (np.abs(outputs) < 0.125) & (outputs * GRID % 1 != 0)

# scale 1, change 1: Laplace noise is 1-private, normal noise (2, 0.021)-private
SAMPLERS = {"laplace": (add_laplace, 1.0, 0.0), "normal": (add_gaussian, 2.0, 0.03)}


def audit_of_fine_bits(name, source):
    add, epsilon, delta = SAMPLERS[name]
    mechanism = batched(lambda data, rng, n: add(np.full(n, data), 1.0, source or rng))
    return audit_mechanism(mechanism, 0.0, 1.0, epsilon, delta, 8000, fine, 0, confidence=CERTAIN)


@pytest.mark.parametrize("name", SAMPLERS)
def test_lost_low_order_bits_convict_floating_point_noise(name):
    result = audit_of_fine_bits(name, None)
    assert result.verdict == "violated"
    assert result.epsilon_event.other_hits == 0


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_samplers_of_releases_lose_no_low_order_bits(name):
    """Unseeded: fails by chance with a probability below 10^-6."""
    pytest.importorskip("opendp")
    result = audit_of_fine_bits(name, noise_source(None))
    assert result.verdict != "violated"
    event = result.epsilon_event
    assert min(event.hits, event.other_hits) > 100  # the event happens on either value
