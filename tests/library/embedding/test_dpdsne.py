"""DP-dSNE: its gradients, what one row can move, its noise and what it promises."""

import math
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import approx_fprime
from scipy.spatial.distance import cdist, pdist

from privclust.embedding import DPdSNE
from privclust.embedding._dpdsne import _MEAN_ROUNDING, _clipped
from privclust.embedding._dpdsne_kernels import affinities, forces
from privclust.privacy import pld_epsilon
from privclust.privacy.accounting import Loss

CROSS = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])  # about its mean, at 1


def three_groups(n=120, d=6, seed=0):
    """Rows and an embedding that shows their groups, and which group each is in."""
    rng = np.random.default_rng([seed, n])
    labels = np.arange(n) % 3
    X = 4.0 * np.eye(d)[labels] + rng.standard_normal((n, d))
    angles = 2 * np.pi * labels / 3
    Z = 8.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1) + rng.standard_normal((n, 2))
    return X, Z, labels


def model(**params):
    return DPdSNE(**({"perplexity": 5.0, "delta": 1e-5, "random_state": 0} | params))


def forces_of(P, Y, Z, own=-1):
    """The kernel's three results."""
    attraction, repulsion, spread = np.empty(Y.shape), np.empty(Y.shape), np.empty(len(Y))
    forces(P, Y, np.ascontiguousarray(Z.T), own, attraction, repulsion, spread)
    return attraction, repulsion, spread


def pulls(y, Z):
    """The h of each point, (m, k), from their definition."""
    difference = y - Z
    return 2.0 * difference / (1.0 + (difference**2).sum(axis=1, keepdims=True))


# --- gradients -------------------------------------------------------------------------------


@pytest.mark.parametrize("perplexity", [1.5, 5.0, 40.0])
def test_affinities_are_gaussian_and_have_the_perplexity(perplexity):
    """Entropy; and log p is linear in the squared distance, with a slope that is not positive."""
    X, _, _ = three_groups()
    squared = cdist(X[:20] + 0.1, X, "sqeuclidean")
    P = squared.copy()
    affinities(P, math.log(perplexity))
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    entropy = stats.entropy(P, axis=1)
    np.testing.assert_allclose(entropy, math.log(perplexity), atol=1e-5)
    for p, d in zip(P, squared, strict=True):
        counted = p > 1e-200
        slope, level = np.polyfit(d[counted], np.log(p[counted]), 1)
        assert slope < 0
        np.testing.assert_allclose(slope * d[counted] + level, np.log(p[counted]), atol=1e-6)


def test_affinities_at_the_edges():
    """Ties share; what is far away or left out gets nothing; there is never a NaN."""
    P = np.array(
        [
            [0.0, 0.0, 0.0, 0.0],
            [1.0, 1.0, 5.0, np.inf],
            [2.0, np.inf, np.inf, np.inf],
            [1e200, 0.0, 1e-200, 1e200],
        ]
    )
    affinities(P, math.log(1.5))
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(P[0], 0.25)
    np.testing.assert_allclose(P[1], [0.5, 0.5, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(P[2], [1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(P[3, [0, 3]], 0.0)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_forces_are_the_gradient_of_the_divergence(k):
    """Against differences of KL(p || q), among anchors alone and among all points."""
    rng = np.random.default_rng(k)
    Z, Y = 3.0 * rng.standard_normal((12, k)), rng.standard_normal((4, k))
    for own, points in ((-1, Z), (12, np.vstack([Z, Y]))):
        P = rng.random((4, len(points)))
        if own >= 0:
            P[np.arange(4), own + np.arange(4)] = 0.0
        P /= P.sum(axis=1, keepdims=True)
        attraction, repulsion, _ = forces_of(P, Y, points, own)
        for i in range(4):
            counted = np.arange(len(points)) != own + i if own >= 0 else np.full(12, True)
            p, others = P[i, counted], points[counted]

            def divergence(y, p=p, others=others):
                w = 1.0 / (1.0 + ((y - others) ** 2).sum(axis=1))
                return (p * np.log(p * w.sum() / w)).sum()

            expected = approx_fprime(Y[i], divergence, 1e-7)
            np.testing.assert_allclose(attraction[i] - repulsion[i], expected, atol=1e-5)


def descended(model, X, Z, rows):
    """The corrected embedding without noise, in dense arrays, from the docstring's formulas."""
    P = cdist(rows, X, "sqeuclidean")
    affinities(P, math.log(model.perplexity))
    placed = []
    for p in P:
        y = Z.mean(axis=0)
        for t in range(model.max_iter):
            h = pulls(y, Z)
            q = 1.0 / (1.0 + ((y - Z) ** 2).sum(axis=1))
            factor = model.exaggeration if t < model.max_iter / 2 else 1.0
            gradient = factor * p @ h - (q / q.sum()) @ h
            y = y - model.learning_rate * (1 - t / model.max_iter) * gradient
            y = np.clip(y, Z.min(axis=0), Z.max(axis=0))
        placed.append(y)
    return np.array(placed)


def test_large_epsilon_is_descent_without_noise():
    X, Z, _ = three_groups()
    rows = three_groups(30, seed=1)[0]
    found = model(epsilon=1e14, max_iter=7, learning_rate=0.5).fit(X, Z)
    np.testing.assert_allclose(found.transform(rows), descended(found, X, Z, rows), atol=1e-4)


@pytest.mark.parametrize("variant", ["corrected", "paper"])
def test_rows_come_to_lie_in_their_groups(variant):
    """At a large epsilon; at a small one the groups are guessed: 300 rows, chance is 1/3.

    Exaggerated attraction has second derivatives up to 2 * 4, repulsion up to 1/4 + 1: steps below
    2 / 9.25 descend. Ten times as much is for wider embeddings; here it leaps across.
    """
    X, Z, labels = three_groups()
    rows, _, expected = three_groups(300, seed=1)
    centers = np.array([Z[labels == g].mean(axis=0) for g in range(3)])

    def share(epsilon):
        placed = model(epsilon=epsilon, variant=variant, learning_rate=0.2).fit(X, Z)
        placed = placed.transform(rows)
        return (cdist(placed, centers).argmin(axis=1) == expected).mean()

    assert share(1e8) > 0.95
    assert share(1e-3) < 0.5  # six deviations above 1/3


def test_rows_do_not_depend_on_one_another():
    """Corrected rows stay in place when other rows change or go, in every block."""
    X, Z, _ = three_groups()
    rows = np.tile(three_groups(30, seed=1)[0], (50, 1))  # more than a block
    fitted = model(epsilon=1e14, max_iter=5, learning_rate=0.5).fit(X, Z)
    together = fitted.transform(rows)
    for i in (0, 7, 1029, 1499):
        np.testing.assert_allclose(together[i], fitted.transform(rows[i : i + 1])[0], atol=1e-4)


def test_small_steps_never_raise_the_divergence():
    """Steps below 2 over the largest second derivative, 2 exaggeration + 1.25."""
    X, Z, _ = three_groups()
    rows = three_groups(30, seed=1)[0]
    P = cdist(rows, X, "sqeuclidean")
    affinities(P, math.log(5.0))

    def divergences(n_steps):
        found = model(
            epsilon=1e14, max_iter=n_steps, learning_rate=0.99 * 2 / 3.25, exaggeration=1.0
        ).fit(X, Z)
        w = 1.0 / (1.0 + cdist(found.transform(rows), Z, "sqeuclidean"))
        q = w / w.sum(axis=1, keepdims=True)
        return np.where(P > 0, P * np.log(np.where(P > 0, P, 1.0) / q), 0.0).sum(axis=1)

    # a run of one step makes the first step of every run, which is the longest
    start = 1.0 / (1.0 + cdist(Z.mean(axis=0)[None], Z, "sqeuclidean"))
    q = start / start.sum()
    before = np.where(P > 0, P * np.log(np.where(P > 0, P, 1.0) / q), 0.0).sum(axis=1)
    after = divergences(1)
    assert (after < before).all()
    assert (divergences(100) < after).all()


# --- sensitivity -----------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3])
def test_bound_on_the_attraction(k):
    """Near and far: at least the largest distance of two h, at most 2."""
    rng = np.random.default_rng(k)
    for scale in (1e-9, 0.1, 1.0, 10.0, 1e4):
        Z, Y = scale * rng.standard_normal((30, k)), scale * rng.standard_normal((50, k))
        spread = forces_of(np.full((50, 30), 1 / 30), Y, Z)[2]
        largest = np.array([pdist(pulls(y, Z)).max() for y in Y])
        assert (spread >= largest * (1 - 1e-12)).all()
        assert (spread <= np.minimum(2.0, math.sqrt(k) * largest) * (1 + 1e-12)).all()
    assert forces_of(np.full((1, 4), 0.25), np.zeros((1, 2)), CROSS)[2][0] == pytest.approx(2.0)


def test_sensitivity_is_a_bound_and_nearly_attained():
    """Replaced rows of the feature space, by search, at places that the descent comes through."""
    X, Z, _ = three_groups()
    rng = np.random.default_rng(0)
    rows = np.vstack([X, X + rng.standard_normal(X.shape), 100.0 * rng.standard_normal((200, 6))])
    P = cdist(rows, X, "sqeuclidean")
    affinities(P, math.log(1.0001))
    ratios = []
    for y in np.vstack([Z[:5] + 0.3, Z.mean(axis=0), [0.0, 0.0]]):
        attraction, _, spread = forces_of(P, np.repeat(y[None], len(rows), axis=0), Z)
        ratios.append(pdist(attraction).max() / spread[0])
    assert max(ratios) <= 1.0
    assert max(ratios) > 0.7
    # perplexity 1 picks one anchor each: the whole distance between two
    P = np.eye(4)
    attraction, _, spread = forces_of(P, np.zeros((4, 2)), CROSS)
    assert pdist(attraction).max() == pytest.approx(2.0, rel=1e-12)
    assert spread[0] == pytest.approx(2.0, rel=1e-12)


def test_rounding_is_provided_for():
    """Forces of anchors in one spot agree but for rounding, which the noise is to cover as well."""
    rng = np.random.default_rng(0)
    P = rng.random((200, 5000)) ** 8
    Z, Y = np.full((5000, 2), 0.3), np.full((200, 2), 1.0)
    attraction, repulsion, spread = forces_of(P, Y, Z)
    scale = spread + _MEAN_ROUNDING * 5000
    assert np.linalg.norm(attraction - repulsion, axis=1).max() < scale.min()
    assert pdist(attraction).max() > 0.0  # or there is nothing to provide for
    assert pdist(attraction).max() < scale.min()


def joint_gradients(x, clip):
    """Clipped gradients of rows at (3, 0) and (0, 0), whose features are x and [0]."""
    Y, Z = np.array([[3.0, 0.0], [0.0, 0.0]]), np.array([[-3.0, 0.0], [6.0, 0.0], [0.0, 9.0]])
    anchors, rows = np.array([[-5.0], [50.0], [100.0]]), np.array([[x], [0.0]])
    P = cdist(rows, np.vstack([anchors, rows]), "sqeuclidean")
    P[[0, 1], [3, 4]] = np.inf
    affinities(P, math.log(1.001))
    attraction, repulsion, _ = forces_of(P, Y, np.vstack([Z, Y]), 3)
    return _clipped(4.0 * attraction - repulsion, clip)


def test_two_rows_attain_what_the_printed_noise_leaves_out():
    """Replacing one row turns both gradients about: 2 C sqrt 2, where 2 C was provided for."""
    clip = 0.1
    change = joint_gradients(49.0, clip) - joint_gradients(-1.0, clip)
    assert np.linalg.norm(change[0]) == pytest.approx(2 * clip, rel=0.05)
    assert np.linalg.norm(change) == pytest.approx(2 * clip * math.sqrt(2), rel=0.05)
    assert np.linalg.norm(change) <= 2 * clip * math.sqrt(2) * (1 + 1e-12)


# --- noise -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("variant", "sensitivity"), [("corrected", 2.0), ("paper", 0.2)])
def test_noise_is_the_one_stated(variant, sensitivity):
    """One step from the middle of the cross, where D = 2; false alarms 1e-4 each.

    In the paper's variant 2 C = 0.2. The rows have no preference, so that there is noise alone.
    """
    fitted = model(
        variant=variant, max_iter=1, learning_rate=1e-3, clip=0.1, perplexity=3.0, exaggeration=3.0
    ).fit(CROSS, CROSS)
    moved = -fitted.transform(np.zeros((1500, 2))) / 1e-3
    factor = 3.0 if variant == "corrected" else 1.0
    stated = float(fitted.guarantee_of(1).releases[0].noise.split()[1])
    sigma = stated * (2.0 if variant == "corrected" else 1.0)
    share = sensitivity / sigma
    assert pld_epsilon([Loss(share**2 / 2)], 1e-5) == pytest.approx(1.0, rel=2e-3)
    for column in moved.T:
        assert stats.kstest(column, stats.norm(scale=factor * sigma).cdf).pvalue > 1e-4


@pytest.mark.parametrize("max_iter", [1, 10, 200])
def test_all_steps_together_spend_the_budget(max_iter):
    X, Z, _ = three_groups()
    found = model(epsilon=0.7, max_iter=max_iter).fit(X, Z).guarantee_
    (release,) = found.releases
    inverse = float(release.noise.split()[1])
    assert release.loss.count == max_iter
    assert release.loss.rho == pytest.approx(1 / (2 * inverse**2), rel=2e-3)
    assert 0.7 * (1 - 1e-6) < found.epsilon <= 0.7


# --- what is promised ------------------------------------------------------------------------


def test_sound_guarantee():
    X, Z, _ = three_groups()
    fitted = model().fit(X, Z)
    found = fitted.guarantee_
    assert (found.definition, found.relation, found.delta) == ("approximate", "replace-one", 1e-5)
    assert fitted.guarantee_of(1) == fitted.guarantee_of(1000) == found
    assert any("one transform" in caveat for caveat in found.caveats)


def test_paper_guarantee():
    """None for any number of rows; as asked for one; n times the rho for n."""
    X, Z, _ = three_groups()
    fitted = model(variant="paper").fit(X, Z)
    assert fitted.guarantee_.definition == "none"
    assert "2 C sqrt(n)" in fitted.guarantee_.caveats[-1]
    alone, many = fitted.guarantee_of(1), fitted.guarantee_of(9)
    assert alone.epsilon == pytest.approx(1.0, rel=1e-6)
    assert many.total_rho == pytest.approx(9 * alone.total_rho)
    assert many.epsilon > 3.0
    with pytest.raises(ValueError, match="n_rows must be an integer"):
        fitted.guarantee_of(0)


@pytest.mark.skipif(find_spec("opendp") is None, reason="needs opendp (privclust[secure])")
def test_noise_of_a_release_cannot_be_repeated():
    X, Z, _ = three_groups()
    found = model(random_state=None, max_iter=2).fit(X, Z)
    assert not found.guarantee_.seeded
    assert (found.transform(X[:3]) != found.transform(X[:3])).any()


def test_same_seed_same_bytes_and_fresh_noise():
    X, Z, _ = three_groups()
    fits = [model(epsilon=1e4).fit(X, Z) for _ in range(2)]
    first, second = (fit.transform(X) for fit in fits)
    assert first.tobytes() == second.tobytes()
    assert first.tobytes() != fits[0].transform(X).tobytes()


# --- odd input -------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["corrected", "paper"])
def test_odd_geometry_gives_places_in_the_box(variant):
    """Anchors in one spot, equal rows, rows far away, great noise: finite, within the box."""
    X, Z, _ = three_groups()
    rows = np.vstack([X[:2], X[:2], np.full((1, 6), 1e90), np.zeros((1, 6))])
    for features, embedding in (
        (X, Z),
        (np.ones_like(X), Z),
        (X, np.ones_like(Z)),
        (X, 1e90 * Z),
        (X, Z[:, :1]),
    ):
        for epsilon in (1e-4, 1e8):
            fitted = model(variant=variant, epsilon=epsilon, max_iter=3).fit(features, embedding)
            placed = fitted.transform(rows)
            assert placed.shape == (6, embedding.shape[1])
            assert (placed >= embedding.min(axis=0)).all()
            assert (placed <= embedding.max(axis=0)).all()


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"delta": 1.0}, "delta must lie"),
        ({"variant": "code"}, "variant must be one of corrected, paper"),
        ({"perplexity": 0.5}, "perplexity must be a finite number at least 1"),
        ({"perplexity": 120.0}, "perplexity must be less than the number of anchors"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"learning_rate": 0.0}, "learning_rate must be"),
        ({"exaggeration": -1.0}, "exaggeration must be"),
        ({"clip": math.nan}, "clip must be"),
        ({"random_state": "a"}, "random_state must be"),
    ],
)
def test_bad_parameters(params, match):
    X, Z, _ = three_groups()
    with pytest.raises(ValueError, match=match):
        model().set_params(**params).fit(X, Z)


def test_bad_rows():
    X, Z, _ = three_groups()
    fitted = model().fit(X, Z)
    with pytest.raises(ValueError, match="features"):
        fitted.transform(X[:, :4])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model().fit(X, Z[:-1])
    with pytest.raises(ValueError, match="rescale it"):
        fitted.transform(1e120 * X)
    with pytest.raises(ValueError, match="y has a magnitude"):
        model().fit(X, 1e120 * Z)
    with pytest.raises(ValueError, match="NaN"):
        model().fit(X, np.where(Z > 8.0, np.nan, Z))
    with pytest.raises(ValueError, match="y"):
        model().fit(X, None)


def test_refused_rows_are_not_quoted():
    X, Z, _ = three_groups()
    fitted = model().fit(X, Z)
    assert any("reveals them" in caveat for caveat in fitted.guarantee_.caveats)
    with pytest.raises(ValueError, match="magnitude above") as error:
        fitted.transform(np.where(X[0] == X, 1.2345e120, X))
    assert "1.23" not in str(error.value)
    with pytest.raises(ValueError, match="real numbers") as error:
        fitted.transform(np.full((2, 6), "Mary Smith", dtype=object))
    assert "Mary" not in str(error.value)


@pytest.mark.parametrize("variant", ["corrected", "paper"])
def test_every_transform_is_charged_before_rows_are_placed(variant, monkeypatch):
    X, Z, _ = three_groups()
    fitted = model(variant=variant).fit(X, Z)

    def refuse(guarantee):
        assert guarantee == fitted.guarantee_of(7)
        raise RuntimeError("spent")

    monkeypatch.setattr("privclust.embedding._dpdsne.charge", refuse)
    monkeypatch.setattr(fitted, "_placed", None)
    with pytest.raises(RuntimeError, match="spent"):
        fitted.transform(X[:7])
