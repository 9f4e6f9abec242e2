r"""Precision of the tangents of a union from moments of degree 2 and 4, in closed form.

For sketches of any size: with the moves :math:`A = \lambda (v u' + u v')` of a factor C and B of E,

.. math:: \partial_A \partial_B \langle H (C \otimes C), H (E \otimes E) \rangle =
          \tfrac13 [2\, tr\, AE\; tr\, CB + 2\, tr\, CE\; tr\, AB + 8\, tr\, ABCE]
          - \tfrac{6}{d+4} \tfrac{(q + 2 \lambda)(q + 2 \lambda')}{9} tr\, AB ,

since :math:`\tilde C` changes by :math:`(q A + 2 (AC + CA)) / 3 = (q + 2 \lambda) A / 3` and its
trace is constant. Only noise is included here; `sandwich` adds the uneven spread of rows.
"""

from __future__ import annotations

import math

import numpy as np

from privclust.subspaces.moments._objective import grams
from privclust.subspaces.moments.union import (
    LEAST_PRECISION,
    RIDGE,
    SPREAD_OF_RATIO,
    Union,
    prior_amplitude,
)

_N_DRAWS = 4000  # rows drawn for their scatter


def tangent_information(
    union: Union, complements: np.ndarray, deviations: dict[int, float]
) -> np.ndarray:
    """Return the precision of tangents (k, d - q, q), raveled, if other numbers are unknown."""
    k, d, q = union.bases.shape
    ratio, w = math.exp(union.log_ratios[4]), union.amplitudes
    p2, p4 = deviations[2] ** -2, (ratio / deviations[4]) ** 2
    n, roots = (d - q) * q, np.sqrt(union.spreads)
    gram, gradients = grams(np.repeat((union.bases * roots[:, None, :])[None], k, axis=0))
    second, fourth = gram[2][0], gram[4][0]
    # derivatives of the products of factors a and b along the moves of a, (k, k, n)
    # copy b of the union has weight 1 on its pairs (a, b) only: one gradient for each b
    chosen = np.broadcast_to(np.eye(k)[:, None, :], (k, k, k))
    moved2, moved4 = (
        # tr GA = 2 v'GY sqrt(lambda) for A = lambda (v u' + u v') and Y = U sqrt(lambda)
        2.0 * np.einsum("axi,baxj,aj->abij", complements, slopes, roots).reshape(k, k, n)
        for slopes in (gradients(chosen, 0.0 * chosen), gradients(0.0 * chosen, chosen))
    )
    by_amplitude = w[:, None, None] * (p2 * moved2 + p4 * moved4)
    by_ratio = p4 * w[:, None] * np.einsum("b,abn->an", w, moved4)
    across = np.hstack([by_amplitude.swapaxes(1, 2).reshape(k * n, k), by_ratio.reshape(-1, 1)])
    inner = p4 * np.block([[fourth, (fourth @ w)[:, None]], [w @ fourth, w @ fourth @ w]])
    inner[:k, :k] += p2 * second
    whole = np.zeros((k * n, k * n))
    for a in range(k):
        for b in range(k):
            second, fourth = _mixed(union, complements, a, b)
            here = np.s_[a * n : (a + 1) * n, b * n : (b + 1) * n]
            whole[here] = w[a] * w[b] * (p2 * second + p4 * fourth)
    prior = (RIDGE * prior_amplitude(k, q)) ** -2
    inner[np.diag_indices(k + 1)] += np.append(np.full(k, prior), SPREAD_OF_RATIO**-2)
    whole[np.diag_indices(k * n)] += LEAST_PRECISION
    # Schur complement: amplitudes and the ratio are estimated too
    return whole - across @ np.linalg.solve(inner, across.T)


def sandwich(
    union: Union,
    complements: np.ndarray,
    deviations: dict[int, float],
    n_samples: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Return covariances (p, p) of tangents: by noise, and by sampling of rows."""
    precision = tangent_information(union, complements, deviations)
    # the fit is weighted by noise only, so its inverse is the part of noise; rows add a sandwich
    inverse = np.linalg.inv(precision)
    rows = union.draw(_N_DRAWS, rng)
    scores = _scores(union, complements, deviations, rows)
    scores -= scores.mean(axis=0)
    of_rows = scores.T @ scores / (_N_DRAWS * max(n_samples, 1.0))
    return inverse, inverse @ of_rows @ inverse


def _scores(union, complements, deviations, rows):
    """Return each row's contribution to the derivative of the fit along tangents, (n, p)."""
    k, d, q = union.bases.shape
    ratio = math.exp(union.log_ratios[4])
    columns = []
    for a in range(k):
        inside, outside = rows @ union.bases[a], rows @ complements[a]
        form = (inside**2 * union.spreads[a]).sum(axis=1)  # x'Cx
        along = 2.0 * outside[:, :, None] * (inside * union.spreads[a])[:, None]  # x'Ax
        contracted = 6.0 / (d + 4) * (q + 2.0 * union.spreads[a]) / 3.0
        fourth = 2.0 * form[:, None, None] * along - contracted * along
        score = along / deviations[2] ** 2 + ratio * fourth / deviations[4] ** 2
        columns.append(union.amplitudes[a] * score.reshape(len(rows), -1))
    return np.hstack(columns)


def _mixed(union, complements, a, b):
    """Return second derivatives along moves of both factors, (n, n) each."""
    d, q = union.bases.shape[1:]
    U, V, lam = union.bases[a], complements[a], union.spreads[a]
    Z, W, mu = union.bases[b], complements[b], union.spreads[b]
    C, E = union.factors[[a, b]]
    X = C @ E
    n = (d - q) * q
    scale = lam[None, :, None, None] * mu[None, None, None, :]
    # tr AB = 2 lam mu [(u'w)(v'z) + (u'z)(v'w)]
    AB = (
        2.0
        * scale
        * (np.einsum("aj,ib->iajb", U.T @ W, V.T @ Z) + np.einsum("ab,ij->iajb", U.T @ Z, V.T @ W))
    )
    # tr ABX, X = CE: (u'w)(z'Xv) + (u'z)(w'Xv) + (v'w)(z'Xu) + (v'z)(w'Xu)
    ABX = scale * (
        np.einsum("aj,bi->iajb", U.T @ W, Z.T @ X @ V)
        + np.einsum("ab,ji->iajb", U.T @ Z, W.T @ X @ V)
        + np.einsum("ij,ba->iajb", V.T @ W, Z.T @ X @ U)
        + np.einsum("ib,ja->iajb", V.T @ Z, W.T @ X @ U)
    )
    AE = 2.0 * (V.T @ E @ U) * lam
    CB = 2.0 * (W.T @ C @ Z) * mu
    fourth = (2.0 * AE[:, :, None, None] * CB + 2.0 * np.trace(X) * AB + 8.0 * ABX) / 3.0
    contracted = (q + 2.0 * lam)[None, :, None, None] * (q + 2.0 * mu)[None, None, None, :] / 9.0
    fourth -= 6.0 / (d + 4) * contracted * AB
    return AB.reshape(n, n), fourth.reshape(n, n)
