import numpy as np
import pytest

from privclust.embedding import SMLQ, unit_rows

WIDTHS = {"sigma": 3.0, "sigma^2": 9.0, "2 sigma^2": 18.0}  # at sigma = 3


def images(n=30, n_classes=4, d=5, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    return rng.normal(size=(n_classes, d))[y] + 0.3 * rng.normal(size=(n, d)), y


def dense_laplacian(rows, width):
    """Eq. (2), entry by entry."""
    n = len(rows)
    L = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i != j:
                weight = np.exp(-np.sum((rows[i] - rows[j]) ** 2) / width)
                L[i, j] -= weight
                L[i, i] += weight
    return L


def dense_labels(y, variant, width):
    if variant == "paper":
        return dense_laplacian(y[:, None].astype(float), width)
    n = len(y)
    J = np.eye(n) - 1.0 / n
    weights = -0.5 * J @ np.abs(y[:, None] - y).astype(float) @ J
    return np.diag(weights.sum(axis=1)) - weights


# --- against the formulas ----------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [None, *WIDTHS])
@pytest.mark.parametrize("variant", ["paper", "code"])
def test_iterates_are_those_of_the_dense_formulas(variant, kernel):
    X, y = images()
    found = SMLQ(
        3, sigma=3.0, alpha=0.7, variant=variant, kernel=kernel, n_iter=4, random_state=1
    ).fit(X, y)
    default = {"paper": "sigma", "code": "sigma^2"}[variant]
    width = WIDTHS[kernel or default]
    LX = dense_laplacian(X / np.linalg.norm(X, axis=1, keepdims=True), width)
    LY = dense_labels(y, variant, width)
    Z = found.iterates_[0]
    for t in range(5):
        np.testing.assert_allclose(found.iterates_[t], Z, rtol=1e-10, atol=1e-20)
        objective = np.trace(Z.T @ LX @ Z) - 0.7 * np.trace(Z.T @ LY @ Z)
        assert found.objectives_[t] == pytest.approx(objective, rel=1e-10)
        Z = Z + 0.5 * np.diag(1.0 / np.diag(LX)) @ (0.7 * LY - LX) @ Z
    np.testing.assert_array_equal(found.embedding_, found.iterates_[-1])


@pytest.mark.parametrize("n", [40, 600, 1100])  # one stripe of the kernel and several
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 3e-5)])
def test_the_first_step_is_that_of_the_whole_kernel(n, dtype, tolerance):
    """Float32 kernels are off by some 1e-6 an entry."""
    X = unit_rows(images(n)[0].astype(dtype))
    Z = np.random.default_rng(1).normal(size=(n, 2))
    squares = ((X[:, None].astype(float) - X.astype(float)) ** 2).sum(axis=2)
    weights = np.exp(-squares / 2.0)
    np.fill_diagonal(weights, 0.0)
    expected = 0.5 * (Z + weights @ Z / weights.sum(axis=1)[:, None])
    model = SMLQ(sigma=2.0, alpha=0.0, init=Z, n_iter=1)
    found = model.fit_transform(X, np.zeros(n, dtype=int))
    assert np.abs(found - expected).max() < tolerance * np.abs(Z).max()


def test_labels_are_any_integers():
    y = np.array([-3, 10, 10, 0, 250, -3])
    X = unit_rows(np.random.default_rng(1).normal(size=(6, 4)))
    Z = np.random.default_rng(0).normal(size=(6, 2))
    LX = dense_laplacian(X, 5.0)
    for variant in ("paper", "code"):
        found = SMLQ(sigma=5.0, variant=variant, kernel="sigma", init=Z, n_iter=1, alpha=0.7)
        step = 0.5 * (0.7 * dense_labels(y, variant, 5.0) - LX) @ Z / np.diag(LX)[:, None]
        np.testing.assert_allclose(found.fit_transform(X, y), Z + step, atol=1e-12)


# --- Theorem 1 ---------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.6, 5.0, 100.0])
@pytest.mark.parametrize("sigma", [0.3, 6.0])
def test_objective_falls_by_what_the_proof_says(alpha, sigma):
    """v falls by 2 tr S'DS + alpha tr S'L_Y S at least, for any alpha, start and bandwidth."""
    X, y = images(60)
    start = 5.0 * np.random.default_rng(3).normal(size=(60, 2))
    found = SMLQ(alpha=alpha, sigma=sigma, init=start, n_iter=6).fit(X, y)
    D = np.diag(dense_laplacian(unit_rows(X), sigma))
    LY = dense_labels(y, "paper", sigma)
    for t, fall in enumerate(-np.diff(found.objectives_)):
        S = found.iterates_[t + 1] - found.iterates_[t]
        least = 2.0 * (D @ S**2).sum() + alpha * np.trace(S.T @ LY @ S)
        assert fall >= least * (1 - 1e-9) > 0


@pytest.mark.parametrize(("sigma", "alpha"), [(6.0, 0.6), (5.0, 0.5)])
def test_theorem_1_at_the_printed_parameters(sigma, alpha):
    """It holds as printed; the released label Laplacian is negative semidefinite: it does not."""
    X, _ = images(500, 100, 20)
    y = np.arange(500) % 100
    for kernel in WIDTHS:
        printed = SMLQ(sigma=sigma, alpha=alpha, kernel=kernel, random_state=0).fit(X, y)
        assert (np.diff(printed.objectives_) < 0).all()
    assert np.linalg.eigvalsh(dense_labels(y, "code", 1.0)).max() < 1e-9
    released = SMLQ(sigma=sigma, alpha=alpha, variant="code", random_state=0).fit(X, y)
    assert released.objectives_.min() > 0
    assert released.objectives_[-1] > released.objectives_[0]


def test_fixed_points_stay():
    """Constant embeddings are in the null space of both Laplacians."""
    X, y = images()
    start = np.tile([2.0, -3.0], (30, 1))
    for variant in ("paper", "code"):
        found = SMLQ(init=start, variant=variant).fit(X, y)
        np.testing.assert_allclose(found.embedding_, start, atol=1e-12)
        np.testing.assert_allclose(found.objectives_, 0.0, atol=1e-10)


# --- invariances -------------------------------------------------------------------------------


def test_order_rotation_scale_and_linearity():
    X, y = images()
    rng = np.random.default_rng(2)
    start = rng.normal(size=(30, 2))
    order = rng.permutation(30)
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    plane = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    base = SMLQ(init=start).fit_transform(X, y)
    for other, expected in (
        (SMLQ(init=start[order]).fit_transform(X[order], y[order]), base[order]),
        (SMLQ(init=start).fit_transform(X @ turn * 7.0, y + 3), base),
        (SMLQ(init=1e-8 * start @ plane).fit_transform(X, y), 1e-8 * base @ plane),
    ):
        np.testing.assert_allclose(other, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_an_isolated_sample_stays_where_it_is():
    """Its degree is 0, whose pseudo-inverse is 0; the release divides by 1e-9 instead."""
    X = np.array([[1.0, 0.0], [1.0, 1e-3], [-1.0, 0.0]])
    model = SMLQ(sigma=1e-3, init=np.arange(6.0).reshape(3, 2), n_iter=2)
    np.testing.assert_array_equal(model.fit_transform(X, [0, 0, 0])[2], [4.0, 5.0])
    moved = model.set_params(variant="code", kernel="sigma").fit_transform(X, [0, 0, 9])
    assert np.abs(moved[2]).max() > 1e6


# --- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alpha": -1.0}, "alpha must be"),
        ({"sigma": 0.0}, "sigma must be"),
        ({"n_iter": 0}, "n_iter must be"),
        ({"n_components": 0}, "n_components must be"),
        ({"variant": "corrected"}, "variant must be one of paper, code"),
        ({"kernel": "2sigma"}, "kernel must be one of"),
        ({"init": np.zeros((3, 2))}, r"init must be None or finite numbers of shape \(30, 2\)"),
        ({"alpha": 1e6, "n_iter": 200}, "overflowed"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        SMLQ(**({"random_state": 0} | params)).fit(*images())


def test_bad_data():
    X, y = images()
    with pytest.raises(ValueError, match="NaN"):
        SMLQ().fit(np.where(X > 1, np.nan, X), y)
    with pytest.raises(ValueError, match="labels must be a vector of integers"):
        SMLQ().fit(X, y + 0.5)
    with pytest.raises(ValueError, match="requires y"):
        SMLQ().fit(X, None)
