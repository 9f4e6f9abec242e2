"""Files that are written whole or not at all."""

import os

import pytest

from privclust.core.files import atomic_path, why_unreadable, write_text
from privclust.core.printable import excerpt, printable


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


def test_a_block_that_fails_leaves_the_file_as_it_was(tmp_path):
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


def test_why_a_path_cannot_be_read(tmp_path):
    write_text(tmp_path / "file", "x")
    os.mkfifo(tmp_path / "pipe")
    assert why_unreadable(tmp_path / "file") == ""
    assert why_unreadable(tmp_path / "none") == "there is no such file"
    assert why_unreadable(tmp_path) == "is a directory; name a file"
    assert why_unreadable(tmp_path / "pipe") == "is a pipe or a device; name a file"
    assert why_unreadable("/dev/zero") == "is a pipe or a device; name a file"
    assert why_unreadable(tmp_path / "file" / "x") == "cannot be read (Not a directory)"


def test_no_text_steers_a_terminal():
    """Every character is either shown as it is or written out, and all that is shown is shown."""
    every = "".join(map(chr, range(0x3000))) + "\ud800\u202e\U0001f600"
    assert printable(every).isprintable()
    assert printable("a b\x1b[2J\n\x9b\u202e\ud800") == r"a b\x1b[2J\n\x9b\u202e\ud800"
    assert printable("caf\u00e9 \U0001f600") == "caf\u00e9 \U0001f600"
    assert excerpt("x" * 999) == "x" * 200 + "..."
