"""Planning and execution of a run: the interface of the workflow and the papers."""
