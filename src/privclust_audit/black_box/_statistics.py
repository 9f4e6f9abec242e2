"""Statistics that distinguish two data sets: given, from densities, or learned from runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from privclust_audit.black_box._runs import as_arrays

_LEARNING_RUNS = 20_000  # most runs of each data set for learning: more are slow, hardly better
_LEARNING_NUMBERS = 4_000_000  # most numbers in all outputs for learning
_FISHER_FEATURES = 500  # largest number of features with a full covariance
_LARGEST_SCALED = 1e3  # clip in units of the spread: outliers would dominate linear classifiers
_RIDGE = 1e-10  # of the largest variance: keeps directions without noise, the most informative ones


Statistic: TypeAlias = Callable[[Any], Any]
"""A statistic that distinguishes outputs."""


def likelihood_ratio(log_density: Callable, data: Any, neighbour: Any) -> Statistic:
    """Return the optimal statistic for known densities on two data sets.

    By the lemma of Neyman and Pearson, events of the form "the ratio is at least t" are the most
    powerful at their probability.

    Parameters
    ----------
    log_density : callable
        ``log_density(outputs, data)`` maps an array of outputs (n, ...) to their log-densities or
        log-probabilities (n,), up to a term that is the same for both data sets; minus infinity for
        an output that cannot occur.
    data, neighbour : object
        The two data sets.

    Returns
    -------
    callable
        A statistic for `audit_mechanism`.

    Examples
    --------
    >>> statistic = likelihood_ratio(lambda outputs, data: -abs(outputs - data), 0.0, 1.0)
    >>> float(statistic(-3.0))
    1.0
    """

    def ratios(outputs):
        first, second = (
            np.asarray(log_density(outputs, one), dtype=float) for one in (data, neighbour)
        )
        with np.errstate(invalid="ignore"):
            difference = first - second
        # an output that is impossible under both is no evidence
        return np.where(np.isneginf(first) & np.isneginf(second), 0.0, difference)

    return vectorised("likelihood_ratio", ratios)


def prepared(statistic) -> list[Callable] | None:
    """Return one statistic or several as a list, or a ValueError; None for None."""
    if statistic is None:
        return None
    statistics = list(statistic) if isinstance(statistic, Sequence) else [statistic]
    if not statistics:
        raise ValueError("statistic must hold at least one statistic, got none")
    for entry in statistics:
        if not callable(entry):
            raise ValueError(
                "statistic must be None, a callable that maps an output to a number, or a list "
                f"of these, got {entry!r}"
            )
    return statistics


def names(statistics: Sequence[Callable]) -> list[str]:
    """Return the names of statistics in a result."""
    return [getattr(one, "__name__", type(one).__name__) for one in statistics]


def score(statistic: Callable, outputs) -> np.ndarray:
    """Return a statistic's scores (n,) of outputs, which may be infinite; a ValueError for NaN."""
    (name,) = names([statistic])
    batched = getattr(statistic, "many", None)
    try:
        if batched is not None:
            scores = np.asarray(batched(np.asarray(outputs)), dtype=float)
        else:
            scores = np.array([np.asarray(statistic(one), dtype=float) for one in outputs])
    except (TypeError, ValueError) as error:
        raise ValueError(f"statistic {name} failed: {error}") from error
    if scores.shape != (len(outputs),):
        raise ValueError(
            f"statistic {name} must return one number for each of {len(outputs)} outputs, "
            f"got shape {scores.shape}"
        )
    if count := int(np.isnan(scores).sum()):
        raise ValueError(
            f"statistic {name} returned NaN for {count:,} of {scores.size:,} outputs, which lies "
            "on no side of a threshold; let it return a number for these, such as -inf"
        )
    return scores


def learn(outputs, rng) -> list[Callable]:
    """Return statistics learned to distinguish the first outputs from the second.

    Nearest means and Fisher's direction (best for additive noise), logistic regression, also on
    absolute values and squares (noise with a data-dependent scale), and boosted trees (other cases,
    in few dimensions). Other runs decide which one is used.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import ThreadpoolController

    arrays = [flattened(one) for one in as_arrays(outputs)]
    # Outputs with very many entries would leave no runs: 100 are the least to learn from.
    n_runs = min(_LEARNING_RUNS, max(100, _LEARNING_NUMBERS // max(1, 2 * arrays[0].shape[1])))
    arrays = [one[:n_runs] for one in arrays]
    X = np.concatenate(arrays)
    y = np.repeat([1, 0], [len(one) for one in arrays])
    scaling = _Scaling(X)
    Z = scaling(X)
    seed = int(rng.integers(2**31))
    trees = HistGradientBoostingClassifier(max_leaf_nodes=8, random_state=seed)
    # trees this small gain nothing from threads, and an attack need not be at its best
    threads = ThreadpoolController()
    with threads.limit(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = {
            "nearest_means": _linear(_nearest_means(Z, y)),
            "logistic_regression": _decision(LogisticRegression(max_iter=200), Z, y),
            "logistic_regression_squares": _decision(
                LogisticRegression(max_iter=200), _with_squares(Z), y, _with_squares
            ),
            "boosted_trees": _decision(trees, Z, y),
        }
    if Z.shape[1] <= _FISHER_FEATURES:
        models["fisher"] = _linear(_fisher(Z, y))
    return [_learned(name, scaling, model, threads) for name, model in models.items()]


def flattened(outputs: np.ndarray) -> np.ndarray:
    """Return outputs (n, ...) as real features (n, n_features); complex parts side by side."""
    if outputs.dtype.kind == "c":
        outputs = np.stack([outputs.real, outputs.imag], axis=-1)
    return outputs.reshape(len(outputs), -1).astype(float)


class _Scaling:
    """Features about their median in units of their spread; nonfinite entries get a column."""

    def __init__(self, X: np.ndarray) -> None:
        self._odd = ~np.isfinite(X).all(axis=0)
        finite = np.where(np.isfinite(X), X, np.nan)
        # A column without finite entries has no quantiles; only its flag is of use.
        finite[:, np.isnan(finite).all(axis=0)] = 0.0
        low, self._centre, high = np.nanquantile(finite, [0.25, 0.5, 0.75], axis=0)
        spread = high - low
        # Columns that are mostly one value have equal quartiles.
        spread = np.where(spread > 0, spread, np.nanstd(finite, axis=0))
        self._spread = np.where((spread > 0) & np.isfinite(spread), spread, 1.0)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            Z = np.clip((X - self._centre) / self._spread, -_LARGEST_SCALED, _LARGEST_SCALED)
        missing = np.isnan(X[:, self._odd]).astype(float)
        return np.hstack([np.nan_to_num(Z), missing])


def _learned(name: str, scaling: _Scaling, model: Callable, threads: Any) -> Callable:
    """Return a statistic of one output, with `many`, on one thread."""

    def scores(outputs):
        with threads.limit(limits=1):
            return model(scaling(flattened(np.asarray(outputs))))

    return vectorised(name, scores)


def vectorised(name: str, scores: Callable) -> Callable:
    """Return the statistic of one output from a function that scores many at once.

    Parameters
    ----------
    name : str
        Name in results.
    scores : callable
        ``scores(outputs)`` maps an array (n, ...) to (n,).

    Returns
    -------
    callable
        On one output, with the attribute ``many``, which is `scores`.

    Examples
    --------
    >>> first = vectorised("first", lambda outputs: outputs[:, 0])
    >>> float(first(np.array([2.0, 5.0])))
    2.0
    """

    def statistic(output):
        return scores(np.asarray(output)[None])[0]

    statistic.__name__, statistic.many = name, scores  # type: ignore[attr-defined]
    return statistic


def _decision(classifier, Z, y, features: Callable = np.asarray) -> Callable:
    """Fit a classifier on given features; return its log-odds of new rows."""
    classifier.fit(Z, y)
    return lambda rows: classifier.decision_function(features(rows))


def _linear(weights: np.ndarray) -> Callable:
    return lambda rows: rows @ weights


def _nearest_means(Z: np.ndarray, y: np.ndarray) -> np.ndarray:
    return Z[y == 1].mean(axis=0) - Z[y == 0].mean(axis=0)


def _fisher(Z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return Fisher's direction: the likelihood ratio of two Gaussians of equal covariance."""
    within = np.sum([np.atleast_2d(np.cov(Z[y == k], rowvar=False)) for k in (0, 1)], axis=0)
    ridge = _RIDGE * max(float(within.diagonal().max()), 1.0)
    direction = np.linalg.solve(within + ridge * np.eye(len(within)), _nearest_means(Z, y))
    # Without noise the direction is huge; events depend only on the order of its scores.
    return direction / (np.linalg.norm(direction) or 1.0)


def _with_squares(Z: np.ndarray) -> np.ndarray:
    """Features, their absolute values, and squares that outliers do not dominate."""
    return np.hstack([Z, np.abs(Z), np.minimum(np.square(Z), 100.0)])
