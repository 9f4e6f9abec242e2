"""Private numbers of entries of each column that are missing or cannot be read."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.fixed_point import FixedPoint
from privclust.core.hints import RandomState
from privclust.core.validation import UNUSED_DELTA, check_real
from privclust.privacy.budget import charge
from privclust.privacy.groups import GROUP, ROW, UNIT_BITS, Groups
from privclust.privacy.guarantee import Guarantee
from privclust.privacy.measurements import Gaussian, Laplace, analytic_gaussian_sigma
from privclust.privacy.noise import is_seeded, noise_source
from privclust.privacy.sensitivity import Neighbours, Sensitivity

_PROOF = "in each of {d} columns an entry of a row is missing, unreadable or neither"


@dataclass(frozen=True)
class MissingCounts:
    """Noisy numbers of missing and unreadable entries, by column.

    Attributes
    ----------
    missing, unreadable : ndarray of shape (n_columns,)
        Numbers of records: rows, or persons, with each row weighted by one over the person's rows.
    deviation : float
        Standard deviation of the noise on each number.
    guarantee : privclust.privacy.Guarantee
    """

    missing: np.ndarray
    unreadable: np.ndarray
    deviation: float
    guarantee: Guarantee


def missing_counts(
    is_missing: np.ndarray,
    is_unreadable: np.ndarray,
    epsilon: float,
    delta: float = 0.0,
    *,
    groups: ArrayLike | None = None,
    neighbours: Neighbours | str = Neighbours.REPLACE_ONE,
    random_state: RandomState = None,
) -> MissingCounts:
    r"""Return noisy numbers of missing entries, and of entries that cannot be read.

    A row adds 1 to at most one of the two numbers of each of d columns. Adding or removing a row
    changes them by at most d in l1 and :math:`\sqrt d` in l2, replacing one by 2 d and
    :math:`\sqrt{2 d}`. With groups each of the n rows of a group has weight 1 / n, rounded down to
    a multiple of 2^-30, so that the same bounds hold for a group.

    Parameters
    ----------
    is_missing, is_unreadable : ndarray of shape (n_samples, n_columns), bool
        As returned by `TableEncoder.unread`.
    epsilon : float
        Finite and positive, in nats.
    delta : float
        From 0 to less than 1. 0: Laplace noise, otherwise Gaussian noise.
    groups : array-like of shape (n_samples,) or None
        The person of each row; rows without an ID do not count.
    neighbours : {"replace_one", "add_remove"}
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None for release (needs ``privclust[secure]``), anything else for reproduction.

    Returns
    -------
    MissingCounts

    Raises
    ------
    ValueError
        If the arrays differ in shape, an entry is both, or a parameter is out of its range.

    Examples
    --------
    >>> holes = np.zeros((1000, 2), dtype=bool)
    >>> holes[:300, 1] = True
    >>> counts = missing_counts(holes, ~holes & False, 1.0, random_state=0)
    >>> counts.missing.round().tolist(), round(counts.deviation, 2)
    ([1.0, 298.0], 5.66)
    """
    if is_missing.shape != is_unreadable.shape or (is_missing & is_unreadable).any():
        raise ValueError("an entry is missing or cannot be read, and not both, in tables alike")
    n_rows, n_columns = is_missing.shape
    of_rows = None if groups is None else Groups.of(groups, n_rows)
    units = np.full(n_rows, 2**UNIT_BITS) if of_rows is None else of_rows.units
    exact = np.stack([units @ flags.astype(np.int64) for flags in (is_missing, is_unreadable)])
    noise, source = (
        noise_by_column(n_columns, epsilon, delta, neighbours),
        noise_source(random_state),
    )
    guarantee = Guarantee.of(
        [noise.statement("missing and unreadable entries, by column")],
        "approximate" if delta else "pure",
        noise.sensitivity.relation,
        delta=delta,
        seeded=is_seeded(source),
        unit=ROW if groups is None else GROUP,
    )
    charge(guarantee)
    noisy = np.asarray(noise.release(FixedPoint(exact, UNIT_BITS), source))
    return MissingCounts(noisy[0], noisy[1], noise.deviation, guarantee)


def noise_by_column(
    n_columns: int, epsilon: float, delta: float, neighbours: Neighbours | str
) -> Gaussian | Laplace:
    """Return the noise of `missing_counts` for a budget; the errors are the same."""
    check_real("epsilon", epsilon)
    UNUSED_DELTA("delta", delta, {})
    relation = Neighbours.of(neighbours)
    n_changed = (2 if relation is Neighbours.REPLACE_ONE else 1) * n_columns
    proof = _PROOF.format(d=n_columns)
    if not delta:
        return Laplace(Sensitivity(float(n_changed), "l1", relation, proof), epsilon)
    in_l2 = Sensitivity(math.sqrt(n_changed), "l2", relation, proof)
    return Gaussian(in_l2, analytic_gaussian_sigma(in_l2, epsilon, delta))
