r"""What the longest kinds of fits at paper effort must compute, against what they take.

    OMP_NUM_THREADS=1 python benchmarks/floors.py [--repeats 3] [--into docs/architecture.md]

Fits are those of ``costly_fits.py``. Multiply-adds are counted by algorithm, iterations and values
of objectives as the fit makes them; any other operation of a sine, an exponential or a residual
counts as one. The floor is the time of that many in products of large matrices on this machine, in
the fit's precision: no loop does more a second.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from unittest import mock

import costly_fits
import numpy as np
from scratch import write_into

from privclust.decoding import _clompr
from privclust.embedding import DPdSNE, PrivatePCA

SIDE = 768  # rows and columns of the matrices by which speed is measured
ATOM = {"float32": 25, "float64": 34}  # operations on an atom at a frequency beside two products
PAIR = 20  # operations on a pair of points in two dimensions, `embedding._dpdsne_kernels.forces`


def timed(call):
    """CPU seconds of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def speed(dtype):
    """Multiply-adds a second of a product of matrices."""
    A = np.random.default_rng(0).normal(size=(SIDE, SIDE)).astype(dtype)
    return SIDE**3 / min(timed(lambda: A @ A) for _ in range(20))


def sweep_of_frame(d, q):
    """Of `bingham.kernels.resample_frame`: a product of matrices, then d - q vectors in turn."""
    p = q + 1
    draw = p**3 // 3 + p**2  # a Cholesky factor and its inverse, once, and one proposal
    return d**3 + (d - q) * (3 * p * d + draw + 2 * p**2)


def gibbs(rng):
    """Labels and second moments, then subspaces."""
    X, k, q = costly_fits.faces(rng), 5, 9
    n, d = X.shape
    labels = n * k * q * d + n * d * (d + 1) // 2
    frames = k * (sweep_of_frame(d, q) + d * q * q + q * d * (d + 1) // 2)
    fit = costly_fits.gibbs(X, k, q, 1000.0)
    return fit, {"float64": 2_000 * (labels + frames)}


def pca(rng):
    """Second moments, a full basis by reflections, sweeps, Gram-Schmidt twice."""
    X = costly_fits.spectrum(rng, 5_000, 1_280)
    n, d = X.shape
    bases, sweeps = 4 * d**3 // 3 + 2 * d**3, PrivatePCA().n_sweeps * sweep_of_frame(d, 16)
    return costly_fits.pca(X), {"float64": n * d * (d + 1) // 2 + bases + sweeps}


def cl_ompr(rng):
    """Values of both objectives with their gradients, at each atom and frequency."""
    decode = costly_fits.cl_ompr(rng, 10, 10)
    counts = dict.fromkeys(ATOM, 0)
    ascent, descent = _clompr.correlation_and_gradient, _clompr.residual_and_gradient

    def add(turns, n_atoms):
        (d, m), name = turns.shape, turns.dtype.name
        counts[name] += n_atoms * m * (2 * d + ATOM[name])

    def climb(center, turns, *others):
        add(turns, 1)
        return ascent(center, turns, *others)

    def descend(weights, centers, variances, shared, problem, gradients):
        add(problem[0], len(weights))
        return descent(weights, centers, variances, shared, problem, gradients)

    with (
        mock.patch.object(_clompr, "correlation_and_gradient", climb),
        mock.patch.object(_clompr, "residual_and_gradient", descend),
    ):
        decode()
    return decode, counts


def dsne(rng):
    """Distances between queries and public rows, and forces in each iteration."""
    n_anchors, n_queries = 1_000, 20
    pairs = n_anchors * n_queries
    fit = costly_fits.dsne(rng, n_anchors, n_queries)
    return fit, {"float64": pairs * (1_280 + DPdSNE().max_iter * PAIR)}


def cass(rng):
    """Two sums of squares and forms a row and iteration, a system, roots of the eigenvalues."""
    X = costly_fits.subspaces(rng, 4, 30, 26, 13)
    fit = costly_fits.cass(X)
    n, r = len(X), np.linalg.matrix_rank(X)
    # eigenvectors of a symmetric matrix by tridiagonal form: about 9 r^3 floating-point operations
    of_row = 3 * n * r * (r + 1) // 2 + r**3 // 3 + 9 * r**3 // 2 + r**3
    return fit, {"float64": fit().n_iter_ * n * of_row}


FITS = {
    "Gibbs on faces, 2,000 sweeps": gibbs,
    "DP-PCA by the exponential mechanism, 5,000 rows of 1,280 features": pca,
    "CL-OMPR, k = d = 10, m = 20kd": cl_ompr,
    "DP-dSNE, 20 queries among 1,000 rows of 1,280 features": dsne,
    "CASS, 120 rows": cass,
}


def main() -> None:
    """Print a table of Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--into", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    speeds = {name: speed(name) for name in ATOM}
    lines = ["| fit | 10^9 multiply-adds | floor, s | CPU s | ratio |", "| --- |" + " --- |" * 4]
    for name, of in FITS.items():
        fit, counts = of(np.random.default_rng(0))
        seconds = min(timed(fit) for _ in range(args.repeats))
        floor = sum(count / speeds[dtype] for dtype, count in counts.items())
        total = sum(counts.values()) / 1e9
        numbers = f"{total:.3g} | {floor:.2g} | {seconds:.2g} | {seconds / floor:.1f}"
        lines.append(f"| {name} | {numbers} |")
        print(lines[-1], flush=True)
    single, double = (f"{speeds[name] / 1e9:.0f}" for name in ATOM)
    lines += [
        "",
        f"Products of large matrices run at {double} x 10^9 multiply-adds a second in double "
        f"precision and {single} x 10^9 in single precision.",
    ]
    print(lines[-1])
    if args.into:
        write_into(args.into, "floors", "\n".join(lines))


if __name__ == "__main__":
    main()
