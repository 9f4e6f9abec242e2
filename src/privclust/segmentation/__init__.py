"""Subspace segmentation: clusters of samples that are combinations of one another."""

from privclust.segmentation._cass import CASS
from privclust.segmentation._lrr import LRR
from privclust.segmentation._lsr import LSR
from privclust.segmentation._mtsc import MTSC, SBL
from privclust.segmentation._ssc import SSC
from privclust.segmentation._tsc import TSC

__all__ = ["CASS", "LRR", "LSR", "MTSC", "SBL", "SSC", "TSC"]
