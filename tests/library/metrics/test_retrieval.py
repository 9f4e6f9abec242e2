import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from privclust.metrics.retrieval import hit_ranks, recall_ceiling


def brute_force(queries, gallery, y_queries, y_gallery, own):
    """Sort all distances, stably, and look for the class."""
    ranks = []
    for i, query in enumerate(queries):
        order = np.argsort(((gallery - query) ** 2).sum(axis=1), kind="stable")
        order = order[order != own[i]]
        hits = np.flatnonzero(y_gallery[order] == y_queries[i])
        ranks.append(hits[0] if hits.size else len(gallery))
    return np.array(ranks)


@pytest.mark.parametrize("d", [1, 2, 8, 9, 40])
@pytest.mark.parametrize("n", [7, 300])
def test_ranks_are_those_of_sorting(n, d):
    rng = np.random.default_rng(d)
    X, y = rng.normal(size=(n, d)), rng.integers(5, size=n)
    y[3] = 77  # a class of one image: never a hit
    own = np.arange(n)
    found = hit_ranks(X, X, y, y, own=own)
    np.testing.assert_array_equal(found, brute_force(X, X, y, y, own))
    assert found[3] == n
    others = rng.normal(size=(11, d))
    labels = rng.integers(6, size=11)
    np.testing.assert_array_equal(
        hit_ranks(others, X, labels, y), brute_force(others, X, labels, y, np.full(11, -1))
    )


def test_ties_go_in_order_of_the_gallery():
    """An embedding that collapsed finds the first rows, not the right ones."""
    X, y = np.zeros((6, 2)), np.array([0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(hit_ranks(X, X, y, y, own=np.arange(6)), [0, 0, 2, 2, 4, 4])


def test_a_hit_whose_distance_overflows_is_the_hit():
    far, labels = 1e200, [1, 2, 5, 5]
    gallery = [[0.0], [far], [-far], [-far]]
    assert hit_ranks([[far]], gallery, [5], labels).tolist() == [2]
    assert hit_ranks([[far]], gallery, [5], labels, own=[2]).tolist() == [2]
    assert hit_ranks([[far]], gallery, [6], labels).tolist() == [4]


def test_tiny_embeddings_far_from_the_origin_keep_their_order():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 1000, size=(200, 2)).astype(float), rng.integers(4, size=200)
    moved = X * 2.0**-40 + 1.0  # exact in float64
    np.testing.assert_array_equal(hit_ranks(moved, moved, y, y), hit_ranks(X, X, y, y))


def test_recall_of_random_rows_is_chance():
    """Balanced classes without information; false-alarm rate 1e-4 (4 standard errors)."""
    rng = np.random.default_rng(0)
    n, n_classes, k = 2000, 20, 8
    X, y = rng.normal(size=(n, 2)), np.arange(n) % n_classes
    chance = 1 - math.prod((n - n // n_classes - i) / (n - 1 - i) for i in range(k))
    found = (hit_ranks(X, X, y, y, own=np.arange(n)) < k).mean()
    # hits of neighbouring queries go together: at most k + 1 queries share a neighbourhood
    assert abs(found - chance) < 4 * math.sqrt((k + 1) * chance * (1 - chance) / n)


@pytest.mark.parametrize("k", [1, 2, 8])
@pytest.mark.parametrize(("epsilon", "n_classes"), [(0.1, 9), (1.0, 10), (3.0, 100)])
def test_subset_selection_attains_the_ceiling(epsilon, n_classes, k):
    odds = k * math.exp(epsilon)
    assert recall_ceiling(epsilon, 0.0, k, n_classes) == pytest.approx(
        odds / (odds + n_classes - k)
    )


@pytest.mark.parametrize(("n_classes", "k"), [(3, 1), (4, 2), (5, 3)])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0])
def test_the_ceiling_is_the_optimum_of_private_choices(n_classes, k, epsilon):
    """By linear programming over the probabilities of each set, for each class of the query."""
    sets = list(itertools.combinations(range(n_classes), k))
    n = n_classes * len(sets)
    gain = np.array([[-float(c in chosen) for chosen in sets] for c in range(n_classes)]).ravel()
    limits = []
    for one, other in itertools.permutations(range(n_classes), 2):
        for s in range(len(sets)):
            row = np.zeros(n)
            row[one * len(sets) + s], row[other * len(sets) + s] = 1.0, -math.exp(epsilon)
            limits.append(row)
    sums = np.kron(np.eye(n_classes), np.ones(len(sets)))
    found = linprog(gain, np.array(limits), np.zeros(len(limits)), sums, np.ones(n_classes))
    assert -found.fun / n_classes == pytest.approx(recall_ceiling(epsilon, 0.0, k, n_classes))


@pytest.mark.parametrize("k", [1, 2, 8])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_no_mechanism_passes_the_ceiling(k, delta):
    """The best sets of k labels by (epsilon, 0) sampling, and a part delta that tells the truth."""
    C = 30
    for epsilon in (0.0, 0.5, 2.0, 5.0, 800.0):
        subset = k / (k + (C - k) * math.exp(-epsilon))
        ceiling = recall_ceiling(epsilon, delta, k, C)
        assert (1 - delta) * subset + delta <= ceiling * (1 + 1e-12) <= 1 + 1e-12
        if epsilon < 100:
            assert ceiling <= math.exp(epsilon) * k / C + delta + 1e-12
    assert recall_ceiling(0.0, 0.0, k, C) == pytest.approx(k / C)
    assert recall_ceiling(0.0, 0.0, C, C) == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y: hit_ranks(X, X[:, :1], y, y), "gallery must have rows, of 2 features"),
        (lambda X, y: hit_ranks(X, X[:0], y, y[:0]), "gallery must have rows"),
        (lambda X, y: hit_ranks(X * np.nan, X, y, y), "queries must be a matrix of finite"),
        (lambda X, y: hit_ranks(X, X, y[:2], y), "y_queries must be 4 integers"),
        (lambda X, y: hit_ranks(X, X, y, y * 0.5), "y_gallery must be 4 integers"),
        (lambda X, y: hit_ranks(X, X, y, y, own=[0, 1, 2, 4]), "own must hold rows"),
        (lambda X, y: recall_ceiling(-1.0, 0.0, 1, 2), "epsilon must be"),
        (lambda X, y: recall_ceiling(1.0, 1.0, 1, 2), "delta must lie"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.arange(8.0).reshape(4, 2), np.array([0, 0, 1, 1]))
