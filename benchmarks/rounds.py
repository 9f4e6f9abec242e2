"""What the noisy rounds of `CompressiveKMeans` do with many clusters, and with a wrong number.

    PYTHONPATH=benchmarks python benchmarks/rounds.py --into docs/results/ablation.md

Cells are k-means losses over Lloyd's (best of five starts), as the mean over data sets and three
seeds with its standard error.

*many*: 20,000 rows of 64 round clusters in 64 and 128 dimensions, drawn, scaled and fitted as rows
64_64 and 64_128 of `frontier` are, with other seeds. "A may grow": a round may make a center less
certain (see `privclust.kmeans._rounds`). "labels known": noisy rounds on the clusters of Lloyd's
solution, an oracle.

*wrong*: 20,000 rows of ten round clusters in five dimensions, fitted with 7, 10 and 15 clusters,
and rows at five points in the plane, fitted with 8 (the difference of the losses in place of the
ratio); delta = 1e-6. "no splits": rounds move no center to another cluster.
"""

from __future__ import annotations

import argparse
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
from ablation import STAGES, without
from collection import DELTA, blobs, lloyd_loss, loss
from scratch import markdown, write_into
from sklearn.datasets import make_blobs

from privclust.kmeans import CompressiveKMeans, _rounds
from privclust_papers.frontier.oracles import LabelsKnown

N, SEEDS = 20_000, 3
PROTOCOL = {"neighbours": "add_remove", "delta": N**-1.1}  # of the frontier's table


def may_grow(clusters, released, moved=_rounds._Clusters.moved):
    """Return what `moved` does; a center may become less certain than before the round."""
    found = moved(clusters, released)
    clusters.unknown = found.errors**2 / _rounds._KEPT
    return found


VARIANTS = {
    "present": (CompressiveKMeans, nullcontext),
    "A may grow": (CompressiveKMeans, lambda: without((_rounds._Clusters, "moved", may_grow))),
    "labels known": (LabelsKnown, nullcontext),
}


def ratios(k, X, epsilon, estimator, change, least, **protocol):
    """Return losses over Lloyd's."""
    found = []
    for seed in range(SEEDS):
        how = {"epsilon": epsilon, "delta": DELTA, "bounds": (-1.0, 1.0), "random_state": seed}
        how |= protocol
        with change(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(loss(X, estimator(k, **how).fit(X).cluster_centers_) / least)
    return found


def cell(found):
    """Return a mean with its standard error."""
    mean, error = np.mean(found), np.std(found, ddof=1) / np.sqrt(len(found))
    return f"{mean:.3f} ± {error:.3f}" if mean > 0.1 else f"{mean:.1e} ± {error:.0e}"


def many():
    """Return the table of many clusters."""
    table = []
    for d in (64, 128):
        sets = []
        for state in (2, 3, 4):
            X = make_blobs(n_samples=N, n_features=d, centers=64, random_state=state)[0]
            X = X - X.mean(axis=0)
            X /= np.linalg.norm(X, axis=1).max()
            sets.append((X, lloyd_loss(X, 64)))
        for epsilon in (0.25, 0.5):
            cells = {"features": d, "epsilon": f"{epsilon:g}"}
            for name, (estimator, change) in VARIANTS.items():
                found = [
                    ratios(64, X, epsilon, estimator, change, least, **PROTOCOL)
                    for X, least in sets
                ]
                cells[name] = cell(np.ravel(found))
            table.append(cells)
            print(cells, flush=True)
    return table


def wrong():
    """Return the table of other numbers of clusters."""
    rng = np.random.default_rng(0)
    ten = [(k, "10 clusters", blobs(rng, N, 5, 10)) for k in (7, 10, 15)]
    points = rng.uniform(-0.8, 0.8, (5, 2))[rng.integers(5, size=N)]
    table = []
    for k, name, X in [*ten, (8, "5 points", points)]:
        least = 1.0 if name == "5 points" else lloyd_loss(X, k)
        for epsilon in (1.0, 4.0):
            cells = {"rows": name, "k": k, "epsilon": f"{epsilon:g}"}
            for how, change in (
                ("with splits", nullcontext),
                ("no splits", lambda: without(STAGES["splits in rounds"])),
            ):
                cells[how] = cell(ratios(k, X, epsilon, CompressiveKMeans, change, least))
            table.append(cells)
            print(cells, flush=True)
    return table


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, help="document with the marks of both")
    parser.add_argument("--only", choices=("many", "wrong"))
    arguments = parser.parse_args()
    for name, table in (("many", many), ("wrong", wrong)):
        if arguments.only not in (None, name):
            continue
        text = markdown(pd.DataFrame(table()))
        print(text)
        if arguments.into:
            write_into(arguments.into, name, text)


if __name__ == "__main__":
    main()
