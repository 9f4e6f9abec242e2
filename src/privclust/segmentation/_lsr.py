"""Least squares representation."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from privclust.segmentation._projections import row_space, spanned_by_others
from privclust.segmentation._self_expressive import SelfExpressiveClusterer


@dataclass(eq=False, repr=False)
class LSR(SelfExpressiveClusterer):
    r"""Subspace segmentation by least squares regression (Lu et al.).

    With samples in the columns of X, Z is the minimiser of

    .. math:: \|X - X Z\|_F^2 + \lambda \|Z\|_F^2

    with ``diag(Z) = 0`` (LSR1) or without (LSR2), or, with ``lam=None``, the Z of least Frobenius
    norm with ``X = X Z``, which is the limit of ``lam`` to 0. Both are closed forms in the thin SVD
    ``X = U S V'``. With ``G = V diag(s^2 / (s^2 + lam)) V'`` LSR2 is ``Z = G`` and LSR1, which
    Lu et al. write as ``-D diag(D)^-1`` with ``D = (X'X + lam I)^-1``, is
    ``z_ij = g_ij / (1 - g_jj)``. Without noise LSR2 is ``V V'``, the solution of LRR too (section 2
    of the MTSC paper).

    Parameters
    ----------
    n_clusters : int or None, default None
        Number of clusters; None estimates it by the eigengap.
    lam : float or None, default 4.6e-3
        Regularisation lambda, positive, in units of squared data. None asks for equality.
    zero_diagonal : bool, default True
        Whether a sample may not represent itself.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default None
        For the k-means starts of the spectral clustering.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_samples, n_samples)
        Z; column j represents sample j.
    affinity_matrix_, labels_, n_clusters_
        See `SelfExpressiveClusterer`.

    Warns
    -----
    UserWarning
        If ``lam=None``, ``zero_diagonal=True`` and samples are not in the span of the others: their
        coefficients are 0.

    References
    ----------
    C. Lu, H. Min, Z. Zhao, L. Zhu, D. Huang and S. Yan, "Robust and efficient subspace segmentation
    via least squares regression", ECCV 2012, eqs. (11)-(15).

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.segmentation import LSR
    >>> X = np.kron(np.eye(2), np.array([[1.0], [2.0], [-1.0]]))
    >>> Z = LSR(n_clusters=2, lam=None, zero_diagonal=False, random_state=0).fit(X).coefficients_
    >>> bool(np.allclose(X.T @ Z, X.T) and np.allclose(Z[:3, 3:], 0.0))
    True
    """

    _: KW_ONLY
    lam: float | None = 4.6e-3
    zero_diagonal: bool = True

    def _coefficients(self, samples):
        values, basis = row_space(samples)
        n_samples, rank = basis.shape
        lam = 0.0 if self.lam is None else self.lam
        # lam / s^2 in this form does not overflow for small singular values
        ratio = (np.sqrt(lam) / values) ** 2
        lost = ratio / (1.0 + ratio)  # lam / (s^2 + lam)
        if not self.zero_diagonal:
            return (basis * (1.0 - lost)) @ basis.T
        complement = (basis * lost) @ basis.T  # I - G = lam D
        if rank < n_samples:  # else I - V V' is zero, and rounding would only blur the small rest
            complement += np.eye(n_samples) - basis @ basis.T
        diagonal = np.diag(complement)
        spanned = spanned_by_others(basis) if self.lam is None else diagonal > 0.0
        # division by inf: a sample outside the span of the others gets no coefficients
        coefficients = -complement / np.where(spanned, diagonal, np.inf)
        np.fill_diagonal(coefficients, 0.0)
        return coefficients
