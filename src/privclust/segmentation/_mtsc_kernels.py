"""The compiled kernel of multi-task subspace clustering.

Symmetric D x D matrices, one for each of N tasks, are stored *packed*: in an array of shape (D (D +
1) / 2, N), row ``a (a + 1) / 2 + b`` (``b <= a``) has entry (a, b) of every task. Tasks are
contiguous, so that one elimination step runs on many tasks at once in vector registers, and all the
Sigma_j of a fit come from one matrix product with the packed x_n x_n'.
"""

import numpy as np

from privclust.core.compiled import kernel, part

LANES = 32  # tasks eliminated together: wide enough for vector registers, small enough for cache


@part(fastmath={"contract", "nsz"}, error_model="python")
def _sweep_block(A, log_determinant, n_rows):
    """Replace packed positive definite matrices by minus their inverses (symmetric elimination)."""
    lanes = A.shape[1]
    pivot = np.empty(lanes)
    column = np.empty((n_rows, lanes))
    scaled = np.empty(lanes)
    for lane in range(lanes):
        log_determinant[lane] = 0.0
    # the sweep operator (J. H. Goodnight, 1979): all pivots swept, A is minus its inverse
    for k in range(n_rows):
        k_row = k * (k + 1) // 2
        for lane in range(lanes):
            d = A[k_row + k, lane]
            log_determinant[lane] += np.log(d)
            pivot[lane] = 1.0 / d
        for i in range(n_rows):
            # only the lower triangle is stored: entry (i, k) or (k, i)
            row = k_row + i if i < k else i * (i + 1) // 2 + k
            for lane in range(lanes):
                column[i, lane] = A[row, lane]
        for i in range(n_rows):
            row = i * (i + 1) // 2
            if i == k:
                for j in range(k):
                    for lane in range(lanes):
                        A[row + j, lane] = column[j, lane] * pivot[lane]
                continue
            for lane in range(lanes):
                scaled[lane] = column[i, lane] * pivot[lane]
            for j in range(i + 1):
                for lane in range(lanes):
                    A[row + j, lane] -= scaled[lane] * column[j, lane]
            if i > k:
                for lane in range(lanes):
                    A[row + k, lane] = scaled[lane]
        for lane in range(lanes):
            A[k_row + k, lane] = -pivot[lane]


@kernel(error_model="python")
def invert_and_solve(S, noise_variance, X, Y, log_determinant):
    """Replace each packed Sigma_j - nu I by the packed, doubled inverse of Sigma_j.

    On entry column j of S is X Gamma_j X'; nu is positive. Off-diagonal entries of the inverse come
    back multiplied by two, so that the packed x_n x_n' times S are the x_n' Sigma_j^-1 x_n. Y
    (D, N) receives Sigma_j^-1 x_j, `log_determinant` (N,) log |Sigma_j|.
    """
    n_rows, n_tasks = X.shape
    block = np.empty((S.shape[0], LANES))
    block_log_determinant = np.empty(LANES)
    for start in range(0, n_tasks, LANES):
        width = min(LANES, n_tasks - start)
        for row in range(S.shape[0]):
            for lane in range(LANES):
                # lanes beyond the last task hold the identity: no division by 0
                block[row, lane] = S[row, start + lane] if lane < width else 0.0
        for a in range(n_rows):
            for lane in range(LANES):
                # row a (a + 1) / 2 + a is the diagonal
                block[a * (a + 3) // 2, lane] += noise_variance if lane < width else 1.0
        _sweep_block(block, block_log_determinant, n_rows)
        for lane in range(width):
            log_determinant[start + lane] = block_log_determinant[lane]
        _unpack_block(block, S, X, Y, start, width)


@part(fastmath={"contract", "nsz"}, error_model="python")
def _unpack_block(block, S, X, Y, start, width):
    """Copy -block, doubled off the diagonal, to S and multiply it by the tasks' columns of X."""
    n_rows = X.shape[0]
    for a in range(n_rows):
        for lane in range(width):
            Y[a, start + lane] = 0.0
    row = 0
    for a in range(n_rows):
        for b in range(a):
            for lane in range(width):
                entry = -block[row, lane]
                S[row, start + lane] = 2.0 * entry
                Y[a, start + lane] += entry * X[b, start + lane]
                Y[b, start + lane] += entry * X[a, start + lane]
            row += 1
        for lane in range(width):
            S[row, start + lane] = -block[row, lane]
            Y[a, start + lane] -= block[row, lane] * X[a, start + lane]
        row += 1
