"""The share of rows near no center, from two estimates that cost no budget, and its true value.

    PYTHONPATH=benchmarks python benchmarks/far_rows.py

A row is *far* if the squared distance to its nearest center is above nine times the sum of squared
spreads of that cluster (`cluster_spreads_`): three spreads. All shares are percentages. *true* is
that of the rows. *density* is that of 100,000 points of the decoded density. *rounds* is from the
excess of the rounds' mean squared distances over those spreads, averaged over the last three
rounds: if rows are far, a distance clipped to two radii is larger than that of a Gaussian cluster.
*noise* is its standard deviation by the noise of the rounds. Tables with at least 1,000 rows and at
most 16 columns are used; tables of packages that are not installed are left out.
"""

from __future__ import annotations

import numpy as np
from collection import DELTA, tabulate

from privclust.core.lloyd import nearest_center
from privclust.decoding._gaussians import boxed_points, paired_points
from privclust.kmeans import CompressiveKMeans
from privclust.kmeans.last_rounds import _KAPPA, _REACH

_SPREADS = 3.0  # distance of a far row
_N_ROUNDS, _N_POINTS = 3, 100_000
_LARGEST = 0.99  # clipped mean square of a Gaussian cluster


def far_share(points, centers, spreads):
    """Return the fraction of points farther than three spreads from their nearest center."""
    labels = nearest_center(points, centers)
    squares = ((points - centers[labels]) ** 2).sum(axis=1)
    return float((squares > _SPREADS**2 * (spreads[labels] ** 2).sum(axis=1)).mean())


def of_density(model):
    """Return the share of points of the decoded density that are far."""
    decoded, rng = model._decoded, np.random.default_rng(0)
    law = decoded.density
    parts = law.weights, law.centers, law.spreads, _N_POINTS
    drawn = boxed_points(*parts, decoded.box, rng) if law.spreads.ndim == 1 else None
    points = paired_points(*parts, rng) if drawn is None else drawn
    return far_share(points, model.cluster_centers_, model.cluster_spreads_)


def of_rounds(model):
    """Return the share that the rounds' spreads suggest, and its noise; NaN without rounds."""
    squares, found = (model.cluster_spreads_**2).sum(axis=1), []
    for last in model._rounds[-_N_ROUNDS:]:
        limits = (_REACH * last.extent / _KAPPA) ** 2
        expected = np.minimum(squares / limits, _LARGEST)
        unit = model.n_features_in_ / limits / (1.0 - expected)
        excess = unit * last.spreads - expected / (1.0 - expected)
        found.append(
            (last.weights @ excess, np.linalg.norm(last.weights * unit * last.spread_noise))
        )
    if not found:
        return np.nan, np.nan
    shares, noises = np.array(found).T
    return float(shares.mean()), float(np.linalg.norm(noises) / len(noises))


def row_of(table, X, epsilon, n_trials):
    """Return means over fits as a row."""
    found = []
    for seed in range(n_trials):
        how = {"epsilon": epsilon, "delta": DELTA, "bounds": (-1.0, 1.0), "random_state": seed}
        model = CompressiveKMeans(table.k, **how).fit(X)
        true = far_share(X, model.cluster_centers_, model.cluster_spreads_)
        found.append((true, of_density(model), *of_rounds(model)))
    means = 100.0 * np.mean(found, axis=0)
    names = "true", "density", "rounds", "noise"
    shares = {name: f"{mean:.1f}" for name, mean in zip(names, means, strict=True)}
    return {"table": table.name, "half": table.half, "epsilon": f"{epsilon:g}", **shares}


if __name__ == "__main__":
    tabulate(__doc__, row_of, "far", trials=3, epsilons=(1.0, 4.0))
