"""How much noise variances of single columns of a cluster would have, if the rounds measured them.

    PYTHONPATH=benchmarks python benchmarks/column_spreads.py

The rounds of `CompressiveKMeans` release the squared length of each row's offset, not the squares
of its columns. These would have the same sensitivity, so the noise of the variance of one of d
columns would be d times that of the mean over columns. *rounds* is that noise divided by the
variance of the column, *decoded* the error of `cluster_spreads_` divided by the standard deviation,
both in per cent, as medians over clusters and columns. Tables with at least 1,000 rows and at most
16 columns are used; tables of packages that are not installed are left out.
"""

from __future__ import annotations

import numpy as np
from collection import DELTA, tabulate

from privclust.kmeans import CompressiveKMeans
from privclust.kmeans._round_errors import spreads_of_rounds


def row_of(table, X, epsilon, n_trials):
    """Return medians over fits as a row."""
    found = []
    for seed in range(n_trials):
        how = {"epsilon": epsilon, "delta": DELTA, "bounds": (-1.0, 1.0), "random_state": seed}
        model = CompressiveKMeans(table.k, **how).fit(X)
        true = np.array([X[model.labels_ == j].std(axis=0) for j in np.unique(model.labels_)])
        kept = np.unique(model.labels_)
        noise = np.full(len(model.weights_), np.nan)
        if model._rounds:
            noise = X.shape[1] * spreads_of_rounds(model._rounds)[1]
        off = np.abs(model.cluster_spreads_[kept] - true)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = noise[kept, None] / true**2, off / true
        found.append([np.median(ratio[np.isfinite(ratio)]) for ratio in ratios])
    rounds, decoded = 100.0 * np.median(found, axis=0)
    row = {"table": table.name, "half": table.half, "epsilon": f"{epsilon:g}"}
    return row | {"rounds": f"{rounds:.0f}", "decoded": f"{decoded:.0f}"}


if __name__ == "__main__":
    tabulate(__doc__, row_of, "columns", trials=3, epsilons=(1.0, 4.0))
