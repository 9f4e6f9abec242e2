import errno
import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import h5py
import numpy as np
import pytest

from privclust.core import hdf5
from privclust.core.canonical import canonical_json
from privclust.core.files import write_text
from privclust.core.hdf5 import FileError
from privclust_papers.pipeline import artefacts


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    return {
        "numbers": rng.standard_normal((30, 7)),
        "group/whole": np.arange(5),
        "scalar": np.float64(2.5),
        "empty": np.zeros((0, 3)),
        "flags": np.array([True, False]),
        "names": np.array(["a", "Müller"]),
    }


def test_round_trip_keeps_arrays_parameters_and_inputs(tmp_path, arrays):
    path = tmp_path / "sub" / "a.h5"
    digest = artefacts.write(path, "fit", arrays, {"k": [1, None]}, {"dataset": "abc"})
    found = artefacts.read(path, "fit", {"k": [1, None]})
    assert found.digest == digest
    assert found.inputs == {"dataset": "abc"}
    assert set(found.arrays) == set(arrays)
    np.testing.assert_array_equal(found.arrays["numbers"], arrays["numbers"])
    assert found.arrays["scalar"] == 2.5
    assert found.arrays["empty"].shape == (0, 3)
    assert found.arrays["names"][1].decode() == "Müller"
    assert "numpy" in found.versions


def test_the_same_content_gives_the_same_bytes(tmp_path, arrays):
    first, second = tmp_path / "1.h5", tmp_path / "2.h5"
    artefacts.write(first, "fit", arrays, {"a": 1, "b": 2})
    os.utime(first, (0, 0))
    artefacts.write(second, "fit", dict(reversed(arrays.items())), {"b": 2, "a": 1})
    assert first.read_bytes() == second.read_bytes()


def test_header_names_no_path_host_or_time(tmp_path, arrays):
    path = tmp_path / "a.h5"
    artefacts.write(path, "fit", arrays, {})
    content = path.read_bytes()
    assert str(tmp_path).encode() not in content
    assert os.uname().nodename.encode() not in content


@pytest.mark.parametrize("position", [0.02, 0.3, 0.6, 0.97])
def test_truncated_file_is_refused(tmp_path, arrays, position):
    path = tmp_path / "a.h5"
    artefacts.write(path, "fit", arrays, {})
    content = path.read_bytes()
    path.write_bytes(content[: int(position * len(content))])
    with pytest.raises(FileError, match="delete it and run again"):
        artefacts.read(path, "fit")


def test_a_users_own_file_shall_not_be_deleted(tmp_path, arrays):
    path = tmp_path / "mine.h5"
    with pytest.raises(FileError, match=r"no such artefact$"):
        hdf5.read(path, "sketch")
    hdf5.write(path, "sketch", arrays, {"k": 1})
    with pytest.raises(FileError, match=r"made with k = 1, not 2$"):
        hdf5.read(path, "sketch", {"k": 2})
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(FileError, match=r"not a whole artefact .*\); take another copy of it$"):
        hdf5.read(path, "sketch")


def test_every_flipped_bit_that_changes_content_is_refused(tmp_path, arrays):
    path = tmp_path / "a.h5"
    artefacts.write(path, "fit", arrays, {"k": 1})
    content = path.read_bytes()
    good = artefacts.read(path, "fit")
    rng = np.random.default_rng(1)
    refused = 0
    for position in rng.integers(len(content), size=200):
        broken = bytearray(content)
        broken[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(broken)
        try:
            found = artefacts.read(path, "fit")
        except FileError:
            refused += 1
            continue
        assert found.parameters == good.parameters
        for name, array in good.arrays.items():
            np.testing.assert_array_equal(found.arrays[name], array)
    assert refused > 100


def test_changed_array_is_refused(tmp_path, arrays):
    path = tmp_path / "a.h5"
    artefacts.write(path, "fit", arrays, {})
    with h5py.File(path, "r+") as file:
        file["group/whole"][0] = 9
    with pytest.raises(FileError, match="digest"):
        artefacts.read(path, "fit")


def test_missing_foreign_and_wrong_files_are_named(tmp_path, arrays):
    with pytest.raises(FileError, match=r"no such artefact"):
        artefacts.read(tmp_path / "none.h5", "fit")
    foreign = tmp_path / "foreign.h5"
    with h5py.File(foreign, "w") as file:
        file["x"] = 1
    with pytest.raises(FileError, match=r"foreign\.h5: not a whole artefact"):
        artefacts.read(foreign, "fit")
    path = tmp_path / "a.h5"
    artefacts.write(path, "fit", arrays, {"k": 1})
    with pytest.raises(FileError, match="holds a 'fit' artefact, not a 'metrics'"):
        artefacts.read(path, "metrics")
    with pytest.raises(FileError, match="made with k = 1, not 2"):
        artefacts.read(path, "fit", {"k": 2})


def test_locks_of_others_are_no_hindrance(tmp_path, arrays):
    # a shared disk may refuse locks, or keep those of a job that was killed
    path = tmp_path / "fit.h5"
    artefacts.write(path, "fit", arrays, {})
    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="unable to lock file"):
            h5py.File(path, "r", locking=True)
        assert artefacts.read(path, "fit").arrays.keys() == arrays.keys()
        artefacts.write(path, "fit", arrays, {"again": 1})
    assert artefacts.read(path, "fit").parameters == {"again": 1}


def test_table_comes_back_with_its_digest_beside_it(tmp_path):
    path, text = tmp_path / "trials.csv", "error,method\n0.5,\u00e9\n"
    artefacts.write_table(path, text)
    assert artefacts.read_table(path).read() == text.encode()
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert (tmp_path / "trials.csv.sha256").read_text() == f"{digest}  trials.csv\n"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda table: os.truncate(table, 12), "content does not fit its digest; delete it"),
        (lambda table: table.write_text(""), "content does not fit its digest; delete it"),
        (lambda table: table.write_text("error\n0.6\n0.5\n"), "does not fit its digest"),
        (lambda table: table.unlink(), "no such table; run the rule that makes it"),
        (lambda table: Path(f"{table}.sha256").unlink(), "sha256, is missing; delete it and run"),
        (lambda table: Path(f"{table}.sha256").write_text(""), "does not fit its digest"),
        (lambda table: table.with_name("b.csv").replace(table), "does not fit its digest"),
    ],
)
def test_table_that_is_not_as_it_was_written_is_refused(tmp_path, damage, message):
    table = tmp_path / "a.csv"
    artefacts.write_table(table, "error\n0.5\n0.5\n")
    artefacts.write_table(tmp_path / "b.csv", "error\n0.7\n0.5\n")
    damage(table)
    with pytest.raises(FileError, match=message) as caught:
        artefacts.read_table(table)
    assert str(table) in str(caught.value)


def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, arrays):
    path = tmp_path / "a.h5"
    artefacts.write(path, "fit", arrays, {})
    before = path.read_bytes()
    with pytest.raises(TypeError, match="'bad'"):
        artefacts.write(path, "fit", {"bad": np.array([object()])}, {})
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "half \ud800")
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.h5"]


def test_killed_writer_leaves_no_file_under_the_name(tmp_path):
    script = textwrap.dedent(
        """
        import os, signal, sys
        from privclust.core.files import atomic_path
        with atomic_path(sys.argv[1]) as temporary:
            temporary.write_bytes(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    path = tmp_path / "a.h5"
    done = subprocess.run([sys.executable, "-c", script, path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not path.exists()


@pytest.mark.parametrize("limit", [100, 3_000, 200_000])
def test_a_full_disk_ends_in_an_error_and_leaves_no_file(tmp_path, limit):
    code = f"""
        import resource
        import numpy as np
        from privclust_papers.pipeline import artefacts
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
        array = np.random.default_rng(0).normal(size=100_000)
        try:
            artefacts.write("big.h5", "fit", {{"a": array}}, {{}}, {{}})
        except OSError as error:
            print(error.errno)
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(ended.stdout) == errno.EFBIG
    assert list(tmp_path.iterdir()) == []


def test_not_a_number_has_no_canonical_json():
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"a": float("nan")})
