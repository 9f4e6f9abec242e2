"""t-SNE of private rows among public ones, with noise on gradients."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from privclust.core.hints import RandomState
from privclust.core.progress import logged
from privclust.core.validation import DELTA, Real, check_integer, check_parameters
from privclust.embedding._dpdsne_kernels import affinities, forces
from privclust.embedding._random_projection import PER_CALL
from privclust.privacy import Guarantee, Neighbours
from privclust.privacy.budget import charge
from privclust.privacy.estimator import (
    PrivateEstimator,
    caveats_of_bounds,
    private_records,
    validated,
)
from privclust.privacy.measurements import Gaussian, gaussian_share
from privclust.privacy.noise import NoisyTransformer, is_seeded, noise_source
from privclust.privacy.sensitivity import Sensitivity

_BLOCK_ROWS = 1024  # private rows that are embedded together, independently of each other
_MEAN_ROUNDING = 4.0 * np.finfo(np.float64).eps  # per term, of the difference of two means
_LARGEST_ENTRY = 1e100  # limit on coordinates: sums of squares stay finite
_ATTRACTION = Sensitivity(  # over D, which is public
    1.0,
    "l2",
    Neighbours.REPLACE_ONE,
    "a mean of public h with private weights moves by at most D = max |h - h'|",
)
_OF_ALL_GRADIENTS = "each of n gradients within a ball of radius C: 2 C sqrt(n)"


@dataclass(eq=False, repr=False)
class DPdSNE(
    PrivateEstimator,
    NoisyTransformer,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    r"""Differentially private t-SNE of private rows, given an embedding of public ones.

    `fit` takes public rows (anchors) and their embedding z by any method, such as t-SNE.
    `transform` places private rows among them by `max_iter` steps of gradient descent with Gaussian
    noise, from the mean of the anchors' embedding. **Each call is a release** of its rows. Anchors
    do not move and are not private.

    Let p be the conditional probabilities of the other points given a row x, from a Gaussian kernel
    of the features with a bandwidth for `perplexity`. With

    .. math:: w_j = \frac{1}{1 + \|y - z_j\|^2}, \quad q_j = \frac{w_j}{\sum_l w_l}, \quad
              h_j = 2 w_j (y - z_j),

    the gradient of KL(p || q) in y is :math:`g = \sum_j p_j h_j - \sum_j q_j h_j`: an attraction
    minus a repulsion.

    **corrected**, the default: each row interacts with the anchors only.

    - y is a function of earlier releases, so that q, h and the repulsion are public. Only the
      attraction depends on x and needs noise.
    - The attraction is a mean of the :math:`h_j` with weights p, for any x and bandwidth. Replacing
      x moves it within the convex hull of the :math:`h_j`, by at most
      :math:`D(y) = \max_{jl} \|h_j - h_l\|`, which is public. Since :math:`\|h_j\| = 2 r / (1 +
      r^2) \le 1` with :math:`r = \|y - z_j\|`, D is at most 2, attained by anchors at distance 1 on
      either side of y. No clipping is needed. D is computed as the diagonal of the bounding box of
      all h, or twice the longest h if smaller, plus a bound on the rounding of the sums.
    - The repulsion is a mean of the :math:`h_j` too. The released vector, attraction minus
      repulsion over D, is therefore in the unit ball.
    - Noise of standard deviation :math:`D(y)\, / s` in each coordinate has a zCDP loss of
      :math:`s^2 / 2` per step. s is the largest for which `max_iter` steps are
      (epsilon, delta)-private.
    - The embedding of other rows does not depend on x. By the order of summation, the last bits of
      an embedding may depend on the number of rows in the call and on the position of the row. For
      replace-one neighbours both are public.

    **paper**: private rows also interact with each other, the gradient of each is clipped to a ball
    of radius C, `clip`, and the noise is calibrated to 2 C, as if a replaced row changed only its
    own gradient. However, x affects p of all rows of the call, and its embedding their forces. All
    n gradients may change by 2 C each: the sensitivity is :math:`2 C \sqrt n`, attained by two
    rows. There is no guarantee for an unlimited number of rows; `guarantee_of` states that for n
    rows. For one row it is (epsilon, delta).

    Two parts of DP-dSNE are left out: the anchors there move by the mean of noisy gradients of
    several sites, and coordinates are scaled before clipping (AdaCliP) by estimates from earlier
    steps. Conditional instead of joint p and q are usual for new points in a t-SNE embedding.

    Parameters
    ----------
    epsilon, delta : float
        Budget of one transform of a row; epsilon in nats, positive, delta in (0, 1).
    variant : {"corrected", "paper"}
    perplexity : float
        Effective number of neighbours of a private row; at least 1 and less than the number of
        anchors.
    max_iter : int
        T, the number of steps; the budget is divided among them.
    learning_rate : float
        Step size, in squared units of the embedding; it decreases linearly to zero. Below
        2 / (2 exaggeration + 1.25) no step without noise increases the (exaggerated) divergence:
        the divisor bounds its second derivatives. Forces fall as 2 / r, so that small steps do not
        cross a wide embedding. Use 10 for embeddings of the width of t-SNE, about 50 units, and 1
        for a width of 15.
    exaggeration : float
        Factor of the attraction, and of its noise, in the first half of the steps, as usual in
        t-SNE.
    clip : float
        C, for ``"paper"``. Gradients have norm 2 at most, without exaggeration.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None for release (needs ``privclust[secure]``), anything else for reproduction.

    Attributes
    ----------
    anchors_ : ndarray of shape (n_anchors, n_features)
    embedding_ : ndarray of shape (n_anchors, n_components)
        The anchors' embedding z, as given.
    guarantee_ : privclust.privacy.Guarantee
        Guarantee of one transform of each row, for replace-one; ``"none"`` for ``"paper"``.
    n_iter_ : int
        Steps of each transform.
    n_features_in_ : int

    Notes
    -----
    Time and memory of a step are proportional to n_rows n_anchors: about 4 nanoseconds per pair.
    ``"paper"`` adds all pairs of private rows.

    References
    ----------
    D. Saha, V. Calhoun, Y. Du, Z. Fu, S. Kwon, A. Sarwate, S. Panta and S. Plis,
    "Privacy-preserving quality control of neuroimaging datasets in federated environments", Human
    Brain Mapping 43, 2022; L. van der Maaten and G. Hinton, "Visualizing data using t-SNE", JMLR 9,
    2008, eq. (5).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> public = rng.normal(size=(100, 5)) + np.repeat([[-5.0], [5.0]], 50, axis=0)
    >>> model = DPdSNE(epsilon=1e6, random_state=0).fit(public, 3.0 * public[:, :2])
    >>> placed = model.transform([[-5.0] * 5, [5.0] * 5])
    >>> bool((placed[0] < -3).all() and (placed[1] > 3).all())
    True
    >>> model.guarantee_.definition, round(model.guarantee_.epsilon)
    ('approximate', 1000000)
    """

    anchors_: np.ndarray = field(init=False)
    embedding_: np.ndarray = field(init=False)
    n_iter_: int = field(init=False)
    n_features_in_: int = field(init=False)

    _constraints: ClassVar = {"delta": DELTA, "perplexity": Real(1.0, inclusive=True)}

    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    variant: Literal["corrected", "paper"] = "corrected"
    perplexity: float = 30.0
    max_iter: int = 50
    learning_rate: float = 10.0
    exaggeration: float = 4.0
    clip: float = 0.5
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the model to public rows and their embedding.

        Parameters
        ----------
        X : array-like of shape (n_anchors, n_features)
            Public rows; finite, of magnitude up to 1e100.
        y : array-like of shape (n_anchors, n_components) or (n_anchors,)
            Their embedding; finite, of magnitude up to 1e100.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X or y is not finite or too large, they differ in length, the number of anchors does
            not exceed the perplexity, or a parameter is out of its range.
        """
        X, y = validated(
            self, X, y=y, dtype=np.float64, order="C", multi_output=True, y_numeric=True
        )
        check_parameters(self)
        if self.perplexity >= len(X):
            raise ValueError(
                "perplexity must be less than the number of anchors, got "
                f"perplexity={self.perplexity:g} for n_samples={len(X)}"
            )
        z = np.array(y, dtype=np.float64).reshape(len(X), -1)
        for name, array in (("X", X), ("y", z)):
            _check_magnitude(name, array)
        self.anchors_, self.embedding_ = X, z
        self._source = noise_source(self.random_state)
        bound = _ATTRACTION
        if self.variant == "paper":
            bound = Sensitivity(2.0 * self.clip, "l2", _ATTRACTION.relation, _OF_ALL_GRADIENTS)
        share = gaussian_share(self.epsilon, self.delta, self.max_iter)
        self._noise = Gaussian.of_share(bound, share, self.max_iter)
        self.guarantee_ = self.guarantee_of(None)
        self.n_iter_ = self.max_iter
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Release the embedding of rows, with fresh noise; every call is charged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Private rows; finite, of magnitude up to 1e100. The error for other rows is not covered
            by the guarantee.

        Returns
        -------
        ndarray of shape (n_samples, n_components), float64
            Within the bounding box of the anchors' embedding.

        Raises
        ------
        ValueError
            If X is not finite or too large, or has another number of features.
        """
        check_is_fitted(self)
        X = private_records(self, X, reset=False).rows
        _check_magnitude("X", X)
        charge(self.guarantee_of(len(X)))
        if self.variant == "paper":
            return self._placed(X, np.vstack([self.anchors_, X]))
        return np.vstack(
            [self._placed(X[block], self.anchors_) for block in gen_batches(len(X), _BLOCK_ROWS)]
        )

    def guarantee_of(self, n_rows: int | None) -> Guarantee:
        """Return the guarantee of a transform of a number of rows.

        Parameters
        ----------
        n_rows : int or None
            None for any number; not used for ``"corrected"``.

        Returns
        -------
        privclust.privacy.Guarantee

        Raises
        ------
        ValueError
            If `n_rows` is neither None nor a positive integer.
        """
        if n_rows is not None:
            check_integer("n_rows", n_rows, minimum=1)
        noise, relation = self._noise, self._noise.sensitivity.relation
        if self.variant == "corrected":
            words = "scale {scale:.4g} times D <= 2"
            release = noise.statement("attraction of a row", noise=words)
        elif n_rows is None:
            flaw = "the noise is for 2 C, but n gradients change by 2 C sqrt(n)"
            release = noise.statement("gradients of all rows", flaw=flaw)
        else:
            release = noise.for_rows(n_rows).statement("gradients of all rows")
        return Guarantee.of(
            [release],
            "approximate",
            relation,
            delta=self.delta,
            seeded=is_seeded(self._source),
            caveats=(PER_CALL, *caveats_of_bounds(self)),
        )

    def __sklearn_tags__(self):
        """Declare that `fit` requires the anchors' embedding as y."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    @property
    def _n_features_out(self):
        return self.embedding_.shape[1]

    def _placed(self, X, others):
        """Return the embedding of a block of private rows.

        `others` are the rows with which they interact: the anchors, or the anchors and X.
        """
        z, n_anchors = self.embedding_, len(self.anchors_)
        is_joint = len(others) > n_anchors
        center = others.mean(axis=0)  # subtracted against cancellation
        P = euclidean_distances(X - center, others - center, squared=True)
        if is_joint:
            rows = np.arange(len(X))
            P[rows, n_anchors + rows] = np.inf  # a row is not its own neighbour
        affinities(P, math.log(self.perplexity))
        low, high = z.min(axis=0), z.max(axis=0)
        Y = np.repeat(z.mean(axis=0)[None], len(X), axis=0)
        attraction, repulsion, spread = np.empty(Y.shape), np.empty(Y.shape), np.empty(len(Y))
        for t in logged(range(self.max_iter), self.max_iter, "DP-dSNE: iterations"):
            points = np.ascontiguousarray((np.vstack([z, Y]) if is_joint else z).T)
            forces(P, Y, points, n_anchors if is_joint else -1, attraction, repulsion, spread)
            # early exaggeration of t-SNE: stronger attraction in the first half of the steps
            factor = self.exaggeration if 2 * t < self.max_iter else 1.0
            gradient = self._released(attraction, factor, repulsion, spread[:, None])
            rate = self.learning_rate * (1.0 - t / self.max_iter)
            Y = np.clip(Y - rate * gradient, low, high)
        return Y

    def _released(self, attraction, factor, repulsion, spread):
        """Return noisy gradients, with attractions multiplied by a factor."""
        if self.variant == "paper":
            gradient = _clipped(factor * attraction - repulsion, self.clip)
            return self._noise.release(gradient, self._source)
        # means of n terms, each at most 1 long, are rounded by up to this
        scale = spread + _MEAN_ROUNDING * len(self.anchors_)
        centred = (attraction - repulsion) / scale
        noisy = self._noise.release(centred, self._source)
        # `noisy` is (a - r) / scale: factor a - r = factor (a - r) + (factor - 1) r, with r public
        return factor * scale * noisy + (factor - 1.0) * repulsion


def _check_magnitude(name, array):
    if max(-float(array.min()), float(array.max())) > _LARGEST_ENTRY:
        raise ValueError(f"{name} has a magnitude above {_LARGEST_ENTRY:g}: rescale it")


def _clipped(rows, radius):
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * np.minimum(1.0, radius / np.maximum(norms, radius))
