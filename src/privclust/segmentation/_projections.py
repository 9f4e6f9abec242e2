"""Orthonormal coordinates of data for the solvers."""

from __future__ import annotations

import numpy as np

from privclust.core.warn import warn_caller

_SPAN_TOLERANCE = 1e-9  # of one minus the leverage; excludes coefficients above 3e4


def largest_magnitude(samples: np.ndarray) -> float:
    """Return the largest magnitude in `samples`, or 1 if all are zero; a safe unit of scale."""
    return float(np.abs(samples).max()) or 1.0


def row_space(samples: np.ndarray, *, centre: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the singular values (r,) and the basis V (n, r) of the thin SVD ``X = U S V.T``.

    `samples` is X (d, n), one sample per column; with `centre` the mean column is subtracted first.
    Directions with a singular value of at most ``max(d, n) * eps * ||X||_F`` are left out, so that
    r is the numerical rank (0 for data of zeros).
    """
    # before centring: rounding is relative to the samples as given
    scale = np.linalg.norm(samples)
    if centre:
        samples = samples - samples.mean(axis=1, keepdims=True)
    _, values, right = np.linalg.svd(samples, full_matrices=False)
    limit = max(samples.shape) * np.finfo(np.float64).eps * scale
    rank = int(np.count_nonzero(values > limit))
    return values[:rank], np.ascontiguousarray(right[:rank].T)


def spanned_by_others(basis: np.ndarray) -> np.ndarray:
    """Return for each sample whether it is in the span of the others; warn if some are not.

    With Q = `basis` (n, q) orthonormal and the constraint ``Q' z = Q' e_j``, ``z_j = 0``, sample j
    is outside the span of the others if and only if its leverage ``||Q' e_j||^2`` is 1.
    """
    spanned = np.einsum("ij,ij->i", basis, basis) <= 1.0 - _SPAN_TOLERANCE
    n_outside = int(np.count_nonzero(~spanned))
    if n_outside:
        warn_caller(
            f"{n_outside} of {spanned.size} samples are not in the span of the others: their "
            "coefficients are 0; use the form that allows for noise"
        )
    return spanned
