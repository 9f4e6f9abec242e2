"""Errors of reading, without entries and without messages of other libraries."""

from __future__ import annotations


class ReadingError(ValueError):
    """A table, column or file cannot be read.

    Its message names the file, the column or the type, which are public, and no entry.
    """


class UnreadableCellError(ReadingError, TypeError):
    """A cell of an untyped array cannot be read although all cells must be readable.

    It is also the TypeError that scikit-learn's conventions ask for.
    """
