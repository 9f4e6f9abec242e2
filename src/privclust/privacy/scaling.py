"""Detection of rows scaled by their own statistics, which no guarantee of a fit covers.

A scaler before a private estimator, such as scikit-learn's StandardScaler, takes means and
deviations from all rows without noise: if one row is replaced, all rows that the estimator receives
change. The estimator's guarantee then holds for one of its rows, not for one record.

An estimator does not know how its rows were computed. Columns with mean 0 and deviation 1, to the
last digits, indicate such a scaler. Minima of 0 and maxima of 1 in all columns do not indicate
MinMaxScaler: rows clipped to declared bounds, and grey values, have them too, and users who declare
bounds should not be warned. Means of 0 without deviations of 1 occur in balanced designs. The
absence of a warning therefore proves nothing.
"""

from __future__ import annotations

import math

import numpy as np

_MEAN = 3e-5  # tolerance of a mean, in deviations, for rounding in single precision
_DEVIATION = 2e-7  # tolerance of a deviation: rounding is about 6e-8
_FEWEST = 3  # two opposite rows of equal length are not unusual


def is_standardised(X: np.ndarray) -> bool:
    """Return whether all columns have mean 0 and deviation 1, up to rounding.

    Deviations may be divided by n or by n - 1; StandardScaler, PowerTransformer, whitening and
    scaling by hand give such columns. Means up to about 500 deviations are detected in single
    precision, up to 10^9 in double. Columns that are constant, or contain only integers, prove
    nothing and are skipped. Usual data need one pass over one column.

    *False alarms.* Let n independent rows have been scaled by the population's mean and deviation,
    known from elsewhere. The chance that their own mean and deviation are 0 and 1 to within s =
    3e-5 and t = 2e-7 is then about 0.9 s t n for a normal column, and at most twice that with both
    divisors. For a million rows this is 1e-5. It is less if the scale is not exactly right, and a
    product over columns if those are independent. Normal values rounded to multiples of h have both
    by chance with a probability of about h^3 / (4 n), so integers are skipped.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Any floats. False for fewer than three rows; NaN entries are ignored, as by a
        scaler.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> is_standardised(X), is_standardised((X - X.mean(axis=0)) / X.std(axis=0))
    (False, True)
    """
    n_samples, n_features = X.shape
    if n_samples < _FEWEST:
        return False
    any_proof = False
    for i in range(n_features):
        column = X[:, (n_features // 2 + i) % n_features]  # borders of images are constant
        mean, square, is_constant = _moments(column)
        n_entries = n_samples
        if math.isnan(square):  # copy only columns with missing entries
            column = column[~np.isnan(column)]
            n_entries = len(column)
            if n_entries < _FEWEST:
                continue
            mean, square, is_constant = _moments(column)
        if is_constant:
            continue
        # the mean is about 0, so these are the squared deviations with the divisors n and n - 1
        squares = np.array([square, square * n_entries / (n_entries - 1)])
        # s^2 - 1 is about 2 (s - 1); `not ... <=` in place of `>`, which is false for NaN
        if not (abs(mean) <= _MEAN and (abs(squares - 1.0) <= 2.0 * _DEVIATION).any()):
            return False
        any_proof = any_proof or not bool((column == np.round(column)).all())
    return any_proof


def _moments(column: np.ndarray) -> tuple[float, float, bool]:
    """Return mean and mean square, in double precision, and whether all entries are equal."""
    entries = column.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return entries.mean(), np.square(entries).mean(), bool((entries == entries[0]).all())
