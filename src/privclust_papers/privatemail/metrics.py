"""Metrics of private image retrieval, and of other statements of the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust.metrics.retrieval import recall_ceiling
from privclust_papers.pipeline.runner import TrialData

_TABLE_2 = 6.0  # sigma in Table 2
N_RETURNED = 9  # for Recall@8: the answer also contains the query, which is then left out
_OBJECTIVE_TOLERANCE = 1e-9  # relative tolerance of the objective


def evaluate_retrieval(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return Recall@8 and its upper bound for private queries.

    ``recall_8``: share of queries with an image of their class among the 8 nearest; ``miss_8``: 1
    minus recall. ``chance_8``: Recall@8 of a random order. ``ceiling_8``: upper bound for any
    method with the claimed (epsilon, delta); ``excess_8``: recall minus this bound; ``slack_8``:
    its negative. ``gain_8``: recall minus chance. ``lost_8``: 1 minus the larger of recall and
    chance. ``guaranteed_epsilon``: epsilon of the method's guarantee.
    """
    ranks, queries = outputs["ranks"], outputs["queries"]
    recall = float((ranks < 8).mean())
    chance = chance_of(data.y, queries, 8)
    epsilon, delta = outputs["claimed"]
    is_private = math.isfinite(epsilon) and math.isfinite(delta)
    ceiling = ceiling_of(data.y, float(epsilon), float(delta)) if is_private else math.nan
    return {
        "recall_8": recall,
        "miss_8": 1.0 - recall,
        "n_queries": float(len(ranks)),
        "chance_8": chance,
        "gain_8": recall - chance,
        "lost_8": 1.0 - max(recall, chance),
        "ceiling_8": ceiling,
        "excess_8": recall - ceiling,
        "slack_8": ceiling - recall,
        "guaranteed_epsilon": float(outputs.get("guaranteed", math.nan)),
    }


def ceiling_of(y: np.ndarray, epsilon: float, delta: float) -> float:
    r"""Return the upper bound of Recall@8 for (epsilon, delta)-private queries with these classes.

    For classes of equal size it is `privclust.metrics.retrieval.recall_ceiling`. With shares
    :math:`p_c`, the set L of returned classes and any class :math:`c'`,
    :math:`\sum_c p_c P_c(c \in L) \le e^\epsilon \sum_c p_c P_{c'}(c \in L) + \delta`. The sum is
    at most the total share of the largest classes, as many as there are returned images.
    """
    shares = np.sort(np.bincount(y))[::-1] / len(y)
    if shares[0] == shares[-1]:
        return recall_ceiling(epsilon, delta, N_RETURNED, len(shares))
    return min(1.0, math.exp(min(epsilon, 700.0)) * float(shares[:N_RETURNED].sum()) + delta)


def chance_of(y: np.ndarray, queries: np.ndarray, k: int) -> float:
    """Return Recall@k of a random order of the other images."""
    n = len(y) - 1
    # The query itself is not among the other images of its class.
    n_hits = np.bincount(y)[y[queries]] - 1
    missed = np.ones(len(queries))  # probability of no hit among the first k
    for drawn in range(min(k, n)):
        # Drawing without replacement; the maximum is for classes that leave fewer than k others.
        missed *= np.maximum(n - n_hits - drawn, 0) / (n - drawn)
    return float(1.0 - missed.mean())


def evaluate_iterates(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return recall along the iterates, and check that the objective decreases.

    Arrays: ``recall``, Recall@8 from the start on; ``objective``, relative to the start; ``shown``
    and ``shown_labels``. Numbers: ``recall_8_<t>``; ``gap_5`` and ``gap_7``, the distance of
    Recall@8 to that of the last iterate; ``gain``, the last minus that of the random start;
    ``rises``, the number of steps at which the objective increases by more than rounding;
    ``separation_<t>`` and ``locality_<t>`` of iterates 0 to 3; ``separation_gain`` and
    ``locality_gain``, the value of iterate 3 minus that of the start, and their negatives
    ``unseparated`` and ``unlocal``.
    """
    recalls = (outputs["ranks"] < 8).mean(axis=1)
    objectives = outputs["objectives"]
    rounding = _OBJECTIVE_TOLERANCE * np.abs(objectives[:-1])
    values = {f"recall_8_{t}": float(recall) for t, recall in enumerate(recalls)}
    values |= {f"gap_{t}": float(abs(recalls[t] - recalls[-1])) for t in (5, 7) if t < len(recalls)}
    for name, short in (("separation", "unseparated"), ("locality", "unlocal")):
        values |= {f"{name}_{t}": float(value) for t, value in enumerate(outputs[name])}
        values[f"{name}_gain"] = float(outputs[name][-1] - outputs[name][0])
        values[short] = -values[f"{name}_gain"]
    return values | {
        "gain": float(recalls[-1] - recalls[0]),
        "rises": float((np.diff(objectives) > rounding).sum()),
        "growth": float(objectives[-1] / objectives[0]),
        "recall": recalls,
        "objective": objectives / abs(objectives[0]),
        "shown": outputs["shown"],
        "shown_labels": outputs["shown_labels"],
    }


def evaluate_reading(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return recall under one reading, or NaN if the printed noise is not defined.

    ``recall_8``: Recall@8 at the point's ``n_iter``, or that of a private query; ``best_8``: the
    largest after the start; ``gap_7``: distance of iterate 7 to the last; ``chance_8``;
    ``gain_8``: recall minus chance; ``miss_8``: 1 minus recall; ``density``: see
    `privclust_papers.privatemail.readings.read_smlq`; ``density_6``: density at sigma = 6, else
    NaN.
    """
    ranks, last = outputs["ranks"], data.extra["settings"]["n_iter"]
    if not ranks.size:
        names = (
            *("recall_8", "best_8", "gap_7", "chance_8", "gain_8", "miss_8", "density"),
            "density_6",
        )
        return dict.fromkeys(names, math.nan)
    recalls = (ranks < 8).mean(axis=1)
    density = float(outputs.get("density", math.nan))
    # SMLQ has a row of ranks for each iterate, a private query only one.
    recall = float(recalls[last if len(recalls) > 1 else 0])
    chance = chance_of(data.y, outputs["queries"], 8)
    return {
        "recall_8": recall,
        "best_8": float(recalls[1:].max()) if len(recalls) > 1 else recall,
        "gap_7": float(abs(recalls[7] - recalls[-1])) if len(recalls) > 7 else math.nan,
        "chance_8": chance,
        "gain_8": recall - chance,
        "miss_8": 1.0 - recall,
        "density": density,
        "density_6": density if float(outputs.get("sigma", math.nan)) == _TABLE_2 else math.nan,
    }


def evaluate_sensitivity(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Compare the bound of Theorem 2 with the worst pair of neighbours.

    ``ratio``: bound over the largest change, below 1 if the bound is violated; ``share``: its
    inverse; ``root_ratio``: ratio with the square root of M, which the proof supports.
    """
    change, bound, constant = (float(outputs[n]) for n in ("change", "bound", "constant"))
    return {
        "constant": constant,
        "bound": bound,
        "change": change,
        "ratio": bound / change,
        "share": change / bound,
        "root_ratio": bound / math.sqrt(constant) / change,
    }


def evaluate_alignment(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the agreement of released public images with the server's after alignment.

    ``residual``: root mean square of differences relative to the server's spread, averaged over
    queries: 0 for agreement, 1 for unrelated embeddings. ``noise``: its standard deviation. Arrays
    for one query: ``anchors``, ``gallery``, ``released``, ``aligned``, ``labels``.
    """
    anchors, aligned = outputs["anchors"], outputs["aligned"][:, :-1]
    spread = ((anchors - anchors.mean(axis=0)) ** 2).sum()
    left = ((aligned - anchors) ** 2).sum(axis=(1, 2))
    return {
        "residual": float(np.sqrt(left / spread).mean()),
        "noise": float(outputs["noise"]),
        "anchors": anchors,
        "gallery": outputs["gallery"],
        "released": outputs["released"][0],
        "aligned": outputs["aligned"][0],
        "labels": outputs["labels"],
    }
