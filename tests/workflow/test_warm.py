"""Jobs in copies of a process that has imported packages: as if each had its own."""

import importlib.util
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "workflow" / "scripts"
SPEC = importlib.util.spec_from_file_location("warm", SCRIPTS / "warm.py")
WARM = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(WARM)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux alone")

TELLS = """
import atexit, json, os, resource
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "pid": os.getpid(), "folder": os.getcwd(), "arguments": sys.argv, "name": __name__,
    "mine": os.environ.get("MINE"), "packages": "pandas" in sys.modules,
    "ours": "privclust" in sys.modules, "spent": float(os.environ.get(warm.SPENT, 0.0)),
    "input": sys.stdin.read(),
}))
atexit.register(print, "at the end")
"""


@pytest.fixture(scope="module")
def warm():
    return WARM


@pytest.fixture(scope="module")
def process(warm):
    stop = warm.start()
    yield os.environ[warm.ADDRESS]
    stop()


def written(folder, text):
    path = folder / "script.py"
    path.write_text(WARM.BEGINNING + text, encoding="utf-8")
    return [sys.executable, str(path), "an argument"]


def run(folder, text, **others):
    command = written(folder, text)
    return subprocess.run(command, capture_output=True, text=True, check=False, **others)


def test_a_copy_is_where_its_job_is(process, tmp_path, monkeypatch):
    monkeypatch.setenv("MINE", "of this job")
    done = run(tmp_path, TELLS, cwd=tmp_path, input="what is read")
    line, end = done.stdout.splitlines()
    told = json.loads(line)
    assert (done.returncode, done.stderr, end) == (0, "", "at the end")
    assert told["packages"]
    assert not told["ours"]
    assert told["folder"] == str(tmp_path)
    assert told["arguments"] == [str(tmp_path / "script.py"), "an argument"]
    assert (told["name"], told["mine"], told["input"]) == (
        "__main__",
        "of this job",
        "what is read",
    )
    assert told["spent"] > 0.0


def test_without_the_process_a_job_runs_by_itself(warm, tmp_path, monkeypatch):
    for address in None, str(tmp_path / "nothing"):
        if address is None:
            monkeypatch.delenv(warm.ADDRESS, raising=False)
        else:
            monkeypatch.setenv(warm.ADDRESS, address)
        told = json.loads(run(tmp_path, TELLS, input="").stdout.splitlines()[0])
        assert not told["packages"]
        assert told["spent"] == 0.0


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("sys.exit(3)", 3, ""),
        ("sys.exit('no')", 1, "no"),
        ("raise ValueError('wrong')", 1, "ValueError: wrong"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 1, "was killed"),
    ],
)
def test_a_job_ends_as_its_copy(process, tmp_path, text, code, said):
    done = run(tmp_path, text)
    assert done.returncode == code
    assert said in done.stderr


def test_a_copy_ends_after_its_threads_and_exit_functions(process, tmp_path):
    text = (
        "import atexit, threading\natexit.register(print, 'at the end')\n"
        "threading.Timer(0.3, print, ['of a thread']).start()\nsys.exit(2)"
    )
    done = run(tmp_path, text)
    assert (done.returncode, done.stdout.splitlines()) == (2, ["of a thread", "at the end"])


def test_what_a_copy_wrote_is_whole_though_it_closed_no_file(process, tmp_path):
    """As a module of somebody's own may leave one open."""
    path = tmp_path / "late.txt"
    (tmp_path / "own_module.py").write_text(f"file = open({str(path)!r}, 'w')\n", encoding="utf-8")
    text = (
        f"import atexit, gc\natexit.register(gc.freeze)\nsys.path.append({str(tmp_path)!r})\n"
        "import own_module\nown_module.file.write('all of it')"
    )
    assert run(tmp_path, text).returncode == 0
    assert path.read_text() == "all of it"


def test_copies_draw_other_numbers_where_nothing_seeds_them(process, tmp_path):
    """Numpy's own generator is part of what is copied."""
    text = "import numpy; print(numpy.random.random())"
    assert run(tmp_path, text).stdout != run(tmp_path, text).stdout


def test_a_copy_is_killed_with_its_job(process, tmp_path):
    text = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    with subprocess.Popen(written(tmp_path, text), stdout=subprocess.PIPE, text=True) as job:
        copy = int(job.stdout.readline())
        assert copy != job.pid
        job.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while Path(f"/proc/{copy}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_copies_for_jobs_that_were_killed_while_they_asked_end_without_a_word(
    warm, tmp_path, monkeypatch, capfd
):
    """Before they said anything, within their message, and before they were answered."""
    monkeypatch.setenv(warm.ADDRESS, "")  # of the other tests
    ran = tmp_path / "ran"
    script = written(tmp_path, f"import os; os.mkdir({str(ran)!r})")[1]
    state = {"script": script, "arguments": [script], "path": sys.path, "folder": str(tmp_path)}
    state |= {"environment": dict(os.environ), "python": sys.version, "prefix": sys.prefix}
    message = json.dumps(state).encode()
    stop = warm.start()
    for size in 0, 10, len(message):
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(os.environ[warm.ADDRESS])
            if size:
                header = len(message).to_bytes(warm._HEADER, "big")
                socket.send_fds(asking, [header], [0, 1, 2])
                asking.sendall(message[:size])
    assert run(tmp_path, "print('next')", input="").stdout == "next\n"  # is copied after them
    stop()
    assert capfd.readouterr() == ("", "")
    assert not ran.exists()


def of_children():
    """CPU seconds of the children that have ended and been waited for, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_what_copies_take_is_told_when_the_process_ends(warm, tmp_path, monkeypatch):
    """By the children's time of who started it, which Snakemake's row of costs comes from."""
    monkeypatch.setenv(warm.ADDRESS, "")  # of the other tests
    text = "import os, time\nwhile time.process_time() < 1.5: pass\nprint(os.getppid())"
    before = of_children()
    stop = warm.start()
    done = run(tmp_path, text)
    assert done.returncode == 0
    of_job = of_children() - before
    ticks = Path(f"/proc/{int(done.stdout)}/stat").read_text().rpartition(")")[2].split()[11:13]
    of_imports = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    stop()
    assert of_job < 1.0
    assert of_imports > 0.1
    assert of_children() - before - of_job - of_imports > 1.0
