"""Principal components under differential privacy."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
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
from privclust.privacy import Guarantee, Neighbours
from privclust.privacy.bounds import bounded_rows
from privclust.privacy.estimator import PrivateEstimator, caveats_of_bounds, validated
from privclust.privacy.groups import Groups, by_size, unit_of, weighted_sums
from privclust.privacy.measurements import Exponential, second_moment_noise
from privclust.privacy.noise import is_seeded, noise_source, unprotected_generator
from privclust.privacy.sensitivity import Sensitivity, check_neighbours
from privclust.privacy.spectra import detected_subspaces, estimated_moments


@dataclass(eq=False, repr=False)
class PrivatePCA(
    PrivateEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    r"""Principal components, about the origin, released with differential privacy.

    The components are the eigenvectors of the `n_components` largest eigenvalues of the second
    moments :math:`M = \sum x x'` of rows x, which are divided by `norm_bound` first. They are not
    centred: the mean would have to be paid for; subtract a centre that is known without the data.
    The sums are exact: entries of rows are rounded to multiples of 2^-16 of `norm_bound`, a little
    enlarged, so that the sensitivities below hold of what is computed
    (``privclust.core.second_moments``). With groups, such as persons with several rows each, every
    row of n counts 1 / n, and M is that of data in which every group weighs the same: what one
    group changes M by is what a row may, at most (``privclust.privacy.groups``).

    **gaussian**, the default: M plus a symmetric matrix of Gaussian noise ("analyze Gauss"). The
    eigenvectors are post-processing.

    - *add-remove*: M changes by :math:`\|x x'\|_F = \|x\|^2 \le 1`.
    - *replace-one*, x by y: :math:`\|x x' - y y'\|_F^2 = \|x\|^4 + \|y\|^4 - 2 (x'y)^2 \le 2`,
      attained by orthogonal unit rows: :math:`\sqrt 2`.

    The noise has deviation :math:`\sigma` on the diagonal and :math:`\sigma / \sqrt 2` beside it,
    which is the same in each coordinate :math:`M_{ii}`, :math:`\sqrt 2 M_{ij}` of the Frobenius
    norm; :math:`\sigma` is the least for (epsilon, delta).

    **mod_sulq**: the same with the noise of MOD-SuLQ, :math:`N(0, s^2)` on every entry of the upper
    triangle, with :math:`s = n \beta`,

    .. math:: s = \frac{d+1}{\epsilon} \sqrt{2 \log \frac{d^2+d}{2 \sqrt{2 \pi} \delta}}
                  + \frac{1}{\sqrt{\epsilon}}.

    That is more than is needed: `guarantee_` states the epsilon that follows from s.

    **exponential** (PPCA): an orthonormal frame V of density proportional to
    :math:`e^{c\, tr(V' M V)}`, a matrix Bingham distribution. One row adds :math:`\|V'x\|^2`, which
    lies between 0 and 1, to the exponent's trace.

    - *replace-one*: the trace changes by something in [-1, 1], the density by a factor of at most
      :math:`e^c` and its normalisation by another: :math:`c = \epsilon / 2`.
    - *add-remove*: the trace never falls when a row is added, so that both factors lie in
      :math:`[1, e^c]` and their ratio in :math:`[e^{-c}, e^c]`: :math:`c = \epsilon`.

    For 1, d - 1 and d components the draw is exact and the loss epsilon, pure. For others it is the
    state of a Gibbs sampler after `n_sweeps` sweeps from a uniformly random frame, private in the
    limit of many sweeps only, which `guarantee_` says. All draws are made in floating point and by
    numpy's generator, which is not cryptographic; with ``random_state=None`` the operating system
    seeds it. `guarantee_` says this too.

    **What is private** are the components. `transform` projects whatever rows it is given and adds
    no noise: it protects none of them.

    Time is :math:`n d^2` (BLAS) and :math:`d^3` for the eigenvectors: with 11,000 rows of 1,280
    features about a second. With ``random_state=None`` OpenDP draws :math:`d (d + 1) / 2` normal
    numbers at some 70 microseconds each, a minute for d = 1,280.

    Parameters
    ----------
    n_components : int
        k, from 1 to n_features.
    epsilon, delta : float
        Budget; epsilon in nats, positive, delta in (0, 1). ``"exponential"`` uses no delta.
    mechanism : {"gaussian", "exponential", "mod_sulq"}
    norm_bound : float or None
        Largest Euclidean norm of a row, known without the data. None takes it from the data, with
        a warning, and leaves no guarantee.
    out_of_bounds : {"clip", "error"}
        What happens to longer rows: clipped to the bound, with a warning, or refused. Drawn in,
        any row is taken: one with infinite entries by these alone, and NaN as 0.
    neighbours : {"replace_one", "add_remove"}
        For which neighbours the guarantee is. With ``"add_remove"`` any number of rows is taken,
        none included, and ``"exponential"`` takes an epsilon up to 931.
    n_sweeps : int
        Of the Gibbs sampler of ``"exponential"``, where it is needed.
    missing : {"drop", "middle"}
        What becomes of a row with an entry that is missing (NaN, None) or cannot be read as a
        number. ``"drop"``: the row contributes nothing, and `left_out_` says how many there are.
        ``"middle"``: the entry counts as the middle of the bounds, and all rows count.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None for release (needs ``privclust[secure]``), anything else for reproduction.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal rows; by falling eigenvalue and with a positive largest entry, but for
        ``"exponential"``, whose frame is turned at random.
    explained_ : ndarray of shape (n_components,) or None
        Eigenvalues of the noisy moments, in squared units of X; too large by what noise adds. None
        for ``"exponential"``, which releases none.
    captured_ : ndarray of shape (n_components,) or None
        Estimated sums of squares of the rows along each component, in squared units of X, from the
        noisy moments alone. None for ``"exponential"``.
    second_moments_ : ndarray of shape (n_features, n_features) or None
        Estimate of the second moments of X themselves, positive semidefinite: the noisy ones
        without what noise adds to their eigenvalues. None for ``"exponential"``.
    is_detected_ : bool or None
        Whether noise cannot have turned the components' span, told from the released moments alone.
        None for ``"exponential"``.
    left_out_ : privclust.privacy.NoisyCount or None
        The noisy number of rows (of persons, with `groups`) that are left out; see
        `privclust.privacy.left_out`. None with ``missing="middle"`` and without a guarantee.
    guarantee_ : privclust.privacy.Guarantee
    n_features_in_ : int

    Warns
    -----
    NoiseWarning
        If the released moments alone say that noise decides on the components
        (``privclust.privacy.spectra``); not for ``"exponential"``, which releases none.

    References
    ----------
    K. Chaudhuri, A. Sarwate and K. Sinha, "Near-optimal differentially private principal
    components", NIPS 2012, and JMLR 14, 2013, Algorithms 1 and 2; C. Dwork, K. Talwar, A. Thakurta
    and L. Zhang, "Analyze Gauss: optimal bounds for privacy-preserving principal component
    analysis", STOC 2014; what `second_moments_` is made by is in ``privclust.privacy.spectra``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 1)) * [[0.6, 0.8, 0.0]]
    >>> model = PrivatePCA(1, norm_bound=1.0, random_state=0).fit(X)
    >>> bool(np.abs(model.components_ - [[0.6, 0.8, 0.0]]).max() < 0.01)
    True
    >>> bool(abs(model.captured_[0] / np.square(X).sum() - 1.0) < 0.05)
    True
    >>> model.guarantee_.definition, round(model.guarantee_.epsilon, 3)
    ('approximate', 1.0)
    """

    components_: np.ndarray = field(init=False)
    explained_: np.ndarray | None = field(init=False)
    captured_: np.ndarray | None = field(init=False)
    second_moments_: np.ndarray | None = field(init=False)
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
    out_of_bounds: Literal["clip", "error"] = "clip"
    neighbours: Literal["replace_one", "add_remove"] = "replace_one"
    n_sweeps: int = 10
    missing: Literal["drop", "middle"] = "drop"
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        records = self._checked_records(X, groups)
        X = records.rows
        if groups is not None and self.mechanism == "exponential":
            raise ValueError(
                "mechanism='exponential' takes no groups: its draw is private for rows whose "
                "moments are not rounded once more; take mechanism='gaussian'"
            )
        source = noise_source(self.random_state)
        rows, radius, leaks = bounded_rows(X, self.norm_bound, self.out_of_bounds)
        doubts = (*leaks, *caveats_of_bounds(self))
        if self.mechanism == "exponential":
            self._draw_frame(rows, radius, source, bool(leaks), doubts, records)
        else:
            self._add_noise(rows, radius, source, bool(leaks), doubts, records)
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the coordinates of rows along the components. Adds no noise to them.

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

    def _add_noise(self, rows, radius, source, leaks, caveats, records):
        noise, length = self._noise(rows.shape[1]), unit(radius, rows.shape[1])
        promise = Guarantee.of(
            [noise.statement("second moments", units="rows of norm 1")],
            "none" if leaks else "approximate",
            noise.sensitivity.relation,
            delta=self.delta,
            seeded=is_seeded(source),
            caveats=caveats,
            unit=unit_of(records.groups),
        )
        self._charged(promise, records, source)
        noisy = noise.release(_moments(records.groups, rows, length)[None], source)
        self.components_, values = _leading(noisy[0], self.n_components)
        self.explained_ = values * length**2
        self.second_moments_ = estimated_moments(noisy[0], noise) * length**2
        turned = self.components_ @ self.second_moments_
        self.captured_ = np.einsum("ij,ij->i", turned, self.components_)
        (self.is_detected_,) = detected_subspaces(
            noisy, self.n_components, noise, of="sets of components"
        )

    def _noise(self, n_features):
        mod_sulq, budget = self.mechanism == "mod_sulq", (self.epsilon, self.delta)
        return second_moment_noise(n_features, self.neighbours, *budget, mod_sulq=mod_sulq)

    def _draw_frame(self, rows, radius, source, leaks, caveats, records):
        """Release a draw of the matrix Bingham distribution."""
        # compiled code, which the other mechanisms need not wait for
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
        caveats = (*caveats, IN_FLOATING_POINT)
        is_exact = k in (1, d - 1, d)
        promise = self._promise_of_frame(release, is_exact, source, leaks, caveats)
        self._charged(promise, records, source)
        moments = np.asarray(second_moments(rows, unit(radius, d)))
        rng = unprotected_generator(source)
        start = np.linalg.qr(rng.standard_normal((d, k)))[0]  # owes nothing to the data
        frame = sample_matrix_bingham(
            draw.factor * moments, k, rng, n_sweeps=self.n_sweeps, init=start
        )
        self.components_ = np.ascontiguousarray(frame.T)
        self.explained_ = self.captured_ = self.second_moments_ = self.is_detected_ = None

    def _check_concentration(self, factor, relation, n_samples):
        """Raise a ValueError if moments of rows, or of the most there may be, are too large."""
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

    def _promise_of_frame(self, release, is_exact, source, leaks, caveats):
        relation, seeded = Neighbours.of(self.neighbours), is_seeded(source)
        if leaks or is_exact:
            return Guarantee.of(
                [release], "none" if leaks else "pure", relation, seeded=seeded, caveats=caveats
            )
        return Guarantee(
            "asymptotic",
            relation,
            (release,),
            epsilon=self.epsilon,
            seeded=seeded,
            caveats=(
                *caveats,
                f"Gibbs sampling, {self.n_sweeps} sweeps from a random frame: how near the limit "
                "is, is not known",
            ),
        )


def _moments(groups: Groups | None, rows: np.ndarray, length: float) -> FixedPoint:
    """Return the sum of x x' over rows in units of a length, or over groups of their mean."""
    terms = ((size, [second_moments(part, length)]) for size, part in by_size(groups, rows))
    return weighted_sums(terms, spread=rows.shape[1])[0]


def _leading(matrix, k):
    """Return eigenvectors of the k largest eigenvalues as rows, and those, largest first."""
    d = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=(d - k, d - 1), check_finite=False)
    rows = np.ascontiguousarray(vectors[:, ::-1].T)
    largest = rows[np.arange(k), np.abs(rows).argmax(axis=1)]
    return rows * np.where(largest < 0, -1.0, 1.0)[:, None], values[::-1]
