"""Private clusters of a table: its own units and names, errors, a picture, a report."""

from privclust.report.table_clusters import TableClusters
from privclust.report.written import write

__all__ = ["TableClusters", "write"]
