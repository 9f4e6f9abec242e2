"""Subspace clustering under differential privacy.

What the stub beside this file lists is imported when it is first asked for: whoever asks
for the exact law of a chain need not wait for compiled samplers.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
