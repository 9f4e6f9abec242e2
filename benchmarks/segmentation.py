"""CPU time and objective of SSC, LRR and CASS against plain statements of the authors' algorithms.

Run: ``OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/segmentation.py``. Both solve the
same problem on the same data in one process; the table has the CPU time of each (ours: the least of
three, after a call that compiles), their ratio, and how far the objective of each is above the
least known, where ours at a tight tolerance is among those compared. A section is one function in
`SECTIONS`. A second table has whole fits, spectral clustering included, at the sizes that the
project promises: the CPU time and the part of the points that is segmented correctly.
"""

from __future__ import annotations

import time

import numpy as np

from privclust.metrics import segmentation_error
from privclust.segmentation import CASS, LRR, SSC
from privclust_papers.datasets.motion import generate_sequences


def random_subspaces(n_each, n_subspaces, dimension, ambient, noise, seed=0):
    """Return unit-norm samples, one a row, of random subspaces with Gaussian noise."""
    rng = np.random.default_rng(seed)
    parts = [
        rng.standard_normal((n_each, dimension))
        @ np.linalg.qr(rng.standard_normal((ambient, dimension)))[0].T
        for _ in range(n_subspaces)
    ]
    X = np.vstack(parts)
    X = X + noise * rng.standard_normal(X.shape)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def timed(function, repeats=1):
    """Return the least CPU time of `repeats` calls and the last result."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        result = function()
        best = min(best, time.process_time() - start)
    return best, result


def reference_ssc(X, fidelity, penalty, n_iter=200, threshold=2e-4):
    """ADMM of Elhamifar and Vidal, Algorithm 2: the n x n inverse and a product by it a step."""
    gram = X @ X.T
    n = len(X)
    inverse = np.linalg.inv(fidelity * gram + penalty * np.eye(n))
    C, dual = np.zeros((n, n)), np.zeros((n, n))
    for _ in range(n_iter):
        Z = inverse @ (fidelity * gram + penalty * (C - dual / penalty))
        np.fill_diagonal(Z, 0.0)
        C = Z + dual / penalty
        C = np.maximum(0.0, np.abs(C) - 1.0 / penalty) * np.sign(C)
        np.fill_diagonal(C, 0.0)
        dual += penalty * (Z - C)
        if np.abs(Z - C).max() < threshold:
            break
    return C


def reference_lrr(X, lam, tol=1e-8):
    """Inexact ALM of Liu et al., Algorithm 1: the penalty grows by 1.1 a step."""
    A = X.T
    n = len(X)
    Z, E = np.zeros((n, n)), np.zeros_like(A)
    y, t, mu = np.zeros_like(A), np.zeros((n, n)), 1e-6
    system = np.linalg.inv(np.eye(n) + A.T @ A)
    while True:
        u, s, vt = np.linalg.svd(Z + t / mu, full_matrices=False)
        J = (u * np.maximum(s - 1.0 / mu, 0.0)) @ vt
        Z = system @ (A.T @ (A - E) + J + (A.T @ y - t) / mu)
        R = A - A @ Z + y / mu
        E = R * np.maximum(1.0 - lam / mu / np.linalg.norm(R, axis=0), 0.0)
        if max(np.abs(A - A @ Z - E).max(), np.abs(Z - J).max()) < tol:
            return J
        y, t, mu = y + mu * (A - A @ Z - E), t + mu * (Z - J), min(1.1 * mu, 1e10)


def reference_cass(X, lam, tol=1e-4):
    """ADMM of Lu et al. for one column after another, an SVD of d x n a step."""
    n = len(X)
    coefficients = np.zeros((n, n))
    for j in range(n):
        others = np.delete(np.arange(n), j)
        A, b = X[others].T, X[j]
        gram, squares = A.T @ A, (A**2).sum(axis=0)
        J, y, mu, gap = np.zeros_like(A), np.zeros_like(A), 0.1, np.inf
        while gap > tol:
            system = gram + mu * np.diag(squares)
            z = np.linalg.solve(system, A.T @ b + (A * (mu * J + y)).sum(axis=0))
            u, s, vt = np.linalg.svd(A * z - y / mu, full_matrices=False)
            J = (u * np.maximum(s - lam / mu, 0.0)) @ vt
            gap = np.abs(J - A * z).max()
            y, mu = y + mu * (J - A * z), min(1.1 * mu, 1e10)
        coefficients[others, j] = z
    return coefficients


def ssc_section():
    X = random_subspaces(64, 5, 6, 50, noise=0.02)  # N = 320, D = 50
    alpha = 50.0
    gram = np.abs(X @ X.T)
    np.fill_diagonal(gram, 0.0)
    fidelity = alpha / gram.max(axis=1).min()

    def objective(Z):
        return np.abs(Z).sum() + 0.5 * fidelity * np.sum((X.T - X.T @ Z) ** 2)

    return compare(
        "SSC, N=320 D=50",
        lambda **options: SSC(5, alpha=alpha, **options)._coefficients(X.T),
        lambda: reference_ssc(X, fidelity, alpha),
        objective,
    )


def lrr_section():
    X, lam = random_subspaces(60, 5, 4, 50, noise=0.02), 0.5

    def objective(Z):
        return np.linalg.norm(Z, "nuc") + lam * np.linalg.norm(X.T - X.T @ Z, axis=0).sum()

    return compare(
        "LRR, N=300 D=50",
        lambda **options: LRR(5, lam=lam, **options)._coefficients(X.T),
        lambda: reference_lrr(X, lam),
        objective,
    )


def cass_section():
    X, lam = random_subspaces(25, 4, 3, 12, noise=0.02), 1e-2

    def objective(Z):
        norms = [np.linalg.norm(X.T * z, "nuc") for z in Z.T]
        return 0.5 * np.sum((X.T - X.T @ Z) ** 2) + lam * sum(norms)

    return compare(
        "CASS, N=100 D=12",
        lambda **options: CASS(4, lam=lam, **options)._coefficients(X.T),
        lambda: reference_cass(X, lam),
        objective,
    )


def compare(name, ours, reference, objective):
    """Return the row of the table: name, CPU times, and relative excesses of the objectives."""
    ours()  # compiles
    time_ours, Z = timed(ours, repeats=3)
    time_reference, Z_reference = timed(reference)
    values = [objective(z) for z in (Z, Z_reference, ours(tol=1e-5, max_iter=20_000))]
    least = min(values)
    return name, time_ours, time_reference, values[0] / least - 1.0, values[1] / least - 1.0


SECTIONS = (ssc_section, lrr_section, cass_section)


def whole_fits():
    """Yield (name, estimator, samples, labels) of the fits at promised sizes."""
    X, y = random_subspaces(64, 5, 6, 50, 0.0), np.repeat(np.arange(5), 64)
    yield "SSC, N=320, D=50", SSC(n_clusters=5, alpha=None, random_state=0), X, y
    noisy = random_subspaces(64, 5, 6, 50, 0.01)
    yield "SSC noisy, N=320, D=50", SSC(n_clusters=5, random_state=0), noisy, y
    large = random_subspaces(1000, 2, 2, 5, 0.01)
    yield "SSC, N=2000, D=5", SSC(n_clusters=2, random_state=0), large, np.repeat([0, 1], 1000)
    motions = min(generate_sequences(seed=155), key=lambda s: abs(s.labels.size - 300))
    model = CASS(n_clusters=motions.n_motions, lam=1e-3, random_state=0)
    rows, points = motions.trajectories.shape
    yield f"CASS, motions, N={points}, D={rows}", model, motions.trajectories.T, motions.labels


def main():
    print(f"{'':18s} {'ours':>8s} {'plain':>8s} {'ratio':>7s} {'excess':>9s} {'plain':>9s}")
    for section in SECTIONS:
        name, ours, plain, excess, excess_plain = section()
        ratio = plain / ours
        print(
            f"{name:18s} {ours:7.3f}s {plain:7.3f}s {ratio:7.1f} {excess:9.1e} {excess_plain:9.1e}"
        )
    print(f"\n{'whole fit':32s} {'CPU':>8s} {'correct':>8s}")
    for name, model, X, y in whole_fits():
        model.fit(X)  # compiles
        cpu, fitted = timed(lambda model=model, X=X: model.fit(X), repeats=3)
        print(f"{name:32s} {cpu:7.3f}s {1.0 - segmentation_error(y, fitted.labels_):8.3f}")


if __name__ == "__main__":
    main()
