"""What it costs to protect persons with 1 to 100 rows, in three ways, and rows alone beside them.

    OMP_NUM_THREADS=1 python benchmarks/groups.py

Persons have 1 to 100 rows each, as many of them with 1 to 10 as with 10 to 100, about one of five
centers in the plane. Each way but the last hides a person who is exchanged for any other, with any
rows, at (epsilon, 1e-6):

- *persons*: ``fit(X, groups=ids)``, every row of n counts 1 / n, the noise is that of one row;
- *rows, noise times 100*: ``fit(X)``, with a budget so small that a row's noise is 100 times as
  much: what up to 100 rows of one person change in all is hidden as one row is, if the number of
  rows is no secret;
- *one row each*: a random row of each person, the others thrown away, with the noise of one row;
- *rows*: ``fit(X)`` with the noise of one row, which protects rows alone. It is there to compare.

Printed is the mean squared distance to the nearest center in parts of that from the true centers,
the median and the worst of so many fits; every person weighs the same.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from scipy.optimize import brentq

from privclust.core.lloyd import nearest_center
from privclust.kmeans import CompressiveKMeans, DPLloyd, EUGkM
from privclust.privacy.measurements import gaussian_share

CENTERS = np.array([[-0.6, -0.6], [-0.6, 0.5], [0.0, 0.0], [0.6, -0.4], [0.5, 0.6]])
DEVIATION, MOST_ROWS, DELTA = 0.08, 100, 1e-6
BOX = {"bounds": (-1.0, 1.0)}
METHODS = {
    "CompressiveKMeans": lambda **budget: CompressiveKMeans(5, delta=DELTA, **BOX, **budget),
    "DPLloyd": lambda **budget: DPLloyd(
        5, accounting="pld", delta=DELTA, init="separated", **BOX, **budget
    ),
    "EUGkM": lambda **budget: EUGkM(5, delta=DELTA, **BOX, **budget),
}
WAYS = ("persons", "rows, noise times 100", "one row each", "rows")


def visits(n_persons, rng):
    """Return rows of persons, and whose they are."""
    counts = np.floor(np.exp(rng.uniform(0.0, np.log(MOST_ROWS + 1), n_persons))).astype(int)
    ids = np.repeat(np.arange(n_persons), counts)
    own = CENTERS[rng.integers(len(CENTERS), size=n_persons)][ids]
    return (own + DEVIATION * rng.standard_normal(own.shape)).clip(-1.0, 1.0), ids


def with_noise_times(factor, epsilon):
    """Return the epsilon at which normal noise is so many times as large."""
    share = gaussian_share(epsilon, DELTA) / factor
    return float(brentq(lambda e: gaussian_share(e, DELTA) - share, 1e-9, epsilon))


def fitted(method, way, X, ids, epsilon, seed):
    """Return the centers that a method finds in one of the ways."""
    if way == "rows, noise times 100":
        epsilon = with_noise_times(MOST_ROWS, epsilon)
    groups = ids if way == "persons" else None
    if way == "one row each":
        order = np.random.default_rng(seed).permutation(len(X))
        X = X[order[np.unique(ids[order], return_index=True)[1]]]
    model = METHODS[method](epsilon=epsilon, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of clusters that noise hides: the table shows them
        return model.fit(X, groups=groups).cluster_centers_


def error(X, ids, centers):
    """Return the mean squared distance to the nearest center, every person weighing the same."""
    squares = ((X - centers[nearest_center(X, centers)]) ** 2).sum(axis=1)
    return float((squares / np.bincount(ids)[ids]).sum() / (ids[-1] + 1))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--persons", type=int, default=5_000)
    parser.add_argument("--fits", type=int, default=5)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.3, 1.0])
    args = parser.parse_args()
    X, ids = visits(args.persons, np.random.default_rng(0))
    start, least = time.process_time(), error(X, ids, CENTERS)
    print(f"{args.persons:,} persons, {len(X):,} rows, delta {DELTA:g}, {args.fits} fits each\n")
    print(f"| epsilon | method | {' | '.join(WAYS)} |")
    print(f"| --- | --- | {' | '.join(['---'] * len(WAYS))} |")
    for epsilon in args.epsilon:
        for method in METHODS:
            cells = []
            for way in WAYS:
                errors = [
                    error(X, ids, fitted(method, way, X, ids, epsilon, seed)) / least
                    for seed in range(args.fits)
                ]
                cells.append(f"{np.median(errors):.3f} ({max(errors):.3f})")
            print(f"| {epsilon:g} | {method} | {' | '.join(cells)} |", flush=True)
    print(f"\n{time.process_time() - start:.0f} CPU seconds")


if __name__ == "__main__":
    main()
