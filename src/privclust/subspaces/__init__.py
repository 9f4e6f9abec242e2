"""Subspace clustering under differential privacy.

Names listed in the stub next to this file are imported at first use, so that the exact distribution
of a chain is available without compiled samplers.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
