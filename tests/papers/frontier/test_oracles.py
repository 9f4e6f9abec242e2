"""Oracles of the frontier: the noise that their rounds add, by its formula."""

import numpy as np
import pytest

from privclust.core.lloyd import inertia, nearest_center
from privclust.kmeans.last_rounds import radius_of_cluster, round_noise
from privclust_papers.frontier.oracles import CentersKnown, LabelsKnown, best_centers

HOW = {"epsilon": 1.0, "delta": 1e-6, "bounds": (-1.0, 1.0)}


@pytest.fixture(scope="module")
def clusters():
    rng = np.random.default_rng(5)
    means = rng.uniform(-0.8, 0.8, (8, 6))
    return means[rng.integers(8, size=20_000)] + 0.05 * rng.standard_normal((20_000, 6))


def test_known_centers_lose_what_the_noise_of_one_round_costs(clusters):
    best = best_centers(clusters, 8)
    labels, least = nearest_center(clusters, best), inertia(clusters, best)
    radius = radius_of_cluster(least / clusters.size, 6)
    sigma = round_noise("add_remove", HOW["epsilon"], HOW["delta"], 1.0).sigma
    expected = 6 * ((sigma * radius / np.bincount(labels)) ** 2 * np.bincount(labels)).sum()
    found = [
        inertia(clusters, CentersKnown(8, **HOW, random_state=seed).fit(clusters).cluster_centers_)
        for seed in range(100)
    ]
    # 100 sums of 48 squares of normal numbers: a standard error of 2 %, and clipping moves the
    # centers by less than the noise does
    assert np.mean(found) - least == pytest.approx(expected, rel=0.1)


def test_known_labels_lose_more_than_known_centers(clusters):
    least = inertia(clusters, best_centers(clusters, 8))
    losses = []
    for epsilon in (0.25, 4.0):
        for oracle in (LabelsKnown, CentersKnown):
            fits = [oracle(8, **HOW | {"epsilon": epsilon}, random_state=seed) for seed in range(5)]
            found = [inertia(clusters, fit.fit(clusters).cluster_centers_) for fit in fits]
            losses.append(np.mean(found) / least - 1.0)
    assert losses[0] > losses[1] > losses[2] > losses[3] > 0.0
