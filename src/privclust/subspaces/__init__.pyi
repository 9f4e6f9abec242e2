from ._exact_moments import moments_by_subspace as moments_by_subspace
from ._gibbs import GibbsSubspaceClustering as GibbsSubspaceClustering
from ._kplanes import KPlanes as KPlanes
from ._sample_aggregate import (
    SampleAggregateSubspaceClustering as SampleAggregateSubspaceClustering,
)
from ._sample_aggregate import canonical_subspaces as canonical_subspaces
from ._sample_aggregate import result_distances as result_distances
from ._smooth_sensitivity import most_central as most_central
from ._smooth_sensitivity import neighbour_radii as neighbour_radii
from ._smooth_sensitivity import printed_sensitivity as printed_sensitivity
from ._smooth_sensitivity import smooth_sensitivity as smooth_sensitivity
from ._sulq import SuLQKPlanes as SuLQKPlanes
from .moments._bound import least_error as least_error
from .moments._decoding import DecodedSubspaces as DecodedSubspaces
from .moments._decoding import decode as decode
from .moments._estimator import MomentSubspaceClustering as MomentSubspaceClustering
from .moments._selection import choose_sizes as choose_sizes
