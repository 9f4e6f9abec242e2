"""Speed and accuracy of sketching, with and without masks, against NumPy.

Run: ``OMP_NUM_THREADS=1 python benchmarks/sketch.py``. d = 10 features, m = 1000
frequencies. NumPy evaluates ``exp(1j * X @ frequencies)`` in float64 on chunks that fit its caches
and adds them up. The methods take turns in one process, after a pass each that compiles or warms
up; a number is the median over the turns of samples per CPU second, so that two threads which slow
each other down show, and "wall" of samples per second. Errors are largest moduli of the difference
of the mean feature from NumPy's in extended precision on the same records. Times with masks are
relative to the same precision without.

Then the cost of a record and frequency by d, without masks, on one thread, and what the two
precisions read of memory for it.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time

import numpy as np

from privclust.sketches._feature_sums import FeatureSums
from privclust.sketches._frequencies import draw_frequencies

N_FEATURES = 10
N_FREQUENCIES = 1000
N_SAMPLES = 600_000
NUMPY_SAMPLES = 10_000  # NumPy's share of a turn, and its chunks
NUMPY_CHUNK = 250
ERROR_SAMPLES = 2000
SHARES = (0.01, 0.1, 0.5)  # r / m
TURNS = 7
SHAPES = ((2, 500), (2, 5000), (10, 500), (10, 5000), (50, 500), (50, 5000))
COST_SAMPLES = 100_000


def records(n, k=10, seed=0):
    """Return n records of a mixture of k unit Gaussians, as in Section 5 of the paper."""
    rng = np.random.default_rng(seed)
    means = 1.5 * k ** (1.0 / N_FEATURES) * rng.standard_normal((k, N_FEATURES))
    return means[rng.integers(k, size=n)] + rng.standard_normal((n, N_FEATURES))


def with_numpy(X, frequencies):
    """Return the sums of features by NumPy."""
    total = np.zeros(frequencies.shape[1], dtype=np.complex128)
    for start in range(0, len(X), NUMPY_CHUNK):
        total += np.exp(1j * (X[start : start + NUMPY_CHUNK] @ frequencies)).sum(axis=0)
    return total


def mean_error(X, frequencies):
    """Return the largest error of the mean features."""
    exact = X.astype(np.longdouble) @ frequencies.astype(np.longdouble)
    difference = FeatureSums(frequencies).add(X).values / len(X)
    real, imaginary = (
        difference.real - np.cos(exact).mean(0),
        difference.imag - np.sin(exact).mean(0),
    )
    return float(np.hypot(real, imaginary).max())


def runs(X, frequencies):
    """Return name -> (number of records, function) of all methods."""
    few = X[:NUMPY_SAMPLES]
    methods = {"NumPy": (len(few), lambda: with_numpy(few, frequencies))}
    for dtype in (np.float64, np.float32):
        data = X.astype(dtype)
        name = np.dtype(dtype).name
        sums = FeatureSums(frequencies)
        methods[name] = len(data), lambda sums=sums, data=data: sums.add(data)
        for share in SHARES:
            r = round(share * N_FREQUENCIES)
            sums = FeatureSums(frequencies, n_measurements=r)
            part = data[: len(data) // 4]
            methods[f"{name}, r/m = {share:g}"] = (
                len(part),
                lambda sums=sums, part=part: sums.add(part),
            )
    return methods


def rates(methods):
    """Return name -> median samples per CPU second and per second."""
    results = {name: [] for name in methods}
    for turn in range(TURNS + 1):
        for name, (n, function) in methods.items():
            wall, cpu = time.perf_counter(), time.process_time()
            function()
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            if turn:
                results[name].append((n / cpu, n / wall))
    return {name: np.median(values, axis=0) for name, values in results.items()}


def costs():
    """Print CPU nanoseconds per record and frequency, by d and m, and bytes read."""
    rng = np.random.default_rng(0)
    print(f"\n{'ns per record and frequency':28s} {'float64':>8s} {'float32':>8s}")
    for d, m in SHAPES:
        X = rng.standard_normal((COST_SAMPLES, d))
        frequencies = draw_frequencies(d, m, random_state=0)
        methods = {}
        for dtype in (np.float64, np.float32):
            data, sums = X.astype(dtype), FeatureSums(frequencies)
            methods[dtype] = len(data), lambda sums=sums, data=data: sums.add(data)
        speeds = rates(methods)
        cells = " ".join(f"{1e9 / (speeds[dtype][0] * m):8.3f}" for dtype in methods)
        print(f"d = {d:3d}, m = {m:5d}           {cells}")
    print("bytes read per record: 8 d (float64), 4 d (float32); written: none")


def main():
    X = records(N_SAMPLES)
    frequencies = draw_frequencies(N_FEATURES, N_FREQUENCIES, variance=4.0, random_state=0)
    measured = rates(runs(X, frequencies))
    errors = {
        name: mean_error(X[:ERROR_SAMPLES].astype(name), frequencies)
        for name in ("float64", "float32")
    }
    print(f"{'':22s} {'per CPU s':>10s} {'per s':>10s} {'x NumPy':>8s} {'time':>6s} {'error':>8s}")
    for name, (cpu, wall) in measured.items():
        dtype = name.split(",")[0]
        unmasked = measured.get(f"{dtype}, 1 thread", (cpu,))[0]
        error = f"{errors[dtype]:8.1e}" if name.endswith("1 thread") else ""
        ratio, relative = cpu / measured["NumPy"][0], unmasked / cpu
        print(f"{name:22s} {cpu:10.0f} {wall:10.0f} {ratio:8.1f} {relative:6.3f} {error}")
    costs()


if __name__ == "__main__":
    main()
