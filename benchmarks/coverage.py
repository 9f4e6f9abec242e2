"""How often 95 % intervals of centers hold on the collection, and how many clusters have one.

    PYTHONPATH=benchmarks python benchmarks/coverage.py --half choose

The population is the table itself: each trial fits as many rows, drawn with replacement. Centers
are compared with the best k-means of ten starts on the table, matched one to one. *coverage* is the
percentage of coordinates within 1.96 standard errors, of detected clusters whose errors are
reliable; *unmarked* the percentage of clusters that are; *width* the median of 1.96 standard errors
of these, in per cent of the standard deviation of the column. Tables with at least 1,000 rows and
at most 16 columns are used.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from collection import DELTA, tables
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scratch import markdown, write_into
from sklearn.cluster import KMeans

from privclust.kmeans import CompressiveKMeans

_EPSILONS = (1.0, 4.0)
_WIDTH_95 = 1.959964


def trial(population, truth, k, epsilon, seed):
    """Return which coordinates are covered, which clusters are unmarked, and relative widths."""
    rng = np.random.default_rng(seed)
    X = population[rng.integers(len(population), size=len(population))]
    model = CompressiveKMeans(
        k, epsilon=epsilon, delta=DELTA, bounds=(-1.0, 1.0), random_state=seed
    ).fit(X)
    errors = model.standard_errors(random_state=seed)
    own, true = linear_sum_assignment(cdist(model.cluster_centers_, truth))
    is_unmarked = (errors.is_reliable & model.is_detected_)[own]
    half_widths = _WIDTH_95 * errors.centers[own]
    is_covered = np.abs(model.cluster_centers_[own] - truth[true]) <= half_widths
    widths = 100.0 * half_widths / np.maximum(population.std(axis=0), 1e-9)
    return is_covered[is_unmarked], is_unmarked, widths[is_unmarked]


def row_of(table, epsilon, n_trials):
    """Return the coverage of a table at an epsilon."""
    X = table.scaled()
    truth = KMeans(table.k, n_init=10, random_state=0).fit(X).cluster_centers_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = [trial(X, truth, table.k, epsilon, seed) for seed in range(n_trials)]
    covered, unmarked, widths = (np.concatenate(part) for part in zip(*runs, strict=True))
    return {
        "table": table.name,
        "epsilon": f"{epsilon:g}",
        "coverage": 100.0 * covered.mean() if covered.size else np.nan,
        "unmarked": 100.0 * unmarked.mean(),
        "width": float(np.median(widths)) if widths.size else np.nan,
    }


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("choose", "show"), default="choose")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--into", type=Path, help="a document with the marks of coverage")
    args = parser.parse_args()
    rows = []
    for table in tables(args.half):
        X = table.scaled()
        if len(X) < 1_000 or X.shape[1] > 16:
            continue
        for epsilon in _EPSILONS:
            rows.append(row_of(table, epsilon, args.trials))
            print(f"{table.name}, epsilon = {epsilon:g}", flush=True)
    text = markdown(pd.DataFrame(rows))
    print(text)
    if args.into:
        write_into(args.into, "coverage", text)


if __name__ == "__main__":
    main()
