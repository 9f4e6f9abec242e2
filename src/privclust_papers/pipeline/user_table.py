"""A user's data: any table of numbers, with declared bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privclust.records.streams import chunks
from privclust_papers.datasets.registry import DataError

SOURCE = "own: {}"


def read_rows(path: str, columns: tuple[str, ...] | None = None) -> np.ndarray:
    """Read a file of numbers with one record per row; the suffix determines the reader.

    Suffixes are ``.csv`` (also compressed), ``.npy``, ``.parquet`` and ``.h5``. Columns, None for
    all, need a file with names. Raises a DataError of one line if the file cannot be used.
    """
    try:
        parts = chunks(path, columns=columns)
        rows = np.concatenate([np.asarray(part, dtype=np.float64) for part in parts])
    except (ImportError, OSError, ValueError) as error:
        text = " ".join(str(error).split())
        raise DataError(text if path in text else f"{path}: {text}") from error
    if not len(rows):
        raise DataError(f"{path}: no rows; it must be a table of at least 1")
    return rows


def prepared(
    name: str,
    path: str,
    columns: Sequence[str] | None,
    low: float | Sequence[float],
    high: float | Sequence[float],
) -> dict[str, np.ndarray]:
    """Return the rows of an entry of config/my_data.yaml with their bounds.

    Returns ``X`` (n_samples, n_features), ``low`` and ``high`` (n_features,). Raises a DataError if
    the file cannot be used, or the bounds have another number of features.
    """
    X = read_rows(path, None if columns is None else tuple(columns))
    box = {}
    for key, corner in (("low", low), ("high", high)):
        bound = np.asarray(corner, dtype=np.float64)
        if bound.ndim and len(bound) != X.shape[1]:
            raise DataError(
                f"{path}: has {X.shape[1]} columns, but bounds of {name} have {len(bound)}"
            )
        box[key] = np.broadcast_to(bound, X.shape[1]).copy()
    return {"X": X, **box}
