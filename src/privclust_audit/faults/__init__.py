"""Mechanisms that break their privacy claims, with private twins. NOT FOR USE.

This package is a benchmark for auditors: an audit that finds a fault here may find it elsewhere.
Each fault was published, or was in released code, and has 10 to 30 lines. None of them protects
anybody, and neither do their private twins: their noise comes from NumPy's generators and is
neither secure nor safe against floating-point attacks. Use `privclust.privacy.measurements`.

Noise is drawn as ``rng.laplace(value, scale, size)`` and the like: an adapter of the generator can
record each value with its noise.
"""

from privclust_audit.faults._fault import Fault, LaplaceNoise, batched
from privclust_audit.faults._registry import FAULTS

__all__ = ["FAULTS", "Fault", "LaplaceNoise", "batched"]
