"""Effective samples a CPU second of four Gibbs samplers for the matrix Bingham distribution.

Run: ``OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/bingham.py``. The density of a d x q
orthonormal U is proportional to exp(epsilon / 2 tr(U' A U)), A the second moments of one cluster of
data like those of Section 5 of the private subspace clustering paper: (d, q) = (5, 3) with 1667
rows and noise .01, (10, 3) with 333 rows and noise .1, (50, 9) with 64 rows, noise .01 and a
spectrum that falls off as that of faces does.

columns     one column of U given the others: a vector Bingham of d - q + 1 dimensions (Hoff)
complement  one column of U's complement given the others: a vector Bingham of q + 1 dimensions
pairs       one column of U and one of its complement turned in their plane, all pairs in turn
axes        rows of U turned in the planes of two eigenvectors of A, all pairs in turn; the
            eigenvectors, which change with A in every sweep of subspace clustering, are paid for

All four leave the distribution exactly as it is. Two statistics: tr(U'AU), and |U'v|^2 with v the
eigenvector of the q-th largest eigenvalue of A, which is slower. Effective sample sizes are by
Geyer's initial positive sequence on chains that start at the mode (a tenth is left out). Given:
microseconds of CPU a sweep, and for both statistics effective samples a sweep and a CPU second.

`sample_matrix_bingham` moves the complement: 0.85 effective samples a sweep or more throughout.
Pairs take half of its time or less and as many sweeps, but where eigenvalues spread, (50, 9) at
epsilon 100 and 1000: 0.16 to 0.38; columns leave 0.07 to 0.5 there. Those are known to a
factor of two, since the chains are some hundred times their correlation time.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import time

import numpy as np
from numba import njit

from privclust.bingham.kernels import (
    dot,
    frame_workspace,
    multiply_symmetric,
    resample_frame,
)

SHAPES = ((5, 3, 1667, 0.01), (10, 3, 333, 0.1), (50, 9, 64, 0.01))
EPSILONS = (1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5)
SWEEPS = {5: 20_000, 10: 20_000, 50: 3000}
FACES = np.array([1.0, 0.5, 0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05])


def moments(d, q, n, sigma, seed=0):
    """Return sum x x' of one cluster."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((d, q)))[0]
    y = rng.standard_normal((n, q)) * (FACES if d == 50 else 1.0)
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    X = y @ basis.T + sigma * rng.standard_normal((n, d))
    return X.T @ X


@njit(cache=True, error_model="numpy")
def turn(a, b, rng):
    """Return cosine and sine of an angle of density exp(a cos(2 angle) + b sin(2 angle))."""
    rho = np.hypot(a, b)
    kappa = 0.5 + np.sqrt(0.25 + rho * rho)
    narrow, wide = np.sqrt(kappa / (kappa + rho)), np.sqrt(kappa + rho)
    while True:
        u, v = rng.standard_normal(), rng.standard_normal()
        length = u * u + v * v
        u, v = u / narrow, v / wide
        size = u * u + v * v
        t = length / size
        if np.log(1.0 - rng.random()) <= 1.0 - t + np.log(t):
            break
    u, v = u / np.sqrt(size), v / np.sqrt(size)
    half = 0.5 * np.arctan2(b, a)
    cosine, sine = np.cos(half), np.sin(half)
    return cosine * u - sine * v, sine * u + cosine * v


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def turn_rows(first, second, cosine, sine):
    """Turn two vectors in their plane."""
    for m in range(first.shape[0]):
        a, b = first[m], second[m]
        first[m] = cosine * a + sine * b
        second[m] = cosine * b - sine * a


@njit(cache=True, error_model="numpy")
def pairs(B, M, v, q, rng, W, n_sweeps, values):
    """Rows of B: U' and its complement. W = B M is turned along."""
    for t in range(n_sweeps):
        multiply_symmetric(B, M, 1.0, W)
        for i in range(q):
            for j in range(q, B.shape[0]):
                a = 0.5 * (dot(B[i], W[i]) - dot(B[j], W[j]))
                cosine, sine = turn(a, dot(B[i], W[j]), rng)
                turn_rows(B[i], B[j], cosine, sine)
                turn_rows(W[i], W[j], cosine, sine)
        for i in range(q):
            values[t, 0] += dot(B[i], W[i])
            values[t, 1] += dot(B[i], v) ** 2


@njit(cache=True, error_model="numpy")
def axes(U, M, q, rng, n_sweeps, values):
    """Rows of U in the eigenvectors of M."""
    for t in range(n_sweeps):
        eigenvalues, vectors = np.linalg.eigh(M)
        Z = np.dot(vectors.T.copy(), U)
        for i in range(U.shape[0]):
            for j in range(i):
                gap = eigenvalues[i] - eigenvalues[j]
                a = 0.5 * gap * (dot(Z[i], Z[i]) - dot(Z[j], Z[j]))
                cosine, sine = turn(a, gap * dot(Z[i], Z[j]), rng)
                turn_rows(Z[i], Z[j], cosine, sine)
        for i in range(U.shape[0]):
            values[t, 0] += eigenvalues[i] * dot(Z[i], Z[i])
        values[t, 1] = dot(Z[U.shape[0] - q], Z[U.shape[0] - q])
        U[:] = np.dot(vectors, Z)


@njit(cache=True, error_model="numpy")
def by_frame(B, M, v, sign, r, rng, space, n_sweeps, values):
    """Columns of U (sign -1, r = q) or of its complement (sign 1, r = d - q).

    Sums over the complement are those over U but for a sign and a constant.
    """
    kappas = np.full(B.shape[0], -np.inf)
    for t in range(n_sweeps):
        resample_frame(B, M, sign, r, rng, kappas, space)
        for i in range(r):
            values[t, 0] += dot(B[i], np.dot(M, B[i]))
            values[t, 1] += dot(B[i], v) ** 2


def run(sampler, M, q, n_sweeps, rng):
    """Return both statistics along a chain and the CPU seconds it took."""
    d = len(M)
    eigenvectors = np.linalg.eigh(M)[1][:, ::-1]
    B = np.ascontiguousarray(eigenvectors.T)
    values, v = np.zeros((n_sweeps, 2)), np.ascontiguousarray(eigenvectors[:, q - 1])
    start = time.process_time()
    if sampler == "columns":
        by_frame(B, M, v, -1.0, q, rng, frame_workspace(d), n_sweeps, values)
    elif sampler == "complement":
        B = np.ascontiguousarray(B[::-1])
        by_frame(B, M, v, 1.0, d - q, rng, frame_workspace(d), n_sweeps, values)
    elif sampler == "pairs":
        pairs(B, M, v, q, rng, np.empty((d, d)), n_sweeps, values)
    else:
        axes(np.ascontiguousarray(B[:q].T), M, q, rng, n_sweeps, values)
    return values, time.process_time() - start


def effective_share(values):
    """Effective samples a sample: 1 / (1 + 2 sum of autocorrelations), Geyer's sum."""
    centred = values - values.mean()
    n = len(values)
    spectrum = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
    correlation = np.fft.irfft(spectrum)[:n]
    correlation = correlation / correlation[0]
    sums = correlation[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(sums < 0)
    return 1.0 / (2.0 * sums[: negative[0] if len(negative) else None].sum() - 1.0)


def main():
    names = ("columns", "complement", "pairs", "axes")
    print(f"{'d':>3s} {'q':>2s} {'epsilon':>8s} {'sampler':>11s} {'us':>7s}", end="")
    print("".join(f" | {name + ': ESS':>16s} {'ESS/s':>10s}" for name in ("tr(U'AU)", "|U'v|^2")))
    for d, q, n, sigma in SHAPES:
        A = moments(d, q, n, sigma)
        for name in names:
            run(name, A, q, 2, np.random.default_rng(0))
        for epsilon in EPSILONS:
            for name in names:
                n_sweeps = SWEEPS[d]
                rng = np.random.default_rng(1)
                values, seconds = run(name, 0.5 * epsilon * A, q, n_sweeps, rng)
                microseconds = 1e6 * seconds / n_sweeps
                print(f"{d:3d} {q:2d} {epsilon:8g} {name:>11s} {microseconds:7.1f}", end="")
                for series in values[n_sweeps // 10 :].T:
                    share = effective_share(series)
                    print(f" | {share:16.3f} {share * n_sweeps / seconds:10,.0f}", end="")
                print()


if __name__ == "__main__":
    main()
