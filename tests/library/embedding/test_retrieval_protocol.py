import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from privclust.embedding import Message, PrivateMail, RetrievalClient, RetrievalServer

EXAMPLE = Path(__file__).parents[3] / "examples" / "private_retrieval.py"


def images(n=60, n_classes=5, d=8, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return np.random.default_rng(99).normal(size=(n_classes, d))[y] + 0.1 * rng.normal(
        size=(n, d)
    ), y


def parties(**params):
    model = PrivateMail(random_state=0, **params)
    public, gallery = images(), images(100, seed=1)
    return RetrievalClient(model, *public), RetrievalServer(model, *public, *gallery)


def test_little_noise_keeps_the_neighbours_of_the_public_map():
    client, server = parties(epsilon=1e4)
    X, y = images(10, seed=2)
    for x, label in zip(X, y, strict=True):
        found = client.read(server.answer(client.ask(x, k=4)))
        assert (images(100, seed=1)[1][found] == label).all()
    without = server.answer(Message(client.model_.public_map(X), None, 4))
    assert without.shape == (10, 4)


@pytest.mark.parametrize("variant", ["corrected", "paper", "code"])
def test_what_leaves_the_client(variant):
    """Rows to look up, anchors and k; neither features nor a label."""
    client, server = parties(variant=variant)
    (x,), (label,) = images(1, seed=2)
    message = client.ask(x, label, k=3)
    assert [item.name for item in fields(message)] == ["queries", "anchors", "k"]
    assert message.queries.shape == (1, 4 if variant == "corrected" else 2)
    assert (message.anchors is None) == (variant == "corrected")
    if variant != "corrected":
        assert message.anchors.shape == (60, 2)
    received = Message.from_json(message.to_json())
    np.testing.assert_array_equal(received.queries, message.queries)
    np.testing.assert_array_equal(server.answer(received), server.answer(message))
    assert str(message).startswith("3 nearest of 1 row of")


@pytest.mark.parametrize("variant", ["corrected", "paper", "code"])
def test_many_at_once_are_answered_as_one_by_one(variant):
    client, server = parties(variant=variant)
    X, y = images(4, seed=2)
    released = client.model_.release(X, y)
    places = server.locate(released)
    for row, place in zip(released, places, strict=True):
        queries, anchors = (row[None], None) if variant == "corrected" else (row[-1:], row[:-1])
        found = server.answer(Message(queries, anchors, 5))
        distances = ((server.gallery_ - place) ** 2).sum(axis=1)
        np.testing.assert_array_equal(found[0], np.argsort(distances, kind="stable")[:5])


def test_public_images_start_where_the_server_starts_them():
    """Without noise and with the gallery left out, both sides have nearly the same embedding."""
    client, server = parties(variant="paper", n_iter=1)
    np.testing.assert_array_equal(
        client.model_.start_[:-1],
        np.random.default_rng(0).normal(scale=1e-8, size=server.anchors_.shape),
    )


def test_the_query_goes_among_dummies():
    client, server = parties(variant="paper", obfuscate=True)
    X, y = images(5, seed=2)
    for x, label in zip(X, y, strict=True):
        message = client.ask(x, label, k=3)
        assert message.queries.shape == (5, 2)
        assert message.anchors.shape == (60, 2)
        reply = server.answer(message)
        np.testing.assert_array_equal(client.read(reply), reply[label])


@pytest.mark.parametrize("label_after_noise", [None, False])
@pytest.mark.parametrize("variant", ["paper", "code"])
def test_order_labels_and_starts_tell_nothing(variant, label_after_noise):
    """Where each class has one public image and it is the query, all queries have the same rows.

    The message, up to rounding, is then the same too. A query that keeps a row of its own, with a
    start of its own, sends another one.
    """
    X, y = images(5)
    settings = {"variant": variant, "label_after_noise": label_after_noise, "init_scale": 1.0}
    messages = []
    for x, label in zip(X, y, strict=True):
        model = PrivateMail(obfuscate=True, random_state=0, **settings)
        messages.append(RetrievalClient(model, X, y).ask(x, label))
    for message in messages[1:]:
        np.testing.assert_allclose(message.queries, messages[0].queries, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(message.anchors, messages[0].anchors, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "not queries, anchors and k in JSON"),
        ('{"queries": [[1, 2]], "k": 3}', "not queries, anchors and k in JSON"),
        ('{"queries": [[1], [1, 2]], "anchors": null, "k": 3}', "not queries, anchors and k"),
        ('{"queries": [1, 2], "anchors": null, "k": 3}', "queries must be a matrix"),
        ('{"queries": [[NaN]], "anchors": null, "k": 3}', "queries must be a matrix of finite"),
        ('{"queries": [[1]], "anchors": null, "k": 0}', "k must be"),
        ('{"queries": [[1' + "0" * 400 + ']], "anchors": null, "k": 1}', "not queries, anchors"),
        ("[" * 100_000, "not queries, anchors and k in JSON"),
    ],
)
def test_bad_messages(text, message):
    with pytest.raises(ValueError, match=message):
        Message.from_json(text)


def test_bad_input():
    client, server = parties()
    rows = np.zeros((1, 4))
    with pytest.raises(ValueError, match="this server expects no anchors"):
        server.answer(Message(rows, rows, 1))
    with pytest.raises(ValueError, match="k must be at most the size of the gallery, 100"):
        server.answer(Message(rows, None, 101))
    with pytest.raises(ValueError, match="x must be one image's features"):
        client.ask(np.zeros((2, 8)))
    printed, printed_server = parties(variant="paper")
    with pytest.raises(ValueError, match="label is missing"):
        printed.ask(np.ones(8))
    with pytest.raises(ValueError, match="this server expects 60 anchors"):
        printed_server.answer(Message(rows[:, :2], None, 1))
    with pytest.raises(ValueError, match=r"anchors must have shape \(60, 2\)"):
        printed_server.answer(Message(rows[:, :2], rows[:, :2], 1))
    with pytest.raises(ValueError, match="y_gallery is missing"):
        RetrievalServer(PrivateMail(variant="paper"), *images(), images()[0])
    with pytest.raises(ValueError, match="X_gallery must have the features of X_public"):
        RetrievalServer(PrivateMail(variant="paper"), *images(), *images(d=7))
    with pytest.raises(ValueError, match="obfuscate must be False"):
        RetrievalClient(PrivateMail(obfuscate=True, random_state=0), *images())
    hidden, _ = parties(variant="paper", obfuscate=True)
    with pytest.raises(ValueError, match="y must lie in the range of public labels"):
        hidden.ask(np.ones(8), 7)
    X, y = images()
    model = PrivateMail(variant="paper", obfuscate=True, random_state=0)
    gap = RetrievalClient(model, X, np.where(y == 3, 2, y))
    with pytest.raises(ValueError, match="y must be labels of public images with obfuscate=True"):
        gap.ask(X[0], 3)


@pytest.mark.parametrize("variant", ["corrected", "paper", "code"])
@pytest.mark.parametrize("released", ["feature", "embedding"])
def test_a_server_needs_no_source_of_noise(variant, released, monkeypatch):
    """Where OpenDP is not installed a client may not release, but a server can answer."""
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    model = PrivateMail(variant=variant, released=released)
    with pytest.raises(ImportError, match="secure"):
        RetrievalClient(model, *images())
    server = RetrievalServer(model, *images(), *images(100, seed=1))
    seeded = PrivateMail(variant=variant, released=released, random_state=0)
    message = RetrievalClient(seeded, *images()).ask(*(part[0] for part in images(1)), k=3)
    assert server.answer(message).shape == (1, 3)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["corrected", pytest.param("code", marks=pytest.mark.system)])
def test_the_example_runs_with_two_processes(variant):
    command = [sys.executable, str(EXAMPLE), "--variant", variant, "--queries", "5", "--seed", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    assert "what leaves the client:" in done.stdout
    assert "Recall@3 of 5 queries:" in done.stdout
    assert "not for release" in done.stdout
