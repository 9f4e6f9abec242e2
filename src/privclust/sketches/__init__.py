"""Sketches: sums of features of the rows, exact until Gaussian or Laplace noise is added once.

`Sketch` has random Fourier features, `MomentSketch` harmonic moments. Sketches of disjoint rows
add up to the sketch of all rows. The names in the stub next to this file are imported when they
are first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
