"""Which clusters count as more than noise, against the laws that are stated."""

import numpy as np
import pytest

from privclust.kmeans._noise_check import detected_clusters
from privclust.privacy.hidden import noise_message

FAR_APART = np.arange(1000.0)[:, None] * 100.0


@pytest.mark.parametrize(
    ("draw", "deviation", "stated"),
    [("laplace", np.sqrt(2.0), 0.5 * np.exp(-3 * np.sqrt(2))), ("normal", 1.0, 0.00135)],
)
def test_clusters_are_detected_as_often_as_stated(draw, deviation, stated):
    """200,000 clusters each; within 5 deviations of the stated rates, of two-sided 1e-6."""
    rng = np.random.default_rng(0)
    passed = failed = 0
    for _ in range(200):
        noise = getattr(rng, draw)(size=1000)
        passed += detected_clusters(noise, deviation, FAR_APART, 1e-6).sum()
        for part in np.split(noise + 6 * deviation, 10):
            failed += (~detected_clusters(part, deviation, FAR_APART[:100], 1e-6)).sum()
    spread = 5 * np.sqrt(stated / 200_000)
    assert abs(passed / 200_000 - stated) < spread
    assert abs(failed / 200_000 - stated) < spread


def test_centers_that_noise_may_have_merged_are_not_clear():
    counts = np.full(2, 100.0)
    for distance, expected in ((0.39, False), (0.41, True)):
        centers = np.array([[0.0, 0.0], [distance, 0.0]])
        assert (detected_clusters(counts, 10.0, centers, 1.0) == expected).all()
    one = np.zeros((1, 2))
    assert detected_clusters(np.array([41.0]), 10.0, one, 1.0).tolist() == [True]
    assert detected_clusters(np.array([39.0]), 10.0, one, 1.0).tolist() == [False]


def test_a_center_that_is_noise_does_not_hide_one_beside_it():
    counts, centers = np.array([1000.0, 5.0]), np.array([[0.0], [1e-3]])
    assert detected_clusters(counts, 10.0, centers, 1.0).tolist() == [True, False]


def test_messages_name_how_many():
    assert noise_message(np.array([True, True])) == ""
    message = noise_message(np.array([False, False]))
    assert message.startswith("2 of 2 clusters cannot be distinguished from noise: ")
