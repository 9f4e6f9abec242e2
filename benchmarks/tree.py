"""What each constant of `TreeKMeans` brings: its loss above Lloyd's with the constant changed.

``OMP_NUM_THREADS=1 PYTHONPATH=benchmarks python benchmarks/tree.py`` takes the tables of the half
"choose" of `collection` with at most 3 features and at least 5,000 rows. A number is the mean over
tables of the median ratio over trials, less 1, in per cent. ``--into docs/methods/tree_kmeans.md``
writes the table there.

``--features 1 4 6 8`` compares it with `CompressiveKMeans` on round clusters in so many features,
which no constant was chosen on; ``--into`` writes that table there instead.

``--intervals`` counts how often 95 % intervals hold, on laws of which some have no separate
clusters. ``--into`` writes that table there.

``--scale 10_000_000 1000`` fits that many rows and clusters in the plane, and prints the CPU time
of the fit, the memory of the rows, and the peak memory of the process.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from pathlib import Path

import collection
import numpy as np
import pandas as pd
from scratch import markdown, write_into

from privclust.core.lloyd import inertia, lloyd, nearest_center, plus_plus
from privclust.kmeans import CompressiveKMeans, TreeKMeans, _tree

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


def by_features(features, n_trials, n=20_000, k=10):
    """Return the excess of tree and sketch on round clusters, in per cent, as text."""
    rows = []
    for d in features:
        for kind, weights in (("equal", None), ("1 / rank", collection.zipf(k))):
            rng = np.random.default_rng([collection.SEED, d, weights is None])
            spread = 0.05 if d > 1 else 0.01  # on a line wider clusters would overlap
            X = np.clip(collection.blobs(rng, n, d, k, spread=spread, weights=weights), -1.0, 1.0)
            best = collection.lloyd_loss(X, k)
            row = {"d": d, "sizes": kind}
            for estimator in (TreeKMeans, CompressiveKMeans):
                row[estimator.__name__] = _excesses(estimator, X, k, best, n_trials)
            rows.append(row)
            print(row, flush=True)
    return markdown(pd.DataFrame(rows))


def _excesses(estimator, X, k, best, n_trials):
    """Return the median excess at each epsilon, and the CPU time of one fit, as text."""
    found, start = [], time.process_time()
    for epsilon in collection.EPSILONS:
        losses = []
        for seed in range(n_trials):
            how = {"epsilon": epsilon, "delta": collection.DELTA, "bounds": (-1.0, 1.0)}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = estimator(k, **how, random_state=seed).fit(X)
            losses.append(collection.loss(X, model.cluster_centers_))
        found.append(f"{100.0 * (np.median(losses) / best - 1.0):.1f}")
    cpu = (time.process_time() - start) / (len(collection.EPSILONS) * n_trials)
    return f"{' / '.join(found)} ({cpu:.2f} s)"


def scale(n, k, dtype):
    """Fit many rows about many places, and print what the fit takes."""
    rng = np.random.default_rng(0)
    places, X = rng.uniform(-0.95, 0.95, (k, 2)), np.empty((n, 2), dtype)
    for start in range(0, n, 100_000):  # so that drawing takes no memory
        part = X[start : start + 100_000]
        part[:] = places[rng.integers(k, size=len(part))]
        part += 0.005 * rng.standard_normal(part.shape)
    np.clip(X, -1.0, 1.0, out=X)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(f"{n:,} rows of {X.dtype}, {X.nbytes / 1e6:.0f} MB; {peak:.0f} MB before the fit")
    start = time.process_time()
    found = TreeKMeans(k, delta=1e-9, bounds=(-1.0, 1.0), random_state=0).fit(X)
    cpu = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    excess = inertia(X, found.cluster_centers_) / inertia(X, places) - 1.0
    print(f"k = {k:,}: {cpu:.0f} CPU seconds, peak memory {peak:.0f} MB, {found.n_cells_:,} cells")
    print(f"loss above that of the places: {100.0 * excess:.1f} %")


def _around(places, offsets, rng):
    return np.asarray(places)[rng.integers(len(places), size=len(offsets))] + offsets


def _skewed(shape, rng):
    return (rng.gamma(1.5, size=shape) - 1.5) / np.sqrt(1.5)


def _bells(distance):
    """Return a law of nine round clusters, so many standard deviations apart."""
    places = [[x, y] for x in (-0.5, 0.0, 0.5) for y in (-0.5, 0.0, 0.5)]
    return lambda n, rng: _around(places, 0.5 / distance * rng.standard_normal((n, 2)), rng)


def _ring(n, rng):
    angles = rng.uniform(0.0, 2.0 * np.pi, n)
    return 0.7 * np.column_stack([np.cos(angles), np.sin(angles)]) + 0.02 * rng.normal(size=(n, 2))


def _ranked(n, rng):
    """Return rows of nine round clusters, 8 deviations apart, with sizes of 1 / rank."""
    weights = 1.0 / np.arange(1, 10)
    labels = rng.choice(9, size=n, p=weights / weights.sum())
    places = np.array([[x, y] for x in (-0.5, 0.0, 0.5) for y in (-0.5, 0.0, 0.5)])
    return places[labels] + 0.0625 * rng.standard_normal((n, 2))


_THREE = ((-0.5, 0.0), (0.3, 0.0), (0.0, 0.6))
_LONG = ((-0.6, -0.6), (0.2, -0.2), (-0.2, 0.2), (0.6, 0.6))
LAWS = {  # each with numbers of clusters
    "gamma, one column": (lambda n, rng: 0.2 * rng.gamma(1.5, size=(n, 1)) - 0.9, (2, 4)),
    "normal, one column": (lambda n, rng: 0.25 * rng.standard_normal((n, 1)), (3,)),
    "normal": (lambda n, rng: rng.standard_normal((n, 2)) * [0.25, 0.12], (2,)),
    "uniform": (lambda n, rng: rng.uniform(-1.0, 1.0, (n, 2)), (4, 9)),
    "three skewed clusters": (
        lambda n, rng: _around(_THREE, 0.05 * _skewed((n, 2), rng), rng),
        (3,),
    ),
    "three skewed clusters that touch": (
        lambda n, rng: _around(_THREE, 0.13 * _skewed((n, 2), rng), rng),
        (3, 5),
    ),
    "a ring": (_ring, (6,)),
    **{f"nine round clusters, {sep} apart": (_bells(sep), (9,)) for sep in (4, 5, 6, 8)},
}
UNSEEN = {  # laws on which no rule was chosen
    "Laplace, one column": (lambda n, rng: 0.15 * rng.laplace(size=(n, 1)), (2, 3)),
    "exponential": (lambda n, rng: 0.3 * rng.exponential(size=(n, 2)) - 1.0, (4,)),
    "uniform, one column": (lambda n, rng: rng.uniform(-0.7, 0.7, (n, 1)), (5,)),
    "a strip": (lambda n, rng: rng.uniform(-1.0, 1.0, (n, 2)) * [0.9, 0.05], (6,)),
    "a quarter of a ring": (lambda n, rng: np.abs(_ring(n, rng)) - 0.4, (3,)),
    "nine clusters of sizes 1 / rank": (_ranked, (9,)),
    "four long clusters": (
        lambda n, rng: _around(_LONG, rng.standard_normal((n, 2)) * [0.09, 0.03], rng),
        (4,),
    ),
}


def intervals(n_fits: int, n: int = 20_000) -> str:
    """Return a table of how many clusters are unmarked, and how many of their intervals hold."""
    rows = []
    for name, (law, numbers) in (LAWS | UNSEEN).items():
        for k in numbers:
            rng = np.random.default_rng(1)
            many = np.clip(law(400_000, rng), -1.0, 1.0)
            starts = (plus_plus(many, k, rng) for _ in range(10))
            best = min((lloyd(many, start, 500, 1e-9) for start in starts), key=lambda run: run[1])[
                0
            ]
            held, unmarked = [], []
            for seed in range(n_fits):
                X = np.clip(law(n, rng), -1.0, 1.0)
                model = TreeKMeans(k, epsilon=1.0, bounds=(-1.0, 1.0), random_state=seed).fit(X)
                errors = model.standard_errors()
                offsets = (
                    model.cluster_centers_ - best[nearest_center(model.cluster_centers_, best)]
                )
                held.append(np.abs(offsets) < 1.96 * errors.centers)
                unmarked.append(errors.is_reliable)
            shown, holds = np.concatenate(unmarked), np.concatenate(held)
            of_shown = f"{100 * holds[shown].mean():.0f}" if shown.any() else "none"
            seen = "yes" if name in LAWS else "no"
            row = {"law": name, "seen": seen, "k": k, "unmarked, %": f"{100 * shown.mean():.0f}"}
            rows.append({**row, "hold, %": of_shown, "of all, %": f"{100 * holds.mean():.0f}"})
            print(rows[-1], flush=True)
    return markdown(pd.DataFrame(rows))


def main() -> None:
    """Change one constant after another, or fit once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--into", type=Path)
    parser.add_argument("--intervals", action="store_true")
    parser.add_argument("--features", type=int, nargs="+", metavar="D")
    parser.add_argument("--scale", type=int, nargs=2, metavar=("ROWS", "CLUSTERS"))
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    arguments = parser.parse_args()
    if arguments.scale:
        scale(*arguments.scale, arguments.dtype)
        return
    if arguments.intervals:
        table = intervals(arguments.trials)
        if arguments.into:
            write_into(arguments.into, "intervals", table)
        return
    if arguments.features:
        table = by_features(arguments.features, arguments.trials)
        if arguments.into:
            write_into(arguments.into, "features", table)
        return
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
