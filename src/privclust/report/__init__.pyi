from .table_clusters import TableClusters as TableClusters
from .written import write as write
