"""Metrics of private image retrieval, and of what the paper proves and shows besides."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust.metrics.retrieval import recall_ceiling
from privclust_papers.pipeline.runner import TrialData

DEPTHS = (1, 2, 4, 8, 16)
_TABLE_2 = 6.0  # its sigma
N_RETURNED = 9  # for Recall@8: a query that is left out of its answer comes back too
_OBJECTIVE_TOLERANCE = 1e-9  # of the objective, in parts of its size


def evaluate_retrieval(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Recall@k and what private queries can have at most.

    ``recall_k``: the part of queries with one of their class among the k nearest; ``miss_k``, 1
    less that. ``chance_8``: of a random order. ``ceiling_8``: the most that any method with the
    claimed (epsilon, delta) can have; ``excess_8``: recall less that, and ``slack_8`` its negative.
    ``gain_8``: recall less chance. ``lost_8``: 1 less the larger of recall and chance, since below
    chance a random order does better. ``guaranteed_epsilon``: what the method's guarantee states.
    """
    ranks, queries = outputs["ranks"], outputs["queries"]
    recalls = {k: float((ranks < k).mean()) for k in DEPTHS}
    values = {f"recall_{k}": recall for k, recall in recalls.items()}
    values |= {f"miss_{k}": 1.0 - recalls[k] for k in (1, 8)}
    chance = chance_of(data.y, queries, 8)
    epsilon, delta = outputs["claimed"]
    is_private = math.isfinite(epsilon) and math.isfinite(delta)
    ceiling = ceiling_of(data.y, float(epsilon), float(delta)) if is_private else math.nan
    return values | {
        "n_queries": float(len(ranks)),
        "chance_8": chance,
        "gain_8": recalls[8] - chance,
        "lost_8": 1.0 - max(recalls[8], chance),
        "ceiling_8": ceiling,
        "excess_8": recalls[8] - ceiling,
        "slack_8": ceiling - recalls[8],
        "guaranteed_epsilon": float(outputs.get("guaranteed", math.nan)),
    }


def ceiling_of(y: np.ndarray, epsilon: float, delta: float) -> float:
    r"""Return the most that Recall@8 of (epsilon, delta)-private queries with these classes can be.

    For classes of equal size that of `privclust.metrics.retrieval.recall_ceiling`. With shares
    :math:`p_c`, the set L of the classes that come back and any class :math:`c'`,
    :math:`\sum_c p_c P_c(c \in L) \le e^\epsilon \sum_c p_c P_{c'}(c \in L) + \delta`, and the
    sum is at most the share of the largest classes, as many as images come back.
    """
    shares = np.sort(np.bincount(y))[::-1] / len(y)
    if shares[0] == shares[-1]:
        return recall_ceiling(epsilon, delta, N_RETURNED, len(shares))
    return min(1.0, math.exp(min(epsilon, 700.0)) * float(shares[:N_RETURNED].sum()) + delta)


def chance_of(y: np.ndarray, queries: np.ndarray, k: int) -> float:
    """Return Recall@k of a random order of the others: no one of the class among the first k."""
    n = len(y) - 1
    n_hits = np.bincount(y)[y[queries]] - 1
    missed = np.ones(len(queries))
    for drawn in range(min(k, n)):
        missed *= np.maximum(n - n_hits - drawn, 0) / (n - drawn)
    return float(1.0 - missed.mean())


def evaluate_iterates(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Recall along the iterates, and whether the objective falls.

    Arrays: ``recall``, Recall@8 from the start on; ``objective``, in parts of the start's size;
    ``shown`` and ``shown_labels``. Numbers: ``recall_8_<t>``; ``gap_5`` and ``gap_7``, how far
    Recall@8 is from that of the last iterate; ``gain``: the last's less that of the start, which is
    random; ``rises``, at how many of the steps the objective
    grows by more than rounding; ``separation_<t>`` and ``locality_<t>`` of iterates 0 to 3, and
    ``unseparated`` and ``unlocal``, the start's less that of iterate 3.
    """
    recalls = (outputs["ranks"] < 8).mean(axis=1)
    objectives = outputs["objectives"]
    rounding = _OBJECTIVE_TOLERANCE * np.abs(objectives[:-1])
    values = {f"recall_8_{t}": float(recall) for t, recall in enumerate(recalls)}
    values |= {f"gap_{t}": float(abs(recalls[t] - recalls[-1])) for t in (5, 7) if t < len(recalls)}
    for name, short in (("separation", "unseparated"), ("locality", "unlocal")):
        values |= {f"{name}_{t}": float(value) for t, value in enumerate(outputs[name])}
        values[short] = float(outputs[name][0] - outputs[name][-1])
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
    """Recall under one reading, not a number where the printed noise is not defined.

    ``recall_8``: Recall@8 at the point's ``n_iter``, or what a private query has; ``best_8``: the
    largest after the start; ``gap_7``: how far that of iterate 7 is from that of the last;
    ``chance_8``; ``gain_8``: recall less chance; ``miss_8``: 1 less recall; ``density``: see
    `privclust_papers.privatemail.readings.read_smlq`, and ``density_6`` that at sigma = 6 alone.
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
    """Theorem 2's bound beside the worst pair of neighbours.

    ``ratio``: bound over the largest change, below 1 where the bound is broken, and ``share`` its
    inverse; ``root_ratio``: the same with the square root of M, which is what the proof supports.
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
    """How well released public images come to lie on the server's.

    ``residual``: root mean square of what separates them after alignment, in parts of the server's
    spread: 0 where they agree, 1 where nothing is left in common; its mean over queries.
    ``noise_to_start``: the noise's deviation over that of the start. ``noise_to_moved``: over the
    distance that one query can be proved to move the first iterate. Arrays for one query:
    ``anchors``, ``gallery``, ``released``, ``aligned``, ``labels``.
    """
    anchors, aligned = outputs["anchors"], outputs["aligned"][:, :-1]
    spread = ((anchors - anchors.mean(axis=0)) ** 2).sum()
    left = ((aligned - anchors) ** 2).sum(axis=(1, 2))
    noise = outputs["noise"]
    return {
        "residual": float(np.sqrt(left / spread).mean()),
        "noise": float(noise),
        "noise_to_start": float(noise / data.extra["settings"]["init_scale"]),
        "noise_to_moved": float(noise / outputs["moved"]),
        "anchors": anchors,
        "gallery": outputs["gallery"],
        "released": outputs["released"][0],
        "aligned": outputs["aligned"][0],
        "labels": outputs["labels"],
    }
