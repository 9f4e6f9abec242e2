"""One front for private k-means: what it chooses, and that it is what it chose."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privclust.kmeans import CompressiveKMeans, PrivateKMeans, TreeKMeans

HOW = {"epsilon": 2.0, "bounds": (-1.0, 1.0), "random_state": 0}


def rows(d, n=3000):
    rng = np.random.default_rng(d)
    return np.clip(rng.choice([-0.5, 0.5], (n, 1)) + 0.1 * rng.standard_normal((n, d)), -1.0, 1.0)


@pytest.mark.parametrize(
    ("d", "delta", "kind"),
    [
        (1, 1e-6, TreeKMeans),
        (2, 1e-6, TreeKMeans),
        (3, 1e-6, CompressiveKMeans),
        (2, 0.0, CompressiveKMeans),
    ],
)
def test_it_is_the_method_that_public_numbers_choose(d, delta, kind):
    X = rows(d)
    model = PrivateKMeans(2, delta=delta, **HOW).fit(X)
    own = kind(2, delta=delta, **HOW).fit(X)
    assert type(model.estimator_) is kind
    assert model.method_ == ("tree" if kind is TreeKMeans else "sketch")
    np.testing.assert_array_equal(model.cluster_centers_, own.cluster_centers_)
    np.testing.assert_array_equal(model.labels_, own.labels_)
    assert model.guarantee_ == own.guarantee_
    assert model.weights_.sum() == pytest.approx(1.0)
    assert model.left_out_ == own.left_out_
    assert model.mean_inertia_ == own.mean_inertia_
    np.testing.assert_array_equal(model.cluster_spreads_, own.cluster_spreads_)
    assert hasattr(model, "is_stable_") == (kind is CompressiveKMeans)
    np.testing.assert_array_equal(model.predict(X[:5]), own.predict(X[:5]))


def test_lists_are_chosen_for_as_arrays_are():
    X = rows(2, 400)
    assert PrivateKMeans(2, **HOW).fit(X.tolist()).method_ == "tree"
    assert PrivateKMeans(2, **HOW).fit(rows(3, 400).tolist()).method_ == "sketch"


def test_epsilon_must_be_a_number():
    with pytest.raises(ValueError, match="LloydKMeans"):
        PrivateKMeans(2, **(HOW | {"epsilon": None})).fit(rows(2))


@settings(max_examples=15, deadline=None)
@given(
    st.floats(-300.0, 300.0),
    st.sampled_from([TreeKMeans, CompressiveKMeans]),
    st.sampled_from(["replace_one", "add_remove"]),
    st.floats(-18.0, 98.0),
)
@example(-200.0, CompressiveKMeans, "replace_one", 0.0)  # an OverflowError before
@example(155.0, CompressiveKMeans, "replace_one", 0.0)  # an error after noise was charged
@example(0.0, CompressiveKMeans, "add_remove", 98.0)  # an infinite standard error
@example(0.0, TreeKMeans, "add_remove", 98.0)  # precisions of 0
@example(300.0, TreeKMeans, "replace_one", -18.0)  # and infinite ones
def test_any_epsilon_and_any_scale_give_finite_results(power, kind, neighbours, scale):
    X, unit = rows(2, 200), 10.0**scale
    how = {"epsilon": 10.0**power, "bounds": (-unit, unit), "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(2, delta=1e-6, neighbours=neighbours, **how).fit(unit * X)
        assert np.isfinite(model.cluster_centers_).all()
        random = {"random_state": 0} if kind is CompressiveKMeans else {}
        errors = model.standard_errors(**random)
        for told in (errors.centers, errors.weights, errors.spreads, errors.mean_inertia):
            assert np.isfinite(told).all()
        assert np.isfinite(model.cluster_spreads_).all()
        assert np.isfinite(model.mean_inertia_)
