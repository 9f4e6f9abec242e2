"""Decoding: from a sketch of random Fourier features to clusters, their number and their errors.

Decoding uses nothing but the sketch, so it has no privacy loss. The names in the stub next to this
file are imported when they are first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
