"""Private random projections: sensitivity, noise and promises."""

import math
from fractions import Fraction
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import stats

from privclust.embedding import PrivateRandomProjection
from privclust.privacy import PrivacyLeakWarning


def unit_rows(n=50, d=20, seed=0):
    X = np.random.default_rng([seed, n, d]).standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def model(k=3, **params):
    return PrivateRandomProjection(
        k, **({"norm_bound": 1.0, "delta": 1e-5, "random_state": 0} | params)
    )


def delta_of(sensitivity, sigma, epsilon):
    """Delta of the normal mechanism at epsilon, Balle and Wang 2018, Theorem 8."""
    half, part = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
    return stats.norm.cdf(half - part) - math.exp(epsilon) * stats.norm.cdf(-half - part)


# --- sensitivity -----------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "k"), [(20, 3), (5, 8), (1, 1), (300, 2)])
def test_row_sensitivity_is_a_bound_and_attained(d, k):
    """By random pairs of rows of the ball, and by power iterations for the worst pair."""
    found = model(k, norm_bound=2.5).fit(unit_rows(d=d))
    P, bound = found.components_.T, found.sensitivity_.value
    rng = np.random.default_rng(1)
    x, y = (2.5 * unit_rows(2000, d, seed) * rng.random((2000, 1)) for seed in (2, 3))
    assert np.linalg.norm((x - y) @ P, axis=1).max() <= bound
    worst = rng.standard_normal(d)
    for _ in range(3000):
        worst = P @ (P.T @ worst)
        worst /= np.linalg.norm(worst)
    attained = np.linalg.norm((2.5 * worst - -2.5 * worst) @ P)
    assert attained == pytest.approx(bound, rel=1e-6)
    assert attained <= bound * (1 + 1e-12)


@pytest.mark.parametrize(("d", "k"), [(20, 3), (5, 8)])
def test_attribute_sensitivity_is_a_bound_and_attained(d, k):
    """By each attribute in turn, by 1; as Kenthapadi et al. have it."""
    found = model(k, neighbours="attribute").fit(unit_rows(d=d))
    changes = np.linalg.norm(np.eye(d) @ found.components_.T, axis=1)
    assert changes.max() == pytest.approx(found.sensitivity_.value, rel=1e-8)
    assert changes.max() < found.sensitivity_.value
    assert found.sensitivity_.value < model(k).fit(unit_rows(d=d)).sensitivity_.value / 2


# --- noise -----------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["row", "attribute"])
def test_noise_is_the_one_stated(neighbours):
    """Kolmogorov-Smirnov, false alarms 1e-4 each; noise of calls, rows and columns is not shared"""
    X = unit_rows(2000)
    found = model(neighbours=neighbours).fit(X)
    first, second = (found.transform(X) - X @ found.components_.T for _ in range(2))
    for noise in (first.ravel(), second.ravel()):
        assert stats.kstest(noise, stats.norm(scale=found.sigma_).cdf).pvalue > 1e-4
    columns = np.column_stack([first, second, first[::-1]])
    correlations = np.corrcoef(columns.T)[np.triu_indices(9, 1)]
    # each is normal of deviation 1 / sqrt(2000): 36 of them pass 5 with probability 2e-5
    assert np.abs(correlations).max() < 5 / math.sqrt(2000)


def test_a_query_alone_is_released_like_any_other():
    X = unit_rows()
    found = model().fit(X)
    alone = np.vstack([found.transform(X[:1]) for _ in range(2000)]) - X[:1] @ found.components_.T
    assert stats.kstest(alone.ravel(), stats.norm(scale=found.sigma_).cdf).pvalue > 1e-4


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("neighbours", ["row", "attribute"])
def test_noise_spends_the_budget(neighbours, epsilon):
    found = model(epsilon=epsilon, neighbours=neighbours).fit(unit_rows())
    spent = delta_of(found.sensitivity_.value, found.sigma_, epsilon)
    assert 0.99999e-5 < spent <= 1e-5


def test_large_epsilon_is_the_projection():
    X = unit_rows()
    found = model(epsilon=1e12).fit(X)
    np.testing.assert_allclose(found.transform(X), X @ found.components_.T, atol=1e-4)


def test_projection_is_normal_and_keeps_squares_on_average():
    """Entries N(0, 1/k): Kolmogorov-Smirnov, false alarms 1e-4."""
    found = model(4).fit(np.zeros((2, 800)))
    assert stats.kstest(found.components_.ravel(), stats.norm(scale=0.5).cdf).pvalue > 1e-4


# --- what is promised ------------------------------------------------------------------------


def test_row_guarantee():
    found = model(epsilon=0.7).fit(unit_rows()).guarantee_
    assert (found.definition, found.relation, found.delta) == ("approximate", "replace-one", 1e-5)
    assert found.epsilon == pytest.approx(0.7, rel=1e-6)
    assert found.epsilon <= 0.7
    assert any("one transform" in caveat for caveat in found.caveats)


def test_attribute_noise_promises_whole_rows_what_follows():
    found = model(epsilon=0.7, neighbours="attribute").fit(unit_rows())
    row = 2 * np.linalg.svd(found.components_)[1][0]
    stated = found.guarantee_.epsilon
    assert delta_of(row, found.sigma_, stated) == pytest.approx(1e-5, rel=1e-4)
    assert stated > 0.7
    assert found.guarantee_.caveats[0].startswith("(0.7, 1e-05) for neighbours that differ by")


def test_attribute_noise_without_bounds_promises_nothing():
    found = model(neighbours="attribute", norm_bound=None).fit(100.0 * unit_rows())
    assert found.guarantee_.definition == "none"
    assert "by any amount" in " ".join(found.guarantee_.caveats)
    with pytest.raises(ValueError, match="norm_bound=1"):
        model(neighbours="attribute").fit(unit_rows()).transform(100.0 * unit_rows())


def test_bound_from_the_data_leaves_no_guarantee():
    X = unit_rows()
    with pytest.warns(PrivacyLeakWarning, match="norm_bound"):
        found = model(norm_bound=None).fit(3.0 * X)
    assert found.guarantee_.definition == "none"
    assert found.norm_bound_ == pytest.approx(3.0)


def test_fit_looks_at_no_value_of_the_data():
    first, second = model().fit(unit_rows()), model().fit(np.zeros((1, 20)))
    np.testing.assert_array_equal(first.components_, second.components_)
    assert first.sigma_ == second.sigma_


def test_long_rows_are_drawn_in():
    X = unit_rows(10)
    found = model(epsilon=1e12).fit(X)
    with pytest.warns(UserWarning, match="clipped"):
        drawn = found.transform(7.0 * X)
    np.testing.assert_allclose(drawn, X @ found.components_.T, atol=1e-4)


@pytest.mark.skipif(find_spec("opendp") is None, reason="needs opendp (privclust[secure])")
def test_noise_of_a_release_cannot_be_repeated():
    X = unit_rows(5)
    found = model(random_state=None).fit(X)
    assert not found.guarantee_.seeded
    assert (found.transform(X) != found.transform(X)).all()


def test_same_seed_same_bytes():
    X = unit_rows()
    first, second = (model().fit(X).transform(X) for _ in range(2))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"n_components": 0}, "n_components must be"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": math.inf}, "epsilon must be"),
        ({"delta": 1.0}, "delta must lie"),
        ({"neighbours": "add_remove"}, "neighbours must be one of row, attribute"),
        ({"norm_bound": 0.0}, "norm_bound must be"),
        ({"random_state": "a"}, "random_state must be"),
    ],
)
def test_bad_parameters(params, match):
    with pytest.raises(ValueError, match=match):
        model().set_params(**params).fit(unit_rows())


def test_bad_rows():
    X = unit_rows()
    found = model().fit(X)
    with pytest.raises(ValueError, match="features"):
        found.transform(X[:, :4])
    X[0, 0] = np.inf
    with pytest.raises(ValueError, match=r"infinity|norm above"):
        model(neighbours="attribute").fit(unit_rows()).transform(X)


def test_the_source_of_noise_does_not_change_the_projection():
    X, fitted = unit_rows(5), model().fit(unit_rows())
    first, again = (fitted.with_noise_from(7).transform(X) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (first != fitted.transform(X)).all()
    other = fitted.with_noise_from(7)
    assert other.components_ is fitted.components_
    assert other.guarantee_ == fitted.guarantee_


@pytest.mark.skipif(find_spec("opendp") is None, reason="needs OpenDP")
def test_a_guarantee_says_where_the_noise_now_comes_from():
    fitted = model().fit(unit_rows())
    assert fitted.guarantee_.seeded
    assert not fitted.with_noise_from(None).guarantee_.seeded


# --- exact sums ------------------------------------------------------------------------------


def integers(found, X):
    """What noise is added to."""
    return found._integers(X, found._unit())


@pytest.mark.parametrize(("d", "k"), [(1, 1), (20, 3), (300, 2), (1280, 4)])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0])
def test_a_projected_row_is_exact_and_its_own(d, k, epsilon):
    X = 2.5 * unit_rows(201, d)
    found = model(k, norm_bound=2.5, epsilon=epsilon).fit(X)
    whole = integers(found, X)
    rows = np.rint(np.ldexp(X / found._unit(), found._bits)).astype(np.int64)
    matrix = np.ldexp(found.components_.T, 20).astype(np.int64)
    np.testing.assert_array_equal(whole.integers, rows @ matrix)
    assert (np.abs(rows) @ np.abs(matrix)).max() < 2**53
    assert (rows.astype(object) ** 2).sum(axis=1).max() <= 4**found._bits
    assert 64 * found.sigma_ / found._unit() * 2.0**whole.bits < 2**63
    order = np.random.default_rng(0).permutation(201)
    np.testing.assert_array_equal(integers(found, X[order]).integers, whole.integers[order])
    for i in (0, 100, 200):
        np.testing.assert_array_equal(integers(found, X[i : i + 1]).integers[0], whole.integers[i])


@pytest.mark.parametrize(("d", "k"), [(20, 3), (5, 8), (300, 2)])
def test_row_sensitivity_is_a_bound_of_what_is_represented(d, k):
    """In whole numbers, for the worst pair of rows and many others."""
    found = model(k, norm_bound=0.3).fit(unit_rows(d=d))
    worst = np.linalg.svd(found.components_)[2][:1]
    X = 0.3 * np.vstack([worst, unit_rows(500, d)]) * (1 + 1e-12)
    projected = integers(found, X).integers.astype(object)
    largest = max(4 * sum(entry**2 for entry in row) for row in projected)  # of x and -x
    in_units = Fraction(found.sensitivity_.value) / Fraction(found._unit())
    assert largest <= in_units**2 * 4 ** (found._bits + 20)
    assert largest >= 0.9999 * float(in_units**2) * 4 ** (found._bits + 20)


def test_an_attribute_moves_a_row_by_its_sensitivity_at_most():
    """In whole numbers, alone as among others, also where a step of rounding is a tenth of 1."""
    for bound in (1.0, 1e8):
        X = bound * unit_rows(101) * (1 - 1e-6)
        found = model(neighbours="attribute", norm_bound=bound).fit(X)
        whole = integers(found, X)
        for i in range(20):
            Y = X.copy()
            Y[:, i] -= np.sign(X[:, i]) * np.minimum(1.0, np.abs(X[:, i]))  # still in the ball
            moved = integers(found, Y)
            changes = (whole.integers - moved.integers).astype(object)
            largest = max(sum(entry**2 for entry in row) for row in changes)
            in_units = Fraction(found.sensitivity_.value) / Fraction(found._unit())
            assert 0 < largest <= in_units**2 * 4**whole.bits
            alone = integers(found, Y[7:8])
            np.testing.assert_array_equal(alone.integers[0], moved.integers[7])
    unbounded = model(neighbours="attribute", norm_bound=None).fit(X)
    assert "no bound either" in str(unbounded.guarantee_)
    assert "no bound either" not in str(found.guarantee_)


@pytest.mark.parametrize("entry", [np.nan, np.inf, 1e300])
def test_any_row_is_drawn_in(entry):
    X = unit_rows(5)
    X[2, 3] = entry
    found = model().fit(X)
    with pytest.warns(UserWarning, match="clipped"):
        released = found.transform(X)
    assert np.isfinite(released).all()
    assert "an entry that is not a number" in str(found.guarantee_)


def test_every_transform_is_charged_before_rows_are_projected(monkeypatch):
    found = model().fit(unit_rows())
    charged = []
    monkeypatch.setattr("privclust.embedding._random_projection.charge", charged.append)
    for _ in range(3):
        found.transform(unit_rows(2))
    assert charged == [found.guarantee_] * 3
    with pytest.warns(PrivacyLeakWarning):
        model(norm_bound=None).fit(unit_rows())
    assert charged[-1].definition == "none"
