"""Files of sketches: HDF5 with a digest, and a check of the stated guarantee on reading."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from privclust.core import hdf5
from privclust.core.printable import excerpt
from privclust.core.validation import check_integer
from privclust.privacy import Guarantee, Neighbours, NoisyCount
from privclust.privacy.groups import ROW
from privclust.sketches._feature_sums import FeatureSums
from privclust.sketches._noise import SketchNoise, check_statement
from privclust.sketches._tables import SketchedTable

MOST_BYTES = 1 << 30
"""Limit on the arrays in a sketch's file."""
_KIND = "sketch"
_FORMAT = 2
_FREQUENCIES, _SUMS = "frequencies", "sums"
# names of the exact sums of a sketch without noise
_EXACT = {name: f"exact/{name}" for name in ("whole", "fraction", "n_samples")}
_UNREAD = "unread"  # numbers of missing and of unreadable entries
_ARRAYS = (_FREQUENCIES, _SUMS, _UNREAD, *_EXACT.values())
_MOST_RECORDS = 2**62


def save(sketch: Any, path: str | os.PathLike[str]) -> str:
    """Write a sketch; see `Sketch.save`."""
    parameters: dict[str, Any] = {
        "frequencies": sketch.key,
        "n_samples": sketch.n_samples,
        "n_measurements": sketch.n_measurements,
        "noise": sketch.noise and asdict(sketch.noise),
        "guarantee": sketch.guarantee and sketch.guarantee.as_dict(),
        "format": _FORMAT,
    }
    arrays = {_FREQUENCIES: sketch.frequencies}
    if sketch.exact is None:
        arrays[_SUMS] = sketch.sums
    else:
        arrays |= {_EXACT[name]: array for name, array in sketch.exact.items()}
    if sketch.unit != ROW:
        parameters["unit"] = sketch.unit
    if sketch.left_out is not None:
        left_out = sketch.left_out
        parameters["left_out"] = left_out if isinstance(left_out, int) else asdict(left_out)
    if sketch.table is not None:
        parameters["table"] = sketch.table.parameters()
        if sketch.table.unread is not None:
            arrays[_UNREAD] = sketch.table.unread
    n_bytes = sum(array.nbytes for array in arrays.values())
    if n_bytes > MOST_BYTES:
        raise ValueError(f"a sketch's file may hold {MOST_BYTES} bytes, this takes {n_bytes}")
    return hdf5.write(path, _KIND, arrays, parameters)


def load(cls: Any, path: str | os.PathLike[str]) -> Any:
    """Read a sketch of a class; see `Sketch.load`."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"{os.fspath(path)}: there is no such file")
    content = hdf5.read(path, _KIND, names=_ARRAYS, most_bytes=MOST_BYTES)
    parameters = content.parameters
    if parameters.get("format", 1) != _FORMAT:
        raise hdf5.FileError(
            f"{os.fspath(path)}: is of format {excerpt(parameters.get('format', 1))}; this "
            f"version of privclust reads format {_FORMAT}: make the sketch again"
        )
    try:
        sketch = _restored(cls, parameters, content.arrays)
        beside = _restored_beside(parameters, content.arrays.get(_UNREAD))
        sketch = replace(sketch, **beside) if beside else sketch
        _check_restored(sketch)
    except hdf5.MALFORMED as error:
        reason = excerpt(f"no {error}" if isinstance(error, KeyError) else error)
        raise hdf5.FileError(f"{os.fspath(path)}: holds no whole sketch ({reason})") from None
    return sketch


def _restored(cls: Any, parameters: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    """Return the sums of a file as a sketch, after checking them and the guarantee."""
    frequencies, n_measurements = arrays[_FREQUENCIES], parameters["n_measurements"]
    check_integer("n_measurements", n_measurements, minimum=1)
    noise, guarantee = parameters["noise"], parameters["guarantee"]
    unit = parameters.get("unit", ROW)
    if noise is None:
        state = {name: arrays[key] for name, key in _EXACT.items()}
        sums = FeatureSums.from_state(state, frequencies, n_measurements=n_measurements, unit=unit)
        sketch = cls.from_feature_sums(sums)
    else:
        sketch = cls(
            frequencies,
            arrays[_SUMS],
            parameters["n_samples"],
            n_measurements,
            SketchNoise(**noise),
            Guarantee.from_dict(guarantee),
            unit=unit,
        )
    if sketch.n_samples != parameters["n_samples"] or sketch.key != parameters["frequencies"]:
        raise ValueError("its header is of other records or frequencies")
    if sketch.noise is not None:
        check_statement(sketch.noise, sketch.n_measurements, sketch.guarantee)
    return sketch


def _restored_beside(parameters: Mapping[str, Any], unread: np.ndarray | None) -> dict[str, Any]:
    beside: dict[str, Any] = {}
    left_out = parameters.get("left_out")
    if left_out is not None:
        beside["left_out"] = NoisyCount(**left_out) if isinstance(left_out, dict) else left_out
    if "table" in parameters:
        beside["table"] = SketchedTable.restored(parameters["table"], unread)
    return beside


def _check_restored(sketch: Any) -> None:
    """Raise a ValueError if numbers are out of range, or public where they should be noisy."""
    n_parts = 1 if sketch.noise is None else sketch.noise.n_parts
    if not max(abs(sketch.n_samples), n_parts) < _MOST_RECORDS:
        raise ValueError("its numbers of records and parts must be below 2^62")
    if sketch.table is not None and sketch.table.n_features != sketch.n_features:
        raise ValueError("its declared columns are not those of its features")
    hides_number = sketch.noise is not None and sketch.guarantee.relation is Neighbours.ADD_REMOVE
    if hides_number and not isinstance(sketch.n_samples, float):
        raise ValueError("its number of records has no noise, as its guarantee states")
