"""Lloyd's algorithm with noise on counts and sums."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from privclust.lloyd import nearest_center, nearest_center_statistics
from privclust.privacy import Guarantee, Loss, Release
from privclust.privacy.accounting import calibrated, cdp_share, check_delta, check_epsilon
from privclust.privacy.bounds import bounded_rows, uniform_in_ball
from privclust.privacy.mechanisms import gaussian, laplace
from privclust.privacy.noise import is_seeded, noise_source, unprotected_generator
from privclust.privacy.sensitivity import Sensitivity
from privclust.validation import check_integer, check_number_of_groups, check_option

ACCOUNTING = ("pure", "pld", "cdp")
VARIANTS = ("sound", "paper")


@lru_cache(maxsize=1024)
def _joint_share(epsilon: float, delta: float, n_iter: int) -> float:
    """Calibrate normal noise once for all fits with one budget."""
    return calibrated(lambda share: [Loss(share**2 / 2.0, count=n_iter)], epsilon, delta)


class DPLloyd(ClusterMixin, BaseEstimator):
    r"""k-means by noised iterations of Lloyd's algorithm (DPLloyd).

    Each of `max_iter` iterations assigns rows to their nearest center and releases, with noise, how
    many there are (:math:`n_k`) and their sum (:math:`s_k`), all clusters at once; the center
    becomes :math:`s_k / \max(n_k, 1)`. With rows of norm at most R a row changes the pair
    :math:`(n, s / R)` by at most, over all clusters,

    ========================  ===========================  ====================================
    variant, accounting       neighbours and sensitivity   noise
    ========================  ===========================  ====================================
    ``paper``, ``pure``       add-remove, l1, d + 1        Laplace, scale (d + 1) J / epsilon
    ``sound``, ``pure``       replace-one, l1,             Laplace, scale 2 (1 + sqrt d) J /
                              2 (1 + sqrt d)               epsilon
    ``sound``, others         replace-one, l2, 2           normal
    ========================  ===========================  ====================================

    Parameters
    ----------
    n_clusters : int
    epsilon : float
        Budget of the whole fit in nats; with ``accounting="cdp"`` the mean loss of
        :math:`(\epsilon, \sqrt{2 \epsilon})`-CDP.
    delta : float
        Used by ``accounting="pld"``.
    accounting : {"pure", "pld", "cdp"}
        Pure epsilon-DP, (epsilon, delta)-DP or CDP.
    variant : {"sound", "paper"}
        ``"paper"``: the noise of Su et al. (2016) as the DP-EM paper uses it, for rows added or
        removed, centers left where the noise puts them. ``"sound"``: for replaced rows, centers
        drawn in to the ball, which is free.
    max_iter : int
        J, fixed in advance.
    norm_bound : float or None
        Largest Euclidean norm of a row, known without the data; None takes it from the data, warns,
        and leaves no guarantee.
    out_of_bounds : {"clip", "error"}
        What happens to longer rows.
    init : array-like of shape (n_clusters, n_features) or None
        Centers to start from, which must not depend on the data. None: uniform in the ball.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None for release (needs ``privclust[secure]``), anything else for reproduction.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,)
        Nearest center of each row of X. These are not private: they stay with who holds the rows.
    guarantee_ : privclust.privacy.Guarantee
    n_iter_ : int

    References
    ----------
    A. Blum, C. Dwork, F. McSherry and K. Nissim, "Practical privacy: the SuLQ framework", PODS
    2005; D. Su, J. Cao, N. Li, E. Bertino and H. Jin, "Differentially private k-means clustering",
    CODASPY 2016; DP-EM (arXiv:1605.06995), Section 6.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(-0.5, 0.05, (500, 2)), rng.normal(0.5, 0.05, (500, 2))])
    >>> model = DPLloyd(2, epsilon=5.0, norm_bound=1.0, random_state=1,
    ...                 init=[[-0.1, 0.0], [0.1, 0.0]]).fit(X)
    >>> bool(np.abs(np.abs(model.cluster_centers_) - 0.5).max() < 0.1)
    True
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        epsilon=1.0,
        delta=1e-6,
        accounting="pure",
        variant="sound",
        max_iter=5,
        norm_bound=None,
        out_of_bounds="clip",
        init=None,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.accounting = accounting
        self.variant = variant
        self.max_iter = max_iter
        self.norm_bound = norm_bound
        self.out_of_bounds = out_of_bounds
        self.init = init
        self.random_state = random_state

    def fit(self, X, y=None):
        """Find private centers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
        y : None
            Not used.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X is not finite, has fewer rows than clusters, or a parameter is out of its range.
        """
        X = validate_data(self, X, dtype=np.float64, order="C")
        self._check_parameters(len(X))
        source = noise_source(self.random_state)
        rows, radius, leaks = bounded_rows(X, self.norm_bound, self.out_of_bounds)
        centers = self._start(X.shape[1], radius, unprotected_generator(source))
        mechanism, sensitivity, strength, loss = self._noise(X.shape[1])
        for _ in range(self.max_iter):
            counts, sums, _ = nearest_center_statistics(rows, centers * radius)
            released = np.hstack([counts[:, None], sums / radius])
            noised = mechanism(released, sensitivity, strength, source)
            centers = noised[:, 1:] / np.maximum(noised[:, :1], 1.0)
            if self.variant == "sound":
                centers /= np.maximum(np.linalg.norm(centers, axis=1, keepdims=True), 1.0)
        self.cluster_centers_ = centers * radius
        self.labels_ = nearest_center(X, self.cluster_centers_)
        self.n_iter_ = self.max_iter
        self._set_guarantee(mechanism.__name__, sensitivity, strength, loss, source, leaks)
        return self

    def predict(self, X):
        """Return the index of the nearest center of each row, shape (n_samples,)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        return nearest_center(X, self.cluster_centers_)

    def _noise(self, n_features):
        """Return the mechanism, its sensitivity and strength, and the loss of all iterations."""
        n_iter, root = self.max_iter, math.sqrt(n_features)
        if self.accounting == "pure":
            share = self.epsilon / n_iter
            if self.variant == "paper":
                # |x|_1 <= sqrt(d) <= d makes the printed d + 1 an upper bound
                sensitivity = Sensitivity(
                    n_features + 1.0, "l1", "add-remove", "Su et al. 2016, Section 3"
                )
                l2 = math.sqrt(2.0)
            else:
                sensitivity = Sensitivity(
                    2.0 * (1.0 + root), "l1", "replace-one", "|(1, x)|_1 <= 1 + sqrt(d)"
                )
                l2 = 2.0
            rho = (l2 * share / sensitivity.value) ** 2 / 2.0
            return laplace, sensitivity, share, Loss(rho, share, n_iter)
        if self.accounting == "cdp":
            share = cdp_share(self.epsilon, n_pure=n_iter)
        else:
            share = _joint_share(self.epsilon, self.delta, n_iter)
        sensitivity = Sensitivity(
            2.0, "l2", "replace-one", "|(1, x)|^2 <= 2 and (1, x)'(1, x') >= 0"
        )
        return gaussian, sensitivity, 2.0 / share, Loss(share**2 / 2.0, count=n_iter)

    def _set_guarantee(self, mechanism, sensitivity, strength, loss, source, leaks):
        """State what the fit promises."""
        scale = strength if mechanism == "gaussian" else sensitivity.value / strength
        release = Release(
            "counts and sums", mechanism, f"scale {scale:.4g}", sensitivity.proof, loss
        )
        definition = {"pure": "pure", "pld": "approximate", "cdp": "cdp"}[self.accounting]
        self.guarantee_ = Guarantee.of(
            [release],
            "none" if leaks else definition,
            sensitivity.relation,
            delta=self.delta if definition == "approximate" else 0.0,
            seeded=is_seeded(source),
            caveats=leaks,
        )

    def _start(self, n_features, radius, rng):
        """Return the centers to start from, in units of the ball."""
        if self.init is None:
            return uniform_in_ball(self.n_clusters, n_features, rng)
        centers = np.array(self.init, dtype=np.float64)
        if centers.shape != (self.n_clusters, n_features) or not np.isfinite(centers).all():
            raise ValueError(
                f"init must be finite of shape ({self.n_clusters}, {n_features}), "
                f"got shape {centers.shape}"
            )
        return centers / radius

    def _check_parameters(self, n_samples):
        """Raise a ValueError that names the parameter, what it got and what it may be."""
        for name, known in (("accounting", ACCOUNTING), ("variant", VARIANTS)):
            check_option(name, getattr(self, name), known)
        check_epsilon(self.epsilon)
        if self.accounting == "pld":
            check_delta(self.delta)
        check_number_of_groups("n_clusters", self.n_clusters, n_samples)
        check_integer("max_iter", self.max_iter, minimum=1)
        if self.variant == "paper" and self.accounting != "pure":
            raise ValueError(
                f"variant='paper' has accounting 'pure' alone, got {self.accounting!r}"
            )
