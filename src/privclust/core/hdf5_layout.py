"""Checks of the layout of an untrusted HDF5 file before any array is read.

An HDF5 file can do more than store arrays: it can refer to other files, stand for terabytes that
were never written, and run filters found on the disk. Here every access beyond the file is refused,
and arrays may not be larger than their stored bytes allow.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from privclust.core.packages import require
from privclust.core.printable import excerpt

MOST_INFLATION = 1100
"""Largest ratio of an array's bytes to its bytes in the file; gzip reaches 1,032."""

MOST_TEXT = 1 << 24
"""Largest size of an attribute, in bytes."""

NEEDED_BY = "artefacts and saved estimators"
# kinds of dtype; objects would be references, or of any length
_NUMBERS_AND_TEXT = "biufcS"


def text_attribute(file: Any, name: str) -> str:
    """Return an attribute of a file that is one byte string, as text.

    A ValueError or KeyError is raised if it is missing, of another type, or above 16 MiB.
    """
    hdf5 = require("h5py", NEEDED_BY)
    # the low-level interface gives type and size before the value is read
    attribute = hdf5.h5a.open(file.id, name.encode())
    if attribute.shape != () or attribute.dtype.kind != "S":
        raise ValueError(f"its {name} is no text")
    if attribute.get_storage_size() > MOST_TEXT:
        raise ValueError(f"its {name} is longer than {MOST_TEXT} bytes")
    return bytes(file.attrs[name]).decode()


def arrays_in(
    file: Any, n_bytes: int, names: Collection[str] | None = None, most_bytes: float = math.inf
) -> dict[str, Any]:
    """Return all arrays of a file by name, not yet read.

    Parameters
    ----------
    file : h5py.File
        Open for reading.
    n_bytes : int
        Size of the file.
    names : collection of str or None
        Allowed names of arrays; None for any.
    most_bytes : float
        Largest total size of arrays in memory.

    Raises
    ------
    ValueError
        If there is a link to another place or file, an array stored outside of the file, an array
        of another name, a type other than numbers and byte strings, a filter that
        `privclust.core.hdf5.write` does not use, or an array larger than its bytes in the file or
        `most_bytes` allow.
    """
    hdf5 = require("h5py", NEEDED_BY)
    arrays: dict[str, Any] = {}
    # hard links could make the walk endless, or name one array many times
    groups, seen = [("", file)], {_address(file)}
    while groups:
        prefix, group = groups.pop()
        for key in group:
            name = f"{prefix}{key}"
            if not isinstance(group.get(key, getlink=True), hdf5.HardLink):
                raise ValueError(f"{excerpt(name)} is a link")
            item = group[key]
            if _address(item) in seen:
                raise ValueError(f"{excerpt(name)} is there under two names")
            seen.add(_address(item))
            if isinstance(item, hdf5.Group):
                groups.append((f"{name}/", item))
            elif isinstance(item, hdf5.Dataset):
                if names is not None and name not in names:
                    raise ValueError(f"there should be no array {excerpt(name)}")
                arrays[name] = item
            else:
                raise ValueError(f"{excerpt(name)} is no array")
    stored = sum(_checked_bytes(name, array) for name, array in arrays.items())
    if stored > n_bytes:
        raise ValueError("its arrays share bytes of the file")
    if sum(array.nbytes for array in arrays.values()) > most_bytes:
        raise ValueError(f"its arrays are larger than {most_bytes} bytes")
    return arrays


def _address(item: Any) -> int:
    return require("h5py", NEEDED_BY).h5o.get_info(item.id).addr


def _checked_bytes(name: str, array: Any) -> int:
    """Return the number of bytes of the file that store an array, or refuse it."""
    hdf5 = require("h5py", NEEDED_BY)
    layout = array.id.get_create_plist()
    if array.is_virtual or layout.get_external_count():
        raise ValueError(f"array {excerpt(name)} is kept in other files")
    if array.dtype.kind not in _NUMBERS_AND_TEXT:
        raise ValueError(f"array {excerpt(name)} is neither of numbers nor of byte strings")
    known = hdf5.h5z.FILTER_DEFLATE, hdf5.h5z.FILTER_SHUFFLE, hdf5.h5z.FILTER_FLETCHER32
    if any(layout.get_filter(i)[0] not in known for i in range(layout.get_nfilters())):
        raise ValueError(f"array {excerpt(name)} is packed in an unknown way")
    stored = array.id.get_storage_size()
    # HDF5 makes room for whole chunks, even if the array is smaller than one
    in_memory = array.dtype.itemsize * max(array.size, math.prod(array.chunks or ()))
    if array.size and in_memory > MOST_INFLATION * stored:
        raise ValueError(f"array {excerpt(name)} is larger than the file can hold")
    return stored
