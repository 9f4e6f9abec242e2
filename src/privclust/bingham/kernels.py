r"""Compiled draws from Bingham distributions: the vector, and frames column by column.

These are parts: other compiled code, such as the Gibbs sampler of `privclust.subspaces`, inlines
them in its loops. `privclust.bingham` calls those marked as kernels from Python.

**Vector.** The density is proportional to :math:`e^{-x' G x}` on the unit sphere of R^p. For any
kappa with :math:`\Omega = G + \kappa I` positive definite let t = x' Omega x, so that the density
is proportional to e^-t. The angular central Gaussian with that Omega has density proportional to
t^(-p/2) and is a normal vector of precision Omega over its length. Since
:math:`e^{-t} t^{p/2} \le e^{-p/2} (p/2)^{p/2}`, a proposal accepted with probability
:math:`e^{p/2 - t} (2 t / p)^{p/2}` is an exact draw (Kent, Ganeiber and Mardia, 2018). Most are
accepted where tr(Omega^-1) = 2. Any kappa is exact, so that of an earlier draw may be used, an
accuracy of about 20 % is enough and no eigenvalues are needed. With the Cholesky factor Omega = L
L', a standard normal z and y = L'^-1 z, the proposal is y / |y| and t = |z|^2 / |y|^2.

**Frames.** A frame F of r orthonormal vectors with density proportional to
:math:`e^{-tr(F' K F)}` is moved by Gibbs sampling over its vectors. Given the others, one is a
vector Bingham in their orthogonal complement, which is spanned by this vector and the complement E
of the frame. [F, E] is kept as an orthogonal matrix; a reflection maps the old vector to the new
one and transforms E. The choice of basis E of its span does not matter. Rotating F by a matrix
computed from F (such as the eigenvectors of F' K F) would break the chain's invariance and is not
done here.

With K = -M and r = q this samples U of density :math:`e^{tr(U' M U)}` column by column. With K = M
and r = d - q it samples its complement, since tr(U' M U) + tr(V' M V) is constant.
"""

import numpy as np

from privclust.core.compiled import REORDER, kernel, part

_LEAST_TRACE, _LARGEST_TRACE = 1.4, 2.6  # accepted traces of Omega^-1; the best value is 2
_MAX_STEPS = 100  # for kappa; bisection alone needs about 50
_NO_MATRIX = -1.0


@part(fastmath=REORDER)
def _factor(G: np.ndarray, p: int, kappa: float, L: np.ndarray, R: np.ndarray) -> float:
    """Write the Cholesky factor L of G + kappa I and R = L^-1; return tr((G + kappa I)^-1).

    The diagonal of L holds reciprocals. Returns _NO_MATRIX if it is not positive definite.
    """
    for i in range(p):
        for j in range(i):
            total = G[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total * L[j, j]
        pivot = G[i, i] + kappa
        for k in range(i):
            pivot -= L[i, k] * L[i, k]
        if not pivot > 0.0:
            return _NO_MATRIX
        L[i, i] = 1.0 / np.sqrt(pivot)
    # row i of L R = I, solved for row i of R; the trace is the sum of squares of R
    trace = 0.0
    for i in range(p):
        R[i, : i + 1] = 0.0
        for k in range(i):
            factor = L[i, k]
            for j in range(k + 1):
                R[i, j] -= factor * R[k, j]
        scale = L[i, i]
        for j in range(i):
            R[i, j] *= scale
        for j in range(i):
            trace += R[i, j] * R[i, j]
        R[i, i] = scale
        trace += scale * scale
    return trace


@part(fastmath=REORDER)
def _squared_trace(R: np.ndarray, p: int) -> float:
    """Return tr(Omega^-2) from R = L^-1."""
    total = 0.0
    for a in range(p):
        for b in range(a + 1):
            entry = 0.0
            for i in range(a, p):
                entry += R[i, a] * R[i, b]
            total += entry * entry if a == b else 2.0 * entry * entry
    return total


@part()
def prepare(G: np.ndarray, p: int, kappa: float, L: np.ndarray, R: np.ndarray) -> float:
    """Write factors of Omega = G + kappa I with tr(Omega^-1) near 2; return the kappa used.

    Only the leading p x p part of the symmetric G is used; `kappa` is a guess that speeds up the
    search. For L and R, of at least p rows and columns, see `_factor`.
    """
    least = -G[0, 0] + 0.5  # (Omega^-1)_ii >= 1 / Omega_ii: the trace is above 2 below this
    for i in range(1, p):
        least = max(least, -G[i, i] + 0.5)
    low, high = -np.inf, np.inf
    step = 0.25 * p
    kappa = max(kappa, least)
    for _ in range(_MAX_STEPS):
        trace = _factor(G, p, kappa, L, R)
        if trace == _NO_MATRIX:
            low = kappa
            kappa = kappa + step if high == np.inf else 0.5 * (low + high)
            step *= 2.0
            continue
        if _LEAST_TRACE <= trace <= _LARGEST_TRACE:
            return kappa
        if trace > 2.0:
            low = kappa
        else:
            high = kappa
        # Newton's step for 1 / trace = 1 / 2, kept within the bracket
        moved = kappa + 0.5 * trace * (trace - 2.0) / _squared_trace(R, p)
        if moved <= low or moved < least:
            moved = 0.5 * (max(low, least) + kappa)
        elif moved >= high:
            moved = 0.5 * (kappa + high)
        kappa = moved
    # not converged, by rounding
    _factor(G, p, high, L, R)  # any kappa is exact, and this one gives a positive definite matrix
    return high


@part(fastmath=REORDER)
def draw(R: np.ndarray, p: int, rng: np.random.Generator, x: np.ndarray) -> None:
    """Write to x[:p] an exact draw from the density e^(-x' G x), with R from `prepare`."""
    half = 0.5 * p
    while True:
        length, size = 0.0, 0.0
        x[:p] = 0.0
        for i in range(p):
            normal = rng.standard_normal()
            length += normal * normal
            for j in range(i + 1):
                x[j] += normal * R[i, j]
        for j in range(p):
            size += x[j] * x[j]
        ratio = length / (size * half)  # t / (p / 2)
        if np.log(1.0 - rng.random()) <= half * (1.0 - ratio + np.log(ratio)):
            scale = 1.0 / np.sqrt(size)
            for j in range(p):
                x[j] *= scale
            return


@part(fastmath=REORDER)
def dot(a: np.ndarray, b: np.ndarray) -> float:
    """Inner product of two vectors."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@part(fastmath=REORDER)
def multiply_symmetric(B: np.ndarray, K: np.ndarray, sign: float, out: np.ndarray) -> None:
    """Write sign * B K for a symmetric K."""
    for i in range(B.shape[0]):
        row = out[i]
        row[:] = 0.0
        for j in range(K.shape[0]):
            other, factor = K[j], sign * B[i, j]
            for m in range(K.shape[0]):
                row[m] += factor * other[m]


@part(fastmath=REORDER)
def orthonormalise(B: np.ndarray) -> None:
    """Make rows orthonormal by Gram-Schmidt, twice, to remove the rounding of many reflections."""
    for _ in range(2):
        for i in range(B.shape[0]):
            for j in range(i):
                part = dot(B[i], B[j])
                for m in range(B.shape[1]):
                    B[i, m] -= part * B[j, m]
            scale = 1.0 / np.sqrt(dot(B[i], B[i]))
            for m in range(B.shape[1]):
                B[i, m] *= scale


@part()
def draw_haar_rows(B: np.ndarray, rng: np.random.Generator) -> None:
    """Write uniformly distributed orthonormal rows."""
    for i in range(B.shape[0]):
        for m in range(B.shape[1]):
            B[i, m] = rng.standard_normal()
    orthonormalise(B)


@part(fastmath=REORDER)
def _reflect(
    rows: np.ndarray, first: np.ndarray, p: int, h: np.ndarray, beta: float, total: np.ndarray
) -> None:
    """Reflect the p rows that `first` and h describe: rows 0 .. p-2 of E, and the moved one."""
    # rows[first[i]] -= beta h_i sum_k h_k rows[first[k]]
    d = rows.shape[1]
    total[:] = 0.0
    for i in range(p):
        row, weight = rows[first[i]], beta * h[i]
        for m in range(d):
            total[m] += weight * row[m]
    for i in range(p):
        row, weight = rows[first[i]], h[i]
        for m in range(d):
            row[m] -= weight * total[m]


@part()
def frame_workspace(d: int) -> tuple[np.ndarray, ...]:
    """Return workspace of `resample_frame`: W, G, L, R of shape (d, d), vectors, row numbers."""
    square = np.empty((4, d, d))
    return square[0], square[1], square[2], square[3], np.empty((4, d)), np.empty(d, np.int64)


@part()
def moved_frame(d: int, q: int) -> tuple[float, int]:
    """Return (sign, r) of `resample_frame` for U of density e^tr(U' M U).

    A sweep is exact for q = 1, where it moves U, and q = d - 1, where it moves the complement. In
    between the complement is moved: its conditionals join all directions of U, with eigenvalues
    that differ more than those of the noise (``benchmarks/bingham.py``).
    """
    return (-1.0, q) if q == 1 else (1.0, d - q)


@part()
def subspace_rows(d: int, q: int) -> tuple[int, int]:
    """Return first and last + 1 of the rows of a full basis that span the subspace."""
    sign, r = moved_frame(d, q)
    return (0, q) if sign < 0 else (r, d)


@part(fastmath=REORDER)
def rotated_frame(
    B: np.ndarray, q: int, rng: np.random.Generator, rotation: np.ndarray, out: np.ndarray
) -> None:
    """Write the subspace's basis, rotated or reflected uniformly, as columns."""
    first, _ = subspace_rows(B.shape[0], q)
    draw_haar_rows(rotation, rng)
    for m in range(B.shape[0]):
        for c in range(q):
            entry = 0.0
            for a in range(q):
                entry += rotation[c, a] * B[first + a, m]
            out[m, c] = entry


@kernel()
def draw_frames(
    A: np.ndarray, B: np.ndarray, q: int, n_sweeps: int, rng: np.random.Generator, out: np.ndarray
) -> None:
    """Fill `out` (size, d, q) with frames of density e^tr(U' A U), n_sweeps sweeps between them.

    The rows of B (d, d) are the chain's state, changed in place, in the order of `moved_frame`; q
    is 1 to d - 1.
    """
    d = A.shape[0]
    sign, r = moved_frame(d, q)
    space, rotation = frame_workspace(d), np.empty((q, q))
    kappas = np.full(d, -np.inf)
    for i in range(out.shape[0]):
        for _ in range(n_sweeps):
            resample_frame(B, A, sign, r, rng, kappas, space)
        orthonormalise(B)
        rotated_frame(B, q, rng, rotation, out[i])


@part(fastmath=REORDER)
def resample_frame(
    B: np.ndarray,
    K: np.ndarray,
    sign: float,
    r: int,
    rng: np.random.Generator,
    kappas: np.ndarray,
    space: tuple[np.ndarray, ...],
) -> None:
    """One sweep of Gibbs sampling over the first r rows of B, of density e^(-sign tr(F' K F)).

    The rows of B (d, d) are orthonormal and changed in place: the frame F is the first r, 1 to d -
    1, the others are its complement E. K is symmetric, `sign` 1 or -1, `space` of
    `frame_workspace`. The first r of `kappas` (d,) are guesses, -inf if there are none, and get the
    values used: those of the last sweep are good guesses, and any values keep the density.
    """
    W, G, L, R, vectors, places = space
    d = B.shape[0]
    p = d - r + 1
    x, h, w, total = vectors[0], vectors[1], vectors[2], vectors[3]
    multiply_symmetric(B, K, sign, W)  # rows of F are used before they move, those of E at once
    for a in range(p - 1):
        places[a] = r + a
        for b in range(a + 1):
            G[a, b] = dot(W[r + a], B[r + b])
            G[b, a] = G[a, b]
    for j in range(r):
        places[p - 1] = j
        for a in range(p):
            G[p - 1, a] = dot(W[j], B[places[a]])
            G[a, p - 1] = G[p - 1, a]
        kappas[j] = prepare(G, p, kappas[j], L, R)
        draw(R, p, rng, x)
        _move(B, G, p, x, h, w, total, places)


@part(fastmath=REORDER)
def _move(
    B: np.ndarray,
    G: np.ndarray,
    p: int,
    x: np.ndarray,
    h: np.ndarray,
    w: np.ndarray,
    total: np.ndarray,
    places: np.ndarray,
) -> None:
    """Reflect the last of p rows of B to x, with the others and their part of G."""
    # the reflection by h takes the last axis to x or -x, whichever is farther: no cancellation
    for i in range(p):
        h[i] = x[i]
    h[p - 1] += 1.0 if x[p - 1] >= 0 else -1.0
    beta = 1.0 / (1.0 + abs(x[p - 1]))  # 2 / |h|^2
    _reflect(B, places, p, h, beta, total)
    for a in range(p):
        w[a] = beta * dot(G[a, :p], h[:p])
    inner = 0.0
    for a in range(p):
        inner += w[a] * h[a]
    for a in range(p):
        w[a] -= 0.5 * beta * inner * h[a]
    for a in range(p - 1):
        for b in range(p - 1):
            G[a, b] -= h[a] * w[b] + w[a] * h[b]
