import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from privclust.mixtures import (
    GaussianMixtureEM,
    MixtureParameters,
    sample,
)

TYPES = ["spherical", "diag", "full"]


def of_type(matrices, covariance_type):
    """Restrict full covariances (k, d, d) to a type."""
    if covariance_type == "full":
        return matrices
    diagonals = np.diagonal(matrices, axis1=1, axis2=2)
    return diagonals if covariance_type == "diag" else diagonals.mean(axis=1)


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize("n_features", [1, 2, 5])
@pytest.mark.parametrize("reg_covar", [0.0, 1e-2])
def test_iterates_are_those_of_scikit_learn(random_mixture, covariance_type, n_features, reg_covar):
    p = random_mixture(covariance_type, 3, n_features, seed=4)
    X, _ = sample(p, 1500, np.random.default_rng(0))
    start = X[:3]
    precisions = np.linalg.inv(p.full_covariances())
    if covariance_type != "full":
        precisions = 1.0 / p.covariances
    common = {"covariance_type": covariance_type, "tol": 0.0, "reg_covar": reg_covar}
    for max_iter in (1, 2, 15):
        theirs = GaussianMixture(
            3,
            max_iter=max_iter,
            weights_init=p.weights,
            means_init=start,
            precisions_init=precisions,
            init_params="random_from_data",
            **common,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs.fit(X)
        ours = GaussianMixtureEM(
            3,
            max_iter=max_iter,
            weights_init=p.weights,
            means_init=start,
            covariances_init=p.covariances,
            **common,
        ).fit(X)
        np.testing.assert_allclose(ours.weights_, theirs.weights_, rtol=1e-9)
        np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(ours.covariances_, theirs.covariances_, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(ours.lower_bound_, theirs.lower_bound_, rtol=1e-11)
        np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-9)


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize("seed", range(4))
def test_likelihood_never_falls(random_mixture, covariance_type, seed):
    p = random_mixture(covariance_type, 3, 3, seed)
    X, _ = sample(p, 300, np.random.default_rng(seed))
    model = GaussianMixtureEM(
        4,
        covariance_type=covariance_type,
        reg_covar=0.0,
        tol=0.0,
        max_iter=12,
        random_state=seed,
    ).fit(X)
    bounds = model.lower_bounds_
    assert bounds.shape == (12,)
    assert (np.diff(bounds) > -1e-13 * np.abs(bounds[1:])).all()
    assert bounds[-1] > bounds[0] + 1e-3


@pytest.mark.parametrize("covariance_type", TYPES)
def test_component_without_points(covariance_type):
    """It keeps its mean and covariance."""
    X = np.random.default_rng(0).standard_normal((50, 2))
    means = [[0.0, 0.0], [1e6, 1e6]]
    covariances = of_type(np.stack([np.eye(2), 2.0 * np.eye(2)]), covariance_type)
    model = GaussianMixtureEM(
        2, covariance_type=covariance_type, tol=0.0, means_init=means, covariances_init=covariances
    )
    mle = clone(model).set_params(max_iter=5).fit(X)
    assert np.isfinite(mle.score(X))
    assert mle.weights_[1] == 0.0
    np.testing.assert_array_equal(mle.means_[1], means[1])
    np.testing.assert_array_equal(mle.covariances_[1], covariances[1])


@pytest.mark.parametrize("covariance_type", TYPES)
def test_degenerate_data_gives_finite_results(covariance_type):
    rng = np.random.default_rng(0)
    generic = rng.standard_normal((20, 3))
    cases = {
        "duplicates": np.repeat(generic[:4], 5, axis=0),
        "all the same": np.ones((10, 2)),
        "all zero": np.zeros((10, 2)),
        "constant feature": np.column_stack([generic, np.ones(20)]),
        "fewer samples than features": rng.standard_normal((4, 30)),
        "two samples": rng.standard_normal((2, 2)),
        "far from the origin": 1e8 + generic,
        "small": 1e-100 * generic,
        "large": 1e60 * generic,
    }
    for name, X in cases.items():
        model = GaussianMixtureEM(2, covariance_type=covariance_type, tol=0.0, random_state=0).fit(
            X
        )
        assert np.isfinite(model.score_samples(X)).all(), name
        assert np.isfinite(model.sample(5, random_state=0)[0]).all(), name


@pytest.mark.parametrize("covariance_type", TYPES)
def test_singular_covariance_without_regularisation_is_refused(covariance_type):
    X = np.zeros((8, 2))
    with pytest.raises(ValueError, match=r"component 0 is singular .* reg_covar must be larger"):
        GaussianMixtureEM(
            covariance_type=covariance_type,
            reg_covar=0.0,
            covariances_init=of_type(np.eye(2)[None], covariance_type),
        ).fit(X)
    with pytest.raises(ValueError, match="all samples are means of the start"):
        GaussianMixtureEM(covariance_type=covariance_type, reg_covar=0.0).fit(X)


def test_one_gaussian_has_the_moments_of_the_samples():
    X = np.random.default_rng(0).standard_normal((200, 3)) @ np.diag([1.0, 2.0, 3.0]) + 5.0
    model = GaussianMixtureEM(reg_covar=0.0).fit(X)
    np.testing.assert_allclose(model.means_[0], X.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(model.covariances_[0], np.cov(X.T, bias=True), rtol=1e-11)


@pytest.mark.parametrize(
    "seed",
    [0, np.int64(3), np.random.default_rng(1), np.random.RandomState(1), None],
    ids=lambda seed: type(seed).__name__,
)
def test_separated_clusters_are_found(seed):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    X = rng.standard_normal((400, 2)) + 12.0 * y[:, None]
    model = GaussianMixtureEM(2, n_init=3, random_state=seed).fit(X)
    labels = model.predict(X)
    assert np.ptp(labels[:200]) == 0
    assert np.ptp(labels[200:]) == 0
    assert labels[0] != labels[-1]
    np.testing.assert_allclose(model.weights_, 0.5, atol=1e-9)


def test_best_of_several_starts_is_kept(random_mixture):
    X, _ = sample(random_mixture("full", 5, 2, seed=3), 400, np.random.default_rng(0))
    rng = np.random.default_rng(5)
    singles = [GaussianMixtureEM(5, random_state=rng, tol=0.0).fit(X) for _ in range(4)]
    bounds = [model.lower_bound_ for model in singles]
    assert np.ptp(bounds) > 1e-3
    best = GaussianMixtureEM(5, random_state=5, n_init=4, tol=0.0).fit(X)
    assert best.lower_bound_ == max(bounds)
    np.testing.assert_array_equal(best.means_, singles[int(np.argmax(bounds))].means_)


def test_convergence(random_mixture):
    X, _ = sample(random_mixture("full", 3, 2, seed=0), 400, np.random.default_rng(0))
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        short = GaussianMixtureEM(3, max_iter=3, tol=1e-9, random_state=0).fit(X)
    assert not short.converged_
    assert short.n_iter_ == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        full = GaussianMixtureEM(3, max_iter=500, random_state=0).fit(X)
        GaussianMixtureEM(3, max_iter=3, tol=0.0, random_state=0).fit(X)
    assert full.converged_
    changes = np.abs(np.diff(full.lower_bounds_))
    assert changes[-1] < 1e-3 <= changes[:-1].min()
    assert full.lower_bounds_.size == full.n_iter_


@pytest.mark.parametrize("covariance_type", TYPES)
def test_derived_predictions(random_mixture, covariance_type):
    X, _ = sample(random_mixture(covariance_type, 3, 2, seed=0), 5000, np.random.default_rng(0))
    model = GaussianMixtureEM(3, covariance_type=covariance_type, random_state=0).fit(X)
    gamma = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), gamma.argmax(axis=1))
    np.testing.assert_allclose(gamma.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(model.score(X), model.score_samples(X).mean(), rtol=1e-14)


def test_an_empty_component_needs_no_regularisation():
    p = MixtureParameters([0.5, 0.5], [[0.0], [1e9]], [1.0, 1.0], "spherical")
    X = np.random.default_rng(0).standard_normal((30, 1))
    model = GaussianMixtureEM(
        2, covariance_type="spherical", reg_covar=0.0, max_iter=1, tol=0.0, weights_init=p.weights,
        means_init=p.means, covariances_init=p.covariances,
    ).fit(X)  # fmt: skip
    np.testing.assert_array_equal(model.weights_, [1.0, 0.0])
    np.testing.assert_array_equal(model.covariances_[1], 1.0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer of at least 1, got 0"),
        ({"n_components": 30}, "n_components=30 for n_samples=20"),
        ({"covariance_type": "tied"}, "covariance_type must be one of"),
        ({"tol": -1.0}, "tol must be a finite number at least 0"),
        ({"max_iter": 0}, "max_iter"),
        ({"n_init": 1.5}, "n_init"),
        ({"reg_covar": np.nan}, "reg_covar"),
        ({"random_state": "x"}, "random_state"),
        ({"weights_init": [0.5]}, r"weights_init must be finite of shape \(2,\), got shape \(1,\)"),
        ({"weights_init": [0.5, 0.6]}, "weights must sum to 1"),
        ({"means_init": np.zeros((2, 3))}, r"means_init must be finite of shape \(2, 2\)"),
        ({"covariances_init": np.ones(2)}, r"covariances_init must be finite of shape \(2, 2, 2\)"),
        ({"covariances_init": np.zeros((2, 2, 2))}, "positive definite"),
    ],
)
def test_bad_parameters(parameters, message):
    X = np.random.default_rng(0).standard_normal((20, 2))
    with pytest.raises(ValueError, match=message):
        GaussianMixtureEM(**({"n_components": 2} | parameters)).fit(X)


def test_data_whose_squares_overflow_are_refused():
    with pytest.raises(ValueError, match="squares do not overflow"):
        GaussianMixtureEM().fit([[0.0, 1e200], [1.0, 0.0]])
