"""Exact and Gibbs samplers of Bingham distributions on spheres and on orthonormal frames."""

from privclust.bingham._sampler import (
    IN_FLOATING_POINT,
    LARGEST_CONCENTRATION,
    full_basis,
    sample_matrix_bingham,
)

__all__ = [
    "IN_FLOATING_POINT",
    "LARGEST_CONCENTRATION",
    "full_basis",
    "sample_matrix_bingham",
]
