"""Mechanisms that break their privacy claims, with private twins. NOT FOR USE.

This package is a benchmark for auditors: an audit that finds a fault here may find it elsewhere.
Each fault was published, or was in released code, and has 10 to 30 lines. None of them protects
anybody, and neither do their private twins: their noise comes from NumPy's generators and is
neither secure nor safe against floating-point attacks. Use `privclust.privacy.measurements`.

Noise is drawn as ``rng.laplace(value, scale, size)`` and the like: an adapter of the generator can
record each value with its noise.
"""

from privclust_audit.faults import _clustering, _fits, _patterns, _sparse_vector, _textbook
from privclust_audit.faults._fault import Fault, LaplaceNoise, batched

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for module in (_textbook, _sparse_vector, _patterns, _clustering, _fits)
    for fault in module.ALL
}
"""Faults, and published mechanisms without one, by name in the order of their topics."""

__all__ = ["FAULTS", "Fault", "LaplaceNoise", "batched"]
