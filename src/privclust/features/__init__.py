"""Deep features of images, their control, and where they are kept.

`extract_features` runs EfficientNet-Lite or ResNet-50 on onnxruntime (the extra ``images``);
`cache_features` does so once for a data set, and a user's own features load by `load_features`.
What the stub beside this file lists is imported when it is first asked for.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
