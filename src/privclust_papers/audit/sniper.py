"""The method of DP-Sniper, reimplemented from its paper for comparison with the audit.

B. Bichsel, S. Steffen, I. Bogunovic and M. Vechev, "DP-Sniper: black-box discovery of differential
privacy violations using classifiers", IEEE S&P 2021, Section 4. A classifier learns the probability
that an output is from the first data set. The attack is the set of outputs above a threshold,
randomised on it, with a probability of at least c on the second data set. Fresh runs estimate the
probabilities of the attack on both data sets, and their Clopper-Pearson bounds give one on epsilon.
The classifier is logistic regression, the paper's simpler choice. Both orders of the pair are
tried, and the one with the larger estimate is certified. The paper's search for pairs is left out:
the pair is given.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

LEAST_PROBABILITY = 0.01
"""Least probability of an attack: c of the paper."""
_SHARES = (0.1, 0.1, 0.1)  # of the runs, for training, threshold and choice of the order
_CHUNK = 100_000
_ALPHABET = 6  # largest number of values of an entry with a flag for each


class _Features:
    """Outputs as features: scaled numbers, and flags for NaN, infinity and discrete values."""

    def __init__(self, outputs: np.ndarray) -> None:
        flat = self._flat(outputs)
        finite = np.where(np.isfinite(flat), flat, 0.0)
        self._mean, spread = finite.mean(axis=0), finite.std(axis=0)
        self._spread = np.where(spread > 0, spread, 1.0)
        values = [np.unique(column[np.isfinite(column)][:10_000]) for column in flat.T]
        self._values = [one if one.size <= _ALPHABET else one[:0] for one in values]

    @staticmethod
    def _flat(outputs) -> np.ndarray:
        return np.asarray(outputs, dtype=float).reshape(len(outputs), -1)

    def __call__(self, outputs) -> np.ndarray:
        flat = self._flat(outputs)
        is_number = np.isfinite(flat)
        scaled = (np.where(is_number, flat, 0.0) - self._mean) / self._spread
        flags = [flat[:, [j]] == values for j, values in enumerate(self._values) if values.size]
        return np.hstack([np.clip(scaled, -1e3, 1e3), ~is_number, *flags])


class _Attack:
    """A set of outputs that a classifier attributes to the first data set."""

    def __init__(self, mechanism, first, second, n_runs, rng) -> None:
        self._rng = rng
        n_learning, n_threshold, n_estimate = (max(200, round(s * n_runs)) for s in _SHARES)
        outputs = [mechanism.many(one, rng, n_learning) for one in (first, second)]
        self._features = _Features(np.concatenate(outputs))
        model = LogisticRegression(max_iter=200)
        labels = np.repeat([1, 0], n_learning)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(self._features(np.concatenate(outputs)), labels)
        self._score: Callable = model.decision_function
        # The threshold is the score that a share c of outputs on the second data set reaches.
        scores = np.sort(self._scores(mechanism, second, n_threshold))[::-1]
        self._threshold = scores[math.ceil(LEAST_PROBABILITY * n_threshold) - 1]
        above = float((scores > self._threshold).mean())
        on = float((scores == self._threshold).mean())
        # Outputs on the threshold count with the probability that makes c exact.
        self._coin = min(max((LEAST_PROBABILITY - above) / on, 0.0), 1.0)
        hits = [self.hits(mechanism, one, n_estimate) for one in (first, second)]
        # One hit at least: 0 hits in few runs would give an infinite estimate.
        self.promise = math.log(max(hits[0], 1) / max(hits[1], 1))
        self.n_runs = 2 * n_learning + n_threshold + 2 * n_estimate

    def _scores(self, mechanism, data, n: int) -> np.ndarray:
        sizes = [min(_CHUNK, n - start) for start in range(0, n, _CHUNK)]
        return np.concatenate(
            [self._score(self._features(mechanism.many(data, self._rng, m))) for m in sizes]
        )

    def hits(self, mechanism, data, n: int) -> int:
        scores = self._scores(mechanism, data, n)
        by_coin = (scores == self._threshold) & (self._rng.random(n) < self._coin)
        return int(((scores > self._threshold) | by_coin).sum())


def sniper(mechanism, data, neighbour, n_runs: int, rng: np.random.Generator) -> tuple[float, int]:
    """Attack a mechanism with `many` on a pair of neighbours, and bound epsilon at delta = 0.

    30 % of `n_runs` on each data set are for the attacks, half in each order of the pair, and 70 %
    for the bound. Returns the bound at 95 % confidence, and the number of runs on both data sets.
    """
    pairs = [(data, neighbour), (neighbour, data)]
    attacks = [_Attack(mechanism, *pair, n_runs / 2, rng) for pair in pairs]
    best = max((0, 1), key=lambda k: attacks[k].promise)
    n_final = round((1.0 - sum(_SHARES)) * n_runs)
    hits, others = (attacks[best].hits(mechanism, one, n_final) for one in pairs[best])
    # Both one-sided bounds at 97.5 % hold together at 95 %.
    low = stats.beta.ppf(0.025, hits, n_final - hits + 1) if hits else 0.0
    high = stats.beta.ppf(0.975, others + 1, n_final - others) if others < n_final else 1.0
    bound = math.log(low / high) if low > high else 0.0
    return bound, sum(attack.n_runs for attack in attacks) + 2 * n_final
