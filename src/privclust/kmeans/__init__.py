"""k-means under differential privacy, and from sketches."""

from privclust.kmeans._compressive import CompressiveKMeans
from privclust.kmeans._decode import decode
from privclust.kmeans._decoder import Decoded, Moments
from privclust.kmeans._dplloyd import DPLloyd
from privclust.kmeans._eugkm import EUGkM
from privclust.kmeans._feature_sums import FeatureSums, sketch
from privclust.kmeans._frequencies import draw_frequencies, estimate_variance
from privclust.kmeans._lloyd import LloydKMeans
from privclust.kmeans._release import release, scrambled
from privclust.kmeans._sketch import Sketch

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
