"""PrivateMail: noisy release of a query, in an embedding or by a map fitted to public data."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from privclust.core.fixed_point import SUM_BITS, FixedPoint, unit_margin
from privclust.core.hints import RandomState
from privclust.core.validation import DELTA, Integer, check_parameters
from privclust.embedding._discriminants import discriminants
from privclust.embedding._query_rows import ClassRows, QueryRow, label_range
from privclust.embedding._smlq import (
    FLOORS,
    KERNELS,
    PARAMETERS,
    LabelledEmbedding,
    checked_labels,
    kernel_in_place,
    kernel_width,
    unit_rows,
)
from privclust.embedding._smlq_kernels import later_iterates, series_terms
from privclust.embedding._smlq_sensitivity import sensitivity_bound, weighted_mean_diameter
from privclust.privacy import Guarantee, Neighbours
from privclust.privacy.budget import charge
from privclust.privacy.estimator import (
    all_or_nothing,
    caveats_of_bounds,
    private_records,
    validated,
)
from privclust.privacy.measurements import Gaussian, analytic_gaussian_sigma
from privclust.privacy.noise import is_seeded, noise_source, unprotected_generator
from privclust.privacy.sensitivity import Sensitivity

_BLOCK_QUERIES = 64  # queries per block of kernels with the public set
_LEAST_NOISE, _LARGEST_NOISE = 1e-150, 1e150  # limits within which squares are normal numbers
_LARGEST_EXPONENT = 80.0  # exp(-80) is a normal number in float32
_LABEL_LEAK = (
    "the iterations after the noise use the query's private label again, so that they are not "
    "post-processing without Algorithm 1's dummies"
)
_OTHER_PROOF = (
    "the printed proof of Theorem 2 bounds a squared norm and uses it as the norm; this statement "
    "rests on a bound for an exchange of the query instead"
)


@dataclass(eq=False, repr=False)
class PrivateMail(LabelledEmbedding):
    r"""Private release of a query image's features, for retrieval of its nearest neighbours.

    The client has one query and shares a public, labelled set with the server. `fit` computes
    everything that depends only on public images. `release` returns the client's message for each
    query. Neighbouring inputs differ in the query, both features and label (replace-one).

    **variant="paper"**: Fig. 4 and Algorithm 1 as printed. One iterate of `SMLQ` on query and
    public set is computed from a public start Q. Gaussian noise of standard deviation
    :math:`\sqrt{2 \ln(1.25 / \delta)} \Delta / \epsilon` is added to all rows, with :math:`\Delta`
    by Theorem 2. T iterates follow, with the labels and the Laplacian of the released embedding.

    **variant="code"**: the authors' code. It has other weights (see `SMLQ`), :math:`\Delta` with c
    for :math:`c^2`, and the variance :math:`2 \ln(1.25 / \delta) \Delta^2 / \epsilon^2` passed as a
    standard deviation, so that results depend on `init_scale`. The released embedding and all later
    iterates are rescaled to Frobenius norm :math:`\sqrt n`.

    ``obfuscate=True`` is the complete Algorithm 1: one row per class follows the public rows, in
    the order of the classes. The query has the row of its class; each other row is a dummy, a
    random public image. :math:`L_Y` is then the same for every query, and later iterates are
    post-processing. The guarantee uses a proved sensitivity to a replaced query
    (`iterate_sensitivity`) instead of Theorem 2. Without dummies, as in the authors' code, the
    query's label is in :math:`L_Y` *after* the noise, and there is no guarantee. With
    ``label_after_noise=False`` the query (with dummies, all class rows) has a row and column of
    zeros in :math:`L_Y`, and the guarantee is that of the noise.

    **variant="corrected"**: the query's label is not used. ``released="feature"``: features of norm
    1, minus the public mean, are mapped to the linear discriminants of the public set, divided by
    their norm, rounded to multiples of 2^-30, and released with Gaussian noise. The distance of two
    such vectors is at most :math:`\Delta = 2`, attained by opposite ones, and sigma is the least
    that is (epsilon, delta)-private. (A factor :math:`1 + 2^{-30} \sqrt k` keeps rounded vectors in
    the ball and increases the noise accordingly.) ``released="embedding"``: the query's row of the
    first iterate without labels, up to a constant: :math:`\tfrac12 \sum_j p_j Q_j` with weights p
    from the kernel with public images. Its sensitivity is half the diameter of the weighted means
    of Q with kernel values in :math:`[e^{-4 / h}, 1]`, h the kernel's width
    (`privclust.embedding._smlq_sensitivity.weighted_mean_diameter`). Row and sensitivity are linear
    in Q, so that `init_scale` has no effect. The other rows depend on the query only by its kernel
    weights and are not released. The feature is the default: relative to the sensitivity the noise
    is equal, but discriminants fill the ball, while a kernel as wide as the printed one maps all
    images to a small part of the diameter.

    Guarantees are for one query: q queries spend q times the budget, and open ledgers are charged
    for each.

    Parameters
    ----------
    n_components : int or None
        Columns of the embedding, k; None: 2, and for the discriminants their number, the number
        of public classes less 1 (at most n_features).
    alpha, sigma, init_scale, n_iter, kernel
        See `SMLQ`. T = `n_iter` counts iterates after the noise. ``kernel=None`` is the kernel of
        the variant, and eq. (2) with ``"corrected"``.
    epsilon, delta : float
        Budget of one query: epsilon in nats, positive; delta in (0, 1).
    variant : {"corrected", "paper", "code"}
    label_after_noise : bool or None
        Whether iterates after the noise use the query's label. None: as in the variant; never with
        ``"corrected"``.
    obfuscate : bool
        Whether to hide the query among dummies; not with ``"corrected"``, which needs none.
    released : {"feature", "embedding"}
        Released vector of the variant ``"corrected"``.
    start_seed : int
        Seed of Q. It is public: client and server share it, and the guarantee assumes it is known.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of the noise. None for release (needs ``privclust[secure]``), else for reproduction.

    Attributes
    ----------
    sensitivity_ : float
        Sensitivity for the scale of the noise.
    noise_scale_ : float
        Standard deviation of the noise.
    guarantee_ : privclust.privacy.Guarantee
        Guarantee of the release of one query.
    start_ : ndarray of shape (n_public + 1, n_components)
        Q; the query is last. With dummies (n_public + n_classes, n_components). Not set for
        discriminants.
    classes_ : ndarray
        Public labels.
    n_features_in_ : int

    References
    ----------
    P. Vepakomma, J. Balla and R. Raskar, "PrivateMail: supervised manifold learning of deep
    features with differential privacy for image retrieval", 2021, Fig. 4, Algorithm 1, Theorem 2;
    B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], 20)
    >>> X = np.eye(3)[y] + 0.1 * rng.normal(size=(60, 3))
    >>> model = PrivateMail(epsilon=1.0, random_state=0).fit(X, y)
    >>> model.release(X[:1]).shape, model.guarantee_.definition, round(model.noise_scale_, 2)
    ((1, 2), 'approximate', 7.46)
    >>> printed = PrivateMail(variant="paper", random_state=0).fit(X, y)
    >>> printed.release(X[:1], y[:1]).shape, printed.guarantee_.definition
    ((1, 61, 2), 'none')
    >>> whole = PrivateMail(variant="paper", obfuscate=True, random_state=0).fit(X, y)
    >>> whole.release(X[:1], y[:1]).shape, whole.guarantee_.definition
    ((1, 63, 2), 'approximate')
    """

    sensitivity_: float = field(init=False)
    noise_scale_: float = field(init=False)
    guarantee_: Guarantee = field(init=False)
    start_: np.ndarray = field(init=False)
    classes_: np.ndarray = field(init=False)
    n_features_in_: int = field(init=False)

    _constraints: ClassVar = {**PARAMETERS, "delta": DELTA, "start_seed": Integer(0)}

    n_components: int | None = None
    _: KW_ONLY
    alpha: float = 0.6
    sigma: float = 6.0
    init_scale: float = 1e-8
    n_iter: int = 5
    kernel: Literal["sigma", "sigma^2", "2 sigma^2"] | None = None
    epsilon: float = 0.1
    delta: float = 1e-5
    variant: Literal["corrected", "paper", "code"] = "corrected"
    label_after_noise: bool | None = None
    obfuscate: bool = False
    released: Literal["feature", "embedding"] = "feature"
    start_seed: int = 0
    random_state: RandomState = None

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to the public images, and calibrate the noise for one query.

        Parameters
        ----------
        X : array-like of shape (n_public, n_features)
            Public features, finite; rows are divided by their norm.
        y : array-like of shape (n_public,)
            Public labels, integers; with ``variant`` other than ``"corrected"`` a query may have
            any label from the least to the largest.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X or y is not as described, the public set has fewer rows than components or fewer
            than two classes, Theorem 2 gives no bound, or a parameter is out of its range.
        """
        X, y = self._labelled(X, y)
        self._check_parameters(len(X))
        self._source = noise_source(self.random_state)
        self.classes_ = np.unique(y)
        self._public, self._y = self._scaled(X), y
        if self.variant == "corrected" and self.released == "feature":
            self._map = discriminants(self._public, y, self.n_components)
            # the distance of two unit vectors is at most 2
            self.sensitivity_ = 2.0
        else:
            self._prepare_kernel()
        self._calibrate()
        self._state_guarantee()
        return self

    def release(self, X: ArrayLike, y: ArrayLike | None = None) -> np.ndarray:
        """Return the released rows for each query separately.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Finite; rows are divided by their norm. The error for other rows is not covered by the
            guarantee.
        y : array-like of shape (n_queries,) or None
            Labels of the queries, integers; not used with ``variant="corrected"``.

        Returns
        -------
        ndarray
            With ``"corrected"`` of shape (n_queries, n_components). Else of shape (n_queries,
            n_public + 1, n_components): the embedding after the last iterate, the query last. With
            dummies n_public + n_classes rows, the query at the position of its class in `classes_`.

        Raises
        ------
        ValueError
            If X is not as described, or labels are missing, out of the public range or, with
            dummies, not public labels.
        """
        check_is_fitted(self)
        X = private_records(self, X, dtype=[np.float64, np.float32], reset=False).rows
        labels = None if self.variant == "corrected" else self._query_labels(y, len(X))
        if len(X):  # all queries or none
            charge(self.guarantee_.compose(*[self.guarantee_] * (len(X) - 1)))
        if self.variant == "corrected":
            return self._release_map(self.public_map(X))
        embeddings = np.empty((len(X), *self.start_.shape))
        kernel = np.empty((len(self.start_),) * 2)
        for rows in gen_batches(len(X), _BLOCK_QUERIES):
            embeddings[rows] = self._embed(self._scaled(X[rows]), labels[rows], kernel)
        return embeddings

    def _release_map(self, images):
        """Return mapped queries with noise; unit vectors are rounded within the unit ball."""
        if self.released == "embedding":  # the sensitivity includes rounding
            return self._noise.release(images, self._source)
        margin = unit_margin(images.shape[1], SUM_BITS)
        whole = np.rint(np.ldexp(images.astype(np.float64) / margin, SUM_BITS)).astype(np.int64)
        return self._noise.release(FixedPoint(whole, SUM_BITS), self._source) * margin

    def public_map(self, X: ArrayLike) -> np.ndarray:
        """Return rows under the map fitted to public data, without noise.

        With ``variant="corrected"``, `release` adds noise to the result. A server applies the map
        to its own images to compare them with a release.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)

        Raises
        ------
        ValueError
            If X is not as described or the variant is not ``"corrected"``.
        """
        check_is_fitted(self)
        if self.variant != "corrected":
            raise ValueError(
                f"variant: got {self.variant!r}; only 'corrected' maps one row at a time, the "
                "others embed whole sets (SMLQ)"
            )
        X = validated(self, X, dtype=[np.float64, np.float32], order="C", reset=False)
        if self.released == "feature":
            mean, directions = self._map
            return unit_rows((unit_rows(X) - mean) @ directions)
        weights = self._weights(unit_rows(X)).astype(np.float64)
        np.maximum(weights, self._least, out=weights)  # rounding must not exceed the sensitivity
        means = weights @ self.start_[:-1]
        return 0.5 * means / weights.sum(axis=1, keepdims=True)

    def iterate_sensitivity(self, unit: float = 1.0) -> float:
        """Return a proved sensitivity of the first iterate to a replaced query.

        The guarantees of ``"paper"`` and ``"code"`` use it instead of Theorem 2. Without dummies it
        is for this public set. With dummies a replaced query changes two rows, and the bound holds
        for any public set.

        Parameters
        ----------
        unit : float
            Unit of the start, such as `init_scale`.

        Returns
        -------
        float
            In that unit; infinite if a public image has no neighbour.

        Raises
        ------
        ValueError
            If the variant is ``"corrected"``, which embeds no public images.
        """
        check_is_fitted(self)
        if self.variant == "corrected":
            raise ValueError(
                "variant: got 'corrected'; only 'paper' and 'code' embed public images"
            )
        return self._rows.sensitivity(unit)

    def _prepare_kernel(self):
        default = KERNELS.get(self.variant, "sigma")
        self._width = kernel_width(self.sigma, self.kernel or default)
        n, n_rows = len(self._y), len(self.classes_) if self.obfuscate else 1
        shape = (n + n_rows, self.n_components or 2)
        self.start_ = np.random.default_rng(self.start_seed).normal(
            scale=self.init_scale, size=shape
        )
        if self.variant == "corrected":
            if 4.0 / self._width > _LARGEST_EXPONENT:
                raise ValueError(
                    f"sigma must be larger with released='embedding': kernels of opposite images "
                    f"underflow, got {self.sigma!r}"
                )
            # unit vectors are at most 2 apart
            self._least = math.exp(-4.0 / self._width)
            self.sensitivity_ = 0.5 * weighted_mean_diameter(self.start_[:-1], self._least)
            return
        self._series = series_terms(*self.start_.shape[::-1])
        self._values = label_range(self.classes_)
        kernel = self._weights(self._public)
        np.fill_diagonal(kernel, 0.0)
        kind = ClassRows if self.obfuscate else QueryRow
        self._rows = kind(
            kernel, self._y, self._values, self.start_,
            alpha=self.alpha, width=self._width, variant=self._label_kernel(),
        )  # fmt: skip
        self.sensitivity_ = sensitivity_bound(
            n + n_rows - 1,
            self.alpha,
            self.sigma,
            len(self._values),
            float(np.linalg.norm(self.start_)),
            self.variant,
        )

    def _calibrate(self):
        if self.variant == "corrected":
            unit = Sensitivity(1.0, "l2", Neighbours.REPLACE_ONE, "the unit of the noise")
            sigma = analytic_gaussian_sigma(unit, self.epsilon, self.delta)
            self.noise_scale_ = self.sensitivity_ * sigma
            return
        # the formula of Fig. 4 at every epsilon, although its proof needs epsilon up to 1
        scale = math.sqrt(2.0 * math.log(1.25 / self.delta)) * self.sensitivity_ / self.epsilon
        self.noise_scale_ = scale if self.variant == "paper" else scale * scale
        if not _LEAST_NOISE <= self.noise_scale_ <= _LARGEST_NOISE:
            raise ValueError(
                f"epsilon={self.epsilon:g} and init_scale={self.init_scale:g} ask for noise of "
                f"scale {self.noise_scale_:.3g}, which must lie between {_LEAST_NOISE:g} and "
                f"{_LARGEST_NOISE:g}: change one of them"
            )

    def _embed(self, X, labels, kernel):
        weights = self._weights(X).astype(np.float64, copy=False)
        is_code, floor = self.variant == "code", FLOORS[self.variant]
        rng = unprotected_generator(self._source)
        # transposed, (m, k, n_rows): later loops run over rows
        columns = self._rows.first_iterates(weights, labels, rng)
        columns = self._noise.release(columns, self._source)
        for label, image in zip(labels, columns, strict=True):
            classes = self._rows.classes(label if self._uses_label() else None)
            later_iterates(
                image, self.n_iter, self._width, classes, self._rows.matrix, is_code, self.alpha,
                floor, is_code, self._series, kernel,
            )  # fmt: skip
        return np.swapaxes(columns, 1, 2)

    def _weights(self, X):
        """Return the kernel of unit rows and public images, shape (m, n_public)."""
        public = self._public.astype(np.result_type(X, self._public), copy=False)
        weights = X.astype(public.dtype, copy=False) @ public.T
        squares = (np.einsum("ij,ij->i", rows, rows) for rows in (X, public))
        kernel_in_place(weights, *squares, self._width)
        return weights

    def _query_labels(self, y, n_queries):
        if y is None:
            raise ValueError(
                f"y: labels of the queries are missing, and variant={self.variant!r} embeds with "
                "them; give them or use variant='corrected'"
            )
        y = checked_labels(y)
        if len(y) != n_queries:
            raise ValueError(f"y must have one label for each of {n_queries} queries, got {len(y)}")
        if len(y) and (y.min() < self._values[0] or y.max() > self._values[-1]):
            raise ValueError(
                f"y must lie in the range of public labels, {self._values[0]} to {self._values[-1]}"
            )
        if self.obfuscate and not np.isin(y, self.classes_).all():
            raise ValueError(
                "y must be labels of public images with obfuscate=True: the place of a query would "
                "reveal it if its class had no dummy"
            )
        return y - self._values[0]

    def _scaled(self, X):
        """Return rows scaled to norm 1, as printed, for kernels."""
        return unit_rows(X)

    def _label_kernel(self):
        """Return the kind of label weights, see `label_matrix`."""
        return self.variant

    def _uses_label(self):
        """Return whether iterates after the noise use the query's label."""
        default = self.variant != "corrected"
        return default if self.label_after_noise is None else self.label_after_noise

    def _state_guarantee(self):
        caveats, flaw = (), ""
        if self.variant == "corrected":
            name, proof = {
                "feature": ("discriminants of the query", "two unit vectors"),
                "embedding": (
                    "embedding of the query",
                    "half the diameter of weighted means of the public start",
                ),
            }[self.released]
        else:
            name, proof = "embedding of query and public set", "Theorem 2"
        bound = Sensitivity(self.sensitivity_, "l2", Neighbours.REPLACE_ONE, proof)
        self._noise = priced = Gaussian(bound, self.noise_scale_)
        if self._uses_label() and not self.obfuscate:
            flaw = _LABEL_LEAK
        elif self.variant != "corrected":
            moved = self.iterate_sensitivity()
            priced = self._noise.against(replace(bound, value=moved))
            caveats = (_OTHER_PROOF,)
        self.guarantee_ = Guarantee.of(
            [priced.statement(name, flaw=flaw)],
            "approximate",
            bound.relation,
            delta=self.delta,
            seeded=is_seeded(self._source),
            caveats=(*caveats, *caveats_of_bounds(self)),
        )

    def _check_parameters(self, n_public):
        check_parameters(self)
        if self.label_after_noise not in (None, True, False):
            raise ValueError(
                f"label_after_noise must be True, False or None, got {self.label_after_noise!r}"
            )
        for name in ("label_after_noise", "obfuscate"):
            if self.variant == "corrected" and getattr(self, name):
                raise ValueError(
                    f"{name} must be False or None with variant='corrected', which has none"
                )
        if self.n_components is not None and self.n_components > n_public:
            raise ValueError(
                f"n_components must be at most the size of the public set, {n_public}, got "
                f"{self.n_components}"
            )
