"""What is done where compiled loops cannot be read or kept."""

import importlib.util
import os

import pytest
from numba.core.caching import IndexDataCacheFile

from privclust.core import compiled

SOURCE = """
from privclust.core.compiled import kernel

@kernel()
def twice(x):
    return 2 * x
"""


@pytest.fixture
def twice(tmp_path, monkeypatch):
    """Return a kernel as a new process has it, whose loops are kept below the test's folder."""
    monkeypatch.setattr(compiled.config, "CACHE_DIR", "")
    monkeypatch.setattr(compiled, "_WARNED", [])
    (tmp_path / "module.py").write_text(SOURCE)

    def new():
        spec = importlib.util.spec_from_file_location("module", tmp_path / "module.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.twice

    return new


@pytest.mark.parametrize("content", [b"", b"no index", b"\x80\x05."])
def test_a_damaged_index_on_a_full_disk_is_one_warning(twice, tmp_path, monkeypatch, content):
    assert twice()(1) == 2
    (index,) = tmp_path.rglob("*.nbi")
    index.write_bytes(content)
    with monkeypatch.context() as full:

        def no_room(cache, path):
            raise OSError(28, os.strerror(28))

        full.setattr(IndexDataCacheFile, "_open_for_write", no_room)
        with pytest.warns(UserWarning, match="cannot be kept.*No space left") as warned:
            assert twice()(1) == 2
        assert len(warned) == 1
    assert twice()(1) == 2  # there is room again
    assert len(index.read_bytes()) > 100
    index.write_bytes(content)
    kernel = twice()
    assert kernel(1) == 2
    assert kernel.stats.cache_misses
