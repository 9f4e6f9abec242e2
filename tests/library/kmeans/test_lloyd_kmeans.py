import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.model_selection import GridSearchCV

from privclust.core.lloyd import plus_plus
from privclust.kmeans import CompressiveKMeans, DPLloyd, LloydKMeans
from privclust.privacy import PrivacyLeakWarning


def mixture(n=2000, k=5, d=3, seed=0):
    rng = np.random.default_rng(seed)
    centers = 4.0 * rng.standard_normal((k, d))
    return centers[rng.integers(k, size=n)] + rng.standard_normal((n, d)), centers


@pytest.mark.parametrize("max_iter", [1, 2, 300])
def test_agrees_with_scikit_learn_from_the_same_start(max_iter):
    X, _ = mixture()
    start = X[:5]
    ours = LloydKMeans(5, init=start, max_iter=max_iter).fit(X)
    theirs = KMeans(5, init=start, n_init=1, max_iter=max_iter, tol=0, algorithm="lloyd").fit(X)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, atol=1e-10)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-10)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)


def test_result_is_consistent_and_a_fixed_point():
    X, _ = mixture(seed=3)
    found = LloydKMeans(5, random_state=0).fit(X)
    squared = cdist(X, found.cluster_centers_, "sqeuclidean")
    np.testing.assert_array_equal(found.labels_, squared.argmin(axis=1))
    assert found.inertia_ == pytest.approx(squared.min(axis=1).sum(), rel=1e-12)
    means = [X[found.labels_ == j].mean(axis=0) for j in range(5)]
    np.testing.assert_allclose(found.cluster_centers_, means, atol=1e-12)
    np.testing.assert_array_equal(found.predict(X), found.labels_)


def test_inertia_never_increases_with_further_updates():
    X, _ = mixture(n=500, k=8, seed=2)
    found = [LloydKMeans(8, init=X[:8], max_iter=m).fit(X).inertia_ for m in range(1, 30)]
    assert (np.diff(found) <= 1e-12 * found[0]).all()
    assert found[-1] < found[0]


def test_tol_ends_a_run_by_the_relative_decrease():
    X, _ = mixture(n=3000, k=8, seed=1)
    steps = [LloydKMeans(8, init=X[:8], max_iter=m).fit(X).inertia_ for m in range(1, 60)]
    decrease = -np.diff(steps) / steps[1:]
    for tol in (0.05, 1e-3):
        last = int(np.argmax(decrease <= tol)) + 2
        assert LloydKMeans(8, init=X[:8], tol=tol).fit(X).n_iter_ == last


def test_best_of_several_starts_is_kept():
    X, _ = mixture(n=400, k=10, d=2, seed=4)
    rng = np.random.default_rng(7)
    single = [LloydKMeans(10, n_init=1, random_state=rng).fit(X).inertia_ for _ in range(6)]
    several = LloydKMeans(10, n_init=6, random_state=np.random.default_rng(7)).fit(X)
    assert several.inertia_ == min(single)
    assert len(set(single)) > 1


def test_plus_plus_draws_by_squared_distance():
    """The law of the second center given the first, chi-square test; false-alarm rate 1e-4."""
    X = np.array([[0.0], [1.0], [3.0], [-2.0]])
    rng = np.random.default_rng(0)
    drawn = np.array([plus_plus(X, 2, rng)[:, 0] for _ in range(4000)])
    values = X[:, 0]
    expected = np.empty((4, 4))
    for i in range(4):
        squared = (values - values[i]) ** 2
        expected[i] = 0.25 * squared / squared.sum()
    counts = np.array([[(drawn == (a, b)).all(axis=1).sum() for b in values] for a in values])
    assert counts[expected == 0].sum() == 0
    can_be = expected > 0
    assert stats.chisquare(counts[can_be], 4000 * expected[can_be]).pvalue > 1e-4


def test_the_best_of_several_starts_is_taken():
    """The probabilities of both centers among four places, over all pairs of draws."""
    X, rng = np.array([[0.0], [1.0], [3.0], [7.0]]), np.random.default_rng(0)
    expected = np.zeros((4, 4))
    for first in range(4):
        squares = ((X - X[first]) ** 2).ravel()
        errors = [np.minimum(squares, ((X - x) ** 2).ravel()).sum() for x in X]
        for a in range(4):
            for b in range(4):
                taken = b if errors[b] < errors[a] else a
                probability = squares[a] * squares[b] / squares.sum() ** 2
                expected[first, taken] += 0.25 * probability
    drawn = np.array([plus_plus(X, 2, rng, n_trials=2).ravel() for _ in range(4000)])
    counts = np.array([[(drawn == [a, b]).all(axis=1).sum() for b in X[:, 0]] for a in X[:, 0]])
    deviations = np.sqrt(4000 * expected * (1.0 - expected))
    assert (np.abs(counts - 4000 * expected) <= 4.0 * deviations).all()


def test_cluster_without_rows_takes_the_farthest_row():
    X = np.array([[0.0], [1.0], [2.0], [9.0], [30.0]])
    centers = np.array([[1.0], [1000.0], [2000.0]])
    found = LloydKMeans(3, init=centers).fit(X)
    assert found.cluster_centers_.ravel().tolist() == [1.0, 30.0, 9.0]
    assert found.inertia_ == 2.0
    of_equals = LloydKMeans(2, init=centers[:2]).fit(X[:3])
    assert of_equals.cluster_centers_.ravel().tolist() == [1.5, 0.0]  # the first


def test_single_precision_is_as_double_and_not_copied():
    X, _ = mixture(n=300)
    single = X.astype(np.float32)
    a = LloydKMeans(5, random_state=0).fit(single)
    b = LloydKMeans(5, random_state=0).fit(single.astype(np.float64))
    assert a.cluster_centers_.tobytes() == b.cluster_centers_.tobytes()
    assert a.cluster_centers_.dtype == np.float64
    np.testing.assert_array_equal(a.predict(single), a.labels_)


def test_same_seed_same_bytes_and_other_seeds_other_starts():
    X, _ = mixture(n=400, k=12, d=2, seed=9)
    a, b, c = (
        LloydKMeans(12, n_init=1, max_iter=1, random_state=s).fit(X).cluster_centers_
        for s in (0, 0, 1)
    )
    assert a.tobytes() == b.tobytes()
    assert not np.allclose(a, c)


@pytest.mark.filterwarnings("error")
def test_degenerate_data_gives_finite_centers():
    rng = np.random.default_rng(0)
    for X in (
        np.zeros((5, 2)),
        np.full((6, 1), 0.4),
        np.repeat(rng.standard_normal((2, 3)), 4, axis=0),
        rng.standard_normal((3, 2)),
        1e100 * rng.uniform(-1, 1, (9, 2)),
        1e-200 * rng.standard_normal((9, 2)),
    ):
        found = LloydKMeans(3, random_state=0).fit(X)
        assert np.isfinite(found.cluster_centers_).all()
        assert np.isfinite(found.inertia_)
        assert found.n_iter_ < 300
    two = np.repeat([[0.0], [1.0]], 5, axis=0)
    assert LloydKMeans(3, random_state=0).fit(two).inertia_ == 0.0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1, got 0"),
        ({"n_clusters": 21}, "n_clusters=21 for n_samples=20"),
        ({"n_init": 0}, "n_init"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1.0}, "tol must be a finite number at least 0, got -1.0"),
        ({"init": "rows"}, r"init must be one of k-means\+\+, got 'rows'"),
        ({"init": np.zeros((2, 3))}, r"init must be finite of shape \(3, 3\), got shape \(2, 3\)"),
        ({"init": np.full((3, 3), np.nan)}, "init must be finite"),
        ({"init": [["a"]]}, "init must hold numbers"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_parameters(params, message):
    X, _ = mixture(n=20)
    with pytest.raises(ValueError, match=message):
        LloydKMeans(3).set_params(**params).fit(X)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_bad_rows(bad):
    X, _ = mixture(n=20)
    X[3, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity|rescale X"):
        LloydKMeans(3).fit(X)


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_distances_to_centers_and_the_score_of_rows(output):
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = LloydKMeans(4, random_state=0).set_output(transform=output).fit(X)
    distances = model.transform(X)
    if output == "pandas":
        assert distances.columns.tolist() == [f"lloydkmeans{j}" for j in range(4)]
    distances = np.asarray(distances)
    np.testing.assert_array_equal(distances.argmin(axis=1), model.labels_)
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-12)
    assert model.score(X) == pytest.approx(-(distances.min(axis=1) ** 2).sum(), rel=1e-9)
    with pytest.raises(ValueError, match="NaN"):
        model.score(np.full((1, 3), np.nan))


def test_a_search_by_scores_of_private_rows_is_warned_of():
    X = np.random.default_rng(0).normal(size=(300, 2))
    how = {"norm_bound": 10.0, "random_state": 0}
    with pytest.warns(PrivacyLeakWarning, match="DPLloyd.score is of the rows themselves"):
        GridSearchCV(DPLloyd(**how), {"n_clusters": [2, 3]}, cv=2).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = CompressiveKMeans(2, epsilon=None, random_state=0).fit(X)
        assert model.score(X) < 0
