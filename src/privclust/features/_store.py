"""Features with their labels in files: the project's artefacts and users' files."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privclust.core import hdf5
from privclust.core.hdf5 import decode_text, encode_text

KIND = "features"
"""Kind of artefacts with features."""


@dataclass(frozen=True, eq=False)
class FeatureSet:
    """Features and labels.

    Attributes
    ----------
    X : ndarray of shape (n, d), float32 or float64
        One sample per row; finite.
    y : ndarray of shape (n,), int64
        Class of each.
    train : ndarray of shape (n,), bool, or None
        The data set's own split, if it has one.
    names : tuple of str or None
        Names of the classes, if known.
    pixels : ndarray of shape (n, e), float32 or float64, or None
        Raw pixels of the downscaled images, as a control, if they were stored.
    about : mapping
        Origin of the features: for extracted ones model, size and checksums.
    """

    X: np.ndarray
    y: np.ndarray
    train: np.ndarray | None = None
    names: tuple[str, ...] | None = None
    pixels: np.ndarray | None = None
    about: Mapping[str, Any] = field(default_factory=dict)


def load_features(path: str | os.PathLike[str]) -> FeatureSet:
    """Read features and labels.

    Parameters
    ----------
    path : path-like
        ``.h5``: an artefact of this project (its digest is checked); or ``.npz`` with arrays ``X``
        and ``y``. ``X`` has shape (n, d) and finite numbers; ``y`` has shape (n,) and whole
        numbers. Optional are ``train`` (n booleans), ``names`` (names of classes) and ``pixels``
        (a second table of n rows).

    Returns
    -------
    FeatureSet
        Numbers other than float64 become float32.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is of another kind or damaged, an array is missing, or arrays do not match or
        contain NaN or infinite numbers. The message names the file and the array.
    FileError
        If the file is an artefact of this project that is damaged or has other content.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/mine.npz", X=np.eye(3), y=[0, 1, 1])
    ...     load_features(f"{folder}/mine.npz").X.shape
    (3, 3)
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    if path.suffix not in (".npz", ".h5"):
        raise ValueError(f"{path}: features must be in .h5 or .npz, got {path.name!r}")
    if path.suffix == ".h5":
        contents = hdf5.read(path, KIND)
        return _feature_set(contents.arrays, contents.parameters, f"{path}: ")
    arrays = _read_npz(path)
    for name in ("X", "y"):
        if name not in arrays:
            names = ", ".join(sorted(arrays)) or "nothing"
            raise ValueError(f"{path}: has no array {name}, only {names}; it may hold X and y")
    return _feature_set(arrays, {}, f"{path}: ")


def save_features(
    path: str | os.PathLike[str],
    X: ArrayLike,
    y: ArrayLike,
    *,
    train: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    pixels: ArrayLike | None = None,
    about: Mapping[str, Any] | None = None,
    inputs: Mapping[str, str] | None = None,
) -> str:
    """Write features and labels as an artefact, atomically.

    Parameters
    ----------
    path : path-like
        A ``.h5`` file.
    X : array-like of shape (n, d)
        Finite numbers.
    y : array-like of shape (n,)
        Whole numbers.
    train : array-like of shape (n,), optional
        Booleans.
    names : sequence of str, optional
        Names of the classes.
    pixels : array-like of shape (n, e), optional
        Finite numbers.
    about : mapping, optional
        JSON values on the origin of the features.
    inputs : mapping of str to str, optional
        Digest of each artefact used, by role.

    Returns
    -------
    str
        The artefact's digest.

    Raises
    ------
    ValueError
        If arrays do not match or contain NaN or infinite numbers, or for another suffix.
    """
    path = Path(path)
    if path.suffix != ".h5":
        raise ValueError(f"path: features are written to .h5, got {path.name!r}")
    arrays = {"X": X, "y": y, "train": train, "names": names, "pixels": pixels}
    features = _feature_set(arrays, about or {}, "")
    stored = {name: getattr(features, name) for name, value in arrays.items() if value is not None}
    if names is not None:
        stored["names"] = encode_text(features.names)
    return hdf5.write(path, KIND, stored, about or {}, inputs)


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    """Read an npz archive; pickled objects are refused."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: not a whole npz archive of numbers ({reason})") from None


def _feature_set(arrays: Mapping[str, Any], about: Mapping[str, Any], where: str) -> FeatureSet:
    """Check arrays against one another and convert them to their types."""
    X = _table(arrays["X"], "X", where)
    train = arrays.get("train")
    if train is not None:
        train = np.asarray(train)
        if train.shape != (len(X),) or train.dtype != bool:
            got = f"shape {train.shape} and type {train.dtype}"
            raise ValueError(f"{where}train: got {got}; it must be {len(X)} truth values")
    names = arrays.get("names")
    if names is not None:
        names = tuple(decode_text(np.ravel(names)))
    pixels = arrays.get("pixels")
    if pixels is not None:
        pixels = _table(pixels, "pixels", where)
        if len(pixels) != len(X):
            raise ValueError(f"{where}pixels: got {len(pixels)} rows; it must be {len(X)}, as X")
    y = _whole_labels(arrays["y"], len(X), where)
    return FeatureSet(X, y, train, names, pixels, dict(about))


def _table(values: Any, name: str, where: str) -> np.ndarray:
    """Return finite numbers in rows: float64 is unchanged, others become float32."""
    table = np.asarray(values)
    if table.ndim != 2 or not table.size or table.dtype.kind not in "biuf":
        raise ValueError(
            f"{where}{name}: got shape {table.shape} and type {table.dtype}; it must be a table of "
            "numbers, (n, d) with n, d >= 1"
        )
    table = table.astype(np.float64 if table.dtype == np.float64 else np.float32)
    bad = ~np.isfinite(table).all(axis=1)
    if bad.any():
        raise ValueError(
            f"{where}{name}: {int(bad.sum())} of {len(table)} rows hold NaN or infinite numbers, "
            f"the first is row {int(bad.argmax())}"
        )
    return table


def _whole_labels(y, n_samples: int, where: str) -> np.ndarray:
    y = np.asarray(y)
    if y.shape != (n_samples,):
        raise ValueError(
            f"{where}y: got shape {y.shape}; it must be ({n_samples},), one for each sample"
        )
    whole = y.dtype.kind in "iu"
    if y.dtype.kind == "f":
        whole = bool((np.isfinite(y) & (y == np.rint(y)) & (np.abs(y) < 2.0**53)).all())
    if not whole:
        raise ValueError(
            f"{where}y: got type {y.dtype}; labels must be whole numbers, none missing"
        )
    return y.astype(np.int64)
