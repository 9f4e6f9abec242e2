"""Private principal components: sensitivities, noise, draws and promises."""

import math
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import stats

from privclust.core.second_moments import second_moments, unit
from privclust.embedding import PrivatePCA
from privclust.privacy import NoiseWarning, PrivacyLeakWarning, pld_epsilon
from privclust.privacy.accounting import Loss
from privclust.privacy.bounds import bounded_rows

GAUSSIAN = ["gaussian", "mod_sulq"]
hidden = pytest.mark.filterwarnings("ignore::privclust.privacy.NoiseWarning")


def ellipsoid(n=3000, d=5, seed=0):
    """Rows in the unit ball, longest along a random direction."""
    rng = np.random.default_rng([seed, n, d])
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    X = rng.standard_normal((n, d)) * np.geomspace(1.0, 0.1, d) @ turn
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)


def eigenvectors(X, k):
    """Leading eigenvectors of the second moments, (k, d), by singular values."""
    return np.linalg.svd(X, full_matrices=False)[2][:k]


def apart(first, second):
    """Sine of the largest angle between the spans of orthonormal rows."""
    return np.linalg.norm(first - first @ second.T @ second, 2)


def model(k=2, **params):
    return PrivatePCA(k, **({"norm_bound": 1.0, "random_state": 0} | params))


def concentration(found):
    """C of the stated density e^(c tr(V' M V))."""
    return float(found.guarantee_.releases[0].noise.split("(")[1].split()[0])


# --- sensitivity -----------------------------------------------------------------------------


def rows_of_the_ball(d, seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((200, d))
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), rng.random((200, 1)))
    return np.vstack([np.eye(d), rows])


@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize("mechanism", GAUSSIAN)
def test_sensitivity_of_moments_is_a_bound_and_attained(mechanism, d):
    """In the coordinates that get equal noise, over all pairs of rows; by unit vectors of axes.

    But for the margin of the unit, in which rounded rows of the ball have norm 1 at most.
    """
    weight = model(mechanism=mechanism)._noise(d).weight
    weights = np.where(np.eye(d, dtype=bool), 1.0, weight)[np.triu_indices(d)]
    rows = rows_of_the_ball(d, d)
    moments = [np.asarray(second_moments(row[None], unit(1.0, d))) for row in rows]
    found = np.array([each[np.triu_indices(d)] for each in moments])
    found *= weights
    replaced = np.linalg.norm(found[:, None] - found, axis=2).max()
    for neighbours, largest in (
        ("replace_one", replaced),
        ("add_remove", np.linalg.norm(found, axis=1).max()),
    ):
        bound = model(mechanism=mechanism, neighbours=neighbours)._noise(d).sensitivity
        assert bound.relation == neighbours.replace("_", "-")
        assert bound.value / unit(1.0, d) ** 2 - 2**-16 <= largest <= bound.value


def log_densities(moments, c):
    """Log density of the angle of V on the circle, on a grid, from its definition."""
    angles = np.linspace(0.0, math.pi, 20001)
    V = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    scores = c * np.einsum("ai,ij,aj->a", V, moments, V)
    return scores - scores.max() - np.log(np.trapezoid(np.exp(scores - scores.max()), angles))


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_exponential_loss_nearly_attains_epsilon(neighbours):
    """Exact densities on the circle, over pairs of rows; concentrated data come nearest."""
    epsilon = 0.8
    fitted = model(1, mechanism="exponential", epsilon=epsilon, neighbours=neighbours).fit(
        np.eye(2)
    )
    c = concentration(fitted)
    rows = rows_of_the_ball(2, 1)[:40]
    largest = 0.0
    for others in (np.zeros((2, 2)), np.diag([3.0, 0.0]), np.diag([3000.0, 0.0])):
        found = np.array([log_densities(others + np.outer(x, x), c) for x in rows])
        pairs = np.abs(found[:, None] - found).max()
        added = np.abs(found - log_densities(others, c)).max()
        largest = max(largest, pairs if neighbours == "replace_one" else added)
    assert largest <= epsilon
    assert largest > 0.99 * epsilon


# --- noise and draws -------------------------------------------------------------------------


@hidden
@pytest.mark.parametrize("mechanism", GAUSSIAN)
def test_noise_on_one_feature(mechanism):
    """With d = 1 the noisy moment is seen; Kolmogorov-Smirnov, false alarms 1e-4 each."""
    X, rng = np.full((50, 1), 1.5), np.random.default_rng(1)
    fits = [
        PrivatePCA(1, mechanism=mechanism, norm_bound=3.0, random_state=rng).fit(X)
        for _ in range(1500)
    ]
    scale = float(fits[0].guarantee_.releases[0].noise.split()[1])
    noise = np.array([fit.explained_[0] for fit in fits]) / 9.0 - 50 * 0.25
    assert stats.kstest(noise, stats.norm(scale=scale).cdf).pvalue > 1e-4


@pytest.mark.parametrize("mechanism", GAUSSIAN)
def test_noise_on_matrices(mechanism):
    """Diagonal and beside it; false alarms 1e-4 each."""
    noise = model(mechanism=mechanism)._noise(4)
    drawn = noise.release(np.zeros((3000, 4, 4)), np.random.default_rng(2))
    beside = noise.sigma if mechanism == "mod_sulq" else noise.sigma / math.sqrt(2)
    assert stats.kstest(drawn[:, 1, 1], stats.norm(scale=noise.sigma).cdf).pvalue > 1e-4
    assert stats.kstest(drawn[:, 0, 3], stats.norm(scale=beside).cdf).pvalue > 1e-4


def test_gaussian_noise_spends_the_budget():
    for neighbours, delta2 in (("replace_one", 2.0), ("add_remove", 1.0)):
        found = model(epsilon=0.7, delta=1e-5, neighbours=neighbours).fit(ellipsoid(100))
        sigma = found._noise(5).sigma
        assert pld_epsilon([Loss(delta2 / (2 * sigma**2))], 1e-5) == pytest.approx(0.7, rel=1e-6)
        assert found.guarantee_.definition == "approximate"
        assert found.guarantee_.relation == neighbours.replace("_", "-")
        assert 0.7 * (1 - 1e-6) < found.guarantee_.epsilon <= 0.7


def test_mod_sulq_scale_by_hand():
    """d = 3, epsilon 0.5, delta 1e-3: 4/0.5 sqrt(2 ln(12 / 0.0050133)) + 1/sqrt(0.5)."""
    found = model(mechanism="mod_sulq", epsilon=0.5, delta=1e-3).fit(ellipsoid(100, 3))
    sigma = found._noise(3).sigma
    assert sigma == pytest.approx(8 * math.sqrt(2 * 7.78055) + 1.41421, rel=1e-5)
    expected = pld_epsilon([Loss(1.0 / sigma**2)], 1e-3)
    assert found.guarantee_.epsilon == pytest.approx(expected, rel=1e-6)
    assert expected < 0.5


def test_draws_have_the_density_of_the_exponential_mechanism():
    """Angles of one component in the plane; Kolmogorov-Smirnov, false alarms 1e-4."""
    X = np.array([[1.0, 0.0], [0.6, 0.8], [0.6, 0.8]])
    rng = np.random.default_rng(3)
    fits = [
        PrivatePCA(1, mechanism="exponential", epsilon=6.0, norm_bound=1.0, random_state=rng).fit(X)
        for _ in range(1500)
    ]
    c = concentration(fits[0])
    assert c == 3.0
    angles = np.array([math.atan2(*fit.components_[0, ::-1]) % math.pi for fit in fits])
    grid = np.linspace(0.0, math.pi, 20001)
    cdf = np.cumsum(np.exp(log_densities(X.T @ X, c))) * (grid[1] - grid[0])
    assert stats.kstest(angles, lambda a: np.interp(a, grid, cdf)).pvalue > 1e-4


# --- what is promised ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "definition"), [(1, "pure"), (2, "asymptotic"), (3, "pure"), (4, "pure")]
)
def test_exponential_promises_what_its_sampler_keeps(k, definition):
    found = model(k, mechanism="exponential", epsilon=0.8).fit(ellipsoid(100, 4))
    assert found.guarantee_.definition == definition
    assert found.guarantee_.epsilon == pytest.approx(0.8)
    np.testing.assert_allclose(found.components_ @ found.components_.T, np.eye(k), atol=1e-12)
    assert found.explained_ is None
    if definition == "asymptotic":
        assert math.isinf(found.guarantee_.epsilon_at(1e-6))


def test_gibbs_start_owes_nothing_to_the_data(monkeypatch):
    starts = []

    def watched(A, q, rng, n_sweeps, init):
        starts.append(init.copy())
        return init

    monkeypatch.setattr("privclust.bingham.sample_matrix_bingham", watched)
    for X in (ellipsoid(100), ellipsoid(50, seed=1)):
        model(2, mechanism="exponential").fit(X)
    np.testing.assert_array_equal(*starts)
    np.testing.assert_allclose(starts[0].T @ starts[0], np.eye(2), atol=1e-12)


@pytest.mark.parametrize("mechanism", ["gaussian", "mod_sulq", "exponential"])
def test_bound_from_the_data_leaves_no_guarantee(mechanism):
    with pytest.warns(PrivacyLeakWarning, match="norm_bound"):
        found = model(1, mechanism=mechanism, norm_bound=None).fit(ellipsoid(100))
    assert found.guarantee_.definition == "none"
    assert math.isinf(found.guarantee_.epsilon_at(1e-6))
    assert any("norm_bound" in caveat for caveat in found.guarantee_.caveats)


@pytest.mark.skipif(find_spec("opendp") is None, reason="needs opendp (privclust[secure])")
@pytest.mark.parametrize("mechanism", ["gaussian", "exponential"])
def test_noise_of_a_release_cannot_be_repeated(mechanism):
    X = ellipsoid(100)
    first, second = (model(mechanism=mechanism, random_state=None).fit(X) for _ in range(2))
    assert not first.guarantee_.seeded
    assert apart(first.components_, second.components_) > 1e-9


@pytest.mark.parametrize("mechanism", ["gaussian", "mod_sulq", "exponential"])
@hidden
def test_any_number_of_rows_where_it_is_private(mechanism):
    settings = {"mechanism": mechanism, "neighbours": "add_remove"}
    fits = [model(1, **settings).fit(np.zeros((n, 4))) for n in (0, 1, 50)]
    assert {fit.components_.shape for fit in fits} == {(1, 4)}
    assert fits[0].guarantee_ == fits[1].guarantee_ == fits[2].guarantee_
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        model(1, mechanism=mechanism).fit(np.zeros((0, 4)))


def test_the_largest_epsilon_does_not_depend_on_row_counts():
    settings = {"mechanism": "exponential", "neighbours": "add_remove", "epsilon": 1e3}
    messages = set()
    for n in (0, 1, 1000):
        with pytest.raises(ValueError, match="epsilon must be at most 931") as error:
            model(1, **settings).fit(np.zeros((n, 4)))
        messages.add(str(error.value))
    assert len(messages) == 1


@pytest.mark.parametrize("mechanism", ["gaussian", "exponential"])
@pytest.mark.parametrize("entry", [np.nan, np.inf, 3e38])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_row_is_drawn_in(mechanism, entry, dtype):
    X = ellipsoid(100).astype(dtype)
    X[3, 2] = entry
    with pytest.warns(UserWarning, match="clipped"):
        found = model(mechanism=mechanism, missing="middle").fit(X)
    assert np.isfinite(found.components_).all()
    assert "an entry that is not a number" in str(found.guarantee_)


def test_the_sampler_says_that_it_is_not_cryptographic():
    found = model(1, mechanism="exponential").fit(ellipsoid(100))
    assert "not cryptographic" in str(found.guarantee_)
    assert "not cryptographic" not in str(model(1).fit(ellipsoid(100)).guarantee_)


@pytest.mark.parametrize("mechanism", ["gaussian", "exponential"])
def test_a_fit_is_charged_before_the_rows_are_summed_up(mechanism, monkeypatch):
    def refuse(guarantee):
        assert guarantee.epsilon == pytest.approx(0.5)
        raise RuntimeError("spent")

    def never(*_):
        raise AssertionError

    monkeypatch.setattr("privclust.privacy.estimator.charge", refuse)
    monkeypatch.setattr("privclust.embedding._private_pca.second_moments", never)
    with pytest.raises(RuntimeError, match="spent"):
        model(1, mechanism=mechanism, epsilon=0.5).fit(ellipsoid(100))


def test_hidden_components_are_told_from_the_release():
    """For 20 seeds each: at epsilon 1e-9, with one row, and never where the gap is 3 T or more."""
    X = np.repeat(np.eye(4)[:2], 2000, axis=0)  # two eigenvalues of 2000: T is 41 at epsilon 1
    for seed in range(20):
        for rows, epsilon in ((X, 1e-9), (X[:1], 1.0)):
            with pytest.warns(NoiseWarning, match="hide 1 of 1 sets of components"):
                assert not model(epsilon=epsilon, random_state=seed).fit(rows).is_detected_
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert model(random_state=seed).fit(X).is_detected_
        with pytest.warns(NoiseWarning):  # the two are equal: neither is the first
            model(1, random_state=seed).fit(X)


# --- what is computed ------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["gaussian", "mod_sulq", "exponential"])
@pytest.mark.parametrize("k", [1, 2])
def test_without_noise_to_speak_of_it_is_pca(mechanism, k):
    """At epsilon 1e8 angles are about the root of 1 / (epsilon gap): 1e-5."""
    X = ellipsoid()
    found = model(k, mechanism=mechanism, epsilon=1e8).fit(X)
    assert apart(found.components_, eigenvectors(X, k)) < 1e-3
    np.testing.assert_allclose(found.transform(X), X @ found.components_.T, atol=1e-12)
    if mechanism == "gaussian":
        values = np.linalg.eigvalsh(X.T @ X)[::-1][:k]
        np.testing.assert_allclose(found.explained_, values, rtol=1e-4)
        assert (found.components_.max(axis=1) == np.abs(found.components_).max(axis=1)).all()


def test_many_rows_are_summed_up_in_parts():
    X = ellipsoid(9000)
    rounded = np.rint(X / 2.0 * 2**16) / 2**16
    np.testing.assert_array_equal(second_moments(X, 2.0), rounded.T @ rounded)  # of 32 bits: exact
    np.testing.assert_allclose(second_moments(X, 2.0), X.T @ X / 4.0, atol=9000 * 2**-17)


def test_rounding_of_float32_does_not_pass_the_bound():
    """Rows of float32 that are a little longer than the bound are clipped to it like others."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 40))
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
    assert (X.astype(np.float64) ** 2).sum(axis=1).max() > 1.0 + 1e-9
    with pytest.warns(UserWarning, match="clipped"):
        rows, radius, _ = bounded_rows(X, 1.0)
    for row in rows:
        moments = second_moments(row[None], unit(radius, 40))
        assert int(np.trace(moments.integers)) <= 2**moments.bits


def test_units_do_not_matter():
    X = ellipsoid(500)
    first, scaled = model().fit(X), model(norm_bound=1024.0).fit(1024.0 * X)
    np.testing.assert_allclose(first.components_, scaled.components_, atol=1e-9)
    np.testing.assert_allclose(scaled.explained_, first.explained_ * 1024.0**2, rtol=1e-6)


def test_long_rows_are_drawn_in():
    X = ellipsoid(500)
    X[::7] *= 50.0
    with pytest.warns(UserWarning, match="clipped"):
        found = model().fit(X)
    expected = model().fit(X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0))
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-9)


def test_more_epsilon_is_better():
    """Mean over 20 fits; noise alone leaves an angle whose sine is near 1."""
    X = ellipsoid(2000)
    angles = [
        np.mean(
            [
                apart(model(epsilon=e, random_state=s).fit(X).components_[:1], eigenvectors(X, 1))
                for s in range(20)
            ]
        )
        for e in (1e-4, 0.3, 30.0)
    ]
    assert angles[0] > 0.5
    assert angles[0] > 3 * angles[1] > 9 * angles[2]


def test_same_seed_same_bytes():
    X = ellipsoid(200)
    for mechanism in ("gaussian", "exponential"):
        first, second = (model(mechanism=mechanism).fit(X).components_ for _ in range(2))
        assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"n_components": 6}, "n_components must be at most the number of features"),
        ({"n_components": 0}, "n_components must be"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"delta": 1.0}, "delta must lie"),
        ({"mechanism": "laplace"}, "mechanism must be one of gaussian, exponential, mod_sulq"),
        ({"neighbours": "swap"}, "neighbours must be one of"),
        ({"n_sweeps": 0}, "n_sweeps must be"),
        ({"norm_bound": -1.0}, "norm_bound must be"),
        ({"random_state": "a"}, "random_state must be"),
        (
            {"mechanism": "exponential", "epsilon": 1e13},
            "epsilon must be at most 2e.*n_samples=100",
        ),
    ],
)
def test_bad_parameters(params, match):
    with pytest.raises(ValueError, match=match):
        model().set_params(**params).fit(ellipsoid(100))


def test_bad_rows():
    with pytest.raises(ValueError, match="features"):
        model().fit(ellipsoid(100)).transform(np.zeros((2, 4)))
