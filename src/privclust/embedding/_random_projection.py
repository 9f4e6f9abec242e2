"""Rows along public random directions, each with noise of its own."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from privclust.core.fixed_point import FACTOR_BITS, SUM_BITS, FixedPoint, unit_margin
from privclust.core.grassmann import blocks
from privclust.core.hints import RandomState
from privclust.core.validation import DELTA, check_parameters
from privclust.privacy import Guarantee, Neighbours
from privclust.privacy.accounting import pld_epsilon
from privclust.privacy.bounds import bounded_rows, checked_radius, longer_rows
from privclust.privacy.budget import charge
from privclust.privacy.estimator import PrivateEstimator, caveats_of_bounds, private_records
from privclust.privacy.measurements import Gaussian, analytic_gaussian_sigma
from privclust.privacy.noise import NoisyTransformer, is_seeded, noise_source, unprotected_generator
from privclust.privacy.sensitivity import Sensitivity

PER_CALL = "for one transform of each row: a row that is transformed m times is released m times"
_UNBOUNDED = "sums of rows without a norm bound are rounded by an amount that has no bound either"
_MATRIX_BITS = 20  # entries of P are multiples of 2^-20
_DOUBLE_BITS, _INTEGER_BITS = 53, 63  # bits of integers in float64 and int64
_DEVIATIONS = 64.0  # int64 has room for noise up to this number of standard deviations


@dataclass(eq=False, repr=False)
class PrivateRandomProjection(
    PrivateEstimator,
    NoisyTransformer,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    r"""Random projection of rows, each released with Gaussian noise.

    `fit` draws a public matrix P of shape (d, k) with entries :math:`N(0, 1/k)`, independent of the
    data. `transform` returns :math:`X P + N(0, \sigma^2)`, with fresh noise at every call: **each
    call is a release** of its rows. Rows are released separately, so that the privacy loss of a row
    does not depend on other rows.

    P is drawn before the noise is calibrated, so that the sensitivity is exact rather than a bound
    with high probability. :math:`\sigma` is the least for which the Gaussian mechanism with this
    sensitivity is (epsilon, delta)-private.

    - ``neighbours="row"``: one row x is replaced by another y, both of norm at most R.
      :math:`\|(x - y)' P\| \le 2 R \|P\|_2`, attained by plus and minus the first left singular
      vector of P. No other row of the output changes. As d grows this tends to
      :math:`2 R (1 + \sqrt{d / k})`, while :math:`\|x'P\|` stays near :math:`\|x\|`.
      Entries of P are multiples of 2^-20, and those of rows are rounded to multiples of 2^-b of R,
      b at most 30. :math:`x'P` is then an exact sum of integers below 2^53, independent of other
      rows in the call, and receives integer noise. R is enlarged by a factor of
      :math:`1 + \sqrt d\, 2^{-b}`, so that rounded rows are within the bound.
    - ``neighbours="attribute"``, as published: one entry of one row changes by at most 1, in units
      of X, and :math:`\|(x - y)' P\| \le \max_i \|P_{i\cdot}\|`, the longest row of P, attained.
      Rows are not clipped to a ball, which would spread a change of one entry over all: rows longer
      than `norm_bound` raise an error. `guarantee_` is always for whole rows. It states the epsilon
      that follows from :math:`2 R \|P\|_2` with this noise (``"none"`` without a `norm_bound`), and
      that for one attribute in its notes. The sums are exact in the same way. Without a
      `norm_bound` they are not, and rounded by an amount that has no bound, as `guarantee_` states.

    Parameters
    ----------
    n_components : int
        k, at least 1.
    epsilon, delta : float
        Budget of one transform of a row; epsilon in nats, positive, delta in (0, 1).
    neighbours : {"row", "attribute"}
        Neighbour relation for the scale of the noise.
    norm_bound : float or None
        R, the largest Euclidean norm of a row, known without the data. None takes it from the data
        of `fit`, warns, and leaves no guarantee; for ``"attribute"`` None means no bound.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None for release (needs ``privclust[secure]``), anything else for reproduction.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        P', as in scikit-learn's random projections. Public.
    sensitivity_ : privclust.privacy.Sensitivity
        Sensitivity for the scale of the noise, in the units of X.
    sigma_ : float
        Standard deviation of the noise.
    norm_bound_ : float or None
        R as used.
    guarantee_ : privclust.privacy.Guarantee
        Guarantee of one transform of each row, for replace-one.
    n_features_in_ : int

    References
    ----------
    K. Kenthapadi, A. Korolova, I. Mironov and N. Mishra, "Privacy via the Johnson-Lindenstrauss
    transform", Journal of Privacy and Confidentiality 5, 2013, Algorithm 1; B. Balle and Y.-X.
    Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018, Theorem 8.

    Examples
    --------
    >>> X = np.eye(5)
    >>> model = PrivateRandomProjection(2, epsilon=1.0, norm_bound=1.0, random_state=0).fit(X)
    >>> query = model.transform(X[:1])
    >>> query.shape, model.guarantee_.definition, round(model.guarantee_.epsilon, 6)
    ((1, 2), 'approximate', 1.0)
    >>> bool((model.transform(X[:1]) == query).any())
    False
    """

    components_: np.ndarray = field(init=False)
    sensitivity_: Sensitivity = field(init=False)
    sigma_: float = field(init=False)
    norm_bound_: float | None = field(init=False)
    n_features_in_: int = field(init=False)

    _constraints: ClassVar = {"delta": DELTA}

    n_components: int = 2
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    neighbours: Literal["row", "attribute"] = "row"
    norm_bound: float | None = None
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Draw the projection and calibrate the noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Only the number of features is used if `norm_bound` is given. Otherwise open ledgers are
            charged for the bound taken from the rows.
        y : None
            Not used.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X is not finite or a parameter is out of its range.
        """
        X = private_records(self, X, dtype=[np.float64, np.float32]).rows
        check_parameters(self)
        self._source = noise_source(self.random_state)
        # with a declared bound nothing depends on the rows of `fit`
        rows = X if self.norm_bound is None else X[:0]
        _, self.norm_bound_, leaks = self._bounded(rows, self.norm_bound)
        rng = unprotected_generator(self._source)
        scale = self.n_components**-0.5
        drawn = rng.normal(scale=scale, size=(self.n_components, X.shape[1]))
        self.components_ = np.ldexp(np.rint(np.ldexp(drawn, _MATRIX_BITS)), -_MATRIX_BITS)
        self._calibrate()
        self._noise = Gaussian(self.sensitivity_, self.sigma_)
        self.guarantee_ = self._promise(leaks)
        # a bound on the norm taken from the rows uses them already here
        if leaks:
            charge(self.guarantee_)
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Release rows: project them and add fresh noise; every call is charged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers, or any numbers if rows are clipped to a `norm_bound`.

        Returns
        -------
        ndarray of shape (n_samples, n_components), float64

        Raises
        ------
        ValueError
            If X is not finite, has another number of features, or a row is too long.
        """
        check_is_fitted(self)
        X = private_records(self, X, reset=False).rows
        charge(self.guarantee_)
        rows, _, _ = self._bounded(X, self.norm_bound_)
        if self.norm_bound_ is None:
            return self._noise.release(rows @ self.components_.T, self._source)
        unit = self._unit()
        projected = self._noise.release(self._integers(rows, unit), self._source, weight=unit)
        return projected * unit

    def _calibrate(self):
        """Set the noise, and the largest number of bits of rows for which (noisy) sums fit."""
        # terms of the sum for a row of norm 1 add up to the longest column of P at most
        room = _DOUBLE_BITS - 1 - _bits_before_point(np.linalg.norm(self.components_, axis=1).max())
        self._bits = min(SUM_BITS, room - _MATRIX_BITS)
        for _ in range(2):  # sigma depends on the bits, by the enlarged R, and the bits on sigma
            self.sensitivity_ = self._sensitivity()
            self.sigma_ = analytic_gaussian_sigma(self.sensitivity_, self.epsilon, self.delta)
            if self.norm_bound_ is None:
                return
            room = _INTEGER_BITS - _bits_before_point(_DEVIATIONS * self.sigma_ / self._unit())
            self._bits = max(min(self._bits, room - _MATRIX_BITS), FACTOR_BITS)

    def _integers(self, rows, unit):
        """Return exact projections of rows in a unit."""
        matrix = np.ldexp(self.components_.T, _MATRIX_BITS)
        products = np.empty((len(rows), matrix.shape[1]), dtype=np.int64)
        step = unit * 2.0**-self._bits
        for part in blocks(len(rows), rows.shape[1]):
            whole = rows[part] / step
            products[part] = np.rint(whole, out=whole) @ matrix
        return FixedPoint(products, self._bits + _MATRIX_BITS)

    def _unit(self):
        """Return R, enlarged so that rounded rows in units of it have norm at most 1."""
        return self.norm_bound_ * unit_margin(self.components_.shape[1], self._bits)

    @property
    def _n_features_out(self):
        return len(self.components_)

    def _bounded(self, X, norm_bound):
        """Return rows within the ball, its radius, and leaks of the data by the radius."""
        if self.neighbours == "row":
            return bounded_rows(X, norm_bound)
        if norm_bound is None:
            return X, None, ()
        radius = checked_radius(norm_bound)
        if (is_longer := longer_rows(X, radius)).any():
            raise ValueError(
                f"X: row {int(np.argmax(is_longer))} has a norm above norm_bound={radius:g}, and "
                "others may; raise the bound"
            )
        return X, radius, ()

    def _sensitivity(self):
        if self.neighbours == "row":
            return self._row_sensitivity()
        step = 0.0 if self.norm_bound_ is None else self._unit() * 2.0**-self._bits
        longest = float(np.linalg.norm(self.components_, axis=0).max())
        proof = "one attribute by at most 1, and a step of its rounding: the longest row of P"
        return self._of_norm((1.0 + step) * longest, proof)

    def _row_sensitivity(self):
        length = float(np.linalg.norm(self.components_, 2))
        proof = "|(x - y)'P| <= |x - y| |P| <= 2 R |P|"
        return self._of_norm(2.0 * self._unit() * length, proof)

    def _of_norm(self, value, proof):
        """Return a sensitivity of that value, and what rounding may take from a norm of P."""
        rounding = 1.0 + 8.0 * max(self.components_.shape) * np.finfo(np.float64).eps
        return Sensitivity(value * rounding, "l2", Neighbours.REPLACE_ONE, proof)

    def _promise(self, leaks):
        caveats, flaw, whole = (PER_CALL,), "", self.sensitivity_
        if self.neighbours == "attribute":
            epsilon = pld_epsilon([self._noise.loss], self.delta)
            caveats = (
                f"({epsilon:.4g}, {self.delta:g}) for neighbours that differ by at most 1 in one "
                "attribute of one row; the statement above is about whole rows",
                *caveats,
            )
        if self.norm_bound_ is None:
            flaw = "rows have no norm bound, so that a whole row may change by any amount"
            caveats = (*caveats, _UNBOUNDED)
        else:
            whole = self._row_sensitivity()
        clipper = self if self.neighbours == "row" else None  # "attribute" does not clip
        noise = self._noise.against(replace(whole, proof="|(x - y)'P| <= 2 R |P|, P public"))
        return Guarantee.of(
            [noise.statement("projected row", flaw=flaw)],
            "none" if leaks else "approximate",
            Neighbours.REPLACE_ONE,
            delta=self.delta,
            seeded=is_seeded(self._source),
            caveats=(*leaks, *caveats, *caveats_of_bounds(clipper)),
        )


def _bits_before_point(value):
    """Return the least e such that a number is below 2^e."""
    return math.frexp(float(value))[1]
