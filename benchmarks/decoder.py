"""Quality and speed of decoding a sketch, against Lloyd's algorithm.

Run: ``OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/decoder.py``. Data as in Section 5 of
the compressive k-means paper: mixtures of k = 10 unit Gaussians in d = 10 dimensions, whose means
are drawn anew for each of 20 seeds, n = 10^5 records. Sketches of m = 1000 frequencies without
noise, at four times the variance of a cluster; decoders are given the sketch and the box of the
data, no moments. (A wider box costs CL-OMPR much of its quality and the Gaussian decoder nothing.)

Relative SSE is the sum of squared errors over that of Lloyd's algorithm, the best of 3 replicates
and from the true means. CPU seconds are of the process, after a decode each that compiles.
Then the time of a decode by the number of records, 5 seeds each: it sees the sketch alone, so that
only luck of the search may differ. Sketching is given no k (`privclust.sketches.Sketch.of`), so its
time cannot depend on it; see ``benchmarks/sketch.py``.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import time

import numpy as np

from privclust.core.lloyd import nearest_center_statistics
from privclust.decoding import decode
from privclust.kmeans import LloydKMeans
from privclust.sketches import Sketch, draw_frequencies

N_CLUSTERS = N_FEATURES = 10
N_FREQUENCIES = 1000
N_SAMPLES = 100_000
VARIANCE = 4.0
SEEDS = 20
SIZES = (10_000, 100_000, 1_000_000)
SEEDS_OF_SIZES = 5
DECODERS = {
    "gaussian, per_cluster": {"spread": "per_cluster"},
    "gaussian, shared": {"spread": "shared"},
    "clompr": {"method": "clompr"},
}


def records(n, seed):
    """Return means and records of a mixture of unit Gaussians, as in Section 5 of the paper."""
    rng = np.random.default_rng(seed)
    scale = 1.5 * N_CLUSTERS ** (1.0 / N_FEATURES)
    means = scale * rng.standard_normal((N_CLUSTERS, N_FEATURES))
    X = means[rng.integers(N_CLUSTERS, size=n)] + rng.standard_normal((n, N_FEATURES))
    return means, X


def sketch_of(X, seed):
    """Return the sketch of records and the box in which centers are looked for."""
    frequencies = draw_frequencies(N_FEATURES, N_FREQUENCIES, variance=VARIANCE, random_state=seed)
    return Sketch.of(X, frequencies), (X.min(axis=0), X.max(axis=0))


def timed(sketch, box, seed, options):
    """Decode; return the centers and the CPU seconds that it took."""
    start = time.process_time()
    decoded = decode(sketch, N_CLUSTERS, bounds=box, random_state=seed, **options)
    return decoded.centers, time.process_time() - start


def quality():
    """Return decoder -> rows of relative SSE to both references and CPU seconds."""
    results = {name: [] for name in DECODERS}
    lloyd = []
    for seed in range(SEEDS):
        means, X = records(N_SAMPLES, seed)
        sketch, box = sketch_of(X, seed)
        replicates = LloydKMeans(N_CLUSTERS, n_init=3, random_state=seed).fit(X).inertia_
        from_means = LloydKMeans(N_CLUSTERS, init=means).fit(X).inertia_
        lloyd.append(replicates / from_means)
        for name, options in DECODERS.items():
            centers, seconds = timed(sketch, box, seed, options)
            sse = nearest_center_statistics(X, centers)[2]
            results[name].append((sse / replicates, sse / from_means, seconds))
    return {name: np.array(rows) for name, rows in results.items()}, np.array(lloyd)


def times_by_size():
    """Return decoder -> CPU seconds, (sizes, seeds)."""
    seconds = {name: np.empty((len(SIZES), SEEDS_OF_SIZES)) for name in DECODERS}
    for i, n in enumerate(SIZES):
        for seed in range(SEEDS_OF_SIZES):
            sketch, box = sketch_of(records(n, seed)[1], seed)
            for name, options in DECODERS.items():
                seconds[name][i, seed] = timed(sketch, box, seed, options)[1]
    return seconds


def main():
    sketch, box = sketch_of(records(1000, 0)[1], 0)
    for options in DECODERS.values():
        timed(sketch, box, 0, options)
    results, lloyd = quality()
    print(f"{'':22s} {'SSE to 3 replicates':>20s} {'to true means':>20s} {'CPU s':>14s}")
    print(f"{'':22s} {'median':>10s} {'worst':>9s} {'median':>10s} {'worst':>9s}", end="")
    print(f" {'median':>7s} {'most':>6s}")
    for name, rows in results.items():
        middle, worst = np.median(rows, axis=0), rows.max(axis=0)
        print(
            f"{name:22s} {middle[0]:10.5f} {worst[0]:9.5f} {middle[1]:10.5f} {worst[1]:9.5f} "
            f"{middle[2]:7.3f} {worst[2]:6.3f}"
        )
    print(f"{'Lloyd, 3 replicates':43s}{np.median(lloyd):10.5f} {lloyd.max():9.5f}")
    print(f"\n{'median CPU s of a decode':26s}" + "".join(f"{f'n = {n:,}':>15s}" for n in SIZES))
    for name, seconds in times_by_size().items():
        print(f"{name:26s}" + "".join(f"{middle:15.3f}" for middle in np.median(seconds, axis=1)))


if __name__ == "__main__":
    main()
