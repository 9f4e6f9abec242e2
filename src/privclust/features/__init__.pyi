from ._extract import extract_features as extract_features
from ._extract import small_pixels as small_pixels
from ._networks import network_name as network_name
from ._weights import WeightsError as WeightsError
from ._weights import weights_sha256 as weights_sha256
