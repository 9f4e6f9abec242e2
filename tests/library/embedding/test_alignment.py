import numpy as np
import pytest

from privclust.embedding import align


def rotation(k, rng):
    turn = np.linalg.qr(rng.normal(size=(k, k)))[0]
    turn[:, 0] *= np.sign(np.linalg.det(turn))
    return turn


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [1e-200, 1e-8, 1.0, 1e150])
def test_similarities_are_found_again(k, size):
    rng = np.random.default_rng(k)
    X = rng.normal(size=(20, k))
    turn, shift = rotation(k, rng), rng.normal(size=k)
    found = align(size * X, 2.5 * X @ turn.T + shift)
    np.testing.assert_allclose(found.rotation, turn, atol=1e-10)
    assert found.scale * size == pytest.approx(2.5)
    np.testing.assert_allclose(found.apply(size * X), 2.5 * X @ turn.T + shift, atol=1e-10)


def test_no_other_similarity_is_nearer():
    """Least squares over rotations, scales and shifts; also where a reflection would fit better."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    for Y in (X + rng.normal(size=X.shape), X * [1.0, -1.0] + 0.1 * rng.normal(size=X.shape)):
        found = align(X, Y)
        assert np.linalg.det(found.rotation) == pytest.approx(1.0)
        least = ((found.apply(X) - Y) ** 2).sum()
        for angle in np.linspace(0, 2 * np.pi, 721):
            turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            A, B = (X - X.mean(axis=0)) @ turn.T, Y - Y.mean(axis=0)
            scale = max((A * B).sum() / (A**2).sum(), 0.0)
            assert ((scale * A - B) ** 2).sum() >= least * (1 - 1e-12)


def test_stacks_are_one_by_one():
    rng = np.random.default_rng(1)
    sources, target = rng.normal(size=(6, 15, 3)), rng.normal(size=(15, 3))
    queries = rng.normal(size=(6, 2, 3))
    together = align(sources, target).apply(queries)
    for source, query, found in zip(sources, queries, together, strict=True):
        np.testing.assert_allclose(found, align(source, target).apply(query), atol=1e-12)


def test_a_source_without_spread_goes_to_the_mean():
    target = np.arange(6.0).reshape(3, 2)
    found = align(np.ones((3, 2)), target)
    np.testing.assert_allclose(found.apply(np.array([[9.0, 9.0]])), [target.mean(axis=0)])


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (np.ones((3, 2)), np.ones((4, 2)), "target must have the rows and columns"),
        (np.full((3, 2), np.nan), np.ones((3, 2)), "source must be finite"),
        (np.ones(3), np.ones(3), "source must be finite numbers of shape"),
    ],
)
def test_bad_input(source, target, message):
    with pytest.raises(ValueError, match=message):
        align(source, target)
