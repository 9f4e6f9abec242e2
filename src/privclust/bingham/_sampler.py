"""Bingham distributions on spheres and on orthonormal frames."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privclust.bingham.kernels import draw_frames
from privclust.core.grassmann import random_bases
from privclust.core.validation import as_generator, check_integer

LARGEST_CONCENTRATION = 1e12
"""Largest entry of A: rounding changes the density by less than about 0.1 %."""

IN_FLOATING_POINT = (
    "sampled in floating point, by a generator that is not cryptographic: low-order bits are not "
    "protected"
)
"""Caveat of a guarantee for a draw: the sampler uses NumPy's PCG64, for any seed."""

_SYMMETRY_TOLERANCE = 1e-8  # largest difference of A and A', relative to the largest entry
_ORTHONORMALITY_TOLERANCE = 1e-6


def sample_matrix_bingham(
    A: ArrayLike,
    q: int,
    rng: np.random.Generator | int | None,
    n_sweeps: int = 10,
    init: ArrayLike | None = None,
    size: int | None = None,
) -> np.ndarray:
    r"""Draw orthonormal frames of density proportional to :math:`e^{tr(U' A U)}`.

    The distribution of eq. (12) of the private subspace clustering paper, with A for
    :math:`\epsilon A_\ell / 2`. Exact and independent draws for q = 1, q = d - 1 and q = d
    (uniform on the orthogonal group); otherwise states of a Gibbs sampler `n_sweeps` sweeps apart.

    The sampler draws the vectors of the complement of U one by one (for q = 1, U itself). Each is
    an exact draw of a vector Bingham of q + 1 dimensions given the others, in a full orthogonal
    basis of the space, kept from step to step. A sweep leaves little correlation: 0.85 or more
    effective samples of tr(U' A U) and of its slowest direction on matrices like those of
    clustering, where moving the columns of U leaves 0.1 to 0.2 (``benchmarks/bingham.py``). It can
    be slow if eigenvalues of A other than the q largest are comparable to those and differ much
    from one another. U is rotated uniformly before it is returned, which leaves its density
    unchanged, so that no label or sign is kept.

    Parameters
    ----------
    A : array-like of shape (d, d)
        Symmetric, entries up to 1e12 in magnitude.
    q : int
        1 to d.
    rng : numpy.random.Generator, int or None
    n_sweeps : int
        Sweeps before each draw.
    init : array-like of shape (d, q) or None
        Orthonormal columns to start from; None for the mode, eigenvectors of the largest
        eigenvalues. Without effect if draws are exact.
    size : int or None
        Number of draws; None for one, without the first axis.

    Returns
    -------
    ndarray of shape (d, q) or (size, d, q), float64

    Raises
    ------
    ValueError
        If A is not a finite symmetric matrix, or a parameter is out of its range.

    References
    ----------
    P. Hoff, "Simulation of the matrix Bingham-von Mises-Fisher distribution", Journal of
    Computational and Graphical Statistics 18, 2009; Y. Wang, Y.-X. Wang and A. Singh,
    "Differentially private subspace clustering", NIPS 2015, eq. (12).

    Examples
    --------
    >>> U = sample_matrix_bingham(np.diag([900.0, 900.0, 0.0, 0.0]), 2, np.random.default_rng(0))
    >>> bool(np.allclose(U.T @ U, np.eye(2))), bool(np.abs(U[2:]).max() < 0.2)
    (True, True)
    """
    A = _checked_matrix(A)
    d = len(A)
    check_integer("q", q, minimum=1)
    if q > d:
        raise ValueError(f"q must be at most the order of A, got q={q} for A of shape {A.shape}")
    check_integer("n_sweeps", n_sweeps, minimum=1)
    if size is not None:
        check_integer("size", size, minimum=0)
    rng = as_generator(rng)
    frame = _checked_frame(init, A, q)
    n_frames = 1 if size is None else size
    if q == d:
        frames = random_bases(n_frames, d, d, rng)
    else:
        frames = np.empty((n_frames, d, q))
        # with one moved vector a sweep is an exact draw, whatever the state before
        is_exact = q in (1, d - 1)
        draw_frames(A, full_basis(frame), q, 1 if is_exact else n_sweeps, rng, frames)
    return frames[0] if size is None else frames


def full_basis(frame: np.ndarray) -> np.ndarray:
    """Return an orthogonal matrix, rows in the kernels' order, with the frame's subspace.

    Parameters
    ----------
    frame : ndarray of shape (d, q), q < d
        Orthonormal columns.

    Returns
    -------
    ndarray of shape (d, d)
    """
    d, q = frame.shape
    columns = np.linalg.qr(frame, mode="complete")[0]
    rows = np.ascontiguousarray(columns.T)
    return rows if q == 1 else np.roll(rows, d - q, axis=0)  # see `subspace_rows`


def _checked_matrix(A):
    """Return A, exactly symmetric, minus a multiple of I, for precision."""
    try:
        A = np.array(A, dtype=np.float64)
    except (TypeError, ValueError):
        A = np.empty(0)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.size == 0:
        raise ValueError(f"A must be a real matrix of shape (d, d), d > 0, got shape {A.shape}")
    if not np.isfinite(A).all():
        raise ValueError("A must be finite, got NaN or inf")
    largest = np.abs(A).max()
    if np.abs(A - A.T).max() > _SYMMETRY_TOLERANCE * largest:
        raise ValueError(f"A must be symmetric, got A - A' up to {np.abs(A - A.T).max():g}")
    if largest > LARGEST_CONCENTRATION:
        raise ValueError(
            f"A must have entries of magnitude up to {LARGEST_CONCENTRATION:g}, got {largest:g}"
        )
    A = 0.5 * (A + A.T)
    # tr(U'U) is constant, so a multiple of I changes no density
    return A - np.trace(A) / len(A) * np.eye(len(A))


def _checked_frame(init, A, q):
    if init is None:
        return np.linalg.eigh(A)[1][:, ::-1][:, :q]
    frame = np.array(init, dtype=np.float64)
    if frame.shape != (len(A), q):
        raise ValueError(f"init must have shape {(len(A), q)}, got {frame.shape}")
    # `not <=` also refuses NaN
    if not np.abs(frame.T @ frame - np.eye(q)).max() <= _ORTHONORMALITY_TOLERANCE:
        raise ValueError("init must have orthonormal columns")
    return frame
