import numpy as np
import pytest

from privclust.preprocessing import AppendOne, PrincipalCoordinates


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.standard_normal((40, 3)) @ rng.standard_normal((3, 10))


def test_low_rank_data_keep_every_inner_product(X):
    found = PrincipalCoordinates(n_components=3).fit_transform(X)
    np.testing.assert_allclose(found @ found.T, X @ X.T, atol=1e-10)


def test_coordinates_are_the_best_approximation(X):
    model = PrincipalCoordinates(n_components=2).fit(X)
    values = np.linalg.svd(X, compute_uv=False)
    residual = X - model.transform(X) @ model.components_
    assert np.linalg.norm(residual) == pytest.approx(values[2])


def test_more_coordinates_than_features_are_all_of_them(X):
    assert PrincipalCoordinates(n_components=99).fit_transform(X).shape == (40, 10)


def test_appended_ones_make_coefficients_sum_to_one(X):
    padded = AppendOne(value=2.0).fit_transform(X)
    coefficients = np.linalg.lstsq(padded[1:].T, padded[0], rcond=None)[0]
    assert coefficients.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("value", [0, np.inf, "one"])
def test_bad_constant_is_named(X, value):
    with pytest.raises(ValueError, match="value: got"):
        AppendOne(value=value).fit(X)


@pytest.mark.parametrize("count", [0, 1.5, True])
def test_bad_count_is_named(X, count):
    with pytest.raises(ValueError, match="n_components must be an integer of at least 1, got"):
        PrincipalCoordinates(n_components=count).fit(X)
