"""Deep features of images, and raw pixels for comparison.

`extract_features` runs EfficientNet-Lite or ResNet-50 on onnxruntime (the extra ``images``).
Names listed in the stub next to this file are imported at first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
