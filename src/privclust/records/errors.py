"""The error of reading, which holds no entry and no text of another library."""

from __future__ import annotations


class ReadingError(ValueError):
    """A table, column or file that cannot be read, in our own words.

    Its message names the file, the column or the type, which are public, and no entry.
    """


class UnreadableCellError(ReadingError, TypeError):
    """A cell of an untyped array that cannot be read, where all must be.

    It is also the TypeError that scikit-learn's conventions ask for.
    """
