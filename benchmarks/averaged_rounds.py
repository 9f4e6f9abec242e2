"""What averaging the matrices of rounds buys: a table for SuLQKPlanes.

    OMP_NUM_THREADS=1 python benchmarks/averaged_rounds.py

All columns of a row spend the same privacy: delta = 1e-6, rows replaced. 24 seeds, on none of which
anything was chosen. Mean (median) Wasserstein distances to the true subspaces. One run of 10
rounds: the last. One of 30: the last, and the mean of 15 rounds. And 5 runs of 10 rounds, of which
one is taken by the sum of its leading noisy eigenvalues: the last round, and the mean of the last 5
rounds of the run taken by the mean's eigenvalues.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np

from privclust.core.grassmann import principal_bases, random_bases
from privclust.core.second_moments import in_units, unit
from privclust.metrics import wasserstein_distance
from privclust.privacy.measurements import second_moment_noise
from privclust.subspaces._exact_moments import moments_by_subspace
from privclust.synthetic.subspaces import subspace_mixture

SEEDS = range(1000, 1024)
DELTA = 1e-6
MIXTURES = ((5000, 3, 6, 2, 0.02), (3000, 3, 8, 4, 0.05), (5000, 4, 20, 3, 0.05))
"""Of n, k, d, q and the deviation of noise."""
EPSILONS = (0.3, 1.0, 3.0, 10.0)


def in_ball(X):
    """Return rows, of which those longer than 1 are scaled to norm 1."""
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)


def print_table(title, names, rows):
    """Print rows of labels and of cells by name, in Markdown."""
    print(f"\n{title}\n")
    columns = [*names, *rows[0][1]]
    print("| " + " | ".join(columns) + " |\n" + "| --- " * len(columns) + "|")
    for labels, cells in rows:
        print("| " + " | ".join((*map(str, labels), *cells.values())) + " |")


def rounds(rows, bases, noise, n_rounds, rng):
    """Return the matrices that a run releases, and the subspaces of the last."""
    released, q = [], bases.shape[2]
    for _ in range(n_rounds):
        noisy = noise.release(moments_by_subspace(rows, bases), rng)
        released.append(noisy)
        bases = principal_bases(noisy, q)
    return np.array(released), bases


def leading(matrices, q):
    """Return the sum of the q largest eigenvalues of each matrix, over all."""
    return np.linalg.eigvalsh(matrices)[:, -q:].sum()


def one_run(rows, bases, noise, truth, seed):
    """Return, by name, distances of the results of one run of 30 rounds."""
    q = bases.shape[2]
    released, last = rounds(rows, bases, noise, 30, np.random.default_rng(seed))
    results = {
        "30 rounds: last": last,
        "mean of 15": principal_bases(released[15:].mean(axis=0), q),
    }
    return {name: wasserstein_distance(each, truth) for name, each in results.items()}


def five_runs(rows, starts, noise, truth, rng):
    """Return distances of the run that each criterion takes out of five, by name."""
    q = starts[0].shape[2]
    scores, last, means = [], [], []
    for start in starts:
        released, bases = rounds(rows, start, noise, 10, rng)
        mean = released[5:].mean(axis=0)
        last.append(wasserstein_distance(bases, truth))
        means.append(wasserstein_distance(principal_bases(mean, q), truth))
        scores.append((leading(released[-1], q), leading(mean, q)))
    of_last, of_mean = np.argmax(scores, axis=0)
    return {"5 runs of 10: last": last[of_last], "mean of 5": means[of_mean]}


def distances_of_sulq(n, k, d, q, deviation, epsilon):
    """Return name -> distances, of each seed."""
    distances = {}
    for seed in SEEDS:
        rng = np.random.default_rng([seed, d])
        X, _, truth = subspace_mixture(n, k, d, q, rng, deviation)
        rows = in_units(in_ball(X), unit(1.0, d))
        starts = [random_bases(k, d, q, rng) for _ in range(5)]
        ten, thirty, fifty = (
            second_moment_noise(d, "replace_one", epsilon, DELTA, n_rounds)
            for n_rounds in (10, 30, 50)
        )
        last = rounds(rows, starts[0], ten, 10, np.random.default_rng(seed))[1]
        results = {"10 rounds: last": wasserstein_distance(last, truth)}
        results |= one_run(rows, starts[0], thirty, truth, seed)
        results |= five_runs(rows, starts, fifty, truth, rng)
        for name, distance in results.items():
            distances.setdefault(name, []).append(distance)
    return distances


def sulq():
    """Print distances by mixture and epsilon."""
    rows = []
    for mixture in MIXTURES:
        for epsilon in EPSILONS:
            distances = distances_of_sulq(*mixture, epsilon)
            cells = {
                name: f"{np.mean(each):.3f} ({np.median(each):.3f})"
                for name, each in distances.items()
            }
            rows.append(((mixture[2], epsilon), cells))
    print_table("SuLQ, mean (median) distances", ("d", "epsilon"), rows)


if __name__ == "__main__":
    sulq()
