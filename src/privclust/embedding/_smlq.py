"""Supervised manifold learning queries: an embedding by two graph Laplacians."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import gen_batches

from privclust.core.hints import RandomState
from privclust.core.validation import Real, as_generator, check_parameters
from privclust.embedding._smlq_kernels import label_product
from privclust.privacy.estimator import validated

KERNELS = {"paper": "sigma", "code": "sigma^2"}
FLOORS = {"paper": 0.0, "code": 1e-9}
_SQUARABLE = Real(1e-100, inclusive=True, at_most=1e100)  # its square is a normal number
PARAMETERS = {
    "alpha": Real(inclusive=True, at_most=1e100),
    "sigma": _SQUARABLE,
    "init_scale": _SQUARABLE,
}
_STRIPE_ROWS = 512  # rows of the kernel that are in double precision together


class LabelledEmbedding(BaseEstimator):
    """Base class of embeddings of samples with integer labels."""

    def _labelled(self, X, y):
        """Return at least two finite samples as floats, and their labels as int64."""
        if y is None:
            raise ValueError("y: requires y to be passed, but the target y is None: give labels")
        floats = [np.float64, np.float32]
        X, y = validated(self, X, y=y, dtype=floats, order="C", ensure_min_samples=2)
        return X, checked_labels(y)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


@dataclass(eq=False, repr=False)
class SMLQ(LabelledEmbedding):
    r"""Supervised manifold learning query: an iterative embedding of features and labels.

    With :math:`L_X` and :math:`L_Y` graph Laplacians of features and of labels, and D the diagonal
    of :math:`L_X`, the iterate (eq. 4)

    .. math:: Z_t = Z_{t-1} + \tfrac12 D^{-1} (\alpha L_Y - L_X) Z_{t-1}

    decreases :math:`v(Z) = \operatorname{tr} Z' L_X Z - \alpha \operatorname{tr} Z' L_Y Z` (eq. 3):
    samples with similar features attract each other, samples with similar labels repel each other.

    **Conditions (Theorem 1).** With :math:`S = Z_t - Z_{t-1}`, so that
    :math:`-2 D S = (L_X - \alpha L_Y) Z_{t-1}`,

    .. math:: v(Z_t) - v(Z_{t-1}) = -4 \operatorname{tr} S' D S
              + \operatorname{tr} S' (L_X - \alpha L_Y) S
              \le -2 \operatorname{tr} S' D S - \alpha \operatorname{tr} S' L_Y S,

    because nonnegative weights give :math:`L_X \preceq 2 D`. The last term is at most 0 if
    :math:`L_Y` is positive semidefinite: with ``variant="paper"`` the objective decreases at every
    step for every :math:`\alpha \ge 0`, start and bandwidth. As a quadratic form, v has infimum 0
    or minus infinity: as t grows, the embedding collapses or grows without bound, along the
    eigenvectors of :math:`D^{-1} (\alpha L_Y - L_X)` of largest modulus.

    With ``variant="code"`` :math:`L_Y` is *negative* semidefinite and the theorem does not apply.
    If labels are far apart the objective, now at least 0, increases: see `objectives_`. From 33
    classes on (at the default alpha) samples converge to a curve ordered by label, for any features
    (``docs/results/privatemail_details.md``).

    =================  ===================================  =======================================
    variant            ``"paper"``                          ``"code"`` (as released)
    =================  ===================================  =======================================
    feature weights    :math:`e^{-|x_i - x_j|^2/\sigma}`    :math:`e^{-|x_i - x_j|^2/\sigma^2}`
                       (eq. 2)
    label weights      the same kernel of the labels,       :math:`-\tfrac12 J \Delta J`, where
                       taken as numbers                     :math:`\Delta_{ij} = |y_i - y_j|`, J
                                                            centres: :math:`L_Y = \tfrac12
                                                            J \Delta J`
    degree 0           the sample stays (pseudo-inverse)    1e-9 in place of 0
    =================  ===================================  =======================================

    **Cost.** The feature kernel takes :math:`n^2 d` operations and :math:`n^2` numbers in the
    precision of X: at n = 11,000 and d = 1,280 in float32 1.5e11 operations and 484 MB. An iterate
    takes :math:`2 n^2 k` operations. The label Laplacian acts through the C classes in
    :math:`O(n k + C^2 k)`.

    Parameters
    ----------
    n_components : int, default 2
        k, columns of the embedding.
    alpha : float, default 0.6
        Weight of the labels, not negative.
    sigma : float, default 6.0
        Bandwidth of the Gaussian kernels, positive; of features of norm 1.
    init_scale : float, default 1e-8
        Standard deviation :math:`\sigma_q` of the random start, positive. The embedding is linear
        in the start.
    n_iter : int, default 5
        T, at least 1.
    variant : {"paper", "code"}
    kernel : {"sigma", "sigma^2", "2 sigma^2"} or None
        Divisor of squared distances. None: as in the variant. The paper's appendix has a third
        kernel (eq. 11), ``"2 sigma^2"``.
    init : ndarray of shape (n_samples, n_components) or None
        The start; None draws it.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        Source of the start.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        The last iterate. It is not private.
    iterates_ : ndarray of shape (n_iter + 1, n_samples, n_components)
        The start and all iterates.
    objectives_ : ndarray of shape (n_iter + 1,)
        v of the start and of all iterates.
    n_features_in_ : int

    References
    ----------
    P. Vepakomma, J. Balla and R. Raskar, "PrivateMail: supervised manifold learning of deep
    features with differential privacy for image retrieval", 2021, eqs. (2)-(4), Theorem 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 50)
    >>> X = np.where(y[:, None] == 0, [1.0, 0.2], [0.2, 1.0]) + 0.05 * rng.normal(size=(100, 2))
    >>> model = SMLQ(sigma=1.0, random_state=0).fit(X, y)
    >>> bool((np.diff(model.objectives_) < 0).all())
    True
    """

    embedding_: np.ndarray = field(init=False)
    iterates_: np.ndarray = field(init=False)
    objectives_: np.ndarray = field(init=False)
    n_features_in_: int = field(init=False)

    _constraints: ClassVar = PARAMETERS

    n_components: int = 2
    _: KW_ONLY
    alpha: float = 0.6
    sigma: float = 6.0
    init_scale: float = 1e-8
    n_iter: int = 5
    variant: Literal["paper", "code"] = "paper"
    kernel: Literal["sigma", "sigma^2", "2 sigma^2"] | None = None
    init: np.ndarray | None = None
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Embed samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite; rows are divided by their norm (a row of zeros stays). float32 stays float32.
        y : array-like of shape (n_samples,)
            Labels, integers; their differences are used as distances.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X or y is not as described, a parameter is out of its range, or the iterates
            overflow.
        """
        X, y = self._labelled(X, y)
        check_parameters(self)
        features = self._laplacian(X)
        labels = LabelLaplacian(y, self.variant, self._width())
        iterates = np.empty((self.n_iter + 1, len(X), self.n_components))
        iterates[0] = self._start(len(X))
        objectives = np.empty(self.n_iter + 1)
        # an overflow is found in the objectives below
        with np.errstate(over="ignore", invalid="ignore"):
            for t in range(self.n_iter + 1):
                slope = self.alpha * labels.dot(iterates[t]) - features.dot(iterates[t])
                objectives[t] = -float((iterates[t] * slope).sum())
                if t < self.n_iter:  # eq. (4)
                    iterates[t + 1] = iterates[t] + 0.5 * features.inverse_degrees[:, None] * slope
        if not np.isfinite(objectives).all():
            raise ValueError(
                f"the iterates overflowed with n_iter={self.n_iter}, alpha={self.alpha}, "
                f"init_scale={self.init_scale:g}: make one of them smaller"
            )
        self.iterates_, self.objectives_ = iterates, objectives
        self.embedding_ = iterates[-1]
        return self

    def fit_transform(self, X: ArrayLike, y: ArrayLike) -> np.ndarray:
        """Fit the model and return the embedding of X; see `fit`."""
        return self.fit(X, y).embedding_

    def _width(self):
        return kernel_width(self.sigma, self.kernel or KERNELS[self.variant])

    def _laplacian(self, X):
        return FeatureLaplacian(unit_rows(X), self._width(), FLOORS[self.variant])

    def _start(self, n_samples):
        shape = (n_samples, self.n_components)
        if self.init is None:
            return as_generator(self.random_state).normal(scale=self.init_scale, size=shape)
        init = np.asarray(self.init)
        if init.shape != shape or init.dtype.kind not in "fiu" or not np.isfinite(init).all():
            raise ValueError(
                f"init must be None or finite numbers of shape {shape}, got shape {init.shape} of "
                f"dtype {init.dtype}"
            )
        return init


def kernel_width(sigma: float, kernel: str) -> float:
    """Return the divisor of squared distances in the kernel."""
    return float({"sigma": sigma, "sigma^2": sigma**2, "2 sigma^2": 2.0 * sigma**2}[kernel])


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Return rows divided by their norm.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64

    Returns
    -------
    ndarray of shape (n, d)
        In the precision of X; rows of zeros stay.

    Examples
    --------
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    largest = np.abs(X).max(axis=1, keepdims=True)  # scaled squares cannot overflow
    scaled = X / np.where(largest > 0, largest, 1)
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(norms > 0, norms, 1)


def checked_labels(y, name: str = "y") -> np.ndarray:
    """Return labels as int64, or raise a ValueError unless they are whole numbers."""
    y = np.asarray(y)
    is_whole = y.dtype.kind in "iub" or (
        y.dtype.kind == "f" and np.isfinite(y).all() and (y == np.round(y)).all()
    )
    if not is_whole or y.ndim != 1 or (y.size and np.abs(y.astype(np.float64)).max() > 2**53):
        raise ValueError(
            f"{name}: Unknown label type: labels must be a vector of integers, got "
            f"{y.dtype} of shape {y.shape}"
        )
    return y.astype(np.int64)


def label_matrix(values: np.ndarray, variant: str, width: float) -> np.ndarray:
    """Return weights between labels, or distances for ``"code"``, shape (C, C).

    ``"one-hot"`` uses unit vectors instead of integers, another reading of the paper.
    """
    distances = np.abs(values[:, None] - values).astype(np.float64)
    if variant == "one-hot":
        distances = math.sqrt(2.0) * (distances > 0)
    return distances if variant == "code" else np.exp(-(distances**2) / width)


class LabelLaplacian:
    """The label Laplacian as an operator, computed through classes."""

    def __init__(self, y: np.ndarray, variant: str, width: float) -> None:
        values, self._classes = np.unique(y, return_inverse=True)
        self._matrix = label_matrix(values, variant, width)
        self._is_centred = variant == "code"

    def dot(self, Z: np.ndarray) -> np.ndarray:
        """Return the Laplacian times Z, shape (n, k)."""
        out = np.empty(Z.shape[::-1])
        label_product(np.ascontiguousarray(Z.T), self._classes, self._matrix, self._is_centred, out)
        return out.T


class FeatureLaplacian:
    """The Laplacian of a Gaussian kernel of rows as an operator.

    Squared distances are divided by `width`. In the inverse, `floor` replaces a degree of 0; with 0
    it is a pseudo-inverse.
    """

    def __init__(self, X: np.ndarray, width: float, floor: float = 0.0) -> None:
        squares = np.einsum("ij,ij->i", X, X)
        self._kernel = X @ X.T
        kernel_in_place(self._kernel, squares, squares, width)
        np.fill_diagonal(self._kernel, 0.0)
        self.degrees = self._kernel.sum(axis=1, dtype=np.float64)
        is_zero = self.degrees <= 0
        inverse = 1.0 / np.where(is_zero, 1.0, self.degrees)
        self.inverse_degrees = np.where(is_zero, 1.0 / floor if floor else 0.0, inverse)

    def dot(self, Z: np.ndarray) -> np.ndarray:
        """Return the Laplacian times Z, shape (n, k)."""
        return self.degrees[:, None] * Z - kernel_dot(self._kernel, Z)


def kernel_dot(kernel: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return a kernel times Z in double precision, without such a copy of the whole kernel."""
    stripes = gen_batches(len(kernel), _STRIPE_ROWS)
    return np.vstack([kernel[rows].astype(np.float64, copy=False) @ Z for rows in stripes])


def first_iterate(
    start: np.ndarray,
    degrees: np.ndarray,
    products: np.ndarray,
    public: np.ndarray,
    among: np.ndarray,
    labelled: np.ndarray,
    floor: float,
) -> np.ndarray:
    """Return the first iterate of n samples and r added rows, which follow them, (n + r, k).

    `degrees` (n,) are the row sums of the samples' kernel, and `products` (n, k) this kernel times
    their start. `public` (r, n) and `among` (r, r) are kernels of the added rows. `labelled` is
    alpha times the label Laplacian times the start. `floor` replaces a degree of 0; with 0 such a
    row does not move.
    """
    own, added = start[: len(degrees)], start[len(degrees) :]
    degrees = np.concatenate([degrees + public.sum(axis=0), public.sum(axis=1) + among.sum(axis=1)])
    inside = np.vstack([products + public.T @ added, public @ own + among @ added])
    step = labelled - (degrees[:, None] * start - inside)
    # without a floor, division by inf leaves a row of degree 0 in its place
    return start + 0.5 * step / np.where(degrees > 0.0, degrees, floor or np.inf)[:, None]


def kernel_in_place(products, row_squares, column_squares, width) -> None:
    """Turn inner products into ``exp(-|x - x'|^2 / width)``, with squares clipped at 0."""
    products *= 2
    products -= row_squares[:, None]
    products -= column_squares
    np.minimum(products, 0, out=products)
    products /= products.dtype.type(width)
    np.exp(products, out=products)
