"""k-means under differential privacy, and from sketches.

Estimators are imported when they are first asked for: whoever decodes a sketch, as most jobs of the
pipeline do, need not wait for scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privclust.kmeans._compressive import CompressiveKMeans
    from privclust.kmeans._dplloyd import DPLloyd
    from privclust.kmeans._eugkm import EUGkM
    from privclust.kmeans._feature_sums import FeatureSums, sketch
    from privclust.kmeans._frequencies import draw_frequencies, estimate_variance
    from privclust.kmeans._lloyd import LloydKMeans
    from privclust.kmeans._mixture_decoder import Decoded
    from privclust.kmeans._moments import Moments
    from privclust.kmeans._release import release, scrambled
    from privclust.kmeans._sketch import Sketch
    from privclust.kmeans._sketch_decoding import decode

_HOMES = {
    "CompressiveKMeans": "_compressive",
    "decode": "_sketch_decoding",
    "Decoded": "_mixture_decoder",
    "DPLloyd": "_dplloyd",
    "draw_frequencies": "_frequencies",
    "estimate_variance": "_frequencies",
    "EUGkM": "_eugkm",
    "FeatureSums": "_feature_sums",
    "LloydKMeans": "_lloyd",
    "Moments": "_moments",
    "release": "_release",
    "scrambled": "_release",
    "sketch": "_feature_sums",
    "Sketch": "_sketch",
}
__all__ = [
    "CompressiveKMeans",
    "DPLloyd",
    "Decoded",
    "EUGkM",
    "FeatureSums",
    "LloydKMeans",
    "Moments",
    "Sketch",
    "decode",
    "draw_frequencies",
    "estimate_variance",
    "release",
    "scrambled",
    "sketch",
]


def __getattr__(name: str):
    """Import the module of a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
