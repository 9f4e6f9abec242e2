"""CPU seconds of the longest kinds of fits at paper effort, here and in another checkout, in turns.

    git worktree add FOLDER REV
    OMP_NUM_THREADS=1 python benchmarks/costly_fits.py --before FOLDER [--repeats 3] [--only NAME]

Data are drawn, of the sizes of paper effort; of chains a fifth of the sweeps. A line for each fit:
the least CPU seconds in both checkouts, and their ratio. Compiling is not timed.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from private_fits import in_checkout

HERE = Path(__file__).resolve().parent.parent


def faces(rng):
    """320 rows in 50 dimensions: five groups near subspaces of 9, with spectra as of faces."""
    scales = 0.6 ** np.arange(9)
    groups = [
        (rng.normal(size=(64, 9)) * scales) @ np.linalg.qr(rng.normal(size=(50, 9)))[0].T
        for _ in range(5)
    ]
    X = np.concatenate(groups) + rng.normal(scale=0.01, size=(320, 50))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def spectrum(rng, n, d):
    """Rows of norm 1 whose variances fall off like those of a network's features."""
    X = rng.normal(size=(n, d)) / np.sqrt(1.0 + np.arange(d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def subspaces(rng, k, n, d, q):
    """Rows on k subspaces without noise, of norm 1."""
    X = np.concatenate([rng.normal(size=(n, q)) @ rng.normal(size=(q, d)) for _ in range(k)])
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def gibbs(rows, k, q, epsilon):
    """The exponential mechanism from uniform subspaces; a few sweeps compile."""
    from privclust.subspaces import GibbsSubspaceClustering

    settings = {"epsilon": epsilon, "norm_bound": 1.0, "random_state": 0}
    GibbsSubspaceClustering(k, q, n_sweeps=10, **settings).fit(rows)
    return lambda: GibbsSubspaceClustering(k, q, n_sweeps=2_000, **settings).fit(rows)


def pca(rows):
    """Principal components by the exponential mechanism."""
    from privclust.embedding import PrivatePCA

    settings = {"epsilon": 10.0, "mechanism": "exponential", "norm_bound": 1.0, "random_state": 0}
    PrivatePCA(2, **settings).fit(rows[:50, :40])
    return lambda: PrivatePCA(16, **settings).fit(rows)


def cl_ompr(rng, k, d):
    """A decode of the exact features of a mixture of k normals, at m = 20kd frequencies."""
    from privclust.decoding._clompr import decode_diracs

    centers, box = rng.normal(size=(k, d)) * 1.5 * k ** (1 / d), np.full(d, 6.0)
    frequencies = rng.normal(size=(d, 20 * k * d)) / 3.0
    features = np.exp(1j * centers @ frequencies - (frequencies**2).sum(axis=0) / 2.0).mean(axis=0)

    def decode():
        return decode_diracs(features, frequencies, k, -box, box, np.random.default_rng(0))

    decode()
    return decode


def dsne(rng, n_anchors, n_queries):
    """Queries placed among public rows."""
    from privclust.embedding import DPdSNE

    rows = spectrum(rng, n_anchors + n_queries, 1_280)
    places = DPdSNE(epsilon=10.0, random_state=0).fit(rows[:n_anchors], rows[:n_anchors, :2])
    places.transform(rows[:1])
    return lambda: places.transform(rows[n_anchors:])


def cass(rows):
    """Trace-lasso self-expression without noise."""
    from privclust.segmentation import CASS

    CASS(2, lam=None, tol=1e-2, random_state=0).fit(rows[:40])
    return lambda: CASS(4, lam=None, tol=1e-2, random_state=0).fit(rows)


def clusters(rng, k, deviations):
    """A decode of rows in k clusters that overlap, with standard deviations along turned axes."""
    from privclust.decoding import decode
    from privclust.sketches import Sketch, draw_frequencies

    labels, d = rng.integers(k, size=20_000), len(deviations)
    turns = np.linalg.qr(rng.normal(size=(k, d, d)))[0] * deviations
    X = 4.0 * rng.normal(size=(k, d))[labels]
    X += np.einsum("nij,nj->ni", turns[labels], rng.normal(size=X.shape))
    frequencies = draw_frequencies(d, 3_000, variance=4.0, random_state=0)
    decode(Sketch.of(X[:50], frequencies[:, :20]), 2, random_state=0)
    sketch = Sketch.of(X, frequencies)
    return lambda: decode(sketch, k, random_state=0)


def conversions(count):
    """Budgets in zCDP, each another one."""
    from privclust.privacy import zcdp_epsilon

    zcdp_epsilon(1.0, 1e-5)
    return lambda: [zcdp_epsilon(0.001 * (1 + i), 1e-5) for i in range(count)]


FITS = {
    "Gibbs on faces, 2,000 sweeps": lambda rng: gibbs(faces(rng), 5, 9, 1000.0),
    "Gibbs, 5,001 rows in 5 dimensions, 2,000 sweeps": lambda rng: gibbs(
        subspaces(rng, 3, 1667, 5, 3), 3, 3, 10.0
    ),
    "DP-PCA by the exponential mechanism, 5,000 rows of 1,280 features": lambda rng: pca(
        spectrum(rng, 5_000, 1_280)
    ),
    "CL-OMPR, k = d = 10, m = 20kd": lambda rng: cl_ompr(rng, 10, 10),
    "DP-dSNE, 20 queries among 1,000 rows of 1,280 features": lambda rng: dsne(rng, 1_000, 20),
    "a sketch of 16 long clusters in 4 dimensions": lambda rng: clusters(
        rng, 16, 3.0 * 0.5 ** np.arange(4)
    ),
    "a sketch of 64 round clusters in 16 dimensions": lambda rng: clusters(rng, 64, np.ones(16)),
    "1,000 conversions from zCDP": lambda rng: conversions(1_000),
    "CASS, 120 rows": lambda rng: cass(subspaces(rng, 4, 30, 26, 13)),
}


def measure(name: str) -> dict[str, float]:
    """The CPU seconds of a fit, after a short one that compiles."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = FITS[name](np.random.default_rng(0))
        start = time.process_time()
        fit()
    return {"seconds": time.process_time() - start}


def main() -> None:
    """Print a table of Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--before", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--measure")
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(args.measure)))
        return
    if args.before is None:
        parser.error("--before names the other checkout")
    print("| fit | CPU s before | now | ratio |")
    print("| --- | --- | --- | --- |")
    for name in FITS:
        if args.only not in name:
            continue
        runs = [
            [in_checkout(folder, __file__, name)["seconds"] for folder in (args.before, HERE)]
            for _ in range(args.repeats)
        ]
        before, now = np.nanmin(runs, axis=0)
        print(f"| {name} | {before:.2f} | {now:.2f} | {now / before:.2f} |", flush=True)


if __name__ == "__main__":
    main()
