r"""Anytime-valid bounds: a gambler's wealth against every pair of probabilities.

Let an event have probabilities p and q on two neighbouring data sets, and be fixed before the runs
counted here. Let :math:`L(p, q)` be the likelihood of the counts so far: k hits in n runs and l in
m,

.. math:: L(p, q) = p^k (1-p)^{n-k} q^l (1-q)^{m-l}.

**The bet.** A gambler who doubts (p, q) bets on each next run, at the odds that are fair under (p,
q), by the gambler's own probabilities. These come from two Beta distributions, updated run by run.
The rule of Krichevsky and Trofimov starts from half a hit and half a miss; here the counts of the
runs that chose the event are added. The gambler's probabilities of all runs multiply to

.. math:: M = \frac{B(a+k, b+n-k)}{B(a, b)} \frac{B(c+l, d+m-l)}{B(c, d)},

and its wealth is :math:`W(p, q) = M / L(p, q)`, 1 at the start.

**The promise.** If (p, q) is true, the expected factor of the next run is 1 for any gambler: a sum
of probabilities over both outcomes (less, if one is impossible). So the wealth is a nonnegative
martingale. By Ville's inequality, it ever reaches :math:`1 / \alpha` with probability at most
:math:`\alpha`. The audit may evaluate it after any run, stop at any time, and continue later. Hence

.. math:: C = \{(p, q): W(p, q) < 1/\alpha\}

contains the true pair at all times at once, with probability :math:`1 - \alpha`. The same holds for
the least values on C of any function of p and q, such as :math:`\ln((p - \delta) / q)` and
:math:`p - e^\epsilon q`. A private mechanism has :math:`p \le e^\epsilon q + \delta`; it is
convicted only if the wealth is :math:`1/\alpha` against each such pair, and so against the true
one.

**The bound.** The logarithm of L is concave, and so C convex. If the frequencies lie beyond the
claim, the allowed pair that is hardest to bet against lies on the line
:math:`p = e^\epsilon q + \delta`, along which :math:`\ln L` is concave. Its maximum is at the only
zero of its slope, or at an end. The bounds are the largest epsilon and delta with lines that C does
not meet, by bisection.

**Cost.** With a hits and b misses from n' earlier runs, the logarithm of the gambler's wealth falls
behind that of a gambler who knows p by about :math:`\frac12 \ln(1 + n / n')`: 0.7 for three times
as many runs. C is one region for both numbers, not an interval for each. The net effect is that
bounds are about as good as those for a fixed number of runs.

References
----------
J. Ville, "Etude critique de la notion de collectif", 1939. R. Krichevsky and V. Trofimov, "The
performance of universal encoding", IEEE Transactions on Information Theory 27(2), 1981. H. Robbins,
"Statistical methods related to the law of the iterated logarithm", Annals of Mathematical
Statistics 41(5), 1970. I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random variables
by betting", Journal of the Royal Statistical Society B 86(1), 2024.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.optimize import brentq

_HALVINGS = 50  # bisection steps, to the resolution of floats
_MOST_EPSILON = 700.0  # its exponential is a float
_LEAST = 1e-200  # smallest probability treated as different from 0
_ROUNDING = 2.0**-52


@dataclass(frozen=True)
class Counts:
    """Counts of an event on each of two data sets, and numbers of runs."""

    hits: float
    draws: int
    other_hits: float
    other_draws: int

    def __add__(self, more: Counts) -> Counts:
        return Counts(
            self.hits + more.hits,
            self.draws + more.draws,
            self.other_hits + more.other_hits,
            self.other_draws + more.other_draws,
        )


@dataclass(frozen=True)
class Wealth:
    """A gambler's wealth after `counts`, against every pair of probabilities.

    Counts are of runs that did not choose the event; `before` are those that chose it.
    """

    counts: Counts
    before: Counts

    def against(self, epsilon: float, delta: float) -> float:
        """Logarithm of the wealth against the hardest pair that the claim allows.

        Minus infinity if the frequencies themselves satisfy the claim: no evidence against it.
        """
        seen = self.counts
        if epsilon > _MOST_EPSILON or not seen.draws or not seen.other_draws:
            return -math.inf
        ratio = math.exp(epsilon)
        if seen.hits / seen.draws <= ratio * seen.other_hits / seen.other_draws + delta:
            return -math.inf

        # The derivative of ln L along q = (p - delta) / e^epsilon, times a factor that is positive
        # within the limits and removes the poles at both ends: p (1 - p) (p - delta) (1 - q).
        def slope(p: float) -> float:
            q = (p - delta) / ratio
            of_hits = (seen.hits - seen.draws * p) * (p - delta) * (1.0 - q)
            return of_hits + (seen.other_hits - seen.other_draws * q) * p * (1.0 - p)

        most = min(1.0, ratio + delta)
        # Just inside the limits: at a limit the factor is 0, and the sign of `slope` says nothing.
        ends = (1.0 + 4 * _ROUNDING) * delta + _LEAST, (1.0 - _ROUNDING) * most
        if slope(ends[0]) <= 0.0:
            p = delta
        elif slope(ends[1]) >= 0.0:
            p = most
        else:
            p = float(brentq(slope, *ends, xtol=_LEAST, rtol=4 * _ROUNDING))
        return self._log_bets() - self._log_likelihood(p, (p - delta) / ratio)

    def epsilon_bound(self, delta: float, alpha: float) -> float:
        """Return the least epsilon that the region allows at a delta, at least 0."""
        return _last(
            lambda epsilon: self.against(epsilon, delta) >= -math.log(alpha), _MOST_EPSILON
        )

    def delta_bound(self, epsilon: float, alpha: float) -> float:
        """Return the least delta that the region allows at an epsilon, at least 0."""
        return _last(lambda delta: self.against(epsilon, delta) >= -math.log(alpha), 1.0)

    def projected(self, draws: int, optimism: float) -> Wealth:
        """Return the wealth expected after more draws, with frequencies better than those seen.

        Better by `optimism` standard errors; counts need not be whole then.
        """
        seen = self.counts
        # Half a hit and half a miss more: a frequency of 0 or 1 would have a standard error of 0.
        p, q = (
            (seen.hits + 0.5) / (seen.draws + 1),
            (seen.other_hits + 0.5) / (seen.other_draws + 1),
        )
        p = min(p + optimism * math.sqrt(p * (1 - p) / seen.draws), 1.0)
        q = max(q - optimism * math.sqrt(q * (1 - q) / seen.other_draws), 0.0)
        return Wealth(Counts(p * draws, draws, q * draws, draws), self.before)

    def _log_bets(self) -> float:
        """Logarithm of the gambler's probability of all counted runs."""
        seen, before = self.counts, self.before
        return _log_updated(before.hits, before.draws, seen.hits, seen.draws) + _log_updated(
            before.other_hits, before.other_draws, seen.other_hits, seen.other_draws
        )

    def _log_likelihood(self, p: float, q: float) -> float:
        """Logarithm of the probability of all counted runs, under p and q."""
        seen = self.counts
        return _log_binomial(seen.hits, seen.draws, p) + _log_binomial(
            seen.other_hits, seen.other_draws, q
        )


def _log_updated(hits_before: float, draws_before: int, hits: float, draws: int) -> float:
    """Logarithm of a Beta law's probability of a sequence: half a hit and half a miss, and more."""
    a, b = hits_before + 0.5, draws_before - hits_before + 0.5
    return _log_beta(a + hits, b + draws - hits) - _log_beta(a, b)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _log_binomial(hits: float, draws: int, p: float) -> float:
    """Logarithm of the probability of one sequence with this number of hits."""
    misses = draws - hits
    # 0 hits at p = 0 have probability 1, although ln 0 is not finite.
    if (hits and p <= 0.0) or (misses and p >= 1.0):
        return -math.inf
    log_hits = hits * math.log(p) if hits else 0.0
    return log_hits + (misses * math.log1p(-p) if misses else 0.0)


def _last(holds: Callable[[float], bool], high: float) -> float:
    """Return from below the point from 0 on at which a condition ceases to hold."""
    # From below: the wealth excludes the returned value itself, unless the value is 0.
    low = 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low
