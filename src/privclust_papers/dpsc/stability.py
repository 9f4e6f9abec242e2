r"""Lemma 3.3 and Theorem 3.4 on two lines in the plane, where their constants are known exactly.

For :math:`d = k = 2` and :math:`q = 1` all least costs of Definition 3.2 can be computed. The best
two lines are found exactly (`privclust_papers.dpsc.circle`). The best single line is that of the
largest eigenvalue. Adding a 0-dimensional subspace to a line does not reduce the cost, so that
:math:`\Delta_{k,-} = \Delta_{k-1}`. A plane and a line have no cost, so that
:math:`\Delta_{k,+} = 0`. The best constants are then
:math:`\phi^2 = \Delta_k^2 / \Delta_{k-1}^2`, :math:`\psi = \Delta_{k-1}^2 - \Delta_k^2` and
:math:`\eta = \Delta_k^2`. Any other constants that the definition allows make the bound of eq. (7)
larger or the range of costs smaller.

Both statements hold for all candidates with a sufficiently small cost. Candidates of the largest
cost are obtained by turning both lines of the optimum by one angle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from privclust.metrics.subspaces import wasserstein_distance
from privclust_papers.dpsc.circle import circle_optimum
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.report.drawing.panels import caption, counted, legend_below, rows_of
from privclust_papers.report.drawing.style import Drawing, Results, canvas
from privclust_papers.settings.config import ConfigError
from privclust_papers.shared.rows import Point

NOISES = (1e-2, 1e-3, 1e-4, 1e-5)  # angles of rows to their line, in radians
_LARGEST_PHI2 = 1.0 / 1602.0
_BELOW_LIMIT = 0.999  # cost of candidates relative to the limit of Lemma 3.3


def separated_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """Return unit rows near two lines at right angles, at several levels of noise.

    The point has ``n_samples``. ``extra["angles"]`` are standard normal angles to the nearer line,
    to be multiplied by each of `NOISES`.
    """
    n, rng = point["n_samples"], streams.get("data")
    angles = rng.standard_normal(n)
    return TrialData(
        _rows(angles, NOISES[0]), None, "generated: not the paper's", extra={"angles": angles}
    )


def candidate_lines(
    data: TrialData,
    streams: TrialStreams,
    *,
    slack: float | str,
    n_draws: float | None = None,
    is_refitted: bool = False,
) -> dict[str, np.ndarray]:
    """Return the distance of candidates to the best lines, relative to eqs. (7) and (8).

    The best two lines are turned until their cost is 1 + `slack` times the least cost; ``"limit"``
    is the limit of Lemma 3.3. With `n_draws` the lines are the best for a random sample of this
    size with replacement. With `is_refitted` each cluster of the turned lines is then fitted by
    its best line. Returns ``ratio`` and ``bound``, with one value for each of `NOISES`.
    """
    angles = data.extra["angles"]
    n, rng = len(angles), streams.get("init")
    weights = np.ones(n) if n_draws is None else rng.multinomial(int(n_draws), np.full(n, 1.0 / n))
    found = []
    for noise in NOISES:
        X = _rows(angles, noise)
        best, cost = circle_optimum(X)
        phi2, bound = _constants(X, cost)
        # Rows that are drawn w times have w times the cost: squared norms are weighted.
        drawn = np.sqrt(weights / weights.mean())[:, None] * X
        lines, least = (best, cost) if n_draws is None else circle_optimum(drawn)
        # Lemma 3.3: the factor of the least cost must be below (1 - 802 phi^2) / (800 phi^2).
        limit = _BELOW_LIMIT * (1.0 - 802.0 * phi2) / (800.0 * phi2)
        lines = _turned(drawn, lines, least, limit if slack == "limit" else 1.0 + slack)
        if is_refitted:
            lines = _refitted(drawn, lines)
        found.append((wasserstein_distance(lines, best) / bound, bound))
    ratio, bounds = np.array(found).T
    return {"ratio": ratio, "bound": bounds}


def evaluate_candidates(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Return ``over_stability``, the largest ratio over `NOISES`, and ``outside``: 1 if above 1.

    ``ratio``, ``bound`` and ``noise`` are kept as arrays.
    """
    largest = float(outputs["ratio"].max())
    outside = float(largest > 1.0)
    return {"over_stability": largest, "outside": outside, "noise": np.array(NOISES), **outputs}


def stability(results: Results) -> Drawing:
    """Distance to the optimum relative to the bound, against the noise of the rows."""
    ((experiment, trials),) = results.trials.items()
    tables = []
    with canvas(7.0, 4.6, results.trials) as figure:
        axis = figure.subplots()
        for method, style in results.styles.items():
            rows = [arrays for _, arrays in rows_of(results, experiment, method)]
            if not rows:
                continue
            ratios = np.array([arrays["ratio"] for arrays in rows])
            label = trials.loc[trials["method"] == method, "label"].iloc[0]
            axis.plot(rows[0]["noise"], np.median(ratios, axis=0), **style.line, label=label)
            values = {"noise": rows[0]["noise"], "median": np.median(ratios, axis=0)}
            values |= {"min": ratios.min(axis=0), "max": ratios.max(axis=0), "n": len(ratios)}
            tables.append(pd.DataFrame({"method": method, "label": label, **values}))
        axis.axhline(1.0, color="#000000", linewidth=0.8)
        axis.set(xscale="log", yscale="log", xlabel="angle of rows to their line, radians")
        axis.set_ylabel("distance / bound of eqs. (7) and (8)")
        legend_below(figure, axis, ncols=2)
        caption(
            figure,
            f"Two lines in the plane, median of {counted(trials)}. Above the black line the "
            "bound is broken. All conditions of Lemma 3.3 on data and candidates are met.",
        )
    return Drawing(figure, pd.concat(tables, ignore_index=True))


def _rows(angles: np.ndarray, noise: float) -> np.ndarray:
    """Return unit rows, alternately near each of two lines at right angles."""
    angles = noise * angles + 0.5 * np.pi * (np.arange(len(angles)) % 2)
    return np.column_stack([np.cos(angles), np.sin(angles)])


def _constants(X: np.ndarray, cost: float) -> tuple[float, float]:
    """Return phi^2 of Definition 3.2 and the bound of eq. (7) for k = 2."""
    single = float(np.linalg.eigvalsh(X.T @ X / len(X))[0])
    phi2, psi, eta = cost / single, single - cost, cost
    if phi2 >= _LARGEST_PHI2 or psi <= eta:
        raise ConfigError("n_samples: the rows are not well separated, as Lemma 3.3 asks")
    # Eq. (7); the second root is that of k = 2.
    bound = 600.0 * math.sqrt(2.0) * phi2 * math.sqrt(2.0) / ((1.0 - 150.0 * phi2) * (psi - eta))
    return phi2, bound


def _turned(X: np.ndarray, lines: np.ndarray, least: float, factor: float) -> np.ndarray:
    r"""Turn the best lines by one angle, to at most `factor` times the least cost.

    With the clusters of the optimum the cost is :math:`(S - H \cos 2 \theta) / 2 n`, with S the sum
    of squared norms and :math:`S - H = 2 n` times the least cost. Reassigning rows to the nearer
    line does not increase it.
    """
    total = float((X**2).sum()) - 2.0 * len(X) * least  # H
    angle = math.asin(math.sqrt(min((factor - 1.0) * len(X) * least / total, 1.0)))
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    return np.einsum("ij,kjq->kiq", turn, lines)


def _refitted(X: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """Return the best line of each cluster of rows with the same nearest line."""
    labels = ((X @ lines[:, :, 0].T) ** 2).argmax(axis=1)
    clusters = (X[labels == label] for label in range(len(lines)))
    return np.stack([np.linalg.eigh(own.T @ own)[1][:, -1:] for own in clusters])
