from ._compressive import CompressiveKMeans as CompressiveKMeans
from ._dplloyd import DPLloyd as DPLloyd
from ._eugkm import EUGkM as EUGkM
from ._grid import Grid as Grid
from ._lloyd import LloydKMeans as LloydKMeans
from ._plan import Plan as Plan
from ._plan import plan as plan
from ._tree import TreeKMeans as TreeKMeans
