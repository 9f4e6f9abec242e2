"""Embeddings of features, most of them under differential privacy, and retrieval with them.

What the stub beside this file lists is imported when it is first asked for: whoever projects rows
need not wait for compiled kernels.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
