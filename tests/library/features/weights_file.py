"""Files of weights as PyTorch writes them, written without it."""

import io
import pickle
import sys
import types
import zipfile
from collections import OrderedDict
from unittest import mock

import numpy as np


class Storage:
    """Numbers that tensors view, by a key."""

    def __init__(self, key, array):
        self.key, self.array = key, array


class Parameter:
    """Pickles as a tensor does that was trained."""

    def __init__(self, tensor):
        self.tensor, self.view = tensor, tensor.view

    def __reduce__(self):
        arguments = self.tensor, True, OrderedDict()
        return sys.modules["torch._utils"]._rebuild_parameter, arguments


class Tensor:
    """Pickles as a tensor does."""

    def __init__(self, storage, offset, shape, strides):
        self.view = (storage, offset, shape, strides, False, OrderedDict())

    def __reduce__(self):
        return sys.modules["torch._utils"]._rebuild_tensor_v2, self.view


def _torch():
    """Modules of the names that such files have."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for name in ("FloatStorage", "LongStorage"):
        setattr(torch, name, type(name, (), {"__module__": "torch", "__qualname__": name}))
    for name in ("_rebuild_tensor_v2", "_rebuild_parameter"):
        function = types.FunctionType((lambda: None).__code__, {}, name)
        function.__module__, function.__qualname__ = "torch._utils", name
        setattr(utils, name, function)
    torch._utils = utils
    return {"torch": torch, "torch._utils": utils}


class _Pickler(pickle.Pickler):
    """Names storages in place of what they hold."""

    def persistent_id(self, item):
        if not isinstance(item, Storage):
            return None
        torch = sys.modules["torch"]
        kind = torch.FloatStorage if item.array.dtype.kind == "f" else torch.LongStorage
        return ("storage", kind, item.key, "cpu", item.array.size, None)


def write(tensors, is_archive=False):
    """Write tensors in the format of before 2020, or as a zip archive; return an open file."""
    with mock.patch.dict(sys.modules, _torch()):
        if is_archive:
            return _archive(OrderedDict(tensors))
        buffer = io.BytesIO()
        storages = {t.view[0].key: t.view[0].array for t in tensors.values()}
        for item in (0x1950A86A20F9469CFC6C, 1001, {}, OrderedDict(tensors), sorted(storages)):
            _Pickler(buffer, protocol=2).dump(item)
    for key in sorted(storages):
        buffer.write(storages[key].size.to_bytes(8, "little") + storages[key].tobytes())
    return io.BytesIO(buffer.getvalue())


def _archive(tensors):
    """Write a zip archive."""
    buffer, pickled = io.BytesIO(), io.BytesIO()
    _Pickler(pickled, protocol=2).dump(tensors)
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("weights/data.pkl", pickled.getvalue())
        for tensor in tensors.values():
            storage = tensor.view[0]
            file.writestr(f"weights/data/{storage.key}", storage.array.tobytes())
    return io.BytesIO(buffer.getvalue())


def tensors_of(arrays):
    """Tensors of arrays by name, in single precision, each with a storage of its own."""
    found = {}
    for number, (name, array) in enumerate(arrays.items()):
        single = np.ascontiguousarray(array, dtype="<f4")
        strides = tuple(step // single.itemsize for step in single.strides)
        storage = Storage(str(number), single.ravel())
        found[name] = Parameter(Tensor(storage, 0, single.shape, strides))
    return found
