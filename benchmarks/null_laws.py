"""How often `n_clusters="auto"` finds clusters where there are none, and misses those there are.

    python benchmarks/null_laws.py --log nulls.csv --into docs/results/frontier_details.md

Each of twenty laws has no clusters: its density has one mode, or is uniform on a convex set.
20,000 rows of each are drawn from `--seeds` seeds, and fitted at epsilon = 0.25, 1 and 4 with
delta = 1e-6. A fit is wrong if it finds more than one cluster. The limit of a valley
(`DEEP_VALLEY` of `privclust.decoding._cluster_count`) was chosen on the half "choose". The laws
of the half "power" have three equal round Gaussian clusters, one at each corner of a right triangle
with two equal sides. A fit is right if it finds three.

Fits are appended to the log as they end; a run that was stopped goes on from there.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scratch import markdown, write_into

from privclust.kmeans import CompressiveKMeans

EPSILONS = (0.25, 1.0, 4.0)
_N, _DELTA = 20_000, 1e-6
_APART, _DIMENSIONS = (3.0, 3.5, 4.0, 5.0), (2, 10)
_FIELDS = ["law", "half", "epsilon", "seed", "best", "chosen", "valley"]


def _ball(rng, d):
    """Rows uniform in the unit ball."""
    rows = rng.standard_normal((_N, d))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    return rows * rng.random((_N, 1)) ** (1.0 / d)


def _ages_and_incomes(rng):
    """Normal ages and log-normal incomes, in their units."""
    return np.column_stack([rng.normal(45.0, 15.0, _N), rng.lognormal(10.5, 0.6, _N)])


def _triangle(rng):
    """Rows uniform in a triangle."""
    weights = rng.dirichlet(np.ones(3), _N)
    return weights @ np.array([[0.0, 0.0], [1.0, 0.1], [0.3, 1.0]])


_SHEAR = np.array([[1.0, 0.9], [0.0, 0.4]])
# Name: rows, lower and upper bounds. The halves alternate in the order of this list.
LAWS = {
    "uniform, d = 2": (lambda rng: rng.uniform(-1.0, 1.0, (_N, 2)), -1.0, 1.0),
    "uniform, d = 1": (lambda rng: rng.uniform(-1.0, 1.0, (_N, 1)), -1.0, 1.0),
    "uniform, d = 5": (lambda rng: rng.uniform(-1.0, 1.0, (_N, 5)), -1.0, 1.0),
    "uniform, d = 3, wider bounds": (lambda rng: rng.uniform(-0.5, 0.5, (_N, 3)), -1.0, 1.0),
    "round Gaussian, d = 2": (lambda rng: rng.normal(0.0, 0.3, (_N, 2)), -2.0, 2.0),
    "round Gaussian, d = 10": (lambda rng: rng.normal(0.0, 0.3, (_N, 10)), -2.0, 2.0),
    "long Gaussian, d = 2": (lambda rng: 0.3 * rng.standard_normal((_N, 2)) @ _SHEAR, -2.0, 2.0),
    "Gaussian, scales 1 to 10, d = 5": (
        lambda rng: 0.4 * rng.standard_normal((_N, 5)) * np.geomspace(0.1, 1.0, 5),
        -2.0,
        2.0,
    ),
    "age and log-normal income": (_ages_and_incomes, [0.0, 0.0], [110.0, 200_000.0]),
    "log-normal, d = 3": (lambda rng: rng.lognormal(0.0, 0.5, (_N, 3)), 0.0, 10.0),
    "exponential, d = 2": (lambda rng: rng.exponential(0.2, (_N, 2)), 0.0, 2.0),
    "exponential, d = 5": (lambda rng: rng.exponential(0.2, (_N, 5)), 0.0, 2.0),
    "gamma and Gaussian, d = 2": (
        lambda rng: np.column_stack([rng.gamma(2.0, 0.1, _N), rng.normal(0.5, 0.1, _N)]),
        0.0,
        1.5,
    ),
    "half normal, d = 3": (lambda rng: np.abs(rng.normal(0.0, 0.3, (_N, 3))), 0.0, 2.0),
    "Student t, 3 degrees, d = 2": (lambda rng: 0.15 * rng.standard_t(3, (_N, 2)), -2.0, 2.0),
    "Student t, 5 degrees, d = 5": (lambda rng: 0.2 * rng.standard_t(5, (_N, 5)), -2.0, 2.0),
    "beta(2, 5), d = 3": (lambda rng: rng.beta(2.0, 5.0, (_N, 3)), 0.0, 1.0),
    "Laplace, d = 2": (lambda rng: rng.laplace(0.0, 0.2, (_N, 2)), -2.0, 2.0),
    "uniform in a ball, d = 3": (lambda rng: _ball(rng, 3), -1.0, 1.0),
    "uniform in a triangle": (_triangle, 0.0, 1.0),
}


def separate(rng, apart, d):
    """Three equal round Gaussian clusters, two of which are `apart` from the first."""
    centers = np.zeros((3, d))
    centers[1, 0] = centers[2, 1] = apart
    return centers[rng.integers(3, size=_N)] + rng.standard_normal((_N, d))


def cases(halves):
    """Yield the name, half, rows by a generator and bounds of laws, and of separate clusters."""
    for i, (name, (rows, low, high)) in enumerate(LAWS.items()):
        half = ("choose", "show")[i % 2]
        if half in halves:
            yield name, half, rows, (low, high)
    for apart in _APART:
        for d in _DIMENSIONS:
            yield (
                f"three, {apart:g} apart, d = {d}",
                "power",
                lambda rng, apart=apart, d=d: separate(rng, apart, d),
                (-15.0, 15.0),
            )


def fitted(rows, bounds, epsilon, seed):
    """Return the number of best score, the chosen one and the valley of one fit."""
    how = {"epsilon": epsilon, "delta": _DELTA, "bounds": bounds, "random_state": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CompressiveKMeans("auto", **how).fit(rows)
    count = model.cluster_count_
    return int(count.scores.argmin()) + 1, model.n_clusters_, round(count.valley, 4)


def run(log, halves, seeds):
    """Fit what the log lacks, and append it."""
    done = set()
    if log.exists():
        done = {tuple(row) for row in pd.read_csv(log)[["law", "epsilon", "seed"]].to_numpy()}
    with log.open("a", newline="") as file:
        writer = csv.writer(file)
        if not done:
            writer.writerow(_FIELDS)
        for seed in range(seeds):
            for name, half, rows, bounds in cases(halves):
                X = rows(np.random.default_rng([seed, *name.encode()]))
                for epsilon in EPSILONS:
                    if (name, epsilon, seed) not in done:
                        found = fitted(X, bounds, epsilon, seed)
                        writer.writerow([name, half, epsilon, seed, *found])
                        file.flush()


def table(log):
    """Return the percentage of wrong fits by law, and of right ones of separate clusters."""
    rows = pd.read_csv(log)
    is_null = rows["half"] != "power"
    rows["percent"] = 100.0 * np.where(is_null, rows["chosen"] > 1, rows["chosen"] == 3)
    rows["before"] = 100.0 * np.where(is_null, rows["best"] > 1, rows["best"] == 3)
    groups = rows.groupby(["half", "law"], sort=False)
    lines = []
    for (half, law), group in groups:
        by = group.groupby("epsilon")
        cells = {f"{e:g}": f"{by['percent'].mean()[e]:.0f}" for e in EPSILONS}
        without = " / ".join(f"{by['before'].mean()[e]:.0f}" for e in EPSILONS)
        least, most = group["valley"].min(), group["valley"].max()
        of = {"half": half, "law": law, **cells, "without the valley": without}
        lines.append({**of, "valley": f"{least:.2f} to {most:.2f}", "fits": len(group)})
    of_halves = rows[is_null].groupby(["half", "epsilon"])["percent"].agg(["mean", "size"])
    said = [
        f"{half}, epsilon = {epsilon:g}: {mean:.1f} % of {n:.0f} fits are wrong"
        for (half, epsilon), (mean, n) in of_halves.iterrows()
    ]
    return markdown(pd.DataFrame(lines)) + "\n\n" + "; ".join(said) + "."


def main():
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--log", type=Path, required=True, help="a CSV file of fits")
    parser.add_argument("--half", choices=("choose", "show", "both"), default="both")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--into", type=Path, help="a document with the marks of nulls")
    args = parser.parse_args()
    run(args.log, ("choose", "show") if args.half == "both" else (args.half,), args.seeds)
    text = table(args.log)
    print(text)
    if args.into:
        write_into(args.into, "nulls", text)


if __name__ == "__main__":
    main()
