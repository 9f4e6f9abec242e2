"""SuLQ k-plane: its sensitivity, its noise and what it promises."""

import copy
import math
import pickle
import warnings
from importlib.util import find_spec

import numpy as np
import pytest

from privclust.core.grassmann import random_bases
from privclust.core.second_moments import in_units, unit
from privclust.metrics import subspace_cost, wasserstein_distance
from privclust.privacy import NoiseWarning, PrivacyLeakWarning, pld_epsilon
from privclust.privacy.accounting import Loss
from privclust.privacy.estimator import caveats_of_bounds
from privclust.privacy.measurements import SymmetricGaussian
from privclust.subspaces import KPlanes, SuLQKPlanes, moments_by_subspace

CALIBRATIONS = ["zcdp", "classical", "mod_sulq"]


def rows_near_subspaces(n=3000, d=5, k=3, q=3, noise=0.01, seed=0):
    rng = np.random.default_rng([seed, n])
    bases, labels = random_bases(k, d, q, rng), rng.integers(k, size=n)
    y = rng.standard_normal((n, q))
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    X = np.einsum("idq,iq->id", bases[labels], y) + noise * rng.standard_normal((n, d))
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0), bases


def model(k=3, q=3, **params):
    return SuLQKPlanes(k, q, **({"norm_bound": 1.0, "random_state": 0} | params))


# --- the noise -------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_sensitivity_is_a_bound_and_attained(calibration, d):
    """Changes of the statistics by replacing one row of the ball; unit vectors of axes attain it.

    In the coordinates of each calibration, over the matrices of all clusters together, but for the
    margin of the unit, in which rounded rows of the ball have norm 1 at most.
    """
    rng = np.random.default_rng(d)
    bases = random_bases(3, d, 1, rng)
    noise = model(calibration=calibration).round_noise(d, 1)
    weights = np.where(np.eye(d, dtype=bool), 1.0, noise.weight)[np.triu_indices(d)]

    def coordinates(row):
        rounded = in_units(row[None], unit(1.0, d))
        return np.asarray(moments_by_subspace(rounded, bases))[:, *np.triu_indices(d)] * weights

    rows = rng.standard_normal((300, d))
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), rng.random((300, 1)))
    rows = np.vstack([np.eye(d), rows])
    found = np.array([coordinates(row) for row in rows]).reshape(len(rows), -1)
    largest = np.linalg.norm(found[:, None] - found, axis=2).max()
    assert largest <= noise.sensitivity.value
    least = 1.0 / unit(1.0, d) ** 2 - 2**-16
    assert largest >= math.sqrt(2) * least
    added = model(calibration=calibration, neighbours="add_remove").round_noise(d, 1).sensitivity
    assert least <= np.linalg.norm(found, axis=1).max() <= added.value == 1.0


@pytest.mark.parametrize(("neighbours", "delta2"), [("replace_one", 2.0), ("add_remove", 1.0)])
@pytest.mark.parametrize(("n_init", "max_iter"), [(1, 1), (1, 10), (3, 4)])
def test_calibration_spends_the_budget(neighbours, delta2, n_init, max_iter):
    """All rounds are one normal release with T times the squared distance."""
    X, _ = rows_near_subspaces(200)
    params = {"epsilon": 0.7, "delta": 1e-5, "neighbours": neighbours}
    found = model(n_init=n_init, max_iter=max_iter, **params).fit(X)
    release, _ = found.guarantee_.releases
    sigma = float(release.noise.split()[1])
    n_rounds = n_init * max_iter
    assert release.loss.count == n_rounds
    whole = Loss(n_rounds * delta2 / (2 * sigma**2))  # sigma is printed with four digits
    assert pld_epsilon([whole], 1e-5) == pytest.approx(0.7, rel=2e-3)
    assert 0.7 * (1 - 1e-6) < found.guarantee_.epsilon <= 0.7
    assert found.guarantee_.definition == "approximate"
    assert found.guarantee_.relation == neighbours.replace("_", "-")
    assert found.guarantee_.caveats == caveats_of_bounds(found)


def test_mod_sulq_scale_by_hand():
    """d = 3, epsilon' = 0.5, delta' = 1e-3: 4/0.5 sqrt(2 ln(12 / 0.0050133)) + 1/sqrt(0.5)."""
    noise = model(calibration="mod_sulq", epsilon=1.0, delta=2e-3).round_noise(3, 2)
    assert noise.sigma == pytest.approx(8 * math.sqrt(2 * 7.78055) + 1.41421, rel=1e-5)
    assert noise.weight == 1.0


@pytest.mark.parametrize("d", [2, 5, 50])
@pytest.mark.parametrize("max_iter", [1, 10, 50])
def test_mod_sulq_promises_less_than_it_was_asked_for(d, max_iter):
    """The epsilon that follows from the joint change of all clusters is below the nominal one.

    As epsilon' grows its noise tends to 1/sqrt(epsilon'), a loss of rho = epsilon', from below.
    """
    X = np.random.default_rng(0).standard_normal((20, d)) / 100
    for epsilon in (0.01, 1.0, 1e3, 1e6):
        found = model(2, 1, calibration="mod_sulq", epsilon=epsilon, max_iter=max_iter).fit(X)
        noise = found.round_noise(d, max_iter)
        rho = max_iter / noise.sigma**2
        assert found.guarantee_.epsilon == pytest.approx(pld_epsilon([Loss(rho)], 1e-6), rel=1e-6)
        assert found.guarantee_.epsilon < epsilon
        assert rho / epsilon < 1.0


def test_classical_scale_by_hand():
    """epsilon' = 0.1, delta' = 1e-4: sqrt 2 sqrt(2 ln 12500) / 0.1, whatever d is."""
    noise = model(calibration="classical", epsilon=1.0, delta=1e-3).round_noise(7, 10)
    assert noise.sigma == pytest.approx(10 * math.sqrt(4 * 9.4334839), rel=1e-7)
    assert noise.weight == math.sqrt(2)


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
@pytest.mark.parametrize("n_rounds", [1, 10, 50])
def test_classical_rounds_compose_to_the_budget(neighbours, n_rounds):
    """Each round keeps its share, where the formula's proof ends too: there the least noise does.

    All together promise less than was asked for, and with more noise than by zCDP.
    """
    for epsilon in (0.01, 1.0, 30.0, 1e3, 1e5):
        params = {"epsilon": epsilon, "delta": 1e-4, "neighbours": neighbours}
        found = model(2, 1, calibration="classical", max_iter=n_rounds, **params).fit(np.eye(3))
        noise, least = found.round_noise(3, n_rounds), model(**params).round_noise(3, n_rounds)
        one = Loss((noise.sensitivity.value / noise.sigma) ** 2 / 2)
        assert pld_epsilon([one], 1e-4 / n_rounds) <= epsilon / n_rounds
        assert found.guarantee_.epsilon == pytest.approx(
            pld_epsilon([Loss(n_rounds * one.rho)], 1e-4), rel=1e-6
        )
        assert found.guarantee_.epsilon <= epsilon
        assert noise.sigma >= least.sigma


# --- what is promised ------------------------------------------------------------------------


def test_bound_from_the_data_leaves_no_guarantee():
    with pytest.warns(PrivacyLeakWarning, match="norm_bound"):
        found = model(norm_bound=None).fit(rows_near_subspaces(100)[0])
    assert found.guarantee_.definition == "none"
    assert math.isinf(found.guarantee_.epsilon_at(1e-6))
    assert any("norm_bound" in caveat for caveat in found.guarantee_.caveats)


def test_starts_from_the_data_leave_no_guarantee():
    X, bases = rows_near_subspaces(100)
    labels = np.arange(100) % 3
    for init, reason in ((labels, "labels"), (KPlanes(3, 3), "KPlanes")):
        found = model(init=init).fit(X)
        assert found.guarantee_.definition == "none"
        assert reason in found.guarantee_.caveats[0]
    assert model(init=bases).fit(X).guarantee_.definition == "approximate"


@pytest.mark.parametrize("inner", ["replace_one", "add_remove"])
def test_a_private_start_is_paid_for(inner):
    """For replace-one neighbours an add-remove rho counts four times."""
    X, _ = rows_near_subspaces(100)
    start = SuLQKPlanes(3, 3, epsilon=0.5, norm_bound=1.0, neighbours=inner)
    found = model(init=start, epsilon=0.8).fit(X).guarantee_
    left_out = "number of records left out"
    assert [each.name for each in found.releases] == [
        *("second moments", "start: second moments", f"start: {left_out}", left_out)
    ]
    alone = start.set_params(random_state=0).fit(X).guarantee_.total_rho
    expected = (4 if inner == "add_remove" else 1) * alone
    assert found.total_rho == pytest.approx(
        model(epsilon=0.8).fit(X).guarantee_.total_rho + expected
    )
    assert found.epsilon == pytest.approx(found.epsilon_at(1e-6))
    assert found.definition == "approximate"
    assert found.seeded


def test_replace_one_start_for_added_rows_is_refused():
    X, _ = rows_near_subspaces(100)
    with pytest.raises(ValueError, match="init: the guarantee of SuLQKPlanes is for replace-one"):
        model(init=model(), neighbours="add_remove").fit(X)


@pytest.mark.skipif(find_spec("opendp") is None, reason="needs opendp (privclust[secure])")
def test_noise_of_a_release_cannot_be_repeated():
    X, bases = rows_near_subspaces(300)
    first, second = (model(init=bases, random_state=None, max_iter=2).fit(X) for _ in range(2))
    assert not first.guarantee_.seeded
    assert wasserstein_distance(first.subspaces_, second.subspaces_) > 1e-6


def test_same_seed_same_bytes():
    X, _ = rows_near_subspaces(200)
    for init in ("random", SuLQKPlanes(3, 3, norm_bound=1.0), KPlanes(3, 3)):
        first, second = (model(init=init).fit(X).subspaces_ for _ in range(2))
        assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.filterwarnings("ignore::privclust.privacy.NoiseWarning")
def test_any_number_of_rows_where_it_is_private(n):
    found = model(neighbours="add_remove").fit(np.zeros((n, 5)))
    many = model(neighbours="add_remove").fit(np.zeros((40, 5)))
    assert found.subspaces_.shape == many.subspaces_.shape == (3, 5, 3)
    assert found.guarantee_ == many.guarantee_
    with pytest.raises(ValueError, match="n_clusters"):
        model().fit(np.zeros((2, 5)))


@pytest.mark.filterwarnings("ignore::privclust.privacy.NoiseWarning")
@pytest.mark.parametrize("entry", [np.nan, np.inf, -np.inf, 1e300])
def test_any_row_is_drawn_in(entry):
    X, _ = rows_near_subspaces(100)
    X[3, 1] = entry
    with pytest.warns(UserWarning, match="clipped"):
        found = model(missing="middle").fit(X)
    assert found.labels_.shape == (100,)
    assert "an entry that is not a number" in str(found.guarantee_)


def test_labels_are_not_released():
    found = model().fit(rows_near_subspaces(100)[0])
    for other in (copy.copy(found), pickle.loads(pickle.dumps(found))):
        assert not hasattr(other, "labels_")
        np.testing.assert_array_equal(other.subspaces_, found.subspaces_)


def test_rounds_are_charged_before_the_rows_are_looked_at(monkeypatch):
    charged = []

    def refuse(guarantee):
        charged.append(guarantee)
        raise RuntimeError("spent")

    def never(*_):
        raise AssertionError

    monkeypatch.setattr("privclust.privacy.estimator.charge", refuse)
    monkeypatch.setattr("privclust.subspaces._sulq.moments_by_subspace", never)
    with pytest.raises(RuntimeError, match="spent"):
        model(epsilon=0.5, n_init=2).fit(rows_near_subspaces(100)[0])
    assert [round(each.epsilon, 4) for each in charged] == [0.5]


def test_hidden_subspaces_are_told_from_the_release():
    """For 20 seeds each: at epsilon 1e-9, with one row, and never where the gap is 3 T or more."""
    axes = np.repeat(np.eye(2), 3000, axis=0)  # moments diag(3000, 0): T is 62 at epsilon 1
    for seed in range(20):
        params = {"init": np.eye(2)[:, :, None], "max_iter": 3, "random_state": seed}
        for X, epsilon in ((axes, 1e-9), (axes[:2], 1.0)):
            with pytest.warns(NoiseWarning, match="hide . of 2 subspaces"):
                hidden = model(2, 1, epsilon=epsilon, **params).fit(X)
            assert hidden.is_detected_.shape == (2,)
            assert not hidden.is_detected_.all()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert model(2, 1, **params).fit(axes).is_detected_.all()


# --- what is computed ------------------------------------------------------------------------


@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_without_noise_to_speak_of_it_is_k_plane(calibration):
    X, _ = rows_near_subspaces()
    start = random_bases(3, 5, 3, np.random.default_rng(5))
    found = model(init=start, epsilon=1e14, calibration=calibration, max_iter=3).fit(X)
    expected = KPlanes(3, 3, init=start, max_iter=3).fit(X)
    assert expected.n_iter_ == 3
    assert wasserstein_distance(found.subspaces_, expected.subspaces_) < 1e-4
    np.testing.assert_array_equal(found.labels_, found.predict(X))
    assert found.n_iter_ == 3


def test_units_do_not_matter():
    X, _ = rows_near_subspaces(500)
    first = model().fit(X)
    scaled = model(norm_bound=1024.0).fit(1024.0 * X)
    np.testing.assert_allclose(first.subspaces_, scaled.subspaces_, atol=1e-12)


def test_long_rows_are_drawn_in():
    X, _ = rows_near_subspaces(500)
    longer = X.copy()
    longer[::7] *= 50.0
    norms = np.linalg.norm(longer, axis=1, keepdims=True)
    with pytest.warns(UserWarning, match="clipped"):
        found = model().fit(longer)
    expected = model().fit(longer / np.maximum(norms, 1.0))
    np.testing.assert_allclose(found.subspaces_, expected.subspaces_, atol=1e-9)


def test_more_epsilon_is_better_and_pure_noise_is_no_harm():
    X, bases = rows_near_subspaces()
    costs = [
        np.mean(
            [
                subspace_cost(X, model(init=bases, epsilon=e, random_state=s).fit(X).subspaces_)
                for s in range(5)
            ]
        )
        for e in (1e-3, 1.0, 10.0)
    ]
    assert costs[0] > 10 * costs[1] > 10 * costs[2]
    # three random subspaces of 5 dimensions leave at most the 2/5 that a fixed one would
    assert 0.1 < costs[0] < 0.4


def test_restarts_pay_where_bad_optima_are_the_larger_harm():
    """Mean cost over 12 data sets at one budget; and the other way round where noise is."""
    costs = {}
    for epsilon in (0.1, 5.0):
        for n_init in (1, 5):
            fits = []
            for seed in range(12):
                X, bases = rows_near_subspaces(5000, seed=seed)
                found = model(epsilon=epsilon, n_init=n_init, random_state=seed + 50).fit(X)
                fits.append(subspace_cost(X, found.subspaces_) / subspace_cost(X, bases))
            costs[epsilon, n_init] = np.mean(fits)
    assert costs[5.0, 5] < 0.5 * costs[5.0, 1]
    assert costs[0.1, 1] < costs[0.1, 5]


@pytest.mark.parametrize("n_init", [1, 3])
def test_averaged_rounds_are_the_mean_of_what_they_release(n_init, monkeypatch):
    """Of the run that has more within its subspaces by the means, the last three of its rounds."""
    X, _ = rows_near_subspaces(300)
    released = []
    release = SymmetricGaussian.release

    def watched(*args):
        released.append(release(*args))
        return released[-1]

    monkeypatch.setattr(SymmetricGaussian, "release", watched)
    found = model(max_iter=5, n_init=n_init, n_averaged=3, epsilon=20.0).fit(X)
    runs = np.reshape(released, (n_init, 5, 3, 5, 5))
    values, vectors = np.linalg.eigh(runs[:, 2:].mean(axis=1))
    best = values[..., -3:].sum(axis=(1, 2)).argmax()
    expected = vectors[best][..., -3:]
    assert wasserstein_distance(found.subspaces_, expected) < 1e-6
    assert found.guarantee_ == model(max_iter=5, n_init=n_init, epsilon=20.0).fit(X).guarantee_


def test_averages_have_the_noise_of_so_many_rounds():
    """Settled, 16 rounds leave a quarter of the distance: means of 20 fits. And gaps are clearer.

    Moments diag(70, 0) of a cluster have 0.44 T as their gap: noise of one round lifts one in 100
    above T, noise of 16 leaves one in 1,000 below a quarter of it. Of 40 each, 4 are allowed.
    """
    X, bases = rows_near_subspaces(2000)
    axes = np.repeat(np.eye(2), 70, axis=0)
    distances, clear = np.zeros(2), np.zeros(2)
    for seed in range(20):
        for i, n_averaged in enumerate((1, 16)):
            params = {"max_iter": 20, "n_averaged": n_averaged, "random_state": seed}
            found = model(init=bases, epsilon=10.0, **params).fit(X)
            distances[i] += wasserstein_distance(found.subspaces_, bases)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NoiseWarning)
                lines = model(2, 1, init=np.eye(2)[:, :, None], **params).fit(axes)
            clear[i] += lines.is_detected_.sum()
    assert 0.15 < distances[1] / distances[0] < 0.35
    assert clear[0] <= 4
    assert clear[1] >= 36


def test_empty_clusters_are_no_harm():
    X = np.outer(np.linspace(0.1, 1, 50), [1.0, 0, 0, 0])
    start = np.stack([np.eye(4)[:, :2], np.eye(4)[:, 2:]])
    found = model(2, 2, init=start, epsilon=100.0).fit(X)
    np.testing.assert_allclose(
        found.subspaces_.transpose(0, 2, 1) @ found.subspaces_,
        np.broadcast_to(np.eye(2), (2, 2, 2)),
        atol=1e-12,
    )


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"n_clusters": 101}, "n_clusters must be at most the number of samples"),
        ({"dimension": 5}, "dimension must be less than the number of features"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"delta": 0.0}, "delta must be"),
        ({"delta": 1.0}, "delta must lie"),
        ({"calibration": "pure"}, "calibration must be one of zcdp, classical, mod_sulq"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"n_init": 0}, "n_init must be"),
        ({"n_averaged": 0}, "n_averaged must be"),
        ({"n_averaged": 2.0}, "n_averaged must be"),
        ({"n_averaged": 11}, "n_averaged must be at most max_iter=10, got 11"),
        ({"neighbours": "swap"}, "neighbours must be one of"),
        ({"norm_bound": -1.0}, "norm_bound must be"),
        ({"init": "pca"}, "init must be one of random"),
        ({"random_state": "a"}, "random_state must be"),
    ],
)
def test_bad_parameters(params, match):
    with pytest.raises(ValueError, match=match):
        model().set_params(**params).fit(rows_near_subspaces(100)[0])
