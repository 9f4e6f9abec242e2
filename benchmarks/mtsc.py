"""CPU time of the MTSC iteration: the compiled solver against the NumPy statement of it.

Run: ``OMP_NUM_THREADS=1 python benchmarks/mtsc.py``. Both do the same iterations on the same data
in one process, alternating; the table has the smallest CPU time of each and their ratio.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from privclust.segmentation.mtsc_solver import Schedule, solve

SIZES = ((64, 26), (120, 26), (266, 12))  # (N, D)
WEIGHT_PENALTY = 20.0


def random_subspaces(n_samples, n_features, rng, n_clusters=4):
    """Return unit-norm samples (D, N) of random subspaces of half the ambient dimension."""
    blocks = []
    for size in np.full(n_clusters, n_samples // n_clusters) + (
        np.arange(n_clusters) < n_samples % n_clusters
    ):
        basis = np.linalg.qr(rng.standard_normal((n_features, n_features // 2)))[0]
        blocks.append(basis @ rng.standard_normal((n_features // 2, size)))
    X = np.concatenate(blocks, axis=1)
    return X / np.linalg.norm(X, axis=0)


def simplex_projection(v):
    """Euclidean projection of a vector on the probability simplex, by sorting."""
    u = np.sort(v)[::-1]
    sums = np.cumsum(u) - 1.0
    last = np.flatnonzero(u * np.arange(1, v.size + 1) > sums)[-1]
    return np.maximum(v - sums[last] / (last + 1), 0.0)


def plain_solve(X, noise_variances, weight_penalty):
    """Return Z after the updates of (16) as they are written, one task at a time."""
    rank, n = X.shape
    variances, weights = np.ones((n, n)), np.eye(n)
    for noise_variance in noise_variances:
        moments, Z = np.zeros((n, n)), np.zeros((n, n))
        for j in range(n):
            gamma = 1.0 / (1.0 / variances @ weights[:, j])
            gamma[j] = 0.0
            inverse = np.linalg.inv(noise_variance * np.eye(rank) + (X * gamma) @ X.T)
            leverage = np.einsum("dn,dn->n", X, inverse @ X)
            Z[:, j] = gamma * (X.T @ (inverse @ X[:, j]))
            moments[:, j] = Z[:, j] ** 2 + gamma - gamma**2 * leverage
        users = weights.sum(axis=1) - weights.T
        used = users > 1e-10
        variances = np.where(used, moments @ weights.T / np.where(used, users, 1.0), variances)
        costs = (1.0 / variances).T @ moments + np.log(variances).sum(axis=0)[:, None]
        costs -= np.log(variances).T
        weights = np.stack([simplex_projection(c / (-2.0 * weight_penalty)) for c in costs.T], 1)
    return Z


def compiled_solve(X, noise_variances, weight_penalty):
    """Return Z after the same iterations of the package's solver."""
    n_iter = noise_variances.size
    schedule = Schedule(noise_variances, weight_penalty, max_iter=n_iter)
    return solve(X, schedule, np.ones((X.shape[1], X.shape[1]))).coefficients


def cpu_seconds(function, *args):
    """Return the CPU seconds of one call."""
    start = time.process_time()
    function(*args)
    return time.process_time() - start


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=150)
    args = parser.parse_args()
    noise_variances = np.geomspace(1e-2, 1e-6, args.iterations)
    print(f"{'N':>4} {'D':>3} {'plain s':>9} {'fast s':>9} {'ratio':>7} {'max |dZ|':>9}")
    for n_samples, n_features in SIZES:
        X = random_subspaces(n_samples, n_features, np.random.default_rng(0))
        few = noise_variances[:20]
        difference = np.abs(
            compiled_solve(X, few, WEIGHT_PENALTY) - plain_solve(X, few, WEIGHT_PENALTY)
        ).max()
        plain, fast = [], []
        for _ in range(args.repeats):
            plain.append(cpu_seconds(plain_solve, X, noise_variances, WEIGHT_PENALTY))
            fast.append(cpu_seconds(compiled_solve, X, noise_variances, WEIGHT_PENALTY))
        row = f"{n_samples:4d} {n_features:3d} {min(plain):9.3f} {min(fast):9.3f}"
        print(f"{row} {min(plain) / min(fast):7.1f} {difference:9.1e}")


if __name__ == "__main__":
    main()
