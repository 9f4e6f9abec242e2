"""What a cell means: building its data, running a method on it, evaluating the result.

Nothing here knows a file path or the workflow that calls it.
"""
