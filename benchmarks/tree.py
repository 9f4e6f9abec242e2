"""What each constant of `TreeKMeans` brings: its loss above Lloyd's with the constant changed.

``OMP_NUM_THREADS=1 PYTHONPATH=benchmarks python benchmarks/tree.py`` takes the tables of the half
"choose" of `collection` with at most 3 features and at least 5,000 rows. A number is the mean over
tables of the median ratio over trials, less 1, in per cent. ``--into docs/methods/tree_kmeans.md``
writes the table there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import collection
import pandas as pd
from scratch import markdown, write_into

from privclust.kmeans import TreeKMeans, _tree

LEAST_ROWS = 5_000  # noise alone decides on smaller tables
DEFAULT, CHANGED = "constant (default)", "changed to"
CHANGES = {
    "_TREE_SHARE": (0.7, 0.92),
    "_DECAY": (0.45, 0.75),
    "_DEEPEST": (8, 15),
    "_CELLS_A_CLUSTER": (1.0, 16.0),
    "_OPENS": (0.75, 3.0),
    "_N_INIT": (3, 30),
    "_WITHIN": (0.8, 0.97),
}


def fit(X, k, epsilon, seed):
    """Fit with the constants as they are now."""
    model = TreeKMeans(k, epsilon=epsilon, bounds=(-1.0, 1.0), random_state=seed)
    return model.fit(X).cluster_centers_


def excess(n_trials):
    """Return the mean excess over tables, at each epsilon, in per cent."""
    rows = pd.DataFrame(
        collection.ratios(fit, "choose", n_trials=n_trials, at_most=3, at_least=LEAST_ROWS)
    )
    return 100.0 * (rows.groupby("epsilon").ratio.mean() - 1.0)


def main() -> None:
    """Change one constant after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--into", type=Path)
    arguments = parser.parse_args()
    rows = [{DEFAULT: "as they are", CHANGED: "", **excess(arguments.trials)}]
    print(rows[-1], flush=True)
    for name, values in CHANGES.items():
        chosen = getattr(_tree, name)
        for value in values:
            setattr(_tree, name, value)
            what = f"`{name}` = {chosen}"
            rows.append({DEFAULT: what, CHANGED: str(value), **excess(arguments.trials)})
            print(rows[-1], flush=True)
        setattr(_tree, name, chosen)
    named = {e: f"epsilon = {e:g}" for e in collection.EPSILONS}
    table = markdown(pd.DataFrame(rows).rename(columns=named))
    print(table)
    if arguments.into:
        write_into(arguments.into, "tree", table)


if __name__ == "__main__":
    main()
