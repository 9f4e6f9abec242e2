"""Files that are written whole or not at all."""

import os

import pytest

from privclust.core.files import atomic_path, write_text


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_who_may_read_a_file_is_what_the_umask_says(tmp_path, umask, mode):
    file = tmp_path / "kept.txt"
    before = os.umask(umask)
    try:
        write_text(file, "first")
        write_text(file, "second")
    finally:
        os.umask(before)
    assert file.stat().st_mode & 0o777 == mode
    assert file.read_text() == "second"


def test_a_block_that_ends_badly_leaves_the_file_and_nothing_beside_it(tmp_path):
    file = tmp_path / "folder" / "kept.txt"
    write_text(file, "first")

    def fail():
        with atomic_path(file) as temporary:
            temporary.write_text("half")
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        fail()
    assert [path.name for path in file.parent.iterdir()] == ["kept.txt"]
    assert file.read_text() == "first"
