import copy
import math
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import special, stats
from sklearn.base import BaseEstimator

from privclust.bingham import full_basis
from privclust.core.compiled import kernel
from privclust.core.grassmann import random_bases
from privclust.metrics.subspaces import subspace_cost, wasserstein_distance
from privclust.privacy import Guarantee, Loss, PrivacyLeakWarning, Release
from privclust.subspaces import GibbsSubspaceClustering, KPlanes, SuLQKPlanes
from privclust.subspaces._gibbs_kernels import BLOCK, draw_labels, in_blocks, sweeps
from privclust_papers.dpsc.exact_chain import (
    exact_chain,
    labels_of_states,
    total_variation_curve,
)


def union_of_subspaces(n, d, k, q, sigma, seed=0):
    """Rows near random subspaces, clipped to the unit ball, and the subspaces."""
    rng = np.random.default_rng(seed)
    bases = random_bases(k, d, q, rng)
    y = rng.standard_normal((n, q))
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    X = np.einsum("ndq,nq->nd", bases[rng.integers(k, size=n)], y)
    X += sigma * rng.standard_normal((n, d))
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0), bases


def plane_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0, np.pi, n)
    return rng.uniform(0.6, 1.0, (n, 1)) * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def model(k=2, q=1, **params):
    known = {"norm_bound": 1.0, "random_state": 0, "n_sweeps": 200}
    return GibbsSubspaceClustering(k, q, **(known | params))


def completed(start):
    """Bases of the whole space whose subspaces are those of the start."""
    return np.stack([full_basis(frame) for frame in start])


class Chain:
    """The compiled chain from given bases, without the estimator around it."""

    def __init__(self, X, epsilon, q, rng):
        self.fixed = (X, in_blocks(X), 0.5 * epsilon, rng, q)

    def run(self, bases, n_sweeps):
        (k, d, _), q = bases.shape, self.fixed[-1]
        bases = bases.copy()
        labels, frames = np.zeros(len(self.fixed[0]), dtype=np.int64), np.empty((k, d, q))
        sums, projectors = np.zeros((k, d, q)), np.zeros((k, d, d))
        kept, kappas = np.empty((0, k, d, q)), np.full((k, d), -np.inf)
        sweeps(*self.fixed, n_sweeps, 0, 0, bases, kappas, labels, frames, sums, projectors, kept)
        return labels, frames


# --- the sampler against exact computations ------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "n"), [(0.1, 5), (3.0, 7), (30.0, 6), (100.0, 7), (1000.0, 4)])
def test_exact_chain_leaves_the_target_as_it_is(epsilon, n):
    transition, stationary = exact_chain(plane_rows(n), epsilon)
    np.testing.assert_allclose(transition.sum(axis=1), 1.0, rtol=0, atol=1e-10)
    assert stationary.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(stationary @ transition, stationary, rtol=0, atol=1e-9)
    # the names of the two clusters do not matter
    np.testing.assert_allclose(stationary, stationary[::-1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(transition, transition[::-1, ::-1], rtol=0, atol=1e-12)
    # a Gibbs chain of two blocks is reversible in each of them
    flow = stationary[:, None] * transition
    np.testing.assert_allclose(flow, flow.T, rtol=0, atol=1e-12)


def test_target_by_brute_force():
    """Eq. (10) summed over labels and a grid of pairs of angles, as it is printed."""
    X, epsilon = plane_rows(4), 6.0
    angles = np.pi * (np.arange(400) + 0.5) / 400
    lines = np.stack([np.cos(angles), np.sin(angles)])
    squared = (X**2).sum(axis=1)[:, None] - (X @ lines) ** 2
    mass = []
    for z in labels_of_states(4):
        first, second = (np.exp(-0.5 * epsilon * squared[z == c].sum(axis=0)) for c in (0, 1))
        mass.append(np.outer(first, second).sum())
    np.testing.assert_allclose(
        exact_chain(X, epsilon)[1], np.array(mass) / np.sum(mass), rtol=1e-12
    )


@pytest.mark.parametrize("epsilon", [2.0, 15.0])
def test_sampled_labels_follow_the_exact_chain(epsilon):
    """Labels after sweeps 1, 2 and 4 from fixed bases: chi-square, false-alarm rate 1e-4 each."""
    X, n_chains = plane_rows(4, seed=1), 10_000
    start = np.array([[[1.0], [0.0]], [[0.6], [0.8]]])
    transition, stationary = exact_chain(X, epsilon)
    chances = [1 / (1 + np.exp(-0.5 * epsilon * np.diff((X @ start[..., 0].T) ** 2)[:, 0]))]
    law = np.prod(np.where(labels_of_states(4) == 1, chances, 1 - chances[0]), axis=1)
    curve = total_variation_curve(X, epsilon, 4, init=start)
    chain, bases = Chain(X, epsilon, 1, np.random.default_rng(2)), completed(start)
    for sweep in range(1, 5):
        assert curve[sweep - 1] == pytest.approx(0.5 * np.abs(law - stationary).sum(), abs=1e-12)
        if sweep != 3:
            states = [chain.run(bases, sweep)[0] @ 2 ** np.arange(4) for _ in range(n_chains)]
            counts = np.bincount(states, minlength=16)
            likely = law * n_chains > 5
            observed = np.append(counts[likely], counts[~likely].sum())
            expected = np.append(law[likely], law[~likely].sum()) * n_chains
            observed, expected = observed[expected > 0], expected[expected > 0]
            assert stats.chisquare(observed, expected).pvalue > 1e-4
        law = law @ transition


def test_labels_and_subspaces_together_against_quadrature():
    """Chains of 30 sweeps (off by less than 1e-6): chi-square on z and a bin of the first angle.

    False-alarm rate 1e-4.
    """
    X, epsilon, n_chains, n_bins = plane_rows(3, seed=3), 6.0, 6000, 6
    assert total_variation_curve(X, epsilon, 30)[-1] < 1e-6
    stationary = exact_chain(X, epsilon)[1]
    angles = np.pi * (np.arange(6000) + 0.5) / 6000
    exponents = 0.5 * epsilon * (X @ np.stack([np.cos(angles), np.sin(angles)])) ** 2
    expected = []
    for z, mass in zip(labels_of_states(3), stationary, strict=True):
        density = np.exp(exponents[z == 0].sum(axis=0))
        expected.append(mass * density.reshape(n_bins, -1).sum(axis=1) / density.sum())
    rng = np.random.default_rng(0)
    chain = Chain(X, epsilon, 1, rng)
    counts = np.zeros((8, n_bins))
    for _ in range(n_chains):
        labels, frames = chain.run(completed(random_bases(2, 2, 1, rng)), 30)
        angle = np.arctan2(frames[0, 1, 0], frames[0, 0, 0]) % np.pi
        counts[labels @ [1, 2, 4], min(int(angle / np.pi * n_bins), n_bins - 1)] += 1
    expected = n_chains * np.array(expected)
    assert expected.min() > 5
    assert stats.chisquare(counts.ravel(), expected.ravel()).pvalue > 1e-4


@pytest.mark.parametrize("epsilon", [3.0, 40.0])
def test_one_cluster_is_a_bingham_distribution(epsilon):
    """Mean of cos 2 angle is I_1 / I_0 of epsilon (l_1 - l_2) / 4; within 4 errors."""
    X = plane_rows(6)
    found = model(1, 1, epsilon=epsilon, n_sweeps=20_000, n_kept=20_000).fit(X)
    values, vectors = np.linalg.eigh(X.T @ X)
    cosines = 2 * (found.kept_subspaces_[:, 0, :, 0] @ vectors[:, 1]) ** 2 - 1
    rho = 0.25 * epsilon * (values[1] - values[0])
    mean = special.ive(1, rho) / special.ive(0, rho)
    variance = 0.5 * (1 + special.ive(2, rho) / special.ive(0, rho)) - mean**2
    assert abs(cosines.mean() - mean) < 4.0 * math.sqrt(variance / 20_000)


def test_one_cluster_at_a_large_budget():
    """epsilon / 2 of what tr(U'AU) lacks has the mean q (d - q) / 2; within 4.5 errors, batched."""
    X, _ = union_of_subspaces(60, 6, 1, 2, 0.1)
    found = model(1, 2, epsilon=1e6, n_sweeps=8000, n_kept=8000).fit(X)
    A = X.T @ X
    U = found.kept_subspaces_[:, 0]
    lost = np.linalg.eigvalsh(A)[-2:].sum() - ((A @ U) * U).sum(axis=(1, 2))
    batches = 0.5e6 * lost.reshape(40, -1).mean(axis=1)
    assert abs(batches.mean() - 4.0) < 4.5 * batches.std(ddof=1) / math.sqrt(40)


def test_random_starts_are_averaged_exactly():
    """Distance after one sweep: quadrature against 20,000 drawn starts.

    Within 4 errors; that of a total variation distance is at most half of the sum of the errors.
    """
    X, epsilon, n = plane_rows(3), 8.0, 20_000
    stationary = exact_chain(X, epsilon)[1]
    starts = random_bases(2 * n, 2, 1, np.random.default_rng(0))[:, :, 0]
    first, second = 0.5 * epsilon * (X @ starts.reshape(2, n, 2).swapaxes(1, 2)) ** 2
    chances = 1 / (1 + np.exp(first - second))
    z = labels_of_states(3)[:, :, None]
    laws = np.prod(np.where(z == 1, chances, 1 - chances), axis=1)
    law, errors = laws.mean(axis=1), laws.std(axis=1) / math.sqrt(n)
    found = total_variation_curve(X, epsilon, 1)[0]
    assert abs(found - 0.5 * np.abs(law - stationary).sum()) < 4.0 * 0.5 * errors.sum()


@kernel()
def labels_of_one_pass(X, blocks, scale, bases, first, last, sign, rng, labels, counts, moments):
    """The part as a kernel, which later processes load from the cache."""
    draw_labels(X, blocks, scale, bases, first, last, sign, rng, labels, counts, moments)


@pytest.mark.parametrize(("d", "q"), [(5, 3), (5, 2), (9, 4), (2, 1), (7, 6)])
def test_labels_of_one_pass(d, q):
    """Labels of equal rows have the chances of eq. (11): chi-square, false-alarm rate 1e-4 each.

    Moments are those of the labels drawn, also where the rows do not fill blocks or fours.
    """
    k, n, scale = 4, 40 * BLOCK + 7, 3.0
    rng = np.random.default_rng(0)
    x = rng.standard_normal(d)
    X = np.tile(x / np.linalg.norm(x), (n, 1))
    X[-3:] = rng.standard_normal((3, d)) / d
    bases = np.stack([full_basis(frame) for frame in random_bases(k, d, d - 1, rng)])
    chances = np.exp(scale * ((bases[:, :q] @ X[0]) ** 2).sum(axis=1))
    chances /= chances.sum()
    labels, counts = np.empty(n, dtype=np.int64), np.empty(k, dtype=np.int64)
    moments = np.empty((k, d, d))
    for used, sign in (((0, q), 1.0), ((q, d), -1.0)):
        labels_of_one_pass(
            X, in_blocks(X), scale, bases, *used, sign, rng, labels, counts, moments
        )  # fmt: skip
        np.testing.assert_array_equal(counts, np.bincount(labels, minlength=k))
        observed = np.bincount(labels[:-3], minlength=k)
        assert stats.chisquare(observed, chances * (n - 3)).pvalue > 1e-4
        for c in range(k):
            mine = X[labels == c]
            np.testing.assert_allclose(moments[c], mine.T @ mine, rtol=1e-10, atol=1e-12)


# --- limits --------------------------------------------------------------------------------------


def test_without_budget_everything_is_uniform():
    """Labels and subspaces at epsilon 1e-9: independent of the data; false-alarm rate 1e-4 each."""
    X, _ = union_of_subspaces(3000, 6, 3, 2, 0.05)
    found = model(3, 2, epsilon=1e-9, n_sweeps=2000, n_kept=1500).fit(X)
    counts = np.bincount(found.labels_, minlength=3)
    assert stats.chisquare(counts).pvalue > 1e-4
    inside = (found.kept_subspaces_[::5, :, 0] ** 2).sum(axis=2)
    for cluster in inside.T:
        assert stats.kstest(cluster, stats.beta(1.0, 2.0).cdf).pvalue > 1e-4
    aligned = found.diagnostics_["aligned_statistic"][-1]
    assert aligned == pytest.approx(math.sqrt(2 / 6), rel=0.03)


@pytest.mark.parametrize(
    ("n", "d", "k", "q", "sigma"),
    [(1500, 5, 3, 3, 0.01), (600, 10, 3, 3, 0.1), (200, 30, 3, 4, 0.02)],
)
def test_large_budget_is_k_plane(n, d, k, q, sigma):
    X, bases = union_of_subspaces(n, d, k, q, sigma)
    start = bases + 0.05 * np.random.default_rng(1).standard_normal(bases.shape)
    start = np.linalg.qr(start)[0]
    reference = KPlanes(k, q, init=start).fit(X)
    found = model(k, q, epsilon=1e8 / n, init=start).fit(X)
    assert subspace_cost(X, found.subspaces_) <= 1.02 * reference.inertia_ / n
    # labels are then those of the nearest subspace, but for rows that two are equally near
    assert (found.labels_ == found.predict(X)).mean() > 0.99


def test_clusters_without_rows():
    """Three clusters, one of them far from all rows: its subspace is uniform, and all is finite."""
    X = np.tile([[1.0, 0.0, 0.0]], (4, 1))
    start = np.eye(3)[:, :, None]
    found = model(3, 1, epsilon=1e6, init=start, n_sweeps=400, n_kept=400).fit(X)
    lines = np.sort(np.abs(found.kept_subspaces_[:, :, 0, 0]), axis=1)
    assert np.isfinite(lines).all()
    assert (lines[:, 2] > 0.999).all()
    # a uniform line's coordinate is uniform in magnitude; the cluster that has no row by turns
    assert stats.kstest(found.kept_subspaces_[:, 2, 1, 0], stats.uniform(-1, 2).cdf).pvalue > 1e-4


# --- what is reported ----------------------------------------------------------------------------


def test_diagnostics_are_what_they_say():
    X, _ = union_of_subspaces(80, 5, 2, 3, 0.05)
    found = model(2, 3, epsilon=20.0, n_sweeps=130, n_kept=130, record_every=50).fit(X)
    records = found.diagnostics_
    np.testing.assert_array_equal(records["sweep"], [50, 100, 130])
    kept = found.kept_subspaces_
    assert kept.shape == (130, 2, 5, 3)
    for i, sweep in enumerate(records["sweep"]):
        assert records["cost"][i] == pytest.approx(subspace_cost(X, kept[sweep - 1]), rel=1e-9)
        mean = kept[:sweep].mean(axis=0)
        assert records["statistic"][i] == pytest.approx(math.sqrt((mean**2).sum() / 6), rel=1e-9)
        mean = (kept[:sweep] @ kept[:sweep].swapaxes(2, 3)).mean(axis=0)
        expected = math.sqrt((mean**2).sum() / 6)
        assert records["aligned_statistic"][i] == pytest.approx(expected, rel=1e-9)
    assert records["subspaces"].dtype == np.float32
    np.testing.assert_allclose(records["subspaces"], kept[[49, 99, 129]], atol=1e-6)
    np.testing.assert_array_equal(kept[-1], found.subspaces_)
    for state in kept:
        np.testing.assert_allclose(
            state.swapaxes(1, 2) @ state, np.tile(np.eye(3), (2, 1, 1)), atol=1e-12
        )


def test_first_sweeps_are_recorded_beside_every_so_many():
    X, _ = union_of_subspaces(50, 4, 2, 2, 0.05)
    for n_sweeps, expected in ((20, [1, 2, 3, 8, 16, 20]), (2, [1, 2])):
        found = model(2, 2, n_sweeps=n_sweeps, n_kept=n_sweeps, record_every=8, record_first=3)
        records = found.fit(X).diagnostics_
        assert records["sweep"].tolist() == expected
        states = found.kept_subspaces_[records["sweep"] - 1]
        np.testing.assert_allclose(records["subspaces"], states, atol=1e-6)


def test_the_papers_statistic_says_nothing():
    """It is (sum of bases) / T, of T independent rotations, while no subspace moves.

    T times its square has mean 1 and, as the mean of k q^2 = 18 squares, deviation 0.33: within 5.
    """
    X, _ = union_of_subspaces(300, 5, 2, 3, 0.01)
    found = model(2, 3, epsilon=1e5, n_sweeps=3000).fit(X)
    assert 3000 * found.diagnostics_["statistic"][-1] ** 2 < 1 + 5 * math.sqrt(2 / 18)
    assert found.diagnostics_["aligned_statistic"][-1] > 0.97
    first, last = found.diagnostics_["subspaces"][[5, -1]].astype(np.float64)
    assert wasserstein_distance(np.linalg.qr(first)[0], last) < 0.05


def test_same_seed_same_bytes_however_often_it_is_recorded():
    X, _ = union_of_subspaces(100, 6, 2, 2, 0.1)
    runs = [
        model(2, 2, epsilon=10.0, record_every=every, n_kept=n_kept).fit(X)
        for every, n_kept in ((100, 0), (100, 0), (7, 150))
    ]
    for other in runs[1:]:
        assert runs[0].subspaces_.tobytes() == other.subspaces_.tobytes()
        assert runs[0].labels_.tobytes() == other.labels_.tobytes()
    different = model(2, 2, epsilon=10.0, random_state=1).fit(X)
    assert not np.isclose(runs[0].subspaces_, different.subspaces_).all()


def test_scaling_data_and_bound_changes_nothing():
    X, _ = union_of_subspaces(100, 5, 2, 2, 0.1)
    plain = model(2, 2, epsilon=30.0).fit(X)
    scaled = model(2, 2, epsilon=30.0, norm_bound=1024.0).fit(1024.0 * X)
    np.testing.assert_array_equal(plain.subspaces_, scaled.subspaces_)
    np.testing.assert_array_equal(plain.labels_, scaled.labels_)
    np.testing.assert_allclose(
        scaled.diagnostics_["cost"], 1024.0**2 * plain.diagnostics_["cost"], rtol=1e-12
    )


def test_longer_rows_are_drawn_in():
    X, _ = union_of_subspaces(100, 5, 2, 2, 0.0)
    far = X.copy()
    far[0] *= 4.0
    with pytest.warns(UserWarning, match="clipped"):
        clipped = model(2, 2).fit(far)
    near = model(2, 2).fit(X / np.linalg.norm(X, axis=1, keepdims=True))
    np.testing.assert_allclose(clipped.subspaces_, near.subspaces_, atol=1e-9)
    assert clipped.guarantee_.definition == "asymptotic"


# --- what is promised ----------------------------------------------------------------------------


class Start(BaseEstimator):
    """Finds fixed subspaces, and promises what it is told to."""

    def __init__(self, guarantee=None):
        self.guarantee = guarantee

    def fit(self, X, y=None):
        self.subspaces_ = np.eye(X.shape[1])[:2, :, None]
        if self.guarantee is not None:
            self.guarantee_ = self.guarantee
        return self


NOISE = Release("moments", "gaussian", "sigma 1", "by hand", Loss(rho=0.1))
PURE = Release("moments", "laplace", "scale 1", "by hand", Loss(rho=0.02, epsilon=0.2))


def test_guarantee_of_a_start_that_knows_no_data():
    X = plane_rows(50)
    for init in ("random", np.eye(2)[:, :, None]):
        promise = model(epsilon=0.7, init=init).fit(X).guarantee_
        assert (promise.definition, promise.relation) == ("asymptotic", "replace-one")
        assert (promise.epsilon, promise.delta, promise.seeded) == (0.7, 0.0, True)
        assert promise.epsilon_at(1e-6) == math.inf
        assert any("one sample" in caveat for caveat in promise.caveats)
        assert any("floating point" in caveat for caveat in promise.caveats)
        assert "0.7-differential privacy in the limit only" in str(promise)
    kept = model(epsilon=0.7, n_kept=9).fit(X).guarantee_
    assert any("costs 9 epsilon" in caveat for caveat in kept.caveats)
    assert kept.epsilon == 0.7


def test_private_starts_are_composed():
    X = plane_rows(50)
    start = Guarantee.of([NOISE], "approximate", "replace-one", delta=1e-5, caveats=["a note"])
    promise = model(epsilon=0.7, init=Start(start)).fit(X).guarantee_
    assert promise.definition == "asymptotic"
    assert promise.epsilon == pytest.approx(0.7 + start.epsilon)
    assert promise.delta == 1e-5
    names = [release.name for release in promise.releases]
    assert names == ["start: moments", "labels and subspaces", "number of records left out"]
    assert "a note" in promise.caveats
    removed = Guarantee.of([PURE], "pure", "add-remove")
    promise = model(epsilon=0.7, init=Start(removed)).fit(X).guarantee_
    assert (promise.relation, promise.delta) == ("replace-one", 0.0)
    assert promise.epsilon == pytest.approx(0.7 + 2 * 0.2)


@pytest.mark.parametrize(
    ("init", "reason"),
    [
        (np.arange(50) % 2, "labels"),
        (KPlanes(2, 1), "by KPlanes"),
        (Start(), "by Start"),
        (Start(Guarantee("none", "replace-one", caveats=("no noise",))), "no noise"),
        (Start(Guarantee.of([NOISE], "zcdp", "replace-one")), "zcdp"),
    ],
)
def test_other_starts_leave_no_guarantee(init, reason):
    promise = model(init=init).fit(plane_rows(50)).guarantee_
    assert promise.definition == "none"
    assert any(reason in caveat for caveat in promise.caveats)
    assert promise.epsilon == math.inf


def test_bound_from_the_data_leaves_no_guarantee():
    with pytest.warns(PrivacyLeakWarning, match="norm_bound"):
        found = model(norm_bound=None).fit(plane_rows(50))
    assert found.guarantee_.definition == "none"


@pytest.mark.parametrize("epsilon", [4.0, 30.0])
def test_a_row_changes_the_target_by_e_to_the_epsilon_at_most(epsilon):
    """Proposition 4.1 for the labels of the exact target; a good part of it is used up."""
    X = np.tile([[1.0, 0.0]], (7, 1))
    for rows, least in ((X, 0.25), (plane_rows(7), 0.0)):
        turned = rows.copy()
        turned[0] = [0.0, 1.0]
        ratio = np.log(exact_chain(rows, epsilon)[1] / exact_chain(turned, epsilon)[1])
        assert least * epsilon < np.abs(ratio).max() <= epsilon


@pytest.mark.skipif(find_spec("opendp") is None, reason="needs opendp (privclust[secure])")
def test_a_release_cannot_be_repeated():
    first, second = (model(random_state=None).fit(plane_rows(50)) for _ in range(2))
    assert not first.guarantee_.seeded
    assert not np.isclose(first.subspaces_, second.subspaces_).all()


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": 51}, "n_clusters=51"),
        ({"dimension": 0}, "dimension"),
        ({"dimension": 2}, "dimension=2"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": 1e12}, "epsilon"),
        ({"n_sweeps": 0}, "n_sweeps"),
        ({"n_kept": -1}, "n_kept"),
        ({"n_kept": 201}, "n_kept must be at most n_sweeps=200"),
        ({"record_every": 0}, "record_every"),
        ({"record_first": -1}, "record_first"),
        ({"norm_bound": 0.0}, "norm_bound"),
        ({"init": "kmeans"}, "init"),
        ({"init": np.zeros((2, 2, 1))}, "init"),
        ({"init": np.full(50, 3)}, "init"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        model().set_params(**params).fit(plane_rows(50))


# --- any row, and what is not released -----------------------------------------------------------


@pytest.mark.parametrize("entry", [np.nan, np.inf, 1e300])
def test_any_row_is_drawn_in(entry):
    X = plane_rows(30)
    X[5, 1] = entry
    with pytest.warns(UserWarning, match="clipped"):
        found = model(n_sweeps=3, missing="middle").fit(X)
    assert found.labels_.shape == (30,)
    assert "an entry that is not a number" in str(found.guarantee_)


def test_the_state_is_released_and_what_is_beside_it_is_not():
    found = model(n_sweeps=5, n_kept=2).fit(plane_rows(30))
    released = copy.copy(found)
    np.testing.assert_array_equal(released.labels_, found.labels_)
    assert not hasattr(released, "diagnostics_")
    assert not hasattr(released, "kept_subspaces_")


def test_a_sample_is_charged_before_the_chain_runs(monkeypatch):
    charged = []

    def refuse(guarantee):
        charged.append(guarantee)
        if guarantee.definition == "asymptotic":
            raise RuntimeError("spent")

    def never(*_):
        raise AssertionError

    monkeypatch.setattr("privclust.privacy.estimator.charge", refuse)
    monkeypatch.setattr("privclust.subspaces._gibbs.sweeps", never)
    start = SuLQKPlanes(2, 1, norm_bound=1.0, epsilon=0.25)
    with pytest.raises(RuntimeError, match="spent"):
        model(epsilon=0.5, init=start).fit(plane_rows(30))
    # the start is charged by its own fit, and not again
    spent = [(each.definition, round(each.epsilon, 9)) for each in charged]
    assert spent == [("approximate", 0.25), ("asymptotic", 0.5)]
