"""Mechanisms that break the privacy they claim, with what each should have been. NOT FOR USE.

This package is a test range for auditors: what finds a fault here may find it elsewhere. Each fault
is one that was published, or that code was released with, in 10 to 30 lines. None of it protects
anybody: neither the faults, nor their private twins, whose noise comes from NumPy's generators and
is neither secure nor safe against what floating point tells. Use `privclust.privacy.measurements`.

Noise is drawn as ``rng.laplace(value, scale, size)`` and the like: whoever watches the generator
sees each value with the noise that it gets.
"""

from privclust_audit.faults._fault import Fault, LaplaceNoise, batched
from privclust_audit.faults._registry import FAULTS

__all__ = ["FAULTS", "Fault", "LaplaceNoise", "batched"]
