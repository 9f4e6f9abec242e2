"""CPU seconds of the subspace clusterings at the sizes of the private subspace clustering paper.

Run: ``OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/subspaces.py``. Data (i) and (ii) of
Section 5, and generated rows of the size of its faces (n = 320, d = 50, k = 5, q = 9); epsilon 10.
Gibbs sampling is 10,000 sweeps from a random start. The least of three fits after one that
compiles.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import time
import warnings

import numpy as np

from privclust.segmentation import SSC, TSC
from privclust.subspaces import (
    GibbsSubspaceClustering,
    KPlanes,
    SampleAggregateSubspaceClustering,
    SuLQKPlanes,
)
from privclust.synthetic.subspaces import subspace_mixture

SHAPES = {
    "(i)": (5000, 3, 5, 3, 0.01),
    "(ii)": (1000, 3, 10, 3, 0.1),
    "faces": (320, 5, 50, 9, 0.01),
}


def methods(k, q):
    """Return what is timed, by name."""
    private = {"epsilon": 10.0, "norm_bound": 1.0}
    aggregated = {**private, "delta": 1e-5, "random_state": 1}
    return {
        "Gibbs, 10,000 sweeps": GibbsSubspaceClustering(k, q, **private, random_state=1),
        "k-plane, 10 starts": KPlanes(k, q, random_state=1),
        "SuLQ, 10 rounds": SuLQKPlanes(k, q, **private, random_state=1),
        "SuLQ, 50 rounds": SuLQKPlanes(k, q, **private, max_iter=50, random_state=1),
        "TSC": TSC(k, random_state=1),
        "s.a., TSC": SampleAggregateSubspaceClustering(TSC(k), q, **aggregated),
        "s.a., SSC": SampleAggregateSubspaceClustering(SSC(k), q, **aggregated),
    }


def seconds(model, X):
    """CPU seconds of a fit, the least of three."""
    model.fit(X)
    times = []
    for _ in range(3):
        start = time.process_time()
        model.fit(X)
        times.append(time.process_time() - start)
    return min(times)


def main():
    warnings.simplefilter("ignore")
    print(f"{'':22s}" + "".join(f"{name:>10s}" for name in SHAPES))
    rows = {}
    for n, k, d, q, noise in SHAPES.values():
        X = subspace_mixture(n, k, d, q, np.random.default_rng(0), noise)[0]
        for name, model in methods(k, q).items():
            rows.setdefault(name, []).append(seconds(model, X))
    for name, times in rows.items():
        print(f"{name:22s}" + "".join(f"{value:10.3f}" for value in times), flush=True)


if __name__ == "__main__":
    main()
