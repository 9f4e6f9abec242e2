import numpy as np
import pytest

from privclust.kmeans import DPLloyd
from privclust.mixtures import (
    GaussianMixtureEM,
    MixtureParameters,
    PrivateGaussianMixture,
    log_density,
)
from privclust.synthetic.planar import MEANS, STANDARD_DEVIATIONS, WEIGHTS
from privclust_papers.datasets import gowalla, lifesci
from privclust_papers.dpem import data as mixtures
from privclust_papers.dpem import metrics as evaluation
from privclust_papers.dpem.budgets import fit_at_budget
from privclust_papers.dpem.people import MAP_CENTER, MAP_RADIUS, from_unit_ball
from privclust_papers.pipeline.runner import TrialStreams
from privclust_papers.settings.config import ConfigError

POINT = {"n_samples": 400, "n_starts": 3, "geometry": "apart"}
PRIVATE = {"n_components": 3, "covariance_type": "spherical", "max_iter": 2}


def streams(point, trial=0, method="m", swept=()):
    spec = {"seed": 1, "paper": "dpem", "experiment": "e", "swept": list(swept)}
    return TrialStreams({**spec, "method": {"name": method}}, point, trial)


@pytest.fixture
def checkins():
    """A prepared set of 50 points that reaches the corners of the globe."""
    rng = np.random.default_rng(0)
    points = rng.uniform([-180, -90], [180, 90], (50, 2))
    points[:2] = [[180.0, 90.0], [-180.0, -90.0]]
    return {"points": points, "source": "gowalla"}


@pytest.fixture
def records():
    """A prepared set of 37 records that reaches the published ranges."""
    X = np.random.default_rng(0).uniform(lifesci.LOWER, lifesci.UPPER, (37, 10))
    X[0], X[1] = lifesci.LOWER, lifesci.UPPER
    return {"X": X, "source": "lifesci"}


def starts_of(record, estimator):
    """Return an estimator class that keeps what it is given, under the other's signature."""

    class Recorder(estimator):
        def fit(self, X, y=None):
            record.append(self.get_params())
            return super().fit(X, y)

    return Recorder


# --- data ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "n_test"), [(400, 40), (405, 40), (5, 1)])
def test_gaussians_have_a_test_set_of_a_tenth(n, n_test):
    data = mixtures.gaussians_trial(POINT | {"n_samples": n}, 0, streams(POINT), None)
    assert data.X.shape == (n, 2)
    assert data.y.shape == (n,)
    assert data.extra["test"].shape == (n_test, 2)
    for rows in (data.X, data.extra["test"]):
        assert np.linalg.norm(rows, axis=1).max() <= 1.0
    assert data.extra["n_starts"] == 3
    np.testing.assert_array_equal(data.extra["true_means"], MEANS["apart"])
    assert not np.isin(data.extra["test"], data.X).any()


def test_trials_differ_and_repeat():
    first, again, other = (
        mixtures.gaussians_trial(POINT, t, streams(POINT, t), None).X for t in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.isin(first, other).any()


def test_methods_share_data_but_not_noise():
    one, two = (streams(POINT, method=name) for name in ("a", "b"))
    np.testing.assert_array_equal(
        mixtures.gaussians_trial(POINT, 0, one, None).X,
        mixtures.gaussians_trial(POINT, 0, two, None).X,
    )
    assert one.get("noise").random() != two.get("noise").random()


@pytest.mark.parametrize("copies", [1, 4])
def test_map_is_within_the_public_box(copies):
    point = {"n_copies": copies, "start": "near"}
    data = mixtures.map_trial(point, 0, streams(point), None)
    assert data.X.shape == (104 * copies, 2)
    assert np.linalg.norm(data.X, axis=1).max() <= 1.0
    assert data.n_clusters == 3
    assert data.extra["far"].shape == (copies, 2)
    # those from far away are the northernmost, and a category of their own
    degrees = from_unit_ball(data.X, MAP_CENTER, MAP_RADIUS)
    far = from_unit_ball(data.extra["far"], MAP_CENTER, MAP_RADIUS)
    assert np.sort(degrees[:, 1])[-copies:].min() == pytest.approx(far[:, 1].min())
    start = from_unit_ball(data.extra["start"], MAP_CENTER, MAP_RADIUS)
    assert start.shape == (3, 2)
    assert np.linalg.norm(start[1] - far, axis=1).max() < 2.0
    for k in range(3):
        np.testing.assert_allclose(data.extra["true_means"][k], data.X[data.y == k].mean(axis=0))
    assert data.extra["pictured"]
    assert not mixtures.map_trial(point, 1, streams(point, 1), None).extra["pictured"]


def test_subsets_of_checkins(checkins):
    point = {"n_samples": 20, "n_clusters": 4}
    data = mixtures.gowalla_trial(point, 0, streams(point), checkins)
    assert data.X.shape == (20, 2)
    assert np.linalg.norm(data.X, axis=1).max() <= 1.0
    rows = data.X * gowalla.RADIUS
    distances = np.abs(rows[:, None] - checkins["points"][None]).max(axis=2)
    assert distances.min(axis=1).max() < 1e-9  # points of the set, each once
    assert len(set(distances.argmin(axis=1))) == 20
    assert data.extra["start"].shape == (4, 2)
    assert np.linalg.norm(data.extra["start"], axis=1).max() <= 1.0
    assert data.source == "gowalla"
    everything = mixtures.gowalla_trial(point | {"n_samples": 50}, 0, streams(point), checkins)
    assert np.linalg.norm(everything.X, axis=1).max() == pytest.approx(1.0)
    with pytest.raises(ConfigError, match="n_samples: got 51; it must be at most 50"):
        mixtures.gowalla_trial(point | {"n_samples": 51}, 0, streams(point), checkins)


def test_points_of_a_sweep_share_subset_and_start(checkins):
    point = {"n_samples": 20, "n_clusters": 4}
    one, two = (
        mixtures.gowalla_trial(
            point, 0, streams(point | {"epsilon": e}, swept=["epsilon"]), checkins
        )
        for e in (0.1, 1.0)
    )
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.extra["start"], two.extra["start"])


def test_life_sciences_are_split_into_nine_tenths_and_one(records):
    point = {"n_starts": 2}
    data = mixtures.lifesci_trial(point, 0, streams(point), records)
    test = data.extra["test"]
    assert data.X.shape == (34, 10)
    assert test.shape == (3, 10)
    together = np.vstack([data.X, test])
    assert np.linalg.norm(together, axis=1).max() <= 1.0
    scale = together.min() / records["X"].min()
    np.testing.assert_allclose(np.sort(together[:, 0]), np.sort(records["X"][:, 0] * scale))
    # the scale owes nothing to the records: no row of any data in the ranges is longer than 1
    half = {"X": records["X"] / 2, "source": "lifesci"}
    halved = mixtures.lifesci_trial(point, 0, streams(point), half)
    np.testing.assert_allclose(halved.X, data.X / 2)
    longest = np.where(-lifesci.LOWER > lifesci.UPPER, lifesci.LOWER, lifesci.UPPER)
    extreme = {"X": np.tile(longest, (20, 1)), "source": "lifesci"}
    scaled = mixtures.lifesci_trial(point, 0, streams(point), extreme)
    np.testing.assert_allclose(np.linalg.norm(scaled.X, axis=1), 1.0)


# --- fits ------------------------------------------------------------------------------------


def test_methods_share_their_starts():
    """Private or not: same means, weights and covariances to begin with, one a start."""
    data = mixtures.gaussians_trial(POINT, 0, streams(POINT), None)
    private, plain = [], []
    params = {"n_components": 3, "covariance_type": "full", "max_iter": 1}
    mixtures.fit_mixture(
        starts_of(private, PrivateGaussianMixture), params, data, streams(POINT, method="a")
    )
    mixtures.fit_mixture(
        starts_of(plain, GaussianMixtureEM), params | {"tol": 0.0}, data, streams(POINT, method="b")
    )
    assert len(private) == len(plain) == 3
    for one, two in zip(private, plain, strict=True):
        np.testing.assert_array_equal(one["means_init"], two["means_init"])
        assert one["norm_bound"] == 1.0
    assert len({one["means_init"].tobytes() for one in private}) == 3
    # EM is given explicitly what the private mixture does by default
    explicit = PrivateGaussianMixture(
        3, max_iter=1, norm_bound=1.0, random_state=0, means_init=plain[0]["means_init"]
    )
    default = explicit.fit(data.X).means_
    given = {name: plain[0][name] for name in ("weights_init", "covariances_init")}
    np.testing.assert_array_equal(explicit.set_params(**given).fit(data.X).means_, default)


def test_starts_have_noise_of_their_own():
    data = mixtures.map_trial({"n_copies": 1, "start": "near"}, 0, streams(POINT), None)
    data.extra["n_starts"] = 2
    outputs = mixtures.fit_mixture(PrivateGaussianMixture, PRIVATE, data, streams(POINT))
    assert not np.isclose(outputs["means"][0], outputs["means"][1]).any()  # the start is the map's
    again = mixtures.fit_mixture(PrivateGaussianMixture, PRIVATE, data, streams(POINT))
    np.testing.assert_array_equal(outputs["means"], again["means"])
    other = mixtures.fit_mixture(
        PrivateGaussianMixture, PRIVATE, data, streams(POINT, method="other")
    )
    assert not np.isclose(outputs["means"], other["means"]).any()


@pytest.mark.parametrize("kind", ["spherical", "full"])
def test_shapes_of_a_fit(kind):
    data = mixtures.gaussians_trial(POINT, 0, streams(POINT), None)
    params = PRIVATE | {"covariance_type": kind}
    outputs = mixtures.fit_mixture(PrivateGaussianMixture, params, data, streams(POINT))
    assert outputs["weights"].shape == (3, 3)
    assert outputs["means"].shape == (3, 3, 2)
    assert outputs["covariances"].shape == ((3, 3) if kind == "spherical" else (3, 3, 2, 2))
    assert outputs["floors"].shape == (3, 3)
    assert (outputs["floors"] >= 0).all()
    assert (outputs["floors"] <= 1).all()
    plain = mixtures.fit_mixture(GaussianMixtureEM, params | {"tol": 0.0}, data, streams(POINT))
    assert "floors" not in plain


def test_clusterings_share_their_start(checkins):
    point = {"n_samples": 40, "n_clusters": 3}
    data = mixtures.gowalla_trial(point, 0, streams(point), checkins)
    seen = []
    zero = {"covariance_type": "zero", "accounting": "cdp", "max_iter": 2}
    for estimator, params in ((DPLloyd, {"max_iter": 2}), (PrivateGaussianMixture, zero)):
        outputs = mixtures.fit_centers(starts_of(seen, estimator), params, data, streams(point))
        assert set(outputs) == {"centers"}
        assert outputs["centers"].shape == (3, 2)
    np.testing.assert_array_equal(seen[0]["init"], seen[1]["means_init"])
    np.testing.assert_array_equal(seen[0]["init"], data.extra["start"])
    assert seen[0]["norm_bound"] == seen[1]["norm_bound"] == 1.0


# --- metrics ---------------------------------------------------------------------------------


def test_density_is_evaluated_over_the_starts():
    data = mixtures.gaussians_trial(POINT, 0, streams(POINT), None)
    outputs = mixtures.fit_mixture(
        PrivateGaussianMixture, PRIVATE | {"epsilon": 50.0}, data, streams(POINT)
    )
    metrics = evaluation.evaluate_density(data, outputs)
    scores = []
    for i in range(3):
        w, m, v = (outputs[name][i] for name in ("weights", "means", "covariances"))
        squared = ((data.extra["test"][:, None] - m) ** 2).sum(axis=2)
        scores.append(np.log((w * np.exp(-squared / (2 * v)) / (2 * np.pi * v)).sum(1)).mean())
    low, middle, high = sorted(scores)
    assert metrics["loss"] == pytest.approx(-middle, rel=1e-9)
    assert metrics["lower_quartile"] == pytest.approx((low + middle) / 2, rel=1e-9)
    assert metrics["upper_quartile"] == pytest.approx((middle + high) / 2, rel=1e-9)
    assert np.isfinite(metrics["mean_error"])
    assert metrics["variance"] == pytest.approx(np.median(outputs["covariances"].mean(axis=1)))
    assert "beyond" not in metrics  # there is no reference
    for name, values in zip(
        ("floored_weights", "floored_means", "floored_covariances"),
        outputs["floors"].T,
        strict=True,
    ):
        assert metrics[name] == pytest.approx(values.mean())
    for name in ("weights", "means", "covariances"):
        np.testing.assert_array_equal(metrics[name], outputs[name][0])


def test_single_fits_are_held_against_the_references_median():
    data = mixtures.gaussians_trial(POINT, 0, streams(POINT), None)
    exact = {
        "weights": np.array([WEIGHTS]),
        "means": np.array(MEANS["apart"])[None],
        "covariances": np.array(STANDARD_DEVIATIONS)[None] ** 2,
    }
    four = {name: np.repeat(values, 4, axis=0) for name, values in exact.items()}
    four["means"][3] += 0.3
    data.extra["reference"] = exact
    metrics = evaluation.evaluate_density(data, four)
    moved = {name: values[3:] for name, values in four.items()}
    gap = evaluation.evaluate_density(data, moved)["loss"] - metrics["loss"]
    assert gap > 0.05
    assert metrics["beyond"] == 0.25
    assert metrics["worst"] == pytest.approx(gap)


def test_fits_with_matrices_have_a_diagonal_reference():
    """As those of a method of one's own, the same Gaussians: by one variance, by two, by four."""
    data = mixtures.gaussians_trial(POINT, 0, streams(POINT), None)
    variances = np.array(STANDARD_DEVIATIONS) ** 2
    exact = {"weights": WEIGHTS, "means": MEANS["apart"], "covariances": variances}
    data.extra["reference"] = {name: np.array(values)[None] for name, values in exact.items()}
    losses = []
    diagonals = np.repeat(variances[:, None], 2, axis=1)
    for covariances in variances, diagonals, diagonals[:, None] * np.eye(2):
        metrics = evaluation.evaluate_density(
            data, data.extra["reference"] | {"covariances": covariances[None]}
        )
        assert metrics["worst"] == pytest.approx(0.0, abs=1e-9)
        losses.append(metrics["loss"])
    np.testing.assert_allclose(losses, losses[0])


def test_pure_composition_gives_each_release_its_part():
    """Adding J (2 K + 1) pure releases up, against the share that a fit says it has."""
    shares = []

    class Recorder(PrivateGaussianMixture):
        def fit(self, X, y=None):
            super().fit(X, y)
            shares.append(self.share_)
            return self

    data = mixtures.gaussians_trial(POINT, 0, streams(POINT), None)
    params = {"n_components": 3, "covariance_type": "spherical", "mean_noise": "laplace"}
    for variant in ("paper", "corrected"):
        budget = {"variant": variant, "accounting": "pure", "epsilon": 3.5, "max_iter": 4}
        fit_at_budget(Recorder, params | budget, data, streams(POINT))
    assert shares == pytest.approx([3.5 / (4 * 7)] * 6)


def test_true_parameters_have_the_least_loss_and_no_error():
    data = mixtures.gaussians_trial(POINT | {"n_samples": 40_000}, 0, streams(POINT), None)
    means, deviations = np.array(MEANS["apart"]), np.array(STANDARD_DEVIATIONS)
    exact = {
        "weights": np.array([WEIGHTS]),
        "means": means[None],
        "covariances": deviations[None] ** 2,
    }
    best = evaluation.evaluate_density(data, exact)
    assert best["mean_error"] == 0.0
    assert np.isnan(best["floored_means"])  # nothing got noise
    for changed in (
        exact | {"means": means[None] + 0.05},
        exact | {"covariances": 2 * deviations[None] ** 2},
        exact | {"weights": np.array([[0.6, 0.2, 0.2]])},
    ):
        assert evaluation.evaluate_density(data, changed)["loss"] > best["loss"] + 0.01


def test_exposure_is_the_distance_to_the_nearest_from_far_away():
    point = {"n_copies": 1, "start": "near"}
    data = mixtures.map_trial(point, 0, streams(point), None)
    far = data.extra["far"][0]
    near = far + np.array([0.03, 0.04])
    means = np.stack([[-0.3, -0.4], near, [0.2, 0.2]])
    outputs = {
        "weights": np.full((1, 3), 1 / 3),
        "means": means[None],
        "covariances": np.ones((1, 3)),
    }
    data.extra["reference"] = {"means": means[None, ::-1] + np.array([0.06, 0.08])}
    metrics = evaluation.evaluate_map(data, outputs)
    assert metrics["exposure"] == pytest.approx(0.05)
    assert metrics["em_distance"] == pytest.approx(0.1)
    assert metrics["log_em_distance"] == pytest.approx(-1.0)
    np.testing.assert_array_equal(metrics["points"], data.X)
    other = mixtures.map_trial(point, 1, streams(point, 1), None)
    other.extra["reference"] = outputs
    assert "points" not in evaluation.evaluate_map(other, outputs)


def test_em_exposes_the_lone_person():
    """Figure 1: a component of one's own is one's position."""
    point = {"n_copies": 1, "start": "near"}
    data = mixtures.map_trial(point, 0, streams(point), None)
    params = {"n_components": 3, "covariance_type": "spherical", "max_iter": 100, "tol": 0.0}
    outputs = mixtures.fit_mixture(GaussianMixtureEM, params, data, streams(point))
    data.extra["reference"] = outputs
    metrics = evaluation.evaluate_map(data, outputs)
    assert metrics["exposure"] < 1e-3
    assert np.isnan(metrics["log_em_distance"])


def test_best_start_is_the_likeliest_and_knows_nobody():
    point = {"n_copies": 1, "start": "near"}
    data = mixtures.map_trial(point, 0, streams(point), None)
    params = {"n_components": 3, "covariance_type": "spherical", "max_iter": 50, "tol": 0.0}
    best = mixtures.best_of_starts(data, streams(point), n_tried=6, **params)
    data = mixtures.map_trial({**point, "start": "uniform"}, 0, streams(point), None)
    assert "start" not in data.extra
    data.extra["n_starts"] = 6
    fits = mixtures.fit_mixture(GaussianMixtureEM, params, data, streams(point))
    names = ("weights", "means", "covariances")
    scores = [
        log_density(data.X, MixtureParameters(*fit, "spherical")).mean()
        for fit in zip(*(fits[name] for name in names), strict=True)
    ]
    assert np.ptp(scores) > 0.0
    np.testing.assert_array_equal(best["means"][0], fits["means"][np.argmax(scores)])


def test_nicv_of_a_clustering(checkins):
    point = {"n_samples": 40, "n_clusters": 3}
    data = mixtures.gowalla_trial(point, 0, streams(point), checkins)
    outputs = mixtures.fit_centers(DPLloyd, {"epsilon": 1.0}, data, streams(point))
    metrics = evaluation.evaluate_centers(data, outputs)
    squared = ((data.X[:, None] - outputs["centers"]) ** 2).sum(axis=2)
    assert metrics["nicv"] == pytest.approx(squared.min(axis=1).mean(), rel=1e-12)
    np.testing.assert_array_equal(metrics["centers"], outputs["centers"])
    np.testing.assert_array_equal(metrics["points"], data.X)


@pytest.mark.parametrize("epsilon", [1e-6, 1.0])
@pytest.mark.parametrize("variant", ["paper", "corrected"])
@pytest.mark.parametrize("kind", ["spherical", "full"])
def test_metrics_are_finite_however_little_the_budget(records, kind, variant, epsilon):
    point = {"n_starts": 2}
    data = mixtures.lifesci_trial(point, 0, streams(point), records)
    params = PRIVATE | {
        "covariance_type": kind,
        "variant": variant,
        "epsilon": epsilon,
        "accounting": "cdp",
        "mean_noise": "gaussian",
    }
    outputs = mixtures.fit_mixture(PrivateGaussianMixture, params, data, streams(point))
    metrics = evaluation.evaluate_density(data, outputs)
    for name, value in metrics.items():
        assert np.isfinite(value).all(), name
    MixtureParameters(metrics["weights"], metrics["means"], metrics["covariances"], kind)
    assert "mean_error" not in metrics
