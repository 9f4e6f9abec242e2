"""Random projections with noise."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from privclust.core.hints import RandomState
from privclust.core.validation import DELTA, check_parameters
from privclust.privacy import Guarantee, Neighbours
from privclust.privacy.accounting import pld_epsilon
from privclust.privacy.bounds import bounded_rows
from privclust.privacy.measurements import Gaussian, analytic_gaussian_sigma
from privclust.privacy.noise import (
    NoisyTransformer,
    is_seeded,
    noise_source,
    unprotected_generator,
)
from privclust.privacy.sensitivity import Sensitivity

PER_CALL = "for one transform of each row: a row that is transformed m times is released m times"


class PrivateRandomProjection(
    NoisyTransformer, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    r"""Rows projected at random, each released with normal noise.

    `fit` draws a matrix P of shape (d, k) with entries :math:`N(0, 1/k)`, which is public and owes
    nothing to the data. `transform` returns :math:`X P + N(0, \sigma^2)`, with fresh noise at every
    call: **each call is a release** of the rows it is given. Rows are released one by one, so that
    a query, a matrix of one row, costs the same alone as among others.

    P is known when the noise is chosen, so that its sensitivity is exact and needs no bound that
    holds with high probability only. :math:`\sigma` is the least with which the normal mechanism of
    that sensitivity is (epsilon, delta)-private.

    - ``neighbours="row"``: one whole row x is replaced by another y, both of norm at most R.
      :math:`\|(x - y)' P\| \le 2 R \|P\|_2`, attained by plus and minus the first left singular
      vector of P. No other row of the output changes. As d grows this tends to
      :math:`2 R (1 + \sqrt{d / k})`, while :math:`\|x'P\|` stays near :math:`\|x\|`.
    - ``neighbours="attribute"``, as published: one entry of one row changes by at most 1, in units
      of X, and :math:`\|(x - y)' P\| \le \max_i \|P_{i\cdot}\|`, the longest row of P, attained.
      Rows are not drawn in to a ball then, which would spread a change of one entry over all:
      longer rows than `norm_bound` are refused. `guarantee_` is always about whole rows: it states
      the epsilon that follows from :math:`2 R \|P\|_2` with this noise, ``"none"`` without a
      `norm_bound`, and in its notes the attribute's.

    Parameters
    ----------
    n_components : int
        k, at least 1.
    epsilon, delta : float
        Budget of one transform of a row; epsilon in nats, positive, delta in (0, 1).
    neighbours : {"row", "attribute"}
        What the noise is scaled for.
    norm_bound : float or None
        R, the largest Euclidean norm of a row, known without the data. None takes it from the data
        of `fit`, warns, and leaves no guarantee; for ``"attribute"`` it asks for no bound.
    out_of_bounds : {"clip", "error"}
        What happens to longer rows: drawn in to the bound, with a warning, or refused.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None for release (needs ``privclust[secure]``), anything else for reproduction.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        P', as in scikit-learn's random projections. Public.
    sensitivity_ : privclust.privacy.Sensitivity
        That of P which the noise is scaled by, in the units of X.
    sigma_ : float
        Standard deviation of the noise.
    norm_bound_ : float or None
        R as used.
    guarantee_ : privclust.privacy.Guarantee
        Of one transform of each row, for replaced rows.
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

    _constraints: ClassVar = {"delta": DELTA}

    def __init__(
        self,
        n_components: int = 2,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        neighbours: Literal["row", "attribute"] = "row",
        norm_bound: float | None = None,
        out_of_bounds: Literal["clip", "error"] = "clip",
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.norm_bound = norm_bound
        self.out_of_bounds = out_of_bounds
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Draw the projection and choose the noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers, of which only the number of features is used if `norm_bound` is given.
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
        X = validate_data(self, X, dtype=[np.float64, np.float32], order="C")
        check_parameters(self)
        self._source = noise_source(self.random_state)
        _, self.norm_bound_, leaks = self._bounded(X, self.norm_bound)
        rng = unprotected_generator(self._source)
        scale = self.n_components**-0.5
        self.components_ = rng.normal(scale=scale, size=(self.n_components, X.shape[1]))
        self.sensitivity_ = self._sensitivity()
        self.sigma_ = analytic_gaussian_sigma(self.sensitivity_, self.epsilon, self.delta)
        self._noise = Gaussian(self.sensitivity_, self.sigma_)
        self.guarantee_ = self._promise(leaks)
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Release rows: project them and add fresh noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_samples, n_components), float64

        Raises
        ------
        ValueError
            If X is not finite, has another number of features, or a row too long and refused.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        rows, _, _ = self._bounded(X, self.norm_bound_)
        return self._noise.release(rows @ self.components_.T, self._source)

    def __sklearn_tags__(self):
        """Say that two calls of `transform` differ."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags

    @property
    def _n_features_out(self):
        """How many columns `transform` returns, which names them."""
        return len(self.components_)

    def _bounded(self, X, norm_bound):
        """Return rows within the ball, its radius and what the data told of it."""
        if self.neighbours == "row":
            return bounded_rows(X, norm_bound, self.out_of_bounds)
        if norm_bound is None:
            return X, None, ()
        return bounded_rows(X, norm_bound, "error")

    def _row_sensitivity(self):
        """Return 2 R |P|: of a whole row."""
        value = 2.0 * self.norm_bound_ * float(np.linalg.norm(self.components_, 2))
        proof = "|(x - y)'P| <= |x - y| |P| <= 2 R |P|"
        return Sensitivity(value, "l2", Neighbours.REPLACE_ONE, proof)

    def _sensitivity(self):
        """Return what the noise is scaled by."""
        if self.neighbours == "row":
            return self._row_sensitivity()
        value = float(np.sqrt((self.components_**2).sum(axis=0).max()))
        proof = "one attribute by at most 1: the longest row of P"
        return Sensitivity(value, "l2", Neighbours.REPLACE_ONE, proof)

    def _promise(self, leaks):
        """State what one transform of each row promises to whole rows."""
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
        else:
            whole = self._row_sensitivity()
        noise = self._noise.against(replace(whole, proof="|(x - y)'P| <= 2 R |P|, P public"))
        return Guarantee.of(
            [noise.statement("projected row", flaw=flaw)],
            "none" if leaks else "approximate",
            Neighbours.REPLACE_ONE,
            delta=self.delta,
            seeded=is_seeded(self._source),
            caveats=(*leaks, *caveats),
        )
