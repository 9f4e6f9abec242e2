"""How a run is planned and its jobs are done: the workflow asks here, papers fill it in."""
