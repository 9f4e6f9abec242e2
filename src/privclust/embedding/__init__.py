"""Embeddings of features, most of them under differential privacy, and retrieval with them.

The names in the stub next to this file are imported when they are first used, so that projections
do not wait for compiled kernels.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
