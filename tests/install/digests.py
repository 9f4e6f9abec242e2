"""Digests of what kernels compute, to compare two kinds of processor.

    python tests/install/digests.py

A line for each: its name, and the first twelve digits of the SHA-256 of its bytes. Rows come from
seeds. The set is small, as emulated processors compile slowly.
"""

import hashlib

import numpy as np

from privclust.core.fixed_point import FixedPoint
from privclust.core.lloyd import nearest_center_sums
from privclust.kmeans import DPLloyd
from privclust.preprocessing import TableEncoder
from privclust.sketches import MomentSketch, Sketch, draw_frequencies

ROWS = np.random.default_rng(0).standard_normal((2000, 3))
FREQUENCIES = draw_frequencies(3, 40, variance=1.0, random_state=1)


def digest(*arrays):
    """Return the first digits of the digest of some arrays."""
    sha = hashlib.sha256()
    for array in arrays:
        sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()[:12]


def results():
    """Yield a name and arrays for each computation."""
    whole = np.rint(ROWS * 2**10)
    yield "exact sums of rows", [FixedPoint.of_exact(np.rint(ROWS * 2**20).sum(axis=0), 0).integers]
    yield "matrix product of integers", [whole.T @ whole]  # of BLAS, and exact
    for kind in (np.float64, np.float32):
        sketch = Sketch.of(ROWS.astype(kind), FREQUENCIES)
        yield f"sketch, {kind.__name__}", [*sketch.exact.values()]
    groups = np.arange(2000) // 3
    yield "sketch of persons", [*Sketch.of(ROWS, FREQUENCIES, groups=groups).exact.values()]
    yield "moments", [*MomentSketch.of(ROWS).exact.integers.values()]
    centers = ROWS[:4]
    yield "sums by nearest center", [*nearest_center_sums(ROWS, centers, np.zeros(3), np.ones(3))]
    model = DPLloyd(4, bounds=(-3, 3), max_iter=2, init=centers, random_state=0).fit(ROWS)
    yield "centers of DPLloyd", [model.cluster_centers_]
    encoder = TableEncoder({"x": (-1, 1), "c": ["a", "b"]})
    table = {"x": ROWS[:, 0].tolist(), "c": ["a", "b"] * 1000}
    yield "encoded table", [encoder.fit_transform(table)]


if __name__ == "__main__":
    for name, arrays in results():
        print(f"{name}: {digest(*arrays)}", flush=True)
