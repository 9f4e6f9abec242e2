import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import stats

from privclust.core.lloyd import nearest_center_statistics
from privclust.mixtures import (
    GaussianMixtureEM,
    PlanSettings,
    PrivateGaussianMixture,
    perturbations,
)
from privclust.privacy import PrivacyLeakWarning

TYPES = ("spherical", "diag", "full")
STARTS = np.array([[0.2, 0.1], [-0.2, 0.1], [0.0, -0.3]])


def three_groups(n=1500, seed=0):
    """Rows in the unit disc, and their groups."""
    rng = np.random.default_rng(seed)
    centers = np.array([[0.4, 0.3], [-0.45, 0.2], [0.05, -0.45]])
    labels = rng.integers(3, size=n)
    X = centers[labels] + 0.1 * rng.standard_normal((n, 2))
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0), labels


def model(k=3, **params):
    """A fit of known bound, seed and start."""
    known = {"norm_bound": 1.0, "random_state": 0, "means_init": STARTS[:k], "max_iter": 5}
    return PrivateGaussianMixture(k, **(known | params))


def start_covariances(kind, k=3, d=2):
    variance = k ** (-2.0 / d) / (d + 2.0)
    shape = {"spherical": (k,), "diag": (k, d), "full": (k, d, d)}[kind]
    return np.full(shape, variance) * (np.eye(d) if kind == "full" else 1.0)


# --- what is computed ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("variant", "noise"),
    [
        ("corrected", "joint"),
        ("corrected", "laplace"),
        ("corrected", "gaussian"),
        ("paper", "laplace"),
    ],
)
def test_without_noise_to_speak_of_it_is_em(variant, noise, kind):
    """Iterates differ by the noise over the counts, which EM's map may stretch a little."""
    if (variant, kind) == ("paper", "diag"):
        pytest.skip("the paper has no diagonal covariances")
    X, _ = three_groups()
    private = model(
        covariance_type=kind,
        variant=variant,
        mean_noise=noise,
        epsilon=1e12,
        accounting="cdp",
    ).fit(X)
    em = GaussianMixtureEM(
        3,
        covariance_type=kind,
        tol=0.0,
        reg_covar=0.0,
        max_iter=5,
        weights_init=np.full(3, 1 / 3),
        means_init=STARTS,
        covariances_init=start_covariances(kind),
    ).fit(X)
    plan = perturbations(PlanSettings(2, 3, 5, kind, noise, variant, 1e-3), private.share_)
    scales = [part.scale for part in plan.values()]
    # noise of ten deviations, five iterations, each at most doubling a difference
    error = 10 * 2**5 * max(scales) / (len(X) * em.weights_.min())
    assert error < 1e-4
    np.testing.assert_allclose(private.weights_, em.weights_, rtol=0, atol=error)
    np.testing.assert_allclose(private.means_, em.means_, rtol=0, atol=error)
    np.testing.assert_allclose(private.covariances_, em.covariances_, rtol=0, atol=error)
    assert private.floor_rates_ == type(private.floor_rates_)(0.0, 0.0, 0.0)
    assert private.n_iter_ == 5


def test_without_noise_to_speak_of_zero_covariances_are_k_means():
    X, _ = three_groups()
    private = model(covariance_type="zero", epsilon=1e16, accounting="cdp").fit(X)
    means = STARTS
    for _ in range(5):
        counts, sums, _ = nearest_center_statistics(X, means)
        means = sums / counts[:, None]
    np.testing.assert_allclose(private.means_, means, rtol=0, atol=1e-6)
    np.testing.assert_allclose(private.weights_, counts / len(X), rtol=0, atol=1e-6)


def test_noise_on_the_mean_of_one_component_is_that_of_the_plan():
    """K = 1 needs no responsibilities: N~ = N, so the mean is the data's plus noise over N.

    False-alarm rate 1e-4.
    """
    X, _ = three_groups(300)
    rng = np.random.default_rng(0)
    fits = [model(1, random_state=rng, max_iter=1, covariance_type="zero") for _ in range(400)]
    means = np.vstack([fit.fit(X).means_ for fit in fits])
    sigma = 2.0 / fits[0].share_
    noise = (means - X.mean(axis=0)) * len(X) / sigma
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-4


@pytest.mark.parametrize("noise", ["joint", "laplace", "gaussian"])
@pytest.mark.parametrize("kind", [*TYPES, "zero"])
def test_scaling_data_and_bound_scales_the_fit(kind, noise):
    """Estimates too: the prior is in units of the ball. Only rounding may differ."""
    X, _ = three_groups()
    params = {"covariance_type": kind, "mean_noise": noise, "accounting": "cdp", "max_iter": 3}
    estimate = "mle" if noise == "joint" else "map"
    for c in (3.7e-5, 8.9e4):
        plain = model(estimate=estimate, means_init=None, **params).fit(X)
        scaled = model(estimate=estimate, means_init=None, norm_bound=c, **params).fit(c * X)
        np.testing.assert_allclose(scaled.weights_, plain.weights_, rtol=0, atol=1e-9)
        np.testing.assert_allclose(scaled.means_, c * plain.means_, rtol=0, atol=1e-9 * c)
        np.testing.assert_allclose(
            scaled.covariances_, c**2 * plain.covariances_, rtol=0, atol=1e-9 * c**2
        )
        assert scaled.floor_rates_ == plain.floor_rates_


def test_start_is_in_the_units_of_the_data():
    X, _ = three_groups()
    start = {"means_init": STARTS, "covariances_init": start_covariances("full")}
    plain = model(**start).fit(X)
    start = {"means_init": 7 * STARTS, "covariances_init": 49 * start_covariances("full")}
    scaled = model(norm_bound=7.0, **start).fit(7 * X)
    np.testing.assert_allclose(scaled.means_, 7 * plain.means_, rtol=1e-9)
    default = model().fit(X)
    np.testing.assert_array_equal(default.means_, plain.means_)  # the default that is documented


def test_sound_fit_with_little_budget_stays_in_the_ball():
    X, _ = three_groups(60)
    for seed in range(20):
        found = model(epsilon=0.01, random_state=seed, norm_bound=1.0).fit(X)
        assert (np.linalg.norm(found.means_, axis=1) <= 1 + 1e-12).all()
        values = np.linalg.eigvalsh(found.covariances_)
        assert values.min() >= 1e-3 * (1 - 1e-9)
        assert values.max() <= 1 + 1e-9
        assert found.floor_rates_.means > 0
        assert np.isfinite(found.score(X))


def test_good_budget_finds_the_groups():
    X, labels = three_groups(100_000)
    found = model(epsilon=1.0, delta=1e-6, max_iter=10).fit(X)
    agreement = max(
        (np.array(order)[found.predict(X)] == labels).mean()
        for order in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0])
    )
    assert agreement > 0.99


# --- what is promised ------------------------------------------------------------------------


def test_default_guarantee():
    X, _ = three_groups()
    promise = model(epsilon=0.7, delta=1e-5).fit(X).guarantee_
    assert promise.definition == "approximate"
    assert promise.relation == "replace-one"
    assert 0.97 * 0.7 < promise.epsilon <= 0.7
    assert promise.delta == 1e-5
    assert promise.seeded
    (caveat,) = promise.caveats
    assert caveat.startswith("rows count as clipped to the bounds")
    assert [release.name for release in promise.releases] == [
        *("counts, sums and second moments", "number of records left out")
    ]


@pytest.mark.parametrize("noise", ["joint", "laplace", "gaussian"])
@pytest.mark.parametrize("kind", [*TYPES, "zero"])
def test_concentrated_guarantee(kind, noise):
    X, _ = three_groups(100)
    found = model(covariance_type=kind, mean_noise=noise, accounting="cdp", epsilon=0.9).fit(X)
    assert found.guarantee_.definition == "cdp"
    assert 0.0 < found.guarantee_.mu <= 0.9 * (1 + 1e-12)


@pytest.mark.parametrize(("kind", "word"), [("spherical", "one-sided"), ("full", "semi-definite")])
def test_the_papers_variant_has_no_guarantee_and_says_why(kind, word):
    X, _ = three_groups(100)
    params = {"variant": "paper", "mean_noise": "laplace", "covariance_type": kind}
    promise = model(**params).fit(X).guarantee_
    assert promise.definition == "none"
    assert promise.epsilon_at(1e-3) == np.inf
    assert any(word in caveat for caveat in promise.caveats)


def test_the_papers_k_means_mode_is_private():
    """Without second moments nothing is one-sided: CDPlap and CDPgau of Fig. 3."""
    X, _ = three_groups(100)
    for noise in ("laplace", "gaussian"):
        promise = (
            model(
                variant="paper",
                mean_noise=noise,
                covariance_type="zero",
                accounting="cdp",
                epsilon=0.5,
            )
            .fit(X)
            .guarantee_
        )
        assert promise.definition == "cdp"
        # the rule counts half the square of a share; Laplace noise costs less by a third of it
        share = promise.releases[0].loss.epsilon
        assert 0.5 * (1 - share / 3) < promise.mu <= 0.5 * (1 + 1e-12)


def test_bound_from_the_data_leaves_no_guarantee():
    X, _ = three_groups(100)
    with pytest.warns(PrivacyLeakWarning, match="norm_bound"):
        found = model(norm_bound=None).fit(X)
    assert found.guarantee_.definition == "none"
    assert any("norm_bound" in caveat for caveat in found.guarantee_.caveats)


@pytest.mark.skipif(find_spec("opendp") is None, reason="needs opendp (privclust[secure])")
@pytest.mark.parametrize("kind", ["full", "zero"])
def test_noise_of_a_release_cannot_be_repeated(kind):
    X, _ = three_groups(100)
    first, second = (
        model(random_state=None, covariance_type=kind, max_iter=2).fit(X) for _ in range(2)
    )
    assert not first.guarantee_.seeded
    assert not np.isclose(first.means_, second.means_).all()


@pytest.mark.skipif(find_spec("opendp") is None, reason="needs opendp (privclust[secure])")
def test_noise_of_a_release_has_the_plans_scale():
    """Of 2 x 150 normal draws the sum of squares; false-alarm rate 2e-6."""
    X, _ = three_groups(100)
    fits = [
        model(1, random_state=None, max_iter=1, covariance_type="zero", epsilon=100.0).fit(X)
        for _ in range(150)
    ]
    inside = [f.means_[0] for f in fits]
    noise = (np.array(inside) - X.mean(axis=0)) * len(X) * fits[0].share_ / 2.0
    assert 1e-6 < stats.chi2(noise.size).cdf((noise**2).sum()) < 1 - 1e-6


@pytest.mark.parametrize("kind", [*TYPES, "zero"])
def test_same_seed_same_bytes(kind):
    X, _ = three_groups(200)
    first, second = (model(covariance_type=kind, means_init=None).fit(X) for _ in range(2))
    other = model(covariance_type=kind, means_init=None, random_state=1).fit(X)
    generator = model(
        covariance_type=kind, means_init=None, random_state=np.random.default_rng(0)
    ).fit(X)
    for name in ("weights_", "means_", "covariances_"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()
        assert getattr(first, name).tobytes() == getattr(generator, name).tobytes()
    assert not np.isclose(first.means_, other.means_).any()
    assert first.guarantee_ == second.guarantee_
    assert generator.guarantee_.seeded


def test_fit_is_a_function_of_clipped_rows():
    """Rows beyond the bound count as their nearest in the ball; or are refused."""
    X, _ = three_groups(200)
    far = X.copy()
    far[:3] *= 2.0 / np.linalg.norm(X[:3], axis=1, keepdims=True)
    near = far.copy()
    near[:3] /= 2.0
    with pytest.warns(UserWarning, match="norm above norm_bound=1 are clipped"):
        clipped = model().fit(far)
    np.testing.assert_allclose(clipped.means_, model().fit(near).means_, rtol=0, atol=1e-12)
    assert clipped.guarantee_.definition == "approximate"


def test_one_row_moves_the_release_by_no_more_than_the_bound():
    """Same seed, one row replaced, one iteration: the noise cancels, the change is the row's."""
    X, _ = three_groups(200)
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = X.copy()
        direction = rng.standard_normal(2)
        other[rng.integers(200)] = direction / np.linalg.norm(direction)
        one, two = (
            model(
                1,
                max_iter=1,
                covariance_type="zero",
                epsilon=1e6,
                accounting="cdp",
                missing="middle",
            ).fit(Y)
            for Y in (X, other)
        )
        moved = np.linalg.norm(one.means_ - two.means_) * 200
        assert moved == pytest.approx(np.linalg.norm((X - other).sum(axis=0)), rel=1e-6)
        assert moved <= 2.0 * (1 + 1e-9)


# --- densities -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TYPES)
def test_densities_labels_and_samples_agree(kind):
    X, _ = three_groups()
    found = model(covariance_type=kind, epsilon=5.0).fit(X)
    full = found.parameters_.full_covariances()
    terms = np.stack(
        [
            np.log(w) + stats.multivariate_normal(m, S).logpdf(X)
            for w, m, S in zip(found.weights_, found.means_, full, strict=True)
        ],
        axis=1,
    )
    density = np.logaddexp.reduce(terms, axis=1)
    np.testing.assert_allclose(found.score_samples(X), density, rtol=0, atol=1e-9)
    assert found.score(X) == pytest.approx(density.mean(), rel=1e-12)
    gamma = found.predict_proba(X)
    np.testing.assert_allclose(gamma, np.exp(terms - density[:, None]), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found.predict(X), gamma.argmax(axis=1))
    drawn, y = found.sample(30_000, random_state=1)
    # each within five standard errors: false-alarm rate below 1e-5
    share = np.bincount(y, minlength=3) / len(y)
    np.testing.assert_allclose(share, found.weights_, rtol=0, atol=5 * np.sqrt(0.25 / len(y)))
    mean, spread = found.weights_ @ found.means_, drawn.std(axis=0)
    assert (np.abs(drawn.mean(axis=0) - mean) < 5 * spread / np.sqrt(len(y))).all()


def test_zero_covariances_give_labels_and_no_density():
    X, _ = three_groups()
    found = model(covariance_type="zero").fit(X)
    distances = ((X[:, None] - found.means_[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(found.predict(X), distances.argmin(axis=1))
    for name in ("score_samples", "score", "predict_proba", "sample"):
        assert not hasattr(found, name)
        assert hasattr(model(), name)
    # the message is the cause that scikit-learn chains
    with pytest.raises(AttributeError) as caught:
        found.score(X)
    assert "releases no variances" in str(caught.value.__cause__)
    np.testing.assert_allclose(found.covariances_, np.full(3, 1e-3))


# --- bad and degenerate input ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a finite number greater than 0, got 0.0"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"epsilon": True}, "epsilon must be a finite number greater than 0, got True"),
        ({"epsilon": [1.0]}, "epsilon"),
        ({"delta": 0.0}, "delta must be a finite number greater than 0, got 0.0"),
        ({"delta": 1.0}, "delta must lie in .0, 1., got 1.0"),
        ({"n_components": 0}, "n_components must be an integer of at least 1, got 0"),
        ({"n_components": 21}, "n_components=21 for n_samples=20"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
        ({"covariance_type": "tied"}, "covariance_type must be one of spherical, diag, full, zero"),
        ({"accounting": "rdp"}, "accounting must be one of cdp, advanced, zcdp, pld, got 'rdp'"),
        ({"mean_noise": "gamma"}, "mean_noise must be one of laplace, gaussian, joint"),
        ({"variant": "code"}, "variant must be one of corrected, paper, got 'code'"),
        ({"estimate": "em"}, "estimate must be one of mle, map, got 'em'"),
        ({"variant": "paper"}, "variant='paper' knows mean_noise 'laplace' and 'gaussian'"),
        (
            {"variant": "paper", "mean_noise": "laplace", "covariance_type": "diag"},
            "no diagonal covariances",
        ),
        ({"accounting": "advanced"}, "accounting='advanced' composes pure releases"),
        ({"mean_delta": 1.0}, "mean_delta must lie in .0, 1., got 1.0"),
        ({"mean_delta": "a"}, "mean_delta"),
        ({"covariance_floor": 0.0}, "covariance_floor"),
        ({"norm_bound": 0.0}, "norm_bound must be a finite number greater than 0, got 0.0"),
        ({"norm_bound": 1e200}, "norm_bound must lie between"),
        ({"random_state": "x"}, "random_state"),
        ({"means_init": np.zeros((2, 2))}, r"means_init must be finite of shape \(3, 2\), got"),
        ({"means_init": np.zeros((3, 3))}, "means_init must be finite of shape"),
        ({"means_init": np.full((3, 2), np.nan)}, "means_init must be finite"),
        (
            {"means_init": np.zeros((3, 1)), "covariance_type": "zero"},
            "means_init must be finite of shape",
        ),
        ({"weights_init": [0.5, 0.5]}, r"weights_init must be finite of shape \(3,\)"),
        ({"weights_init": [0.5, 0.5, 0.5]}, "weights must sum to 1, got 1.5"),
        ({"covariances_init": np.ones(3)}, r"covariances_init must be finite of shape \(3, 2, 2\)"),
        ({"covariances_init": -start_covariances("full")}, "covariances must be positive definite"),
    ],
)
def test_bad_parameters(params, message):
    X, _ = three_groups(20)
    with pytest.raises(ValueError, match=message):
        model().set_params(**params).fit(X)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_numbers_are_refused(bad):
    X, _ = three_groups(20)
    X[3, 1] = bad
    found = model().fit(three_groups(20)[0])
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        found.predict(X)
    with pytest.raises(ValueError, match="features"):
        found.predict(np.zeros((2, 3)))


def _degenerate():
    rng = np.random.default_rng(0)
    inside = rng.uniform(-0.5, 0.5, (12, 2))
    return {
        "one feature": inside[:, :1],
        "constant feature": np.column_stack([inside[:, 0], np.full(12, 0.3)]),
        "all the same": np.full((9, 2), 0.4),
        "all zero": np.zeros((5, 2)),
        "as many components as rows": inside[:2],
        "integers": np.array([[0, 1], [1, 0], [0, -1]]),
        "ten features, few rows": rng.uniform(-0.1, 0.1, (4, 10)),
        "single precision": inside.astype(np.float32),
        "other order in memory": np.asfortranarray(inside),
    }


@pytest.mark.parametrize("name", list(_degenerate()))
@pytest.mark.parametrize("kind", [*TYPES, "zero"])
@pytest.mark.parametrize("epsilon", [1e-12, 1.0, 1e12])
def test_degenerate_data_gives_finite_results(name, kind, epsilon):
    X = _degenerate()[name]
    for noise, variant in (("joint", "corrected"), ("laplace", "paper"), ("gaussian", "corrected")):
        if (variant, kind) == ("paper", "diag"):
            continue
        found = model(
            2,
            means_init=None,
            covariance_type=kind,
            epsilon=epsilon,
            accounting="cdp",
            mean_noise=noise,
            variant=variant,
        ).fit(X)
        for value in (found.weights_, found.means_, found.covariances_):
            assert np.isfinite(value).all()
        assert found.weights_.sum() == pytest.approx(1.0)
        assert set(found.predict(X)) <= {0, 1}
        if kind != "zero":
            assert np.isfinite(found.score_samples(X)).all()


@pytest.mark.parametrize("kind", [*TYPES, "zero"])
def test_single_row(kind):
    X = np.array([[0.3, 0.4]])
    found = model(1, covariance_type=kind, epsilon=1e12, accounting="cdp").fit(X)
    np.testing.assert_allclose(found.means_, X, atol=1e-4)
    assert found.weights_.tolist() == [1.0]
    assert found.floor_rates_.covariances == (0.0 if kind == "zero" else 1.0)


@pytest.mark.parametrize("kind", [*TYPES, "zero"])
def test_component_without_rows(kind):
    """All rows are about one of two means: the other's weight is that of the noise."""
    X = np.array([0.5, 0.5]) + 1e-3 * np.random.default_rng(0).standard_normal((200, 2))
    found = model(
        2,
        covariance_type=kind,
        means_init=[[0.5, 0.5], [-0.9, -0.1]],
        covariances_init=None if kind == "zero" else 1e-3 * start_covariances(kind, 2),
        epsilon=1e8,
        accounting="cdp",
        max_iter=1,
    ).fit(X)
    assert found.weights_[0] > 1 - 1e-4
    assert np.isfinite(found.means_).all()
    assert found.floor_rates_.weights >= 0.5  # its count is floored at one row
    np.testing.assert_allclose(found.means_[0], X.mean(axis=0), atol=1e-4)


def test_data_within_the_bound_do_not_warn():
    X, _ = three_groups(30_000)  # enough for the noise not to warn either
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in (*TYPES, "zero"):
            model(covariance_type=kind).fit(X)


def test_data_are_left_alone():
    X, _ = three_groups()
    before = X.copy()
    model().fit(X)
    np.testing.assert_array_equal(X, before)
