"""Modes of one Gaussian's mean, against the same climb in plain NumPy."""

import math

import numpy as np
import pytest

from privclust.decoding._posterior import posterior_modes


def plain_mode(features, frequencies, damping, errors, of_level, precisions, mean):
    """Return evidence, nats, level, mean and the covariance of the mean, as they are defined."""
    power = float((damping**2 / errors).sum()) + of_level
    information = (frequencies * (damping**2 / errors)) @ frequencies.T
    prior = np.diag(precisions + 1e-9 * np.diag(information))

    def climb(mean):
        turned = features * np.exp(-1j * (mean @ frequencies)) * (damping / errors)
        match = float(turned.real.sum()) + of_level
        level = max(match / power, 0.05) if of_level else 1.0
        gain = level * match - 0.5 * level**2 * power
        height = gain - 0.5 * float(precisions @ mean**2)
        return height, gain, level, level * (frequencies @ turned.imag) - precisions * mean

    height, gain, level, gradient = climb(mean)
    for _ in range(30):
        step = np.linalg.solve(level**2 * information + prior, gradient)
        for _ in range(12):
            higher = climb(mean + step)
            if higher[0] > height:
                break
            step *= 0.5
        else:
            break
        climbed, mean = higher[0] - height, mean + step
        height, gain, level, gradient = higher
        if climbed < 1e-3:
            break
    hessian = level**2 * information + prior
    evidence = height - 0.5 * float(np.linalg.slogdet(hessian)[1]) - float(np.log(errors).sum())
    evidence -= 0.5 * float((np.abs(features) ** 2 / errors).sum())
    if of_level:
        evidence -= 0.5 * math.log(power)
    return evidence, gain - 0.5 * of_level, level, mean, np.linalg.inv(hessian)


@pytest.mark.parametrize("d", [1, 2, 8, 30])
@pytest.mark.parametrize("sigma", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("of_level", [0.0, 1e3])
def test_modes_are_those_of_the_plain_climb(
    d, sigma, of_level, problem_of, frequencies_of_all_scales
):
    rng = np.random.default_rng(d)
    omega = frequencies_of_all_scales(d, rng)
    X = rng.uniform(-0.5, 0.5, (3, d))[rng.integers(3, size=500)]
    X += 0.1 * rng.standard_normal(X.shape)
    noise = sigma * (rng.standard_normal(omega.shape[1]) + 1j * rng.standard_normal(omega.shape[1]))
    features = 0.98 * np.exp(1j * (X @ omega)).mean(axis=0) + noise
    precisions, variances = np.full(d, 3.0), np.geomspace(1.0, 1e-4, 20)
    problem = problem_of(omega, features)
    modes = posterior_modes(variances, problem, sigma**2, of_level, precisions)
    mean = np.zeros(d)
    for v, evidence, gain, level, place, spread in zip(variances, *modes, strict=True):
        damping = np.exp(-0.5 * v * (omega**2).sum(axis=0))
        errors = sigma**2 + 0.05 * (1.0 - damping**2)
        *plain, mean, covariance = plain_mode(
            features, omega, damping, errors, of_level, precisions, mean
        )
        np.testing.assert_allclose((evidence, gain, level), plain, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(place, mean, atol=1e-6)
        np.testing.assert_allclose(spread, v + np.diag(covariance), rtol=1e-6)
