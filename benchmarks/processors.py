"""How far the clusters of a sketch move on another kind of processor, in standard errors.

    PYTHONPATH=src:benchmarks python benchmarks/processors.py

Ten private sketches are written once. They are decoded with the numerical code for this
processor, and with that for a processor with AVX2 only: loops of Numba, OpenBLAS and NumPy.
The seed of decoding is derived from the sketch. The first five sketches have round Gaussian
clusters. The others have arcs or a uniform square, where several groupings fit about equally well.

*largest move* is that of a center's coordinate, relative to its standard error, compared with the
code for this processor. Centers are matched one to one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from collection import arcs, blobs
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scratch import markdown

from privclust.decoding import decode, standard_errors
from privclust.sketches import Sketch, draw_frequencies, release

KINDS = {
    "this processor": {},
    "Haswell": {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",  # as in docs/conf.py
    },
}
_K = 8


def write_sketches(folder):
    """Write ten private sketches of 20,000 rows, epsilon = 1."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        if seed < 5:
            X = blobs(rng, 20_000, 2 + seed, _K, spread=0.05)
        else:
            X = arcs(rng, 20_000, _K) if seed < 8 else rng.uniform(-1.0, 1.0, (20_000, 2))
        frequencies = draw_frequencies(X.shape[1], 250, variance=0.01, random_state=seed)
        private = release(Sketch.of(X, frequencies), 1.0, 1e-6, random_state=seed)
        private.save(folder / f"{seed}.h5")


def decode_all(folder, result):
    """Decode the sketches; save centers and standard errors."""
    parts = {}
    for seed in range(10):
        sketch = Sketch.load(folder / f"{seed}.h5")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = decode(sketch, _K, bounds=(-1.5, 1.5))
        parts[f"{seed}"] = found.centers
        parts[f"errors {seed}"] = standard_errors(sketch, found).centers
    np.savez(result, **parts)


def largest_moves(one, other):
    """Return the largest move of each sketch's centers, in standard errors."""
    moves = []
    for seed in range(10):
        centers, errors = one[f"{seed}"], one[f"errors {seed}"]
        own, its = linear_sum_assignment(cdist(centers, other[f"{seed}"]))
        moves.append(np.max(np.abs(other[f"{seed}"][its] - centers[own]) / errors[own]))
    return np.array(moves)


def main():
    """Print the table."""
    if len(sys.argv) > 2:
        decode_all(Path(sys.argv[1]), sys.argv[2])
        return
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_sketches(folder)
        for kind, variables in KINDS.items():
            result = folder / f"{kind}.npz"
            environment = {**os.environ, **variables}
            command = [sys.executable, __file__, name, str(result)]
            subprocess.run(command, env=environment, check=True)
            found[kind] = dict(np.load(result))
    first, *others = KINDS
    rows = []
    for kind in others:
        moves = largest_moves(found[first], found[kind])
        rows.append(
            {
                "numerical code for": kind,
                "same bytes": f"{(moves == 0.0).sum()} of 10",
                "largest move, Gaussian clusters": f"{moves[:5].max():.2g}",
                "largest move, arcs and squares": f"{moves[5:].max():.2g}",
            }
        )
    print(markdown(pd.DataFrame(rows)))


if __name__ == "__main__":
    main()
