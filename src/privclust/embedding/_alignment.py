"""Alignment of two embeddings by a similarity (Kabsch-Umeyama)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Similarity:
    """A rotation of determinant 1, a scale of at least 0 and a shift, or a stack of them."""

    rotation: np.ndarray
    scale: np.ndarray
    source_mean: np.ndarray
    target_mean: np.ndarray

    def apply(self, Z: np.ndarray) -> np.ndarray:
        """Return ``scale R (z - source_mean) + target_mean`` for rows of shape (..., n, k)."""
        centred = Z - self.source_mean[..., None, :]
        turned = centred @ np.swapaxes(self.rotation, -1, -2)
        return self.scale[..., None, None] * turned + self.target_mean[..., None, :]


def align(source: np.ndarray, target: np.ndarray) -> Similarity:
    r"""Return the least-squares similarity from source to target rows (Kabsch-Umeyama).

    It minimises :math:`\sum_i |y_i - (c R x_i + t)|^2` over rotations R, :math:`c \ge 0` and t.
    With the singular value decomposition :math:`\sum_i (y_i - \bar y)(x_i - \bar x)' = U S V'`,
    :math:`R = U E V'` and :math:`c = \operatorname{tr}(S E) / \sum_i |x_i - \bar x|^2`, where E is
    the identity except for the sign of its last entry.

    Parameters
    ----------
    source, target : array-like of shape (..., n, k)
        Rows in the same order; leading axes broadcast, one similarity each.

    Returns
    -------
    Similarity
        The scale is 0 if all source rows are equal.

    Raises
    ------
    ValueError
        If shapes do not match or a number is not finite.

    References
    ----------
    S. Umeyama, "Least-squares estimation of transformation parameters between two point patterns",
    PAMI 13(4), 1991, eqs. (40)-(42).

    Examples
    --------
    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> turned = 3.0 * square @ np.array([[0.0, 1.0], [-1.0, 0.0]]) + 5.0
    >>> similarity = align(square, turned)
    >>> moved = similarity.apply(square)
    >>> bool(np.allclose(moved, turned)), round(float(similarity.scale), 6)
    (True, 3.0)
    """
    source, target = _checked("source", source), _checked("target", target)
    if source.shape[-2:] != target.shape[-2:]:
        raise ValueError(
            f"target must have the rows and columns of source, {source.shape[-2:]}, got "
            f"{target.shape[-2:]}"
        )
    source_mean, target_mean = source.mean(axis=-2), target.mean(axis=-2)
    # scaled by the largest coordinate, so that squares of tiny embeddings do not underflow
    (x, x_unit), (y, y_unit) = (
        _in_units(rows - mean[..., None, :])
        for rows, mean in ((source, source_mean), (target, target_mean))
    )
    left, values, right = np.linalg.svd(np.swapaxes(y, -1, -2) @ x)
    signs = np.ones(values.shape)
    signs[..., -1] = np.where(np.linalg.det(left @ right) < 0, -1.0, 1.0)
    spread = (x**2).sum(axis=(-2, -1))
    scale = (values * signs).sum(axis=-1) / np.where(spread > 0, spread, 1.0) * (y_unit / x_unit)
    # 0 for a source without spread, or in one dimension with reversed order
    scale = np.where(spread > 0, np.maximum(scale, 0.0), 0.0)
    return Similarity((left * signs[..., None, :]) @ right, scale, source_mean, target_mean)


def _in_units(rows):
    """Return rows divided by their largest coordinate, and this coordinate."""
    unit = np.abs(rows).max(axis=(-2, -1))
    unit = np.where(unit > 0, unit, 1.0)
    return rows / unit[..., None, None], unit


def _checked(name, rows):
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim < 2 or 0 in rows.shape[-2:] or not np.isfinite(rows).all():
        raise ValueError(
            f"{name} must be finite numbers of shape (..., n, k), got shape {rows.shape}"
        )
    return rows
