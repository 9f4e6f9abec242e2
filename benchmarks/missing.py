"""What it costs to count missing entries: errors of centers with and without the counts.

    python benchmarks/missing.py

Tables of four clusters in four columns miss no entry; epsilon = 1, delta = 1e-6. With the counts
the part of the budget that `privclust cluster` takes is gone, and the number of rows is noisy.
"""

import warnings

import numpy as np

from privclust.kmeans import CompressiveKMeans
from privclust.preprocessing import missing_counts
from privclust.privacy.measurements import gaussian_part

SHARE, EPSILON, DELTA = 0.02, 1.0, 1e-6


def table(n_rows, seed):
    """Rows about four places."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0.2, 0.8, (4, 4))
    rows = places[rng.integers(4, size=n_rows)] + rng.normal(0, 0.05, (n_rows, 4))
    return np.clip(rows, 0.0, 1.0)


def fitted(X, seed, missing):
    """A fit with the counts or without."""
    share = 1.0 - SHARE if missing == "drop" else 1.0
    epsilon = gaussian_part(EPSILON, DELTA, share) if share < 1.0 else EPSILON
    how = {"delta": DELTA, "noise": "gaussian", "bounds": (0.0, 1.0), "missing": missing}
    return CompressiveKMeans(4, epsilon=epsilon, **how, random_state=seed).fit(X)


def error(X, model):
    """Mean squared distance to the nearest center."""
    return ((X[:, None] - model.cluster_centers_) ** 2).sum(axis=2).min(axis=1).mean()


def main():
    """Print a line for each number of rows, and the noise of the counts."""
    warnings.simplefilter("ignore")
    for n_rows, n_trials in ((1_000, 40), (100_000, 10)):
        ratios, model = [], None
        for seed in range(n_trials):
            X = table(n_rows, seed)
            model = fitted(X, seed, "drop")
            ratios.append(error(X, model) / error(X, fitted(X, seed, "middle")))
        spread = np.std(np.log(ratios)) / np.sqrt(n_trials)
        print(
            f"{n_rows:,} rows: error with the counts {np.exp(np.mean(np.log(ratios))):.4f} times "
            f"that without (standard error {spread:.4f}); rows left out +- "
            f"{model.left_out_.deviation:.1f}"
        )
    for n_columns in (4, 10):
        none = np.zeros((10, n_columns), dtype=bool)
        part = gaussian_part(EPSILON, DELTA, SHARE)
        counts = missing_counts(none, none, part, DELTA, random_state=0)
        print(f"{n_columns} columns: entries by column +- {counts.deviation:.0f}")


if __name__ == "__main__":
    main()
