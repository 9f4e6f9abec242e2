"""CPU seconds, memory and loss of `CompressiveKMeans` with many clusters and features.

Run: ``python benchmarks/frontier.py [path of letter.dat]``. Sets and scaling are
those of the frontier's table (`privclust_papers.frontier.data`): 20,000 rows of scikit-learn's
blobs, divided by the largest norm; the paper's mixture with 100,000 rows; and Letter, where its
path is given. Three fits each at epsilon = 1, delta = 1e-6, rows added or removed, on one core,
after one that compiles; seconds are of the process, memory is the most of a process of its own.

Then clusters of very unequal size: 50,000 rows, a part of them in one of k clusters of deviation
0.03 in a box of (-1, 1), and what is left in equal parts far from it; squared error over that of
the true centers, median and worst of five mixtures, rows replaced; and of DPLloyd with the
separated start, at the same (epsilon, delta).

Last, the part of the rows below which noise hides a cluster (`least_weight_`), times n epsilon:
three equal clusters of deviation 1 some 20 apart in the plane, means of three fits, delta 1e-6.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import resource
import subprocess
import sys
import time
import warnings

import numpy as np
from sklearn.datasets import make_blobs

from privclust.core.lloyd import nearest_center
from privclust.kmeans import CompressiveKMeans, DPLloyd
from privclust_papers.datasets import letter

SIZES = ((10, 10), (64, 4), (64, 16), (64, 64), (16, 128), (64, 128))
N_FITS = 3
UNEVEN = ((2, 6), (5, 8), (10, 5))
UNEVEN_PARTS = ((0.7, 0.1), (0.7, 1.0), (0.9, 0.1), (0.9, 1.0))  # of rows, and epsilon
LEAST = ((100_000, 0.01), (5_000, 0.1), (20_000, 0.1), (20_000, 0.5), (100_000, 1.0))


def mixture(k, d):
    """Return rows within the unit ball and the box they are in."""
    if k == 10:
        rng = np.random.default_rng(0)
        means = 1.5 * k ** (1.0 / d) * rng.standard_normal((k, d))
        X = means[rng.integers(k, size=100_000)] + rng.standard_normal((100_000, d))
    else:
        X = make_blobs(n_samples=20_000, n_features=d, centers=k, random_state=1)[0]
    return scaled(X)


def scaled(X):
    """Return rows about their mean, divided by the largest norm."""
    X = X - X.mean(axis=0)
    return X / np.linalg.norm(X, axis=1).max()


def measure(X, k):
    """Print seconds of a fit, memory and the mean loss."""
    budget = {"epsilon": 1.0, "delta": 1e-6, "neighbours": "add_remove"}
    seconds, losses = [], []
    for seed in range(-1, N_FITS):
        model = CompressiveKMeans(k, bounds=(-1.0, 1.0), random_state=seed + 1, **budget)
        start = time.process_time()
        model.fit(X)
        seconds.append(time.process_time() - start)
        centers = model.cluster_centers_[nearest_center(X, model.cluster_centers_)]
        losses.append(((X - centers) ** 2).sum() / len(X))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    times = " ".join(f"{s:.1f}" for s in seconds[1:])
    print(f"| {k} | {X.shape[1]} | {len(X):,} | {times} | {memory:.0f} | {np.mean(losses):.4f} |")


def uneven():
    """Print how well small clusters far from a large one are found."""
    columns = ["d", "k", "in one", "epsilon", "median", "worst", "DPLloyd", "worst"]
    print("\n| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    for d, k in UNEVEN:
        for part, epsilon in UNEVEN_PARTS:
            ratios = np.array([relative_errors(d, k, part, epsilon, seed) for seed in range(5)])
            cells = [f"{f(column):.3g}" for column in ratios.T for f in (np.median, np.max)]
            print(f"| {d} | {k} | {part:.0%} | {epsilon:g} | " + " | ".join(cells) + " |")


def uneven_rows(d, k, part, seed):
    """Return rows, a part of them in one of k clusters, and the true centers."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(-0.8, 0.8, (k, d))
    shares = np.r_[part, np.full(k - 1, (1.0 - part) / (k - 1))]
    rows = places[rng.choice(k, size=50_000, p=shares)] + 0.03 * rng.standard_normal((50_000, d))
    return rows, places


def relative_errors(d, k, part, epsilon, seed):
    """Return squared errors over that of the true centers."""
    X, places = uneven_rows(d, k, part, seed)
    settings = {"bounds": (-1.0, 1.0), "epsilon": epsilon, "delta": 1e-6, "random_state": seed}
    models = (
        CompressiveKMeans(k, **settings),
        DPLloyd(k, accounting="pld", init="separated", **settings),
    )
    found = [model.fit(X).cluster_centers_ for model in models]
    errors = [((X - c[nearest_center(X, c)]) ** 2).sum() for c in (*found, places)]
    return errors[0] / errors[2], errors[1] / errors[2]


def least_weights():
    """Print the part of the rows below which noise hides a cluster."""
    places = np.array([[0.0, 25.0], [-8.0, -8.0], [8.0, -8.0]])
    print("\n| rows | epsilon | least weight | times n epsilon |\n|" + " --- |" * 4)
    for n, epsilon in LEAST:
        rng = np.random.default_rng(0)
        X = places[rng.integers(3, size=n)] + rng.standard_normal((n, 2))
        budget = {"epsilon": epsilon, "delta": 1e-6, "bounds": (-35.0, 35.0)}
        models = [CompressiveKMeans(3, random_state=seed, **budget) for seed in range(3)]
        least = np.mean([model.fit(X).least_weight_ for model in models])
        print(f"| {n:,} | {epsilon:g} | {least:.2g} | {least * n * epsilon:.0f} |")


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    if sys.argv[1:2] == ["one"]:
        measure(mixture(*map(int, sys.argv[2:])), int(sys.argv[2]))
    elif sys.argv[1:2] == ["letter"]:
        measure(scaled(letter.read(sys.argv[2])["X"]), 26)
    else:
        print("| k | d | rows | CPU seconds | MB | loss |\n| --- | --- | --- | --- | --- | --- |")
        jobs = [["one", str(k), str(d)] for k, d in SIZES]
        jobs += [["letter", path] for path in sys.argv[1:]]
        for job in jobs:
            subprocess.run([sys.executable, __file__, *job], check=True)
        uneven()
        least_weights()
