"""A room for each paper: its data, methods, metrics, checks and figures; and the audit of all."""
