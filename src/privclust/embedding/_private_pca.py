"""Principal components under differential privacy."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from privclust.core.fixed_point import LARGEST_ROWS, FixedPoint
from privclust.core.hints import RandomState
from privclust.core.second_moments import second_moments, unit
from privclust.core.validation import DELTA, Integer
from privclust.privacy import Neighbours
from privclust.privacy.bounds import bounded_rows
from privclust.privacy.estimator import PrivateEstimator, validated
from privclust.privacy.groups import Groups, by_size, weighted_sums
from privclust.privacy.measurements import Exponential, second_moment_noise
from privclust.privacy.noise import noise_source, unprotected_generator
from privclust.privacy.sensitivity import Sensitivity, check_neighbours
from privclust.privacy.spectra import detected_subspaces


@dataclass(eq=False, repr=False)
class PrivatePCA(
    PrivateEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    r"""Differentially private principal components, about the origin.

    The components are the eigenvectors of the `n_components` largest eigenvalues of the second
    moments :math:`M = \sum x x'` of rows x, divided by `norm_bound`. Rows are not centred, since a
    private mean would use part of the budget; subtract a centre that is known without the data.
    Entries of rows are rounded to multiples of 2^-16 of a slightly enlarged `norm_bound`, so that
    sums are exact and the sensitivities below hold for them (``privclust.core.second_moments``).
    With groups, such as persons with several rows each, a row of a group of n has weight 1 / n, and
    the sensitivity to a group is that to a row (``privclust.privacy.groups``).

    **gaussian**, the default: M plus a symmetric matrix of Gaussian noise ("analyze Gauss"). The
    eigenvectors are post-processing.

    - *add-remove*: M changes by :math:`\|x x'\|_F = \|x\|^2 \le 1`.
    - *replace-one*, x by y: :math:`\|x x' - y y'\|_F^2 = \|x\|^4 + \|y\|^4 - 2 (x'y)^2 \le 2`,
      attained by orthogonal unit rows: :math:`\sqrt 2`.

    The standard deviation of the noise is :math:`\sigma` on the diagonal and :math:`\sigma /
    \sqrt 2` off it: equal in all coordinates :math:`M_{ii}`, :math:`\sqrt 2 M_{ij}` of the
    Frobenius norm. :math:`\sigma` is the least for (epsilon, delta).

    **mod_sulq**: as above, with the noise of MOD-SuLQ, :math:`N(0, s^2)` on every entry of the
    upper triangle, with :math:`s = n \beta`,

    .. math:: s = \frac{d+1}{\epsilon} \sqrt{2 \log \frac{d^2+d}{2 \sqrt{2 \pi} \delta}}
                  + \frac{1}{\sqrt{\epsilon}}.

    This is more noise than needed: `guarantee_` states the epsilon that follows from s.

    **exponential** (PPCA): an orthonormal frame V with density proportional to
    :math:`e^{c\, tr(V' M V)}`, a matrix Bingham distribution. One row adds :math:`\|V'x\|^2`,
    between 0 and 1, to the trace.

    - *replace-one*: the trace changes by a value in [-1, 1]. The density and its normalisation each
      change by a factor of at most :math:`e^c`: :math:`c = \epsilon / 2`.
    - *add-remove*: an added row does not decrease the trace. Both factors are therefore in
      :math:`[1, e^c]` and their ratio in :math:`[e^{-c}, e^c]`: :math:`c = \epsilon`.

    For 1, d - 1 and d components the draw is exact and epsilon-private. Otherwise it is the state
    of a Gibbs sampler after `n_sweeps` sweeps from a uniformly random frame, which is private only
    in the limit of many sweeps. Draws use floating point and numpy's generator, which is not
    cryptographic; with ``random_state=None`` the operating system seeds it. `guarantee_` states
    these caveats.

    **Only the components are private.** `transform` adds no noise and does not protect the rows
    that it projects.

    Time is :math:`n d^2` (BLAS) and :math:`d^3` for the eigenvectors: about a second for 11,000
    rows of 1,280 features. With ``random_state=None`` OpenDP draws :math:`d (d + 1) / 2` Gaussian
    numbers at about 70 microseconds each, a minute for d = 1,280.

    Parameters
    ----------
    n_components : int
        k, from 1 to n_features.
    epsilon, delta : float
        Budget; epsilon in nats, positive, delta in (0, 1), not used by ``"exponential"``.
    mechanism : {"gaussian", "exponential", "mod_sulq"}
    norm_bound : float or None
        Largest Euclidean norm of a row, known without the data. None takes it from the data, with
        a warning, and leaves no guarantee.
    neighbours : {"replace_one", "add_remove"}
        Neighbour relation. ``"add_remove"`` accepts any number of rows, also 0, and limits epsilon
        of ``"exponential"`` to 931.
    n_sweeps : int
        Sweeps of the Gibbs sampler of ``"exponential"``, if needed.
    missing : {"drop", "middle"}
        Treatment of an entry that is missing (NaN, None) or not a number. ``"drop"``: the row
        contributes nothing, and `left_out_` counts such rows. ``"middle"``: the entry is replaced
        by the middle of the bounds.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None for release (needs ``privclust[secure]``), anything else for reproduction.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal rows, by decreasing eigenvalue and with a positive largest entry. For
        ``"exponential"`` a randomly rotated frame.
    explained_ : ndarray of shape (n_components,) or None
        Eigenvalues of the noisy moments, in squared units of X; biased upwards by the noise. None
        for ``"exponential"``.
    is_detected_ : bool or None
        Whether the span of the components can be distinguished from noise, as post-processing of
        the noisy moments. None for ``"exponential"``.
    left_out_ : privclust.privacy.NoisyCount or None
        The noisy number of rows (of persons, with `groups`) that are left out; see
        `privclust.privacy.left_out`. None with ``missing="middle"`` and without a guarantee.
    guarantee_ : privclust.privacy.Guarantee
    n_features_in_ : int

    Warns
    -----
    NoiseWarning
        If the components cannot be distinguished from noise (``privclust.privacy.spectra``); not
        for ``"exponential"``.

    References
    ----------
    K. Chaudhuri, A. Sarwate and K. Sinha, "Near-optimal differentially private principal
    components", NIPS 2012, and JMLR 14, 2013, Algorithms 1 and 2; C. Dwork, K. Talwar, A. Thakurta
    and L. Zhang, "Analyze Gauss: optimal bounds for privacy-preserving principal component
    analysis", STOC 2014.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 1)) * [[0.6, 0.8, 0.0]]
    >>> model = PrivatePCA(1, norm_bound=1.0, random_state=0).fit(X)
    >>> bool(np.abs(model.components_ - [[0.6, 0.8, 0.0]]).max() < 0.01)
    True
    >>> model.guarantee_.definition, round(model.guarantee_.epsilon, 3)
    ('approximate', 1.0)
    """

    components_: np.ndarray = field(init=False)
    explained_: np.ndarray | None = field(init=False)
    is_detected_: bool | None = field(init=False)
    n_features_in_: int = field(init=False)

    _TYPES: ClassVar = [np.float64, np.float32]
    _constraints: ClassVar = {
        "n_components": Integer(at_most="n_features"),
        "delta": DELTA,
        "neighbours": check_neighbours,
    }

    n_components: int = 2
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    mechanism: Literal["gaussian", "exponential", "mod_sulq"] = "gaussian"
    norm_bound: float | None = None
    neighbours: Literal["replace_one", "add_remove"] = "replace_one"
    n_sweeps: int = 10
    missing: Literal["drop", "middle"] = "drop"
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        records = self._checked_records(X, groups)
        X = records.rows
        if groups is not None and self.mechanism == "exponential":
            raise ValueError(
                "mechanism='exponential' does not support groups, because its draw is private "
                "only if moments are not rounded again; use mechanism='gaussian'"
            )
        source = noise_source(self.random_state)
        rows, radius, leaks = bounded_rows(X, self.norm_bound)
        release = self._draw_frame if self.mechanism == "exponential" else self._add_noise
        release(rows, radius, source, leaks, records)
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the coordinates of rows along the components, without noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components), float64

        Raises
        ------
        ValueError
            If X is not finite or has another number of features.
        """
        check_is_fitted(self)
        X = validated(self, X, dtype=[np.float64, np.float32], order="C", reset=False)
        return X @ self.components_.T

    @property
    def _n_features_out(self):
        return len(self.components_)

    def _add_noise(self, rows, radius, source, leaks, records):
        noise, length = self._noise(rows.shape[1]), unit(radius, rows.shape[1])
        releases = [noise.statement("second moments", units="rows of norm 1")]
        promise = self._promised(releases, "approximate", source, leaks, records)
        self._charged(promise, records, source)
        noisy = noise.release(_moments(records.groups, rows, length)[None], source)
        self.components_, values = _leading(noisy[0], self.n_components)
        self.explained_ = values * length**2
        (self.is_detected_,) = detected_subspaces(
            noisy, self.n_components, noise, of="sets of components"
        )

    def _noise(self, n_features):
        mod_sulq, budget = self.mechanism == "mod_sulq", (self.epsilon, self.delta)
        return second_moment_noise(n_features, self.neighbours, *budget, mod_sulq=mod_sulq)

    def _draw_frame(self, rows, radius, source, leaks, records):
        """Release a draw of the matrix Bingham distribution."""
        # imported here: the other mechanisms need not wait for compiled code
        from privclust.bingham import IN_FLOATING_POINT, sample_matrix_bingham

        d, k = rows.shape[1], self.n_components
        relation = Neighbours.of(self.neighbours)
        bound = Sensitivity(1.0, "range", relation, "|V'x|^2 lies in [0, 1]")
        draw = Exponential(bound, self.epsilon, one_sided=relation is Neighbours.ADD_REMOVE)
        self._check_concentration(draw.factor, relation, records.n_records)
        release = draw.statement(
            "components",
            mechanism="matrix Bingham",
            noise="density e^({factor:.4g} tr(V' M V))",
            units="rows of norm 1",
        )
        promise = self._promised([release], "pure", source, leaks, records)
        caveats = (*promise.caveats, IN_FLOATING_POINT)
        promise = replace(promise, caveats=caveats)
        if k not in (1, d - 1, d) and not leaks:
            doubt = (
                f"Gibbs sampling, {self.n_sweeps} sweeps from a random frame: how near the limit "
                "is, is not known"
            )
            promise = replace(promise, definition="asymptotic", caveats=(*caveats, doubt))
        self._charged(promise, records, source)
        moments = np.asarray(second_moments(rows, unit(radius, d)))
        rng = unprotected_generator(source)
        start = np.linalg.qr(rng.standard_normal((d, k)))[0]  # independent of the data
        frame = sample_matrix_bingham(
            draw.factor * moments, k, rng, n_sweeps=self.n_sweeps, init=start
        )
        self.components_ = np.ascontiguousarray(frame.T)
        self.explained_ = self.is_detected_ = None

    def _check_concentration(self, factor, relation, n_samples):
        """Raise a ValueError if moments are too large for the sampler, at the largest n."""
        from privclust.bingham import LARGEST_CONCENTRATION

        number, most = f"n_samples={n_samples}", n_samples
        if relation is Neighbours.ADD_REMOVE:
            number, most = f"neighbours={self.neighbours!r}", LARGEST_ROWS
        if factor * most > LARGEST_CONCENTRATION:
            largest = LARGEST_CONCENTRATION / most * (self.epsilon / factor)
            raise ValueError(
                f"epsilon must be at most {largest:.4g} for mechanism='exponential' with {number}, "
                f"got {self.epsilon!r}"
            )


def _moments(groups: Groups | None, rows: np.ndarray, length: float) -> FixedPoint:
    """Return the sum of x x' over rows, or of its group means, in units of a length."""
    terms = ((size, [second_moments(part, length)]) for size, part in by_size(groups, rows))
    return weighted_sums(terms, spread=rows.shape[1])[0]


def _leading(matrix, k):
    """Return eigenvectors (as rows) and values of the k largest eigenvalues, descending."""
    d = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=(d - k, d - 1), check_finite=False)
    rows = np.ascontiguousarray(vectors[:, ::-1].T)
    # the sign of an eigenvector is open: its largest entry is made positive
    largest = rows[np.arange(k), np.abs(rows).argmax(axis=1)]
    return rows * np.where(largest < 0, -1.0, 1.0)[:, None], values[::-1]
