import sys

import numpy as np
import pytest

from privclust.embedding import PrivateMail, RetrievalServer, align


def images(n=60, n_classes=5, d=8, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return np.random.default_rng(99).normal(size=(n_classes, d))[y] + 0.1 * rng.normal(
        size=(n, d)
    ), y


def parties(**params):
    model = PrivateMail(random_state=0, **params)
    public, gallery = images(), images(100, seed=1)
    return model.fit(*public), RetrievalServer(model, *public, *gallery)


def test_little_noise_keeps_the_neighbours_of_the_public_map():
    model, server = parties(epsilon=1e4)
    X, y = images(10, seed=2)
    places = server.locate(model.release(X))
    distances = np.linalg.norm(places[:, None] - server.gallery_, axis=2)
    labels = images(100, seed=1)[1]
    assert (labels[np.argsort(distances, axis=1)[:, :4]] == y[:, None]).all()


@pytest.mark.parametrize("variant", ["corrected", "paper", "code"])
def test_what_leaves_the_client_and_where_it_is_placed(variant):
    """One row, or that of the query below those of the public images, by which it is aligned."""
    model, server = parties(variant=variant)
    released = model.release(*images(4, seed=2))
    places = server.locate(released)
    if variant == "corrected":
        assert released.shape == (4, 4)
        np.testing.assert_array_equal(places, released)
        return
    assert released.shape == (4, 61, 2)
    for row, place in zip(released, places, strict=True):
        expected = align(row[:-1], server.anchors_).apply(row[-1:])
        np.testing.assert_allclose(place[None], expected, rtol=1e-12)


def test_public_images_start_where_the_server_starts_them():
    """Without noise and with the gallery left out, both sides have nearly the same embedding."""
    model, server = parties(variant="paper", n_iter=1)
    np.testing.assert_array_equal(
        model.start_[:-1], np.random.default_rng(0).normal(scale=1e-8, size=server.anchors_.shape)
    )


def test_the_query_goes_among_dummies():
    model, _ = parties(variant="paper", obfuscate=True)
    assert model.release(*images(5, seed=2)).shape == (5, 65, 2)


@pytest.mark.parametrize("label_after_noise", [None, False])
@pytest.mark.parametrize("variant", ["paper", "code"])
def test_order_labels_and_starts_tell_nothing(variant, label_after_noise):
    """Where each class has one public image and it is the query, all queries have the same rows.

    The release, up to rounding, is then the same too. A query that keeps a row of its own, with a
    start of its own, releases another one.
    """
    X, y = images(5)
    settings = {"variant": variant, "label_after_noise": label_after_noise, "init_scale": 1.0}
    released = []
    for x, label in zip(X, y, strict=True):
        model = PrivateMail(obfuscate=True, random_state=0, **settings).fit(X, y)
        released.append(model.release(x[None], [label]))
    for other in released[1:]:
        np.testing.assert_allclose(other, released[0], rtol=1e-9, atol=1e-9)


def test_bad_input():
    with pytest.raises(ValueError, match="y_gallery is missing"):
        RetrievalServer(PrivateMail(variant="paper"), *images(), images()[0])
    with pytest.raises(ValueError, match="X_gallery must have the features of X_public"):
        RetrievalServer(PrivateMail(variant="paper"), *images(), *images(d=7))
    X, y = images()
    model = PrivateMail(variant="paper", obfuscate=True, random_state=0)
    with pytest.raises(ValueError, match="y must lie in the range of public labels"):
        model.fit(X, y).release(X[:1], [7])
    with pytest.raises(ValueError, match="y must be labels of public images with obfuscate=True"):
        model.fit(X, np.where(y == 3, 2, y)).release(X[:1], [3])


@pytest.mark.parametrize("variant", ["corrected", "paper", "code"])
@pytest.mark.parametrize("released", ["feature", "embedding"])
def test_a_server_needs_no_source_of_noise(variant, released, monkeypatch):
    """Where OpenDP is not installed a client may not release, but there can be a server."""
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    model = PrivateMail(variant=variant, released=released)
    with pytest.raises(ImportError, match="secure"):
        model.fit(*images())
    server = RetrievalServer(model, *images(), *images(100, seed=1))
    assert len(server.gallery_) == 100
