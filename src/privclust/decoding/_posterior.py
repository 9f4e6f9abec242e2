r"""The posterior of one Gaussian's mean and of the features' level, at given variances.

Features are :math:`a \exp(i \omega'\mu - v |\omega|^2 / 2)` plus Gaussian errors. At each v the
mode of mean and level is found, and the posterior integrated about it by Laplace's method.
`privclust.decoding._moments` uses the result.
"""

from __future__ import annotations

import math

import numpy as np

from privclust.core.compiled import REORDER, kernel
from privclust.decoding._atoms import fill_atoms, fill_phases

LEAST_LEVEL = 0.05
"""Least level of features: no noisy number of records is too large by a factor of 20."""
_CLUSTER_POWER = 0.1  # power of features by clusters at frequencies where a Gaussian has none
_INFORMATION_RIDGE = 1e-9  # relative to the information on a coordinate
# most steps of Fisher scoring; most halvings of a step; gain in nats that ends the search
_SCORING_STEPS, _SCORING_HALVINGS, _SCORING_GAIN = 30, 12, 1e-3


def posterior_modes(variances, problem, noise, of_level, precisions):
    """Find the mode at each variance, started from the one before; the first from mean 0.

    `noise` is the variance of the real part of a feature, `of_level` the prior precision of the
    level; `precisions` are those of the mean. Returns for each variance the logarithm of the
    evidence, the nats that the mode explains, its level, its mean, and the spread of a new record.
    """
    turns, squares, real, imaginary = problem
    damping = np.exp(-0.5 * np.outer(variances, squares))
    errors = noise + 0.5 * _CLUSTER_POWER * (1.0 - damping**2)
    scales = damping / errors
    powers = (damping * scales).sum(axis=1) + of_level
    omega = 2.0 * math.pi * turns
    information = (omega * (damping * scales)[:, None]) @ omega.T
    # the ridge helps if few frequencies make the information singular
    prior = precisions + _INFORMATION_RIDGE * np.diagonal(information, axis1=1, axis2=2)
    # all Hessians at v, level^2 information + prior, are diagonal along the same axes
    units = 1.0 / np.sqrt(prior)
    values, axes = np.linalg.eigh(information * units[:, :, None] * units[:, None])
    axes *= units[:, :, None]
    means = np.zeros((len(variances), len(turns)))
    heights, gains, levels = np.full((3, len(variances)), -np.inf)
    modes = heights, gains, levels, means
    _climb(problem, scales, powers, of_level, precisions, values, axes, modes)
    curvatures = 1.0 + levels[:, None] ** 2 * values
    evidences = heights - 0.5 * (np.log(curvatures).sum(axis=1) + np.log(prior).sum(axis=1))
    evidences -= (np.log(errors) + 0.5 * (real**2 + imaginary**2) / errors).sum(axis=1)
    if of_level > 0.0:
        # Laplace's method for the level
        evidences -= 0.5 * np.log(powers)
    spreads = variances[:, None] + (axes**2 / curvatures[:, None]).sum(axis=2)
    # the prior of the level gains of_level / 2 at 1, without any features
    return evidences, gains - 0.5 * of_level, levels, means, spreads


@kernel(fastmath=REORDER)
def _climb(problem, scales, powers, of_level, precisions, values, axes, modes):
    """Write the modes: heights (initially -inf), nats, levels and means.

    Steps are those of Fisher scoring, halved until the height grows. Along `axes` the Hessian is 1
    (the prior) plus level^2 times `values`.
    """
    heights, gains, levels, means = modes
    turns, _, real, imaginary = problem
    n_features, size = turns.shape
    cosines, sines, phases = np.empty(size), np.empty(size), np.empty(size)
    mean, step = np.zeros(n_features), np.zeros(n_features)
    place, gradient = np.zeros(n_features), np.zeros(n_features)
    for i in range(len(scales)):
        step[:] = 0.0
        n_steps, n_halvings = 0, 0
        while n_steps <= _SCORING_STEPS and n_halvings < _SCORING_HALVINGS:
            for k in range(n_features):
                place[k] = mean[k] + step[k]
            fill_phases(place, turns, phases)
            fill_atoms(phases, scales[i], cosines, sines)
            match, height = of_level, 0.0
            for j in range(size):
                match += real[j] * cosines[j] + imaginary[j] * sines[j]
            for j in range(size):
                sines[j] = imaginary[j] * cosines[j] - real[j] * sines[j]
            # the best level at this mean has a closed form
            level = max(match / powers[i], LEAST_LEVEL) if of_level > 0.0 else 1.0
            gain = level * match - 0.5 * level**2 * powers[i]
            height = gain
            for k in range(n_features):
                height -= 0.5 * precisions[k] * place[k] ** 2
            if not height > heights[i]:
                n_halvings += 1
                for k in range(n_features):
                    step[k] *= 0.5
                continue
            climbed = height - heights[i]
            heights[i], gains[i], levels[i] = height, gain, level
            for k in range(n_features):
                mean[k], slope = place[k], 0.0
                for j in range(size):
                    slope += turns[k, j] * sines[j]
                gradient[k] = level * 2.0 * math.pi * slope - precisions[k] * mean[k]
            if climbed < _SCORING_GAIN:
                break
            n_steps, n_halvings = n_steps + 1, 0
            step[:] = 0.0
            for other in range(n_features):
                along = 0.0
                for k in range(n_features):
                    along += axes[i, k, other] * gradient[k]
                along /= 1.0 + level**2 * values[i, other]
                for k in range(n_features):
                    step[k] += axes[i, k, other] * along
        for k in range(n_features):
            means[i, k] = mean[k]
