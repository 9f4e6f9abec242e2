"""S1: reader, generated stand-in, and EUGkM on it as its authors ran it."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from privclust.kmeans import EUGkM, LloydKMeans
from privclust_papers.datasets import s1
from privclust_papers.datasets.registry import DataError


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "S1_processed.txt"
        path.write_bytes(text.encode())
        return path

    return write


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n"])
def test_points(written, end):
    arrays = s1.read(written(f"0.5 -1{end}{end}1.0\t 2e-1{end}"))
    np.testing.assert_array_equal(arrays["X"], [[0.5, -1.0], [1.0, 0.2]])


@pytest.mark.parametrize("line", ["1", "0 0 0", "0 nan", "0 1.5", "-inf 0", "664159 550946", "a b"])
def test_bad_line_is_named(written, line):
    with pytest.raises(DataError, match=r"line 3: got b'.*it must be two numbers in \[-1, 1\]"):
        s1.read(written(f"0 0\n0 0\n{line}\n0 0\n"))


def test_file_that_is_not_there_or_empty(written, tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        s1.read(tmp_path / "none.txt")
    with pytest.raises(DataError, match="holds no point"):
        s1.read(written("\n"))


@pytest.mark.parametrize("seed", [0, 15, 16])
def test_generated_set_has_fifteen_clusters_of_equal_size(seed):
    X = s1.generate(seed)["X"]
    assert X.shape == (5000, 2)
    assert np.abs(X).max() <= 1.0
    np.testing.assert_array_equal(X, s1.generate(seed)["X"])
    starts = X[:: -(-5000 // 15)]
    found = LloydKMeans(15, init=starts).fit(X)
    counts = np.bincount(found.labels_)
    # centres are at least five standard deviations apart: some 0.6 % of a neighbour's points move
    assert counts.min() > 310
    assert counts.max() < 355
    assert found.inertia_ / 5000 == pytest.approx(2 * 0.06**2, rel=0.05)
    assert (
        cdist(found.cluster_centers_, found.cluster_centers_)[np.triu_indices(15, 1)].min() > 0.28
    )


@pytest.fixture(scope="module")
def squares(published, mirror):
    """The points, and what else lies beside them in the mirror: true centroids, starts."""
    arrays = published("s1")
    beside = mirror / "s1"
    if not (beside / "S1-init-centroids-15.npz").exists():
        pytest.skip("no s1/S1-init-centroids-15.npz in the mirror")
    starts = np.load(beside / "S1-init-centroids-15.npz")["init"]
    return arrays["X"], np.loadtxt(beside / "S1-true-centroids.txt"), starts


def nicv(X, centers):
    return cdist(X, centers, "sqeuclidean").min(axis=1).mean()


def test_published_data(squares):
    X, centroids, _ = squares
    assert X.shape == (s1.N_POINTS, 2)
    assert np.abs(X).max() == 1.0
    assert centroids.shape == (s1.N_CLUSTERS, 2)
    assert nicv(X, centroids) == pytest.approx(s1.BEST_NICV, rel=1e-10)
    best = LloydKMeans(15, init=centroids).fit(X)
    assert best.inertia_ / 5000 == pytest.approx(s1.BEST_NICV, rel=1e-5)


def test_nicv_approaches_the_best_as_epsilon_grows(squares):
    X, _, _ = squares
    params = {"neighbours": "add_remove", "bounds": (-1, 1), "random_state": 0}
    found = [
        nicv(X, EUGkM(15, epsilon=epsilon, **params).fit(X).cluster_centers_)
        for epsilon in (0.05, 0.2, 1.0, 10.0)
    ]
    assert (np.diff(found) < 0).all()
    assert s1.BEST_NICV * 0.999 < found[-1] < s1.BEST_NICV * 1.002


def test_authors_results_from_their_starts_are_met(squares, monkeypatch):
    """Their 30 results at epsilon = 1 on a grid of 23 x 22 (experiments/evaluation.txt).

    Their noise is one draw, ours are three. Over their starts the least NICV is 0.00829278 and the
    mean 0.0148938. Ours vary from draw to draw with standard deviations of 1e-5 (40 draws) and 3e-4
    (10 draws); four standard deviations of the difference are allowed.
    """
    X, _, starts = squares
    params = {"epsilon": 1.0, "neighbours": "add_remove", "n_samples": 5000, "bounds": (-1, 1)}
    least, means = [], []

    def fit_from(start, r):
        monkeypatch.setattr("privclust.kmeans._eugkm.separated_points", lambda *shape: start)
        return EUGkM(15, n_init=1, random_state=r, **params).fit(X)

    for r in range(3):
        fits = [fit_from(start, r) for start in starts]
        assert fits[0].grid_shape_ == (23, 22)
        found = np.array([nicv(X, fit.cluster_centers_) for fit in fits])
        least.append(found.min())
        means.append(found.mean())
    allowed = 4 * np.sqrt(1 + 1 / 3)
    assert np.mean(least) == pytest.approx(0.00829278, abs=allowed * 1e-5)
    assert np.mean(means) == pytest.approx(0.0148938, abs=allowed * 3e-4)
