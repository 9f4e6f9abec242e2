"""Attacks by odd machines: disks, caches, settings and processes that are not as usual."""

import errno
import filecmp
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from privclust.command import main
from privclust.preprocessing import TableEncoder
from privclust.privacy import Budget, BudgetError
from privclust.sketches import Sketch, draw_frequencies

pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")

ROOT = Path(__file__).parents[2]
DECLARED = ("--bounds", "x=0:10", "y=0:10")
PRIVATE = ("--epsilon", "1", "--delta", "1e-6")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with t.csv and an exact sketch of t.csv."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = rng.normal(0, 0.5, (2000, 2)) + np.array([[3, 3], [7, 7]])[rng.integers(2, size=2000)]
    np.savetxt("t.csv", rows, delimiter=",", header="x,y", comments="")
    encoder = TableEncoder({"x": (0, 10), "y": (0, 10)})
    frequencies = draw_frequencies(2, 60, variance=0.1, random_state=1)
    Sketch.of_table("t.csv", frequencies, encoder=encoder).save("s.h5")
    return tmp_path


def run(*arguments, **environment):
    """Run the command in a process of its own; return code and errors."""
    command = [sys.executable, "-m", "privclust.command", *map(str, arguments)]
    known = os.environ | {"PYTHONPATH": str(ROOT / "src")} | environment
    done = subprocess.run(command, env=known, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stderr


DECODE = ("decode", "s.h5", "--clusters", "2", "--seed", "1", "-o")


@pytest.mark.attack(
    claim="A result that has been charged is delivered, even on a disk that cannot flush a folder.",
    before="On VirtualBox, SMB and FUSE folders, the budget was charged, and a complete file was "
    "reported as 'cannot be written'.",
    now="Operations that a disk does not support are tried before the budget is spent, or are not "
    "needed.",
)
@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM])
def test_a_folder_that_cannot_be_flushed(folder, monkeypatch, code):
    real = os.fsync

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(code, os.strerror(code))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    budget = Budget.open("ledger.json", epsilon=2, delta=1e-6)
    how = (*PRIVATE, "--budget", "ledger.json")
    assert main([*DECODE, "out"]) == 0
    assert main(["cluster", "t.csv", *DECLARED, *how, "-o", "of_cluster"]) == 0
    assert (Path("out/report.html").exists(), budget.spent > 0.9) == (True, True)
    assert Path("of_cluster/report.html").exists()


@pytest.mark.attack(
    claim="A result that cannot be written is detected before a budget is spent.",
    before="On a disk that refuses to flush or rename a file, the budget was charged and no "
    "result was delivered.",
    now="A trial file takes the path of the result before anything is read.",
)
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_disk_that_refuses_files(folder, monkeypatch, capsys, step):
    budget = Budget.open("ledger.json", epsilon=2, delta=1e-6)

    def refused(*arguments, **how):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    target = (os, "fsync") if step == "fsync" else (Path, "replace")
    monkeypatch.setattr(*target, refused)
    how = (*PRIVATE, "--budget", "ledger.json", "-o", "out")
    assert main(["cluster", "t.csv", *DECLARED, *how]) == 1
    assert "cannot be written (Input/output error)" in capsys.readouterr().err
    assert budget.spent == 0.0


@pytest.mark.attack(
    claim="On a disk without locks, a ledger spends nothing.",
    before="A lock that was not available raised an error without a file or a remedy.",
    now="One line, before anything is spent.",
)
def test_a_disk_without_locks(tmp_path, monkeypatch):
    import fcntl

    budget = Budget.open(tmp_path / "ledger.json", epsilon=2, delta=1e-6)

    def flock(descriptor, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(BudgetError, match=r"ledger.json: cannot be locked .* a disk that has"):
        _ = budget.spent


SKETCH = """
import sys
import numpy as np
from privclust.sketches import Sketch
Sketch.of(np.ones((50, 2)), np.ones((2, 3))).save(sys.argv[1])
"""


def sketched(path, **environment):
    """Sketch rows in a process of its own; return its code and errors."""
    known = os.environ | {"PYTHONPATH": str(ROOT / "src")} | environment
    command = [sys.executable, "-c", SKETCH, path]
    done = subprocess.run(command, env=known, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A folder of loops that were compiled, and a sketch that was made by them."""
    folder = tmp_path_factory.mktemp("compiled")
    code, err = sketched(folder / "s.h5", NUMBA_CACHE_DIR=str(folder / "cache"))
    assert code == 0, err
    return folder


@pytest.mark.slow
@pytest.mark.attack(
    claim="A damaged cache of compiled loops stops no run.",
    before="After a power cut, an index of 0 bytes: 'Ran out of input' at each start.",
    now="An entry that cannot be read counts as missing and is written again.",
)
@pytest.mark.parametrize(("suffix", "kept"), [(".nbi", 0), (".nbc", 100)])
def test_a_damaged_cache(compiled, tmp_path, suffix, kept):
    cache = shutil.copytree(compiled / "cache", tmp_path / "cache")
    damaged = list(cache.rglob(f"*{suffix}"))
    assert damaged
    for path in damaged:
        path.write_bytes(path.read_bytes()[:kept])
    for number in range(2):
        code, err = sketched(tmp_path / f"{number}.h5", NUMBA_CACHE_DIR=str(cache))
        assert code == 0, err
        assert ("compiles its loops" in err) == (number == 0)
        assert (tmp_path / f"{number}.h5").read_bytes() == (compiled / "s.h5").read_bytes()


@pytest.mark.slow
@pytest.mark.attack(
    claim="A folder that cannot keep compiled loops stops no run.",
    before="'cannot cache function: no locator available' on import. If the path "
    "was not UTF-8, 'surrogates not allowed'.",
    now="One warning, and each process compiles again.",
)
@pytest.mark.parametrize(("cache", "clone"), [("file/cache", b"clone"), ("cache", b"caf\xe9")])
def test_no_place_for_compiled_loops(compiled, tmp_path, cache, clone):
    (tmp_path / "file").touch()
    (tmp_path / os.fsdecode(clone)).symlink_to(ROOT)
    settings = {"NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator"}
    settings["NUMBA_CACHE_DIR"] = str(tmp_path / cache)
    settings["PYTHONPATH"] = str(tmp_path / os.fsdecode(clone) / "src")
    code, err = sketched(tmp_path / "s.h5", **settings)
    assert code == 0, err
    assert err.count("compiled loops cannot be kept") == 1
    assert (tmp_path / "s.h5").read_bytes() == (compiled / "s.h5").read_bytes()


HOSTILE = """
text.usetex: True
axes.prop_cycle: cycler('color', ['ff0000', '00ff00'])
figure.facecolor: black
savefig.bbox: tight
savefig.transparent: True
font.size: 30
lines.linewidth: 9
"""


@pytest.mark.attack(
    claim="Pictures do not depend on the user's settings of Matplotlib.",
    before="Other colours and bytes; with text.usetex, an error after the budget was spent.",
    now="The same bytes. A missing backend is not requested.",
)
def test_a_hostile_matplotlibrc(folder):
    Path("matplotlibrc").write_text(HOSTILE)
    assert run(*DECODE, "usual", MATPLOTLIBRC=os.devnull)[0] == 0
    settings = {"MATPLOTLIBRC": str(folder / "matplotlibrc")}
    settings["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    code, err = run(*DECODE, "hostile", **settings)
    assert code == 0, err
    names = sorted(os.listdir("usual"))
    same, others, _ = filecmp.cmpfiles("usual", "hostile", names, shallow=False)
    assert len(same) == len(names) - 1
    assert others == ["report.html"]  # its last line says -o usual, or hostile
    usual, hostile = (Path(name, "report.html").read_text() for name in ("usual", "hostile"))
    assert hostile.replace("-o hostile", "-o usual") == usual


@pytest.mark.attack(
    claim="If a picture cannot be drawn, all numbers are still delivered.",
    before="An error of Matplotlib, after the budget was spent, left a folder with only the "
    "sketch.",
    now="A warning; the report and the numbers are there.",
)
@pytest.mark.filterwarnings("default")  # the command prints what users see
def test_a_picture_that_cannot_be_drawn(folder, monkeypatch, capsys):
    def broken(clusters):
        raise RuntimeError("no fonts")

    monkeypatch.setattr("privclust.report.written.picture", broken)
    assert main([*DECODE, "out"]) == 0
    assert "no picture: RuntimeError: no fonts" in capsys.readouterr().err
    assert not Path("out/clusters.svg").exists()
    assert "<table>" in Path("out/report.html").read_text()
    assert Path("out/centers.csv").exists()


@pytest.mark.attack(
    claim="A process without a standard error, a home or a folder ends in a result or in one line.",
    before="Without a standard error, messages were mixed with the results. A removed working "
    "folder gave '[Errno 2] No such file or directory'.",
    now="The results without messages, or one line that states the remedy.",
)
def test_processes_without_standard_error_home_or_folder(folder):
    assert run(*DECODE, "usual")[0] == 0
    command = [sys.executable, "-m", "privclust.command", *DECODE]
    known = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    closed = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *command, "closed"],
        env=known,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert (closed.returncode, closed.stdout) == (0, "")
    homeless = {name: value for name, value in known.items() if name != "HOME"}
    assert subprocess.run([*command, "homeless"], env=homeless).returncode == 0
    for folder_of in ("closed", "homeless"):
        assert filecmp.cmp("usual/centers.csv", f"{folder_of}/centers.csv", shallow=False)
    gone = folder / "gone"
    gone.mkdir()
    script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    done = subprocess.run(
        ["/bin/sh", "-c", script, "sh", str(gone), *command, "out"],
        env=known,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "the working folder is gone" in done.stderr
    code, err = run(*DECODE, "out", NUMBA_DISABLE_JIT="1")
    assert (code, "unset NUMBA_DISABLE_JIT" in err) == (1, True)
