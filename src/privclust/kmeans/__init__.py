"""k-means under differential privacy, and from sketches.

What the stub beside this file lists is imported when it is first asked for: whoever decodes a
sketch, as most jobs of the pipeline do, need not wait for scikit-learn.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
