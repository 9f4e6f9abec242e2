"""Does the objective of the decoder's starts rank them as the k-means loss on the rows does?

    PYTHONPATH=benchmarks python benchmarks/starts.py

Each table of a half of `collection`, up to 16 features, is sketched at epsilon = 1 and delta =
1e-6, and decoded from `--starts` random starts. A pair of starts is *decided* if their residuals
differ by more than two standard deviations of the difference by noise
(`privclust.decoding._mixture_decoder`). Printed are the number of pairs, and the part in which the
start of the smaller residual has the smaller loss, of decided pairs and of the others, where losses
differ by more than 0.1 %; and the loss of the start that is kept, relative to the best of all.
"""

from __future__ import annotations

import argparse
import itertools
import math
import warnings

import numpy as np
import pandas as pd
from collection import DELTA, loss, tables
from scratch import markdown

from privclust.decoding._mixture_decoder import (
    _NEAR_BEST,
    _rough_centers,
    expected_residual,
    fit_density,
)
from privclust.decoding._sketch_decoding import mean_features
from privclust.kmeans import CompressiveKMeans

_ALIKE = 1e-3  # losses that differ by less are equal


def starts_of(X, k, n_starts):
    """Yield the residual, what it leaves of the features, a deviation, and the loss of starts."""
    d = X.shape[1]
    model = CompressiveKMeans(
        k, epsilon=1.0, delta=DELTA, bounds=(-1.0, 1.0), n_directions=d, random_state=0
    ).fit(X)
    sketch, moments = model._released, model._data_moments
    features, noise, n = mean_features(sketch)
    task = features, sketch.frequencies, k, moments
    expected = expected_residual(features, n, sketch.alpha_r, noise)
    how = {"spread": "per_cluster", "n_init": 1, "noisy": True, "covariances": False}
    for seed in range(n_starts):
        fit = fit_density(*task, expected, rng=np.random.default_rng(seed), **how)
        (mixture, residual), problem = fit.starts[0], fit.problem
        centers = _rough_centers(mixture, np.random.default_rng(0))
        left = np.hstack(problem.unexplained(*mixture))
        unit = 2.0 * math.sqrt(fit.of_one_number)
        yield residual, left, unit, loss(X, problem.origin + problem.unit * centers)


def row_of(table, n_starts):
    """Return the counts of a table's pairs."""
    starts = list(starts_of(table.scaled(), table.k, n_starts))
    right = {True: [], False: []}
    for (f, left, unit, own), (g, other, _, its) in itertools.combinations(starts, 2):
        if abs(own - its) > _ALIKE * min(own, its):
            is_decided = abs(f - g) > _NEAR_BEST * unit * np.linalg.norm(left - other)
            right[is_decided].append((f < g) == (own < its))
    kept, best = min(starts, key=lambda start: start[0])[3], min(start[3] for start in starts)
    return {
        "table": table.name,
        "decided": len(right[True]),
        "right": sum(right[True]),
        "undecided": len(right[False]),
        "right by chance": sum(right[False]),
        "kept / best": f"{kept / best:.3f}",
        "middle / best": f"{np.median([start[3] for start in starts]) / best:.3f}",
    }


def main() -> None:
    """Print a row for each table, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=("choose", "show"), default="choose")
    parser.add_argument("--starts", type=int, default=8)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = [t for t in tables(arguments.half) if t.scaled().shape[1] <= 16]
    rows = []
    for table in chosen:
        rows.append(row_of(table, arguments.starts))
        print(rows[-1], flush=True)
    found = pd.DataFrame(rows)
    print(markdown(found))
    print(found[["decided", "right", "undecided", "right by chance"]].sum().to_dict())


if __name__ == "__main__":
    main()
