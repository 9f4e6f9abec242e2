r"""Compiled sweeps of the Gibbs sampler for subspace clustering, eqs. (10) to (12).

One pass over the rows draws all labels and sums up the second moments of the clusters; nothing of
size n_samples x n_clusters is stored. For each cluster an orthogonal basis of the space is kept,
as `resample_frame` of `privclust.bingham.kernels` requires: that of the subspace, U, then that of
its complement, V. Labels need the smaller of the two, since
:math:`-d^2(x, S) = \|U' x\|^2 - \|x\|^2 = -\|V' x\|^2`.
"""

import numpy as np

from privclust.bingham.kernels import (
    draw_haar_rows,
    frame_workspace,
    moved_frame,
    orthonormalise,
    resample_frame,
    rotated_frame,
    subspace_rows,
)
from privclust.core.compiled import REORDER, kernel, part
from privclust.core.vectormath import exp_nonpositive

BLOCK = 64
"""Rows of a block: with 50 features they fit in the first-level cache."""

_REPAIR_EVERY = 64  # sweeps between corrections of rounding errors in orthonormal bases


def in_blocks(X: np.ndarray) -> np.ndarray:
    """Return rows in blocks of shape (n_features, BLOCK), the last filled up with zeros."""
    n_samples, n_features = X.shape
    padded = np.zeros((-(-n_samples // BLOCK) * BLOCK, n_features))
    padded[:n_samples] = X
    return np.ascontiguousarray(padded.reshape(-1, BLOCK, n_features).transpose(0, 2, 1))


@part(fastmath=REORDER)
def _add_coordinate(block, vector, sign, products, exponents):
    """Add sign (vector' x)^2 to the exponent of each x of a block."""
    products[:] = 0.0
    for j in range(block.shape[0]):
        for i in range(BLOCK):
            products[i] += vector[j] * block[j, i]
    for i in range(BLOCK):
        exponents[i] += sign * products[i] * products[i]


# no reordering here: labels compare a uniform number with sums in the order of the clusters
@part(fastmath={"contract", "nsz"})
def _draw_block(exponents, uniforms, chosen):
    """Draw l with probability proportional to e^exponents[l, i] for each i of a block.

    Exponents are overwritten by cumulative sums, and uniforms by their remainders.
    """
    k = exponents.shape[0]
    most = np.empty(BLOCK)
    total = np.zeros(BLOCK)
    for i in range(BLOCK):
        most[i] = exponents[0, i]
    for level in range(1, k):
        for i in range(BLOCK):
            most[i] = max(most[i], exponents[level, i])
    # relative to the largest exponent, so that exponentials do not overflow
    for level in range(k):
        for i in range(BLOCK):
            total[i] += exp_nonpositive(exponents[level, i] - most[i])
            exponents[level, i] = total[i]
    for i in range(BLOCK):
        uniforms[i] *= total[i]
        chosen[i] = 0
    # inverse transform: count the sums below the uniform number, without branches
    for level in range(k - 1):
        for i in range(BLOCK):
            chosen[i] += 1 if uniforms[i] >= exponents[level, i] else 0


@part(fastmath=REORDER)
def _add_square(moment, x):
    """Add the outer product of a row to the lower triangle."""
    for j in range(moment.shape[0]):
        row = moment[j]
        for m in range(j + 1):
            row[m] += x[j] * x[m]


@part()
def draw_labels(X, blocks, scale, bases, first, last, sign, rng, labels, counts, moments):
    """Draw all labels given the subspaces, eq. (11), and sum up x x' by them.

    The density is e^(-scale d^2): `scale` is epsilon / 2 in units of X. `blocks` are X by
    `in_blocks`. Rows `first` to `last` of the orthonormal `bases` (k, d, d) are used: the
    subspaces' with sign 1, or their complements' with sign -1. Outputs are `labels` (n,), `counts`
    (k,) and `moments` (k, d, d), the sum of x x' over the rows with each label.
    """
    n_samples, d = X.shape
    k = bases.shape[0]
    exponents, products = np.empty((k, BLOCK)), np.empty(BLOCK)
    # the unfilled places of the last block are drawn too, but only `size` of them are counted
    uniforms = np.zeros(BLOCK)
    chosen = np.empty(BLOCK, np.int64)
    moments[:] = 0.0
    counts[:] = 0
    for b in range(blocks.shape[0]):
        begin = b * BLOCK
        size = min(BLOCK, n_samples - begin)
        exponents[:] = 0.0
        for level in range(k):
            for c in range(first, last):
                _add_coordinate(
                    blocks[b], bases[level, c], sign * scale, products, exponents[level]
                )
        for i in range(size):
            uniforms[i] = rng.random()
        _draw_block(exponents, uniforms, chosen)
        for i in range(size):
            level = chosen[i]
            labels[begin + i] = level
            counts[level] += 1
            _add_square(moments[level], X[begin + i])
    for level in range(k):
        # `_add_square` fills lower triangles only
        for j in range(d):
            for m in range(j):
                moments[level, m, j] = moments[level, j, m]


@kernel()
def sweeps(
    X, blocks, scale, rng, q, n_sweeps, done, first_kept,
    bases, kappas, labels, frames, sums, projectors, kept,
):  # fmt: skip
    """Continue the chain by `n_sweeps` sweeps, each of all labels and then all subspaces.

    For X, blocks, scale, rng, bases and labels see `draw_labels`; the last two are the state, and
    `kappas` (k, d) are those of `resample_frame`.
    `done` is the number of earlier sweeps, and q the subspaces' dimension. Outputs are `frames` (k,
    d, q), the subspaces' uniformly rotated bases after the last sweep, and `kept` (n_kept, k, d,
    q), those after sweep `first_kept` (from 0) and later ones of this call. The frames U after each
    sweep are added to `sums`, the lower triangles of U U' to `projectors` (k, d, d).
    """
    k, d = bases.shape[0], bases.shape[1]
    frame_sign, r = moved_frame(d, q)
    first, last = subspace_rows(d, q)
    sign = 1.0
    if d - q < q:
        first, last, sign = (q, d, -1.0) if first == 0 else (0, first, -1.0)
    counts, moments = np.empty(k, np.int64), np.empty((k, d, d))
    space, rotation = frame_workspace(d), np.empty((q, q))
    for t in range(n_sweeps):
        draw_labels(X, blocks, scale, bases, first, last, sign, rng, labels, counts, moments)
        for level in range(k):
            if counts[level] == 0:
                draw_haar_rows(bases[level], rng)
            else:
                resample_frame(
                    bases[level], moments[level], frame_sign * scale, r, rng, kappas[level], space
                )
                # counted over all calls: results do not depend on how sweeps are divided
                if (done + t) % _REPAIR_EVERY == 0:
                    orthonormalise(bases[level])
            rotated_frame(bases[level], q, rng, rotation, frames[level])
            _add_to_sums(frames[level], sums[level], projectors[level])
        if first_kept <= done + t < first_kept + kept.shape[0]:
            kept[done + t - first_kept] = frames


@part(fastmath=REORDER)
def _add_to_sums(frame, total, projector):
    """Add U and the lower triangle of U U'."""
    d, q = frame.shape
    for a in range(d):
        for c in range(q):
            total[a, c] += frame[a, c]
        for b in range(a + 1):
            entry = 0.0
            for c in range(q):
                entry += frame[a, c] * frame[b, c]
            projector[a, b] += entry
