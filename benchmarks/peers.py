"""CPU seconds of Lloyd's algorithm here, in scikit-learn, scikit-learn-intelex and faiss.

``pip install --group peers`` into an environment of its own, then ``OMP_NUM_THREADS=1
PYTHONPATH=src:benchmarks python benchmarks/peers.py --into docs/methods/lloyd_kmeans.md``. Each
package makes the same number of iterations from the same centers, in double precision (faiss: in
single precision, the only one that it has) and in one thread. Fits of all packages alternate, so
that other work on the machine meets all alike. The table has the median CPU seconds of one fit,
and the median over repetitions of the ratio to ours of the same repetition.

A package that is not installed has an empty column.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scratch import markdown, write_into

from privclust.core.threads import one_blas_thread
from privclust.kmeans import LloydKMeans

SIZES = ((100_000, 2, 100), (100_000, 10, 10), (20_000, 64, 64), (50_000, 16, 64))
N_ITERATIONS = 20


def ours(X, start):
    """LloydKMeans."""
    how = {"n_init": 1, "max_iter": N_ITERATIONS, "tol": 0.0}
    return LloydKMeans(len(start), init=start, **how).fit(X)


def of_sklearn(X, start):
    """KMeans of scikit-learn, by Lloyd's algorithm."""
    from sklearn.cluster import KMeans

    how = {"n_init": 1, "max_iter": N_ITERATIONS, "tol": 0.0, "algorithm": "lloyd"}
    return KMeans(len(start), init=start, **how).fit(X)


def of_intelex(X, start):
    """KMeans of scikit-learn-intelex."""
    from sklearnex.cluster import KMeans

    how = {"n_init": 1, "max_iter": N_ITERATIONS, "tol": 0.0, "algorithm": "lloyd"}
    return KMeans(len(start), init=start, **how).fit(X)


def of_faiss(X, start):
    """Clustering of faiss, in single precision."""
    import faiss

    n, d = X.shape
    most = {"max_points_per_centroid": n, "min_points_per_centroid": 1}
    how = faiss.Kmeans(d, len(start), niter=N_ITERATIONS, nredo=1, **most)
    return how.train(X.astype(np.float32), init_centroids=start.astype(np.float32))


def products(X, start):
    """The matrix products of as many iterations, and nothing else."""
    for _ in range(N_ITERATIONS):
        X @ start.T


PEERS = {
    "privclust": (ours, "privclust"),
    "scikit-learn": (of_sklearn, "sklearn"),
    "scikit-learn-intelex": (of_intelex, "sklearnex"),
    "faiss": (of_faiss, "faiss"),
    "matrix products alone": (products, "numpy"),
}


@one_blas_thread
def compare(n: int, d: int, k: int, repetitions: int) -> dict[str, object]:
    """Return CPU seconds and ratios for one size."""
    rng = np.random.default_rng([n, d, k])
    centers = rng.uniform(-1.0, 1.0, (k, d))
    X = centers[rng.integers(k, size=n)] + 0.3 * rng.standard_normal((n, d))
    start = X[rng.choice(n, k, replace=False)]
    there = {name: fit for name, (fit, module) in PEERS.items() if importlib.util.find_spec(module)}
    seconds = {name: [] for name in there}
    for repetition in range(repetitions + 1):
        for name, fit in there.items():
            before = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit(X, start)
            if repetition:  # the first compiles and loads
                seconds[name].append(time.process_time() - before)
    row: dict[str, object] = {"n": n, "d": d, "k": k}
    for name in PEERS:
        if name not in there:
            row[name] = ""
            continue
        own, theirs = np.array(seconds["privclust"]), np.array(seconds[name])
        ratio = f" ({np.median(theirs / own):.2f})" if name != "privclust" else ""
        row[name] = f"{np.median(theirs):.3f}{ratio}"
    return row


def main() -> None:
    """Compare at each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--into", type=Path)
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core: one thread, of any kind
    rows = []
    for n, d, k in SIZES:
        rows.append(compare(n, d, k, arguments.repetitions))
        print(rows[-1], flush=True)
    table = markdown(pd.DataFrame(rows))
    print(table)
    if arguments.into:
        write_into(arguments.into, "peers", table)


if __name__ == "__main__":
    main()
