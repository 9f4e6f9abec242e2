"""Compressive k-means: what it finds, what it promises, and what its output may depend on."""

import copy
import math
import pickle
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

from privclust.decoding import DensitySketches, decode
from privclust.kmeans import CompressiveKMeans, LloydKMeans
from privclust.kmeans import _compressive as module
from privclust.privacy import NoiseWarning, PrivacyLeakWarning, estimator
from privclust.sketches import Sketch, sensitivities

CENTERS = np.array([[-6.0, 0.0], [6.0, 2.0], [0.0, 8.0]])
PRIVATE = {"epsilon": 1.0, "bounds": (-20, 20)}
BUDGETS = [(0.0, "laplace"), (0.0, "auto"), (1e-6, "gaussian"), (1e-6, "auto"), (1e-3, "laplace")]
needs_opendp = pytest.mark.skipif(
    find_spec("opendp") is None, reason="needs opendp (privclust[secure])"
)


def three_groups(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    return CENTERS[rng.integers(3, size=n)] + rng.standard_normal((n, 2))


def model(k=3, **params):
    """Without privacy unless params say so."""
    known = {"epsilon": None, "n_frequencies": 150, "random_state": 0}
    return CompressiveKMeans(k, **(known | params))


def error(found, truth=CENTERS):
    """Largest distance of a true center to the nearest that was found."""
    return cdist(truth, found.cluster_centers_).min(axis=1).max()


# --- what is found ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"bounds": (-20, 20)},
        {"variance": 9.0},
        {"epsilon": 10.0, "bounds": (-20, 20)},
        {"epsilon": 1.0, "delta": 1e-6, "bounds": (-20, 20)},
        {"epsilon": 1.0, "delta": 1e-6, "bounds": (-20, 20), "neighbours": "add_remove"},
        {"epsilon": 1.0, "delta": 1e-6, "bounds": (-20, 20), "variance": 9.0},
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_groups_are_found(params, dtype):
    X = three_groups(20000).astype(dtype)
    found = model(**params).fit(X)
    assert error(found) < 0.3
    sse = (cdist(X, found.cluster_centers_).min(axis=1) ** 2).sum()
    reference = LloydKMeans(3, random_state=0).fit(X).inertia_
    assert sse < (1.05 if "epsilon" in params else 1.005) * reference
    np.testing.assert_allclose(found.weights_, 1 / 3, atol=0.05)
    np.testing.assert_array_equal(found.labels_, cdist(X, found.cluster_centers_).argmin(axis=1))
    np.testing.assert_array_equal(found.predict(X), found.labels_)
    np.testing.assert_allclose(found.transform(X[:9]), cdist(X[:9], found.cluster_centers_))


@pytest.mark.parametrize("offset", [1e6, -1e9])
def test_data_far_from_the_origin(offset):
    """Phases of size s lose s 1e-16 of their precision, which is 1e-7 at most here."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (2000, 1)) + 0.1 * rng.standard_normal((2000, 2))
    X[:, 1] += 5.0
    truth = np.array([[-1.0, 4.0], [1.0, 6.0]])
    near = model(2).fit(X)
    far = model(2).fit(X + offset)
    assert error(near, truth) < 0.02
    assert error(far, truth + offset) < 0.02


@pytest.mark.parametrize("scale", [1e-9, 1e9])
@pytest.mark.parametrize("params", [{}, {"epsilon": 5.0, "delta": 1e-6}])
def test_scaling_the_data_scales_the_centers(scale, params):
    """The box is scaled as well. Rounding differs, and with it where the optimiser stops."""
    X = three_groups()
    known = {"bounds": (-20, 20)} if params else {}
    scaled = {"bounds": (-20 * scale, 20 * scale)} if params else {}
    plain = model(**params, **known).fit(X)
    other = model(**params, **scaled).fit(scale * X)
    assert cdist(plain.cluster_centers_, other.cluster_centers_ / scale).min(axis=1).max() < 0.05


@pytest.mark.parametrize("decoder", ["gaussian", "clompr"])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_degenerate_data_gives_finite_centers(decoder):
    rng = np.random.default_rng(0)
    without, hidden, clear = {}, {**PRIVATE, "epsilon": 1e-30}, {**PRIVATE, "epsilon": 1e6}
    of_one_feature = three_groups(30)[:, :1]
    for X in (
        of_one_feature,
        three_groups(2),
        np.full((50, 2), 0.1),
        np.zeros((5, 3)),
        np.full((20, 2), 1e6 + 0.1),
        np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0),
        np.outer(np.arange(60.0), np.ones(3)),
        rng.standard_normal((40, 2)) * [1.0, 1e-9],
        np.append(rng.standard_normal((40, 2)), [[1e6, 1e6]], axis=0),
        np.asfortranarray(three_groups(40)),
        rng.integers(0, 5, (40, 2)),
        1e90 * three_groups(40),
        1e-18 * three_groups(40),
    ):
        shapes_alone_count = X is of_one_feature or X.shape == (5, 3)  # where noise is all
        for params in (without, clear, hidden) if shapes_alone_count else (without, clear):
            found = model(2, n_frequencies=60, decoder=decoder, **params).fit(X)
            assert np.isfinite(found.cluster_centers_).all()
            assert found.weights_.sum() == pytest.approx(1.0, abs=1e-9)
            assert found.labels_.shape == (len(X),)
            if params:
                assert np.abs(found.cluster_centers_).max() <= 20


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 + 0.1])
def test_equal_rows_are_their_own_center(value):
    """To what the optimiser leaves of a unit, the scale where rows set none, and of the value."""
    found = model(1).fit(np.full((50, 2), value))
    np.testing.assert_allclose(found.cluster_centers_, value, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("params", [{}, PRIVATE, {**PRIVATE, "delta": 1e-6}])
def test_same_seed_same_bytes(params):
    X = three_groups(500)
    first, second = (model(**params).fit(X) for _ in range(2))
    assert first.cluster_centers_.tobytes() == second.cluster_centers_.tobytes()
    assert first.weights_.tobytes() == second.weights_.tobytes()
    generator = model(**params, random_state=np.random.default_rng(0)).fit(X)
    assert first.cluster_centers_.tobytes() == generator.cluster_centers_.tobytes()
    other = model(**params, random_state=1).fit(X)
    assert first.cluster_centers_.tobytes() != other.cluster_centers_.tobytes()


def test_number_of_frequencies():
    X = three_groups(100)
    assert model(3, n_frequencies=33).fit(X).sketch_.n_frequencies == 33
    assert CompressiveKMeans(3, epsilon=None, random_state=0).fit(X).sketch_.n_frequencies == 500
    with pytest.warns(UserWarning, match="identifiable"):
        model(3, n_frequencies=8).fit(X)


def test_a_pilot_with_a_noisy_number_of_records():
    """A count that is too low by noise, 11 % of it, must not make features look too large.

    Large features are what data in a point have, and where the variance is read off as a tenth of
    it centers lie together, which costs several times the error; 30 draws, d = k = 10.
    """
    b = 17.0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        means = 1.9 * rng.standard_normal((10, 10))
        X = means[rng.integers(10, size=4000)] + rng.standard_normal((4000, 10))
        fitted = model(10, epsilon=0.25, delta=1e-6, neighbours="add_remove", bounds=(-b, b))
        fitted.set_params(random_state=seed)._start(fitted._checked_records(X))
        ratio = fitted._data_moments.variance / X.var(axis=0).mean()
        assert 0.4 < ratio < 2.5


def test_where_nothing_can_be_read_centers_lie_over_the_box():
    """Rows fill a corner, noise is 100 times the features: no center may follow it to one place."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.8, 1.0, (200, 2))
    for seed in range(5):
        fitted = model(8, epsilon=0.01, delta=1e-6, bounds=(-1.0, 1.0), random_state=seed).fit(X)
        np.testing.assert_allclose(fitted._data_moments.variances, 1.0 / 3.0)
        centers = fitted.cluster_centers_
        assert np.abs(centers).max() <= 1.0
        assert (centers.std(axis=0) > 0.25).all()  # 0.58 where spread evenly


# --- what is promised ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def any_decoded():
    """One cluster, as of a fit without noise."""
    return decode(model(1, n_frequencies=20).fit(three_groups(50)).sketch_, 1, random_state=0)


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
@pytest.mark.parametrize("variance", [None, 9.0])
@pytest.mark.parametrize(("delta", "noise"), BUDGETS)
@pytest.mark.parametrize("epsilon", [0.01, 0.7, 20.0])
@pytest.mark.filterwarnings("ignore::privclust.privacy.WeakGuaranteeWarning")
def test_all_releases_together_cost_the_budget(
    monkeypatch, any_decoded, neighbours, variance, delta, noise, epsilon
):
    """Pilot and sketch; 4e-16 is for the rounding of 0.1 epsilon + 0.9 epsilon.

    What is decoded of the sketches costs nothing: it is the same here for all.
    """
    monkeypatch.setattr(module, "decode", lambda *args, **how: any_decoded)
    fit = model(
        1,
        n_frequencies=20,
        epsilon=epsilon,
        delta=delta,
        noise=noise,
        neighbours=neighbours,
        variance=variance,
        last_round=False,
        bounds=(-20, 20),
    )
    for seed in range(2):
        promise = fit.fit(three_groups(50, seed)).guarantee_
        assert promise.relation == neighbours.replace("_", "-")
        assert 0.9 * epsilon < promise.epsilon <= epsilon * (1 + 4e-16)
        assert promise.delta <= delta
        assert (promise.definition == "pure") == (promise.delta == 0)
        assert noise == "auto" or promise.releases[0].mechanism == noise
        assert len(promise.releases) == (3 if variance is None else 2)
        assert promise.seeded
        assert fit.sketch_.guarantee == promise


def test_a_file_promises_what_the_fit_does(tmp_path):
    """Its frequencies come from the pilot, so that it tells of both."""
    fit = model(**PRIVATE).fit(three_groups())
    fit.sketch_.save(tmp_path / "s.h5")
    assert Sketch.load(tmp_path / "s.h5").guarantee.epsilon == pytest.approx(1.0)
    with pytest.warns(PrivacyLeakWarning):
        fit = model(epsilon=1.0).fit(three_groups())
    fit.sketch_.save(tmp_path / "s.h5")
    assert Sketch.load(tmp_path / "s.h5").guarantee.definition == "none"


def test_without_an_epsilon_there_is_no_guarantee():
    promise = model().fit(three_groups(100)).guarantee_
    assert promise.definition == "none"
    assert any("no noise" in caveat for caveat in promise.caveats)


@pytest.mark.parametrize("variance", [None, 9.0])
def test_bounds_from_the_data_leave_no_guarantee(variance):
    with pytest.warns(PrivacyLeakWarning, match="bounds"):
        found = model(epsilon=1.0, variance=variance).fit(three_groups(100))
    assert found.guarantee_.definition == "none"
    assert any("bounds" in caveat for caveat in found.guarantee_.caveats)


def test_declared_bounds_do_not_warn_and_data_are_left_alone():
    X = three_groups()
    before = X.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(**PRIVATE).fit(X)
    np.testing.assert_array_equal(X, before)


@needs_opendp
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_noise_of_a_release_cannot_be_repeated(delta):
    X = three_groups(200)
    fits = [model(**PRIVATE, delta=delta, random_state=None).fit(X) for _ in range(2)]
    assert not fits[0].guarantee_.seeded
    assert not np.isclose(fits[0].cluster_centers_, fits[1].cluster_centers_).all()
    assert (fits[0].sketch_.sums != fits[1].sketch_.sums).all()


def test_without_opendp_nothing_falls_back_to_a_seed(monkeypatch):
    monkeypatch.setattr("privclust.privacy.noise.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"\[secure\]"):
        model(**PRIVATE, random_state=None).fit(three_groups(20))


# --- what the output may depend on -----------------------------------------------------------


class Recorded:
    """Notes what is released, or returns what was noted before whatever it is given."""

    def __init__(self, sketches=None):
        self.inputs, self.outputs, self.noises = [], [], []
        self.replayed = None if sketches is None else iter(sketches)

    def __call__(self, sketch, *noise):
        self.inputs.append(sketch)
        self.noises.append(noise[0].noise)
        if self.replayed is None:
            self.outputs.append(self.real(sketch, *noise))
        else:  # draws its noise all the same, so that later draws are where they were
            self.real(sketch, *noise)
            self.outputs.append(next(self.replayed))
        return self.outputs[-1]

    @classmethod
    def during(cls, monkeypatch, sketches=None):
        found = cls(sketches)
        found.real = Sketch.with_noise
        monkeypatch.setattr(Sketch, "with_noise", lambda *arguments: found(*arguments))
        return found


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
@pytest.mark.parametrize("variance", [None, 9.0])
@pytest.mark.parametrize("decoder", ["gaussian", "clompr"])
def test_output_follows_from_the_releases_alone(monkeypatch, neighbours, variance, decoder):
    """Fitted to other rows, with the releases of the first: the same output to the byte."""
    params = {**PRIVATE, "neighbours": neighbours, "variance": variance, "decoder": decoder}
    first, other = three_groups(600), 30.0 * three_groups(600, seed=5) ** 2
    if neighbours == "add_remove":
        other = other[:450]
    with monkeypatch.context() as patch:
        seen = Recorded.during(patch)
        fit = model(**params).fit(first)
    assert len(seen.outputs) == (2 if variance is None else 1)
    with monkeypatch.context() as patch:
        Recorded.during(patch, seen.outputs)
        again = model(**params).fit(other)
    assert again.cluster_centers_.tobytes() == fit.cluster_centers_.tobytes()
    assert again.weights_.tobytes() == fit.weights_.tobytes()
    assert again.sketch_.sums.tobytes() == fit.sketch_.sums.tobytes()
    assert again.sketch_.frequencies.tobytes() == fit.sketch_.frequencies.tobytes()
    assert again.sketch_.n_samples == fit.sketch_.n_samples
    assert again.guarantee_ == fit.guarantee_


def test_nothing_of_the_rows_is_kept_but_labels(monkeypatch):
    """No attribute holds exact sums, rows or anything as long as them."""
    X = three_groups(611)
    with monkeypatch.context() as patch:
        seen = Recorded.during(patch)
        fit = model(**PRIVATE).fit(X)
    del fit.labels_
    content = pickle.dumps(fit)
    for sketch in seen.inputs:
        assert sketch.sums[:4].tobytes() not in content
    assert X[0].tobytes() not in content
    assert len(content) < 30 * fit.sketch_.n_frequencies * 2 * 8


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_one_row_moves_a_release_by_its_sensitivity_at_most(
    monkeypatch, dtype, neighbours, remembering_decoders
):
    """Rows in the box, far outside of it and at the border; all releases of a fit."""
    rng = np.random.default_rng(0)
    X = three_groups(100).astype(dtype)
    rows = [10.0 ** rng.uniform(-3, 30) * rng.standard_normal(2) for _ in range(30)]
    rows += [[20.0, -20.0], [0.0, 0.0], [1e-40, 1e30]]

    def inputs(X):
        with monkeypatch.context() as patch:
            seen = Recorded.during(patch, released.outputs)
            model(**PRIVATE, neighbours=neighbours).fit(X)
        return seen.inputs

    with monkeypatch.context() as patch:
        released = Recorded.during(patch)
        model(**PRIVATE, neighbours=neighbours).fit(X)
    unchanged = released.inputs
    for row in rows:
        changed = X.copy()
        changed[7] = row
        if neighbours == "add_remove":
            changed = np.vstack([X, changed[7:8]])
        for before, after in zip(unchanged, inputs(changed), strict=True):
            np.testing.assert_array_equal(before.frequencies, after.frequencies)
            l1, l2 = sensitivities(before.n_measurements, neighbours)
            change = (after.sums - before.sums).view(np.float64)
            if neighbours == "add_remove":
                change = np.append(change, after.n_samples - before.n_samples)
            assert np.abs(change).sum() <= l1.value
            assert np.linalg.norm(change) <= l2.value


@pytest.mark.parametrize(("delta", "noise"), [(0.0, "laplace"), (1e-6, "gaussian")])
def test_noise_has_the_scale_that_the_guarantee_states(monkeypatch, delta, noise):
    """Pilot and sketch of ten fits; false-alarm rate 1e-4 each."""
    noises = [[], []]
    for seed in range(10):
        with monkeypatch.context() as patch:
            seen = Recorded.during(patch)
            params = {**PRIVATE, "delta": delta, "noise": noise, "last_round": False}
            model(1, **params, random_state=seed).fit(three_groups(200))
        losses = [one.loss.epsilon if noise == "laplace" else one.loss.rho for one in seen.noises]
        assert losses == pytest.approx([0.1 * sum(losses), 0.9 * sum(losses)])
        for i, (exact, noisy) in enumerate(zip(seen.inputs, seen.outputs, strict=True)):
            noises[i].append((noisy.sums - exact.sums).view(np.float64) / noisy.noise.scale)
    law = stats.laplace if noise == "laplace" else stats.norm
    for drawn in noises:
        assert stats.kstest(np.concatenate(drawn), law.cdf).pvalue > 1e-4


def test_a_new_fit_forgets_the_old_one():
    fit = model().fit(10 * three_groups(300))
    fresh = model().fit(three_groups(300, seed=1))
    again = fit.fit(three_groups(300, seed=1))
    assert again.cluster_centers_.tobytes() == fresh.cluster_centers_.tobytes()


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1, got 0"),
        ({"n_clusters": 21}, "n_clusters=21 for n_samples=20"),
        ({"n_clusters": 2.5}, "n_clusters"),
        ({"epsilon": 0.0}, "epsilon must be a finite number greater than 0, got 0.0"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": -0.1}, "delta must be a finite number at least 0, got -0.1"),
        ({"delta": 1.0}, "delta must be less than 1, got 1.0"),
        ({"delta": np.nan}, "delta"),
        ({"noise": "gaussian"}, "gaussian noise is private for a delta greater than 0 only, got"),
        ({"noise": "uniform"}, "noise must be one of auto, laplace, gaussian, got 'uniform'"),
        ({"neighbours": "replace one"}, "neighbours must be one of replace_one, add_remove"),
        ({"bounds": (1, -1)}, "low < high"),
        ({"bounds": (0, 0)}, "low < high"),
        ({"bounds": "wide"}, "bounds must be"),
        ({"bounds": (np.zeros(3), np.ones(3))}, r"arrays of shape \(2,\)"),
        ({"bounds": (-1e99, 1e100)}, "bounds must have a magnitude of at most"),
        ({"bounds": (0, 1e-30)}, "bounds must have a magnitude of at most"),
        ({"n_frequencies": 0}, "n_frequencies must be an integer of at least 1, got 0"),
        ({"n_frequencies": 10.0}, "n_frequencies"),
        ({"variance": 0}, "variance must be a finite number greater than 0, got 0"),
        ({"variance": np.inf}, "variance"),
        ({"decoder": "lloyd"}, "decoder must be one of gaussian, clompr, got 'lloyd'"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_parameters(params, message):
    fit = model().set_params(**({"epsilon": 1.0, "bounds": (-20, 20)} | params))
    with pytest.raises(ValueError, match=message):
        fit.fit(three_groups(20))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_that_are_not_numbers_are_refused_without_bounds(bad):
    X = three_groups(20)
    X[3, 1] = bad
    for params in ({}, {"epsilon": 1.0}):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            model(**params).fit(X)
    fitted = model(**PRIVATE, missing="middle").fit(
        X
    )  # what a fit takes, its centers are nearest to
    np.testing.assert_array_equal(fitted.predict(X), fitted.labels_)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("variance", [None, 9.0, 1e-30])
def test_any_row_is_taken_in_declared_bounds(dtype, variance):
    """NaN is the middle of the bounds, other entries as large as phases allow."""
    X = three_groups(20).astype(dtype)
    fit = {"epsilon": 1.0, "bounds": (-10, 30), "variance": variance, "missing": "middle"}
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for row in ([np.nan, 0.5], [np.inf, 0.5], [-np.finfo(dtype).max, np.inf], [2.1e36, -3e38]):
            far = X.copy()
            far[7] = row
            found = model(**fit).fit(far)
            assert np.isfinite(found.sketch_.sums).all()
            assert any("not a number" in caveat for caveat in found.guarantee_.caveats)
    X[7], far[7] = [10.0, 0.5], [np.nan, 0.5]
    found, expected = (model(**fit).fit(rows) for rows in (far, X))
    assert found.sketch_.sums.tobytes() == expected.sketch_.sums.tobytes()


def test_any_number_of_rows_is_taken_where_it_is_private():
    private = {**PRIVATE, "neighbours": "add_remove"}
    for n in range(4):
        found = model(**private).fit(three_groups(20)[:n])
        assert found.cluster_centers_.shape == (3, 2)
        assert found.labels_.shape == (n,)
        assert not found.is_detected_.any()
    with pytest.raises(ValueError, match="n_clusters=3 for n_samples=2"):
        model(**PRIVATE).fit(three_groups(2))
    for params in ({"epsilon": None}, {"bounds": None}):
        with pytest.raises(ValueError, match="0 sample"):
            model(**{**private, **params}).fit(np.empty((0, 2)))


def test_privacy_is_the_default():
    with pytest.warns(PrivacyLeakWarning, match="bounds were not given"):
        found = CompressiveKMeans(3, random_state=0).fit(three_groups())
    assert found.sketch_.noise is not None
    bounded = CompressiveKMeans(3, bounds=(-20, 20), random_state=0).fit(three_groups())
    assert bounded.guarantee_.epsilon == pytest.approx(1.0)


@pytest.mark.parametrize("variance", [None, 9.0])
@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_a_fit_is_charged_before_anything_is_released(monkeypatch, variance, neighbours):
    events = []
    for place in (module, estimator):  # without and with a guarantee
        monkeypatch.setattr(place, "charge", events.append)
    seen = Recorded.during(monkeypatch)
    seen.inputs = events  # what is sketched, in turn with what is charged
    fit = model(**PRIVATE, variance=variance, neighbours=neighbours)
    fit.fit(three_groups(100))
    charged = [event for event in events if not isinstance(event, Sketch)]
    assert charged == [fit.guarantee_]
    order = "".join("s" if isinstance(event, Sketch) else "c" for event in events)
    assert order == ("cs" if variance else "css")
    leaking = model(epsilon=1.0)
    with pytest.warns(PrivacyLeakWarning):
        leaking.fit(three_groups(100))
    model().fit(three_groups(100))
    assert [event.definition for event in events if not isinstance(event, Sketch)][1:] == [
        "none"
    ] * 2


# --- what noise hides ------------------------------------------------------------------------


def narrow_pair(n, seed=0):
    """Two clusters 0.57 apart in the unit square."""
    rng = np.random.default_rng(seed)
    return rng.choice([0.3, 0.7], (n, 1)) + 0.03 * rng.standard_normal((n, 2))


def fitted(X, k, **params):
    """A default fit and the NoiseWarning it gave, if any."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = CompressiveKMeans(k, **params).fit(X)
    said = [str(each.message) for each in caught if each.category is NoiseWarning]
    assert len(said) <= 1
    return found, "".join(said)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(("k", "d"), [(3, 2), (5, 10)])
def test_good_fits_do_not_warn(k, d, delta):
    """40,000 rows at epsilon 1; 40 fits in all. Atoms explain 80 times what is asked for."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        means = rng.uniform(-0.7, 0.7, (k, d))
        X = means[rng.integers(k, size=40_000)] + 0.05 * rng.standard_normal((40_000, d))
        found, said = fitted(
            X.astype(np.float32), k, delta=delta, bounds=(-1, 1), random_state=seed
        )
        assert said == ""
        assert found.is_detected_.all()


@pytest.mark.parametrize(
    ("X", "params"),
    [
        (narrow_pair(1), {"neighbours": "add_remove", "bounds": (-1, 1)}),
        (narrow_pair(10_000), {"epsilon": 1e-9, "bounds": (-1, 1)}),
        (narrow_pair(1000), {"bounds": (-10, 10)}),
    ],
)
def test_fits_that_are_noise_warn(X, params):
    """One row; next to no budget; a box 20 wide: 8 of 8 each."""
    for seed in range(8):
        found, said = fitted(X, 2, random_state=seed, **params)
        assert "of 2 clusters cannot be distinguished from noise" in said
        assert not found.is_detected_.all()


def test_what_a_delta_buys_is_bought():
    """The same rows in the same box: no warning, and centers where they belong, 8 of 8."""
    truth = np.array([[0.3, 0.3], [0.7, 0.7]])
    for seed in range(8):
        found, said = fitted(narrow_pair(1000), 2, delta=1e-6, bounds=(-10, 10), random_state=seed)
        assert said == ""
        assert error(found, truth) < 0.1


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_bounds_that_do_not_cover_the_data_are_told(neighbours):
    X = np.random.default_rng(0).uniform(0.0, 1.0, (20_000, 2))
    for seed in (0, 1) if neighbours == "replace_one" else (2, 3):
        params = {"neighbours": neighbours, "random_state": seed}
        for bounds in ((5, 6), (0.9, 3.0)):
            found, said = fitted(X, 2, bounds=bounds, **params)
            assert found.is_outside_bounds_
            assert "data lie outside the bounds" in said
        inside, said = fitted(X, 2, bounds=(0, 1), **params)
        assert not inside.is_outside_bounds_
        assert said == ""


def test_data_within_the_bounds_are_not_said_to_lie_outside():
    """One corner, corners and faces: 0.2 % at most each; 23 fits.

    Rows that all are in one corner are the nearest to being outside: most fits are to them.
    """
    corners = np.array([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    for seed in range(15):
        rng = np.random.default_rng(seed)
        rows = [np.repeat(corners[:1], 5000, axis=0)]
        if seed < 4:
            rows += [corners[rng.integers(3, size=5000)], rng.uniform(-1.0, 1.0, (5000, 2))]
        for X in rows:
            found, _ = fitted(
                X, 1, n_frequencies=20, bounds=(-1, 1), neighbours="add_remove", random_state=seed
            )
            assert not found.is_outside_bounds_


def test_labels_stay_with_the_data():
    found = model(**PRIVATE).fit(three_groups(200))
    for other in (pickle.loads(pickle.dumps(found)), copy.copy(found)):
        assert not hasattr(other, "labels_")
        np.testing.assert_array_equal(other.predict(three_groups(200)), found.labels_)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("scale", [1e200, 1e-90])
def test_data_with_squares_that_overflow_are_refused(scale):
    with pytest.raises(ValueError, match=r"X must have a magnitude of at most .* rescale X"):
        model().fit(scale * three_groups(20))


def test_a_guarantee_is_not_infinite():
    """What is said of a private fit is a number."""
    promise = model(**PRIVATE).fit(three_groups(100)).guarantee_
    assert promise.epsilon < math.inf
    assert promise.epsilon_at(1e-5) <= promise.epsilon


def test_decoding_its_sketch_again_finds_the_same_groups():
    fit = model(**PRIVATE, delta=1e-6).fit(three_groups(20000))
    again = decode(fit.sketch_, 3, bounds=(-20, 20), random_state=1)
    assert cdist(again.centers, fit.cluster_centers_).min(axis=1).max() < 0.3


@pytest.mark.parametrize(
    ("k", "d", "m"),
    [(1, 1, 500), (5, 10, 500), (10, 10, 1000), (50, 10, 5000), (100, 10, 5000), (250, 10, 7500)],
)
def test_the_default_number_of_frequencies(k, d, m):
    """A noise's sensitivity grows with the number of frequencies of its sketch."""
    planned = DensitySketches.planned(d, k, 1.0)
    assert planned.clusters.sensitivity == sensitivities(m, "replace_one")[1]


def test_the_guarantee_names_pilot_and_sums():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (300, 2))
    first, second = (
        CompressiveKMeans(
            2, epsilon=5.0, bounds=(-1.0, 1.0), n_frequencies=30, neighbours=name, random_state=0
        ).fit(X)
        for name in ("add_remove", "add-remove")
    )
    assert first.guarantee_ == second.guarantee_
    assert first.cluster_centers_.tobytes() == second.cluster_centers_.tobytes()
    sums = "sums of features and number of records"
    *of_sums, left_out = first.guarantee_.releases
    assert [r.name for r in of_sums] == [sums, f"pilot: {sums}"]
    assert left_out.name == "number of records left out"
    shares = [r.loss.epsilon for r in of_sums]
    assert sum(shares) == pytest.approx(5.0)
    assert shares[0] > shares[1]


def test_the_error_of_the_inertia_is_that_of_tight_clusters():
    """Errors over standard errors have a mean square of 1; limits leave out one case in 1,000.

    The decoded mixture is far wider than these clusters. With its own error the mean was 0.07.
    """
    places, n_fits, ratios = 0.5 * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]]), 12, []
    for seed in range(n_fits):
        rng = np.random.default_rng(seed)
        X = places[rng.integers(4, size=20_000)] + 0.002 * rng.standard_normal((20_000, 2))
        how = {"epsilon": 2.0, "delta": 1e-6, "bounds": (-1.0, 1.0), "random_state": seed}
        model = CompressiveKMeans(4, **how).fit(X)
        error = model.standard_errors(random_state=0).mean_inertia
        ratios.append((model.mean_inertia_ - 2 * 0.002**2) / error)
    least, most = stats.chi2.ppf([5e-4, 1.0 - 5e-4], n_fits)
    assert least < np.square(ratios).sum() < most


@pytest.mark.filterwarnings("ignore::privclust.privacy.WeakGuaranteeWarning")
@pytest.mark.parametrize("seed", range(3))
def test_a_share_is_known_no_better_than_by_counting_a_sample(seed):
    """A few draws may by chance vary less: errors were up to 6 % below this."""
    rng = np.random.default_rng(0)
    places, sizes = [(-0.5, -0.5), (0.5, 0.4), (0.5, -0.5)], [6000, 3000, 1000]
    parts = [rng.normal(at, 0.08, (size, 2)) for at, size in zip(places, sizes, strict=True)]
    how = {"epsilon": 50.0, "delta": 1e-6, "bounds": (-1.0, 1.0), "random_state": seed}
    model = CompressiveKMeans(3, **how).fit(np.concatenate(parts))
    errors = model.standard_errors(random_state=seed)
    binomial = np.sqrt(model.weights_ * (1.0 - model.weights_) / 10_000)
    assert (errors.weights >= binomial * (1.0 - 1e-12)).all()


def test_long_clusters_have_their_shape_without_a_round():
    """7 clusters of 16 features have more numbers than a decoder before rounds would fit."""
    rng = np.random.default_rng(0)
    means = 4.0 * rng.standard_normal((7, 16))
    lengths = np.r_[3.0, np.full(15, 0.5)]
    X = means[rng.integers(7, size=8000)] + rng.standard_normal((8000, 16)) * lengths
    how = {"epsilon": 5.0, "delta": 1e-6, "bounds": (-20, 20), "random_state": 0}
    spreads = CompressiveKMeans(7, last_round=False, **how).fit(X).cluster_spreads_
    assert (spreads[:, 0] > 2.0 * np.median(spreads[:, 1:], axis=1)).all()
