"""What `plan` predicts for the tables of the collection, compared with fits to them.

    PYTHONPATH=benchmarks python benchmarks/planned_intervals.py

The method is that of `PrivateKMeans`: `TreeKMeans` for one or two columns, else
`CompressiveKMeans`. `plan` gets the numbers of rows, columns and clusters of a table, and nothing
else. Printed are, measured in fits and predicted for round and for skewed clusters: *error*, the
k-means loss over Lloyd's; *width*, the median of 1.96 standard errors of the coordinates of
unmarked clusters, in per cent of the standard deviation of the column; *marked*, the percentage of
clusters that noise hides or whose errors are unreliable. Tables with at least 1,000 rows and at
most 16 columns are used, of both halves: no constant of `plan` was chosen on them. Tables of
packages that are not installed are left out.
"""

from __future__ import annotations

import numpy as np
from collection import DELTA, lloyd_loss, loss, tabulate

from privclust.kmeans import CompressiveKMeans, PrivateKMeans, TreeKMeans, plan

_WIDTH_95 = 1.959964


def measured(X, k, epsilon, n_trials):
    """Return medians of error and width, and the mean marked percentage, of fits to a table."""
    least, found = lloyd_loss(X, k), []
    deviations = np.maximum(X.std(axis=0), 1e-9)
    for seed in range(n_trials):
        how = {"epsilon": epsilon, "delta": DELTA, "bounds": (-1.0, 1.0), "random_state": seed}
        model = PrivateKMeans(k, **how).fit(X).estimator_
        seeded = {} if isinstance(model, TreeKMeans) else {"random_state": seed}
        errors = model.standard_errors(**seeded)
        is_known = errors.is_reliable & model.is_detected_
        widths = _WIDTH_95 * errors.centers[is_known] / deviations
        width = float(np.median(widths)) if widths.size else np.nan
        found.append((loss(X, model.cluster_centers_) / least, width, 1.0 - is_known.mean()))
    errors, widths, marked = np.array(found).T
    known = widths[np.isfinite(widths)]
    return np.median(errors), np.median(known) if known.size else np.nan, marked.mean()


def row_of(table, X, epsilon, n_trials):
    """Return measured and predicted numbers as a row."""
    (n, d), k = X.shape, table.k
    told = {"measured": measured(X, k, epsilon, n_trials)}
    estimator = TreeKMeans() if d <= 2 else CompressiveKMeans()  # as PrivateKMeans chooses
    for shape in ("round", "skewed"):
        how = {"shape": shape, "n_trials": n_trials, "random_state": 0}
        how["estimator"] = estimator
        outcome = plan(n, d, k, epsilon, DELTA, **how)
        told[shape] = outcome.median, outcome.width, np.nanmean(outcome.marked)
    errors, widths, marked = zip(*told.values(), strict=True)
    return {
        **{"table": table.name, "n": n, "d": d, "k": k, "epsilon": f"{epsilon:g}"},
        "error": " / ".join(f"{error:.3f}" for error in errors),
        "width": " / ".join("none" if np.isnan(w) else f"{100 * w:.1f}" for w in widths),
        "marked": " / ".join(f"{100 * part:.0f}" for part in marked),
    }


if __name__ == "__main__":
    tabulate(__doc__, row_of, "planned", trials=5, epsilons=(1.0,))
