"""The parameters of a mixture of Gaussians."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.validation import check_integer

COVARIANCE_TYPES = ("spherical", "diag", "full")
_WEIGHT_TOLERANCE = 1e-8  # of the sum of the weights
_SYMMETRY_TOLERANCE = 1e-8  # of a covariance, relative to its largest entry


@dataclass(frozen=True, eq=False)
class MixtureParameters:
    r"""Weights, means and covariances of k Gaussians in d dimensions.

    Attributes
    ----------
    weights : ndarray of shape (k,)
        π, not negative, sum 1.
    means : ndarray of shape (k, d)
        μ.
    covariances : ndarray
        σ² of shape (k,) for ``"spherical"``, the diagonals of shape (k, d) for ``"diag"``, Σ of
        shape (k, d, d) for ``"full"``; positive definite.
    covariance_type : {"spherical", "diag", "full"}
        Which of these.

    Raises
    ------
    ValueError
        If shapes do not match, a number is not finite, weights are negative or do not sum to 1, or
        a covariance is not symmetric and positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.mixtures import MixtureParameters
    >>> p = MixtureParameters(np.array([0.5, 0.5]), np.eye(2), np.ones(2), "spherical")
    >>> p.n_components, p.n_features
    (2, 2)
    """

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    covariance_type: str

    def __post_init__(self):
        if self.covariance_type not in COVARIANCE_TYPES:
            raise ValueError(
                f"covariance_type must be one of {', '.join(map(repr, COVARIANCE_TYPES))}, "
                f"got {self.covariance_type!r}"
            )
        for name in ("weights", "means", "covariances"):
            object.__setattr__(self, name, _finite(name, getattr(self, name)))
        if self.means.ndim != 2 or 0 in self.means.shape:
            raise ValueError(
                f"means must have shape (n_components, n_features), got {self.means.shape}"
            )
        k, d = self.means.shape
        _check_weights(self.weights, k)
        shape = covariance_shape(self.covariance_type, k, d)
        if self.covariances.shape != shape:
            raise ValueError(
                f"covariances of type {self.covariance_type!r} must have shape {shape} for "
                f"{k} components and {d} features, got {self.covariances.shape}"
            )
        _ = self.whitening  # raises unless every covariance is positive definite

    @property
    def n_components(self) -> int:
        """Number of Gaussians, k."""
        return self.means.shape[0]

    @property
    def n_features(self) -> int:
        """Number of dimensions, d."""
        return self.means.shape[1]

    @cached_property
    def whitening(self) -> np.ndarray:
        """Whitening factors W_k, with ``W_k' W_k`` the inverse of Σ_k.

        Shape (k, 1, 1) for spherical and (k, d, 1) for diagonal covariances (reciprocals of
        standard deviations), (k, d, d) for full ones (lower triangular).
        """
        if self.covariance_type == "full":
            return _inverse_cholesky(self.covariances)
        bad = np.argwhere(self.covariances <= 0.0)
        if bad.size:
            raise ValueError(
                f"covariances must be positive, got {self.covariances[tuple(bad[0])]:g} for "
                f"component {bad[0][0]}"
            )
        k = self.n_components
        return 1.0 / np.sqrt(self.covariances.reshape(k, -1, 1))

    @cached_property
    def log_scales(self) -> np.ndarray:
        """The log terms at the means, log π_k - (d log 2π + log det Σ_k) / 2, shape (k,)."""
        diagonal = np.diagonal(self.whitening, axis1=1, axis2=2)
        if self.covariance_type == "diag":
            diagonal = self.whitening[:, :, 0]
        log_determinants = np.log(diagonal).sum(axis=1)
        if self.covariance_type == "spherical":
            log_determinants = log_determinants * self.n_features
        with np.errstate(divide="ignore"):  # a weight of 0 is -inf: no point belongs to it
            log_weights = np.log(self.weights)
        return log_weights + log_determinants - 0.5 * self.n_features * np.log(2.0 * np.pi)

    def stretched(self, factor: float) -> MixtureParameters:
        """Return the mixture for points scaled by a factor."""
        means, covariances = self.means * factor, self.covariances * factor**2
        return MixtureParameters(self.weights, means, covariances, self.covariance_type)

    def full_covariances(self) -> np.ndarray:
        """Return the covariances as matrices, shape (k, d, d), whatever their type."""
        if self.covariance_type == "full":
            return self.covariances.copy()
        k, d = self.means.shape
        return self.covariances.reshape(k, -1, 1) * np.eye(d)


def covariance_shape(covariance_type: str, n_components: int, n_features: int) -> tuple[int, ...]:
    return {
        "spherical": (n_components,),
        "diag": (n_components, n_features),
        "full": (n_components, n_features, n_features),
    }[covariance_type]


def per_component(numbers: np.ndarray, n_axes: int) -> np.ndarray:
    """Return one number per component, shaped to broadcast with covariances of `n_axes` axes."""
    return numbers.reshape(-1, *[1] * (n_axes - 1))


def outer_products(vectors: np.ndarray, n_axes: int) -> np.ndarray:
    """Return v v' of each component as matrix, diagonal or mean of the diagonal (by `n_axes`)."""
    if n_axes == 3:
        return vectors[:, :, None] * vectors[:, None, :]
    return vectors**2 if n_axes == 2 else (vectors**2).mean(axis=1)


def clipped_spectrum(covariances: np.ndarray, low: ArrayLike, high: float) -> np.ndarray:
    """Return covariances with variances, or eigenvalues, clipped; the same array if none is out."""
    if covariances.ndim < 3:
        values = covariances
        clipped = kept = np.clip(values, low, high)
    else:
        values, vectors = np.linalg.eigh(covariances)
        kept = np.clip(values, low, high)
        clipped = np.einsum("kab,kb,kcb->kac", vectors, kept, vectors)
    # eigenvectors would change the last bits of every entry; callers also test for the same array
    return covariances if np.allclose(kept, values, rtol=1e-9, atol=0.0) else clipped


def shortened(vectors: np.ndarray, length: float) -> np.ndarray:
    """Return vectors, (k, d), clipped to a ball."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors * (length / np.maximum(norms, length))


def start_array(name: str, value: ArrayLike | None, shape: tuple[int, ...]) -> np.ndarray | None:
    """Return a parameter of the start as a finite array of the given shape, or raise."""
    if value is None:
        return None
    array = np.array(value, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite of shape {shape}, got shape {array.shape}")
    return array


def sample(
    parameters: MixtureParameters, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw points from a mixture.

    Parameters
    ----------
    parameters : MixtureParameters
        The mixture.
    n : int
        Number of points, at least 1.
    rng : numpy.random.Generator
        Source of the components (n uniform draws), then of the points (n x d normal draws).

    Returns
    -------
    X : ndarray of shape (n, d)
        Independent points.
    components : ndarray of shape (n,)
        Component of each point.

    Raises
    ------
    ValueError
        If `n` is not an integer of at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.mixtures import MixtureParameters, sample
    >>> p = MixtureParameters(np.ones(1), np.zeros((1, 3)), np.ones(1), "spherical")
    >>> X, components = sample(p, 5, np.random.default_rng(0))
    >>> X.shape, components.tolist()
    ((5, 3), [0, 0, 0, 0, 0])
    """
    check_integer("n", n, minimum=1)
    components = rng.choice(parameters.n_components, size=n, p=parameters.weights)
    X = rng.standard_normal((n, parameters.n_features))
    if parameters.covariance_type == "full":
        roots = np.linalg.cholesky(parameters.covariances)
        for k, root in enumerate(roots):
            members = components == k
            X[members] = X[members] @ root.T
    else:
        deviations = np.sqrt(parameters.covariances.reshape(parameters.n_components, -1))
        X *= deviations[components]
    X += parameters.means[components]
    return X, components


def _finite(name: str, value) -> np.ndarray:
    """Return a C-ordered float64 copy of an array, or raise a ValueError if it is not finite."""
    try:
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, got {value!r}") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    return array


def _check_weights(weights: np.ndarray, n_components: int) -> None:
    if weights.shape != (n_components,):
        raise ValueError(f"weights must have shape ({n_components},), got {weights.shape}")
    if weights.min() < 0.0:
        raise ValueError(f"weights must not be negative, got {weights.min():g}")
    if abs(weights.sum() - 1.0) > _WEIGHT_TOLERANCE:
        raise ValueError(f"weights must sum to 1, got {weights.sum():g}")


def _inverse_cholesky(covariances: np.ndarray) -> np.ndarray:
    asymmetry = np.abs(covariances - covariances.transpose(0, 2, 1)).max(axis=(1, 2))
    is_bad = asymmetry > _SYMMETRY_TOLERANCE * np.abs(covariances).max(axis=(1, 2))
    if is_bad.any():
        raise ValueError(
            f"covariances must be symmetric, that of component {np.argmax(is_bad)} is not"
        )
    try:
        factors = np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(covariances)[:, 0]
        raise ValueError(
            "covariances must be positive definite, the least eigenvalue of component "
            f"{np.argmin(least)} is {least.min():g}"
        ) from None
    return np.ascontiguousarray(np.tril(np.linalg.inv(factors)))
