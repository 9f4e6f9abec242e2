"""How much of classes and neighbourhoods an embedding keeps."""

import numpy as np
import pytest

from privclust_papers.privatemail.structure import N_NEIGHBORS, locality, separation


def clusters(n_classes=4, n_each=50, spread=0.01):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(n_classes), n_each)
    centers = rng.normal(size=(n_classes, 3))
    return centers[labels] + spread * rng.normal(size=(len(labels), 3)), labels


def test_separated_classes_are_found_and_random_labels_not():
    rows, labels = clusters()
    assert separation(rows, labels) > 0.99
    dealt = [separation(rows, np.random.default_rng(s).permutation(labels)) for s in range(200)]
    assert np.mean(dealt) == pytest.approx(3 / 199, abs=5 * np.std(dealt) / np.sqrt(200))


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e6])
def test_scale_and_place_do_not_matter(scale):
    rows, labels = clusters()
    moved = scale * (rows + 5.0)
    assert separation(moved, labels) == pytest.approx(separation(rows, labels))
    assert locality(rows, moved, np.arange(len(rows))) > 0.99


def test_neighbours_are_kept_by_a_turn_only():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(600, 2))
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    assert locality(rows, rows @ turn, np.arange(600)) == 1.0
    kept = locality(rows, rng.normal(size=(600, 2)), np.arange(600))
    chance = N_NEIGHBORS / 599
    # shares of 600 queries, nearly independent: five standard errors
    assert kept == pytest.approx(chance, abs=5 * np.sqrt(chance / (600 * N_NEIGHBORS)))


def test_an_image_is_no_neighbour_of_its_own():
    rows = np.arange(5.0)[:, None]
    assert locality(rows, rows, np.array([0, 4])) == 1.0  # fewer than eight others
    assert np.isnan(separation(np.zeros((4, 2)), np.arange(4)))
