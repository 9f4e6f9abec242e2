"""Search for the pair of neighbouring data sets on which a mechanism leaks most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from privclust.core.hints import RandomState
from privclust.core.validation import as_generator, check_integer
from privclust_audit.black_box._audit import audit_mechanism, audited
from privclust_audit.black_box._bounds import Claim
from privclust_audit.black_box._result import AuditResult
from privclust_audit.black_box._statistics import Statistic
from privclust_audit.black_box.neighbours import are_equal

_SELECTION_RATIO = 4  # pairs of a round for each pair of the next
_GUIDED_SELECTION_RATIO = 8  # the same if pairs can be moved
_N_OFFSPRING = 6  # nearby pairs added to each kept pair, if pairs can be moved


@dataclass(frozen=True)
class PairSearch:
    """The worst pair found, and its audit.

    Attributes
    ----------
    data, neighbour : object
        The pair.
    audit : AuditResult
        On fresh runs: its bounds need no correction for the search.
    n_pairs : int
        Number of pairs compared, including offspring.
    screened_epsilon : float
        Lower bound on epsilon in the last round of the search. The pair was chosen by it, so it
        proves nothing.
    """

    data: Any
    neighbour: Any
    audit: AuditResult
    n_pairs: int
    screened_epsilon: float


def search_pair(
    mechanism: Callable,
    propose: Callable,
    epsilon: float,
    delta: float,
    n_pairs: int,
    n_trials: int,
    statistic: Statistic | Sequence[Statistic] | None = None,
    random_state: RandomState = None,
    *,
    move: Callable | None = None,
    confidence: float = 0.95,
) -> PairSearch:
    """Compare pairs of neighbours by short audits, and audit the worst on fresh runs.

    In each round one pair in four goes on to the next. The runs of a round are divided among its
    pairs, so that every round costs about as much as the final audit. With `move` the search is
    evolutionary: one pair in eight goes on, with six pairs near it, and the best of these go on in
    turn. This takes more rounds: 43 rather than 4 for 128 pairs.

    Parameters
    ----------
    mechanism : callable
        As for `audit_mechanism`.
    propose : callable
        ``propose(rng)`` returns two data sets that are neighbours.
    epsilon, delta : float
        The claim.
    n_pairs : int
        Number of proposed pairs, at least 1.
    n_trials : int
        Runs of the final audit, on each data set.
    statistic, confidence
        As for `audit_mechanism`.
    random_state : None, int, numpy.random.Generator or RandomState
    move : callable or None
        ``move(pair, rng)`` returns two neighbours near two given ones, without changing these; see
        `move_one` for arrays.

    Returns
    -------
    PairSearch

    Raises
    ------
    ValueError
        If a parameter is not as described, or `propose` or `move` does not return a pair, or
        `propose` returns only equal data sets.

    Examples
    --------
    Noise for records in [0, 1], while records may be as large as 3:

    >>> def mechanism(data, rng):
    ...     return data + rng.laplace()
    >>> mechanism.many = lambda data, rng, n: data + rng.laplace(size=n)
    >>> search = search_pair(
    ...     mechanism, lambda rng: rng.uniform(0, 3, 2), 1.0, 0.0, 16, 4000, float, random_state=0
    ... )
    >>> search.audit.verdict, bool(abs(search.data - search.neighbour) > 1.5)
    ('violated', True)
    """
    check_integer("n_pairs", n_pairs, minimum=1)
    check_integer("n_trials", n_trials, minimum=16)
    proposing, running = as_generator(random_state).spawn(2)
    pairs = [_checked("propose(rng)", propose(proposing)) for _ in range(n_pairs)]
    n_compared = len(pairs)

    def screen(pair: tuple[Any, Any], trials: int) -> AuditResult:
        claim = Claim(epsilon, delta, confidence)
        return audited(mechanism, *pair, claim, trials, statistic, running, lambda n_runs: None)

    screened = 0.0
    while len(pairs) > 1:
        trials = max(16, n_trials // len(pairs))
        results = [screen(pair, trials) for pair in pairs]
        leaks = [
            (not are_equal(*pair), _leak(one)) for pair, one in zip(pairs, results, strict=True)
        ]
        order = sorted(range(len(pairs)), key=leaks.__getitem__, reverse=True)
        screened = results[order[0]].epsilon_lower_bound
        ratio = _GUIDED_SELECTION_RATIO if move else _SELECTION_RATIO
        survivors = [pairs[k] for k in order[: -(-len(pairs) // ratio)]]
        offspring = []
        if move is not None:
            moved = (move(pair, proposing) for pair in survivors for _ in range(_N_OFFSPRING))
            room = len(pairs) - 1 - len(survivors)
            offspring = [_checked("move(pair, rng)", pair) for pair in islice(moved, room)]
        n_compared += len(offspring)
        pairs = survivors + offspring
    audit = audit_mechanism(
        mechanism, *pairs[0], epsilon, delta, n_trials, statistic, running, confidence=confidence
    )
    return PairSearch(*pairs[0], audit, n_compared, screened)


def _checked(call: str, pair) -> tuple[Any, Any]:
    """Return two data sets, or raise an error that names the faulty function."""
    if not hasattr(pair, "__len__") or len(pair) != 2:
        raise ValueError(f"{call} must return two data sets, got {pair!r}")
    data, neighbour = pair
    return data, neighbour


def _leak(result: AuditResult) -> tuple[float, float]:
    """Return the key for ordering pairs: a bound, or frequencies if runs are too few."""
    event = result.delta_event
    difference = event.hits / event.draws - event.other_hits / event.other_draws
    return result.epsilon_lower_bound, difference
