"""One front for private k-means: what it chooses, and that it is what it chose."""

import numpy as np
import pytest

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
    np.testing.assert_array_equal(model.predict(X[:5]), own.predict(X[:5]))


def test_lists_are_chosen_for_as_arrays_are():
    X = rows(2, 400)
    assert PrivateKMeans(2, **HOW).fit(X.tolist()).method_ == "tree"
    assert PrivateKMeans(2, **HOW).fit(rows(3, 400).tolist()).method_ == "sketch"


def test_a_method_can_be_named():
    assert PrivateKMeans(2, method="sketch", **HOW).fit(rows(2)).method_ == "sketch"
    assert PrivateKMeans(2, method="tree", **HOW).fit(rows(3)).method_ == "tree"
    with pytest.raises(ValueError, match="method must be one of"):
        PrivateKMeans(2, method="grid", **HOW).fit(rows(2))
    with pytest.raises(ValueError, match="delta"):
        PrivateKMeans(2, method="tree", delta=0.0, **HOW).fit(rows(2))
    with pytest.raises(ValueError, match="LloydKMeans"):
        PrivateKMeans(2, **(HOW | {"epsilon": None})).fit(rows(2))
