"""Private k-means of other tools and of privclust, on the same tables with the same bounds.

The other tools are no dependencies: run this in an environment of its own, in which
``pip install . --group compared`` has installed the group of pyproject.toml (pip 25.1 or newer):
``OMP_NUM_THREADS=1 PYTHONPATH=src:benchmarks python benchmarks/compared.py --into
docs/compared.md``. It takes all tables of the half "show" of `collection` with 1,000 to 100,000
rows. No constant of privclust was chosen on them. Each column lies between -1 and 1, and these
are the bounds that every method gets. Neighbours differ by one row added or removed, but for the
last method, where one is replaced.

A number is the k-means error on the rows divided by that of Lloyd's (k-means++, best of five): the
median over seeds, with the smallest and the largest in parentheses. The first table of the document
has the median, the smallest and the largest of these medians over tables, and CPU seconds of a fit.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import collection
import numpy as np
import pandas as pd
from scratch import markdown, write_into

from privclust.kmeans import PrivateKMeans

EPSILONS = (0.5, 1.0, 4.0)
LEAST_ROWS, MOST_ROWS = 1_000, 100_000
OTHER = "diffprivlib"
PURE = "privclust, delta = 0"
APPROXIMATE = f"privclust, delta = {collection.DELTA:g}"
REPLACED = f"{APPROXIMATE}, rows replaced"


def fit_diffprivlib(X: np.ndarray, k: int, epsilon: float, seed: int) -> np.ndarray:
    """Return the centers of diffprivlib's KMeans, with bounds, as its documentation asks."""
    from diffprivlib.models import KMeans  # of the group compared

    return KMeans(k, epsilon=epsilon, bounds=(-1.0, 1.0), random_state=seed).fit(X).cluster_centers_


def fit_privclust(delta: float, neighbours: str = "add_remove") -> Callable:
    """Return a function that fits PrivateKMeans, all else as by default."""
    return collection.fit_of("privclust.kmeans.PrivateKMeans", delta=delta, neighbours=neighbours)


METHODS = {
    OTHER: fit_diffprivlib,
    PURE: fit_privclust(0.0),
    APPROXIMATE: fit_privclust(collection.DELTA),
    REPLACED: fit_privclust(collection.DELTA, "replace_one"),
}


def measured(n_seeds: int) -> pd.DataFrame:
    """Fit every table with every method, and return a row for each fit."""
    rows = []
    for table in collection.tables("show"):
        X = table.scaled()
        if not LEAST_ROWS <= len(X) <= MOST_ROWS:
            continue
        best = collection.lloyd_loss(X, table.k)
        for method, fit in METHODS.items():
            for epsilon in EPSILONS:
                for seed in range(n_seeds):
                    start = time.process_time()
                    centers = fit(X, table.k, epsilon, seed)
                    cpu = time.process_time() - start
                    rows.append(
                        {
                            **{"table": table.name, "n": len(X), "d": X.shape[1], "k": table.k},
                            **{"epsilon": epsilon, "method": method, "cpu_s": cpu},
                            "ratio": collection.loss(X, centers) / best,
                        }
                    )
            print(rows[-1], flush=True)
    return pd.DataFrame(rows)


def spread(ratios: pd.Series) -> str:
    """Return the median, the smallest and the largest of some ratios."""
    median, low, high = (
        f"{ratio:.2f}" if ratio < 10.0 else f"{ratio:.1f}"
        for ratio in (ratios.median(), ratios.min(), ratios.max())
    )
    return f"{median} ({low}–{high})"


def in_short(fits: pd.DataFrame) -> pd.DataFrame:
    """Return the medians over tables at each epsilon, and on how many a median is lower."""
    medians = fits.pivot_table("ratio", "table", ["method", "epsilon"], aggfunc="median")
    seconds, rows = fits.groupby("method").cpu_s.mean(), []
    for method in METHODS:
        row = {"method": method}
        row |= {f"epsilon = {e:g}": spread(medians[method][e]) for e in EPSILONS}
        lower = (medians[method] < medians[OTHER]).sum()
        counts = " / ".join(str(lower[e]) for e in EPSILONS) + f" of {len(medians)}"
        row[f"lower than {OTHER}"] = "" if method == OTHER else counts
        rows.append(row | {"CPU s": f"{seconds[method]:.2f}"})
    return pd.DataFrame(rows)


def by_table(fits: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each table."""
    rows = []
    for (name, n, d, k), part in fits.groupby(["table", "n", "d", "k"], sort=False):
        row = {"table": name, "n, d, k": f"{n:,}, {d}, {k}"}
        for method in (OTHER, PURE, APPROXIMATE):
            ratios = part[part.method == method].groupby("epsilon").ratio
            row[method] = " / ".join(spread(ratios.get_group(e)) for e in EPSILONS)
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--into", type=Path, help="document with the marks")
    arguments = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = np.random.default_rng(0).uniform(-1.0, 1.0, (2_000, 3))
        for delta in (0.0, collection.DELTA):  # compiles the loops, so that no fit pays for it
            PrivateKMeans(3, delta=delta, bounds=(-1.0, 1.0), random_state=0).fit(X)
            PrivateKMeans(3, delta=delta, bounds=(-1.0, 1.0), random_state=0).fit(X[:, :2])
        fits = measured(arguments.seeds)
    packages = ("diffprivlib", "scikit-learn", "numpy")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    made = f"Run on {datetime.date.today():%d %B %Y} with {versions}; {arguments.seeds} seeds."
    texts = {
        "in short": f"{markdown(in_short(fits))}\n\n{made}",
        "by table": markdown(by_table(fits)),
    }
    for mark, text in texts.items():
        print(text, end="\n\n")
        if arguments.into:
            write_into(arguments.into, mark, text)


if __name__ == "__main__":
    main()
