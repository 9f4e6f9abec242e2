from ._cache import cache_features as cache_features
from ._controls import pca_features as pca_features
from ._controls import pixel_features as pixel_features
from ._extract import extract_features as extract_features
from ._store import FeatureSet as FeatureSet
from ._store import load_features as load_features
from ._store import save_features as save_features
