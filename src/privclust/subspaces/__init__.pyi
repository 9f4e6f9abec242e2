from ._gibbs import GibbsSubspaceClustering as GibbsSubspaceClustering
from ._kplanes import KPlanes as KPlanes
from ._sample_aggregate import (
    SampleAggregateSubspaceClustering as SampleAggregateSubspaceClustering,
)
from ._sulq import SuLQKPlanes as SuLQKPlanes
