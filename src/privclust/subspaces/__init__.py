"""Subspace clustering under differential privacy.

Estimators are imported when they are first asked for: whoever measures distances between subspaces
need not wait for compiled samplers.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privclust.bingham import sample_matrix_bingham, sample_vector_bingham
    from privclust.subspaces._gibbs import GibbsSubspaceClustering
    from privclust.subspaces._kplanes import KPlanes
    from privclust.subspaces._sample_aggregate import SampleAggregateSubspaceClustering
    from privclust.subspaces._sulq import SuLQKPlanes

_HOMES = {
    "GibbsSubspaceClustering": "privclust.subspaces._gibbs",
    "KPlanes": "privclust.subspaces._kplanes",
    "SampleAggregateSubspaceClustering": "privclust.subspaces._sample_aggregate",
    "SuLQKPlanes": "privclust.subspaces._sulq",
    "sample_matrix_bingham": "privclust.bingham",
    "sample_vector_bingham": "privclust.bingham",
}
__all__ = [
    "GibbsSubspaceClustering",
    "KPlanes",
    "SampleAggregateSubspaceClustering",
    "SuLQKPlanes",
    "sample_matrix_bingham",
    "sample_vector_bingham",
]


def __getattr__(name: str):
    """Import the module of a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
