"""The error of reading, which holds no entry and no text of another library."""

from __future__ import annotations


class ReadingError(ValueError):
    """A table, column or file that cannot be read, in our own words.

    Its message names the file, the column or the type, which are public, and no entry.
    """
