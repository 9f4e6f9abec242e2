"""Deep features of images, raw pixels for comparison, and their files.

`extract_features` runs EfficientNet-Lite or ResNet-50 on onnxruntime (the extra ``images``);
`save_features` and `load_features` are for files of features, also of a user's own.
Names listed in the stub next to this file are imported at first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
