"""Faults in a run: each ends in a clear message, and a rerun gives an undisturbed run's bytes."""

import contextlib
import functools
import importlib.util
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).parent
_SPEC = importlib.util.spec_from_file_location("workflow_faults", HERE / "faults.py")
faults = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(faults)
FAULTS, FIT, PREPARED, RAW = faults.FAULTS, faults.FIT, faults.PREPARED, faults.RAW
TRIALS, DRAWN = faults.TRIALS, faults.DRAWN
said = faults.said

BLOCK = f"{FIT}/quiet/block_0000.h5"
CORES = ("--cores", "2")
NO_SUBSTITUTES = (*CORES, "--config", "substitutes=false")
LIMITED = """
import resource, signal, sys
import numpy as np
from privclust_papers.pipeline import artefacts
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
arrays = {f"part_{n}": np.random.default_rng(n).random(2000) for n in range(20)}
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    artefacts.write(sys.argv[1], "fit", arrays, {})
except OSError as error:
    print(error.strerror)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)  # coverage
"""
LOOP = """
from privclust.core.compiled import kernel

@kernel()
def largest(values):
    found = values[0]
    for value in values:
        found = max(found, value)
    return found
"""


@pytest.fixture
def project(tmp_path):
    return faults.SmallProject(tmp_path / "project")


@pytest.fixture
def copy(undisturbed, tmp_path):
    return undisturbed.copy(tmp_path / "copy")


@pytest.fixture
def see(record_property, tmp_path):
    """Note what the terminal said of a fault, for the table: without paths and ports."""

    def note(name, line):
        assert name in FAULTS
        line = re.sub(rf"{tmp_path}(/\w+/?)?", "", line)
        line = re.sub(r"(127\.0\.0\.1):\d+", r"\1", line)
        line = re.sub(r"\(\d{4}-\d\d-\d\d [^)]*\)", "(…)", line)
        record_property(name, line.replace("`", "'"))

    return note


@pytest.fixture
def small_disk(project):
    """A disk of 4 MiB with the project's results, data and logs; unmounted after the test."""
    disk = project.folder / "disk"
    try:
        with faults.mounted(disk, "-o", "size=4m"):
            for name in ("data", "logs", "results"):
                (disk / name).mkdir()
                (project.folder / name).symlink_to(f"disk/{name}")
            yield disk
    except PermissionError as error:
        pytest.skip(f"no disk can be mounted here: {error}")


@pytest.fixture
def disk(tmp_path):
    """A disk of 64 MiB that has room for a whole project; unmounted after the test."""
    try:
        with faults.mounted(tmp_path / "disk", "-o", "size=64m"):
            yield tmp_path / "disk"
    except PermissionError as error:
        pytest.skip(f"no disk can be mounted here: {error}")


def fill(disk, room):
    """Fill a disk up to some bytes, and return the file that does."""
    filler = disk / "filler"
    with open(filler, "wb", buffering=0) as file:
        usage = os.statvfs(disk)
        file.write(b"x" * (usage.f_bavail * usage.f_frsize - room))
    return filler


def assert_whole(project, undisturbed):
    """What stands under a result's name has the bytes of the undisturbed run."""
    expected = undisturbed.made()
    for path, content in project.made().items():
        assert content == expected[path], path


def fails(project, *arguments):
    """Run, which must fail, and return what the terminal said."""
    done = project.run(*arguments, check=False)
    assert done.returncode != 0, done.stdout
    return done.stdout


def fails_cleanly(project, *arguments):
    """Run, which must fail and leave no temporary file, and return what the terminal said."""
    output = fails(project, *arguments)
    assert not list(project.folder.rglob("*.part"))
    return output


def recovers(project, undisturbed, name, how=None):
    """Take a fault's steps and compare all with the undisturbed run."""
    for step in FAULTS[name].steps:
        project.take(step, how)
    assert project.made() == undisturbed.made()


@pytest.mark.system
def test_killed_jobs(project, undisturbed, see):
    name, moments, left = "a job is killed", random.Random(18), 18
    while left:
        run = project.begin(*CORES, "--keep-going", "--retries", "1")
        while run.poll() is None:
            time.sleep(moments.uniform(0.05, 0.7))
            jobs = project.jobs()
            if jobs and left:
                left -= faults.end(moments.choice(jobs))
        assert_whole(project, undisturbed)
        if run.returncode == 0:
            shutil.rmtree(project.folder / "results")  # there shall be more to kill
        else:
            line = said(project.terminal, "died with .*SIGKILL.*|status 137", r"Error in rule \w+")
    see(name, line)
    recovers(project, undisturbed, name)


@pytest.mark.system
def test_killed_snakemake(project, undisturbed, see):
    name, moments, left = "Snakemake is killed", random.Random(8), 8

    def finished():
        return project.terminal.count("Finished jobid")

    while left:
        lock = ("--nolock",) if left > 1 else ()  # only the last one leaves a lock behind
        run = project.begin(*CORES, "--rerun-incomplete", *lock)
        jobs = moments.randrange(4)  # so many are done; a clock would tell how busy the machine is
        faults.wait(lambda run=run, n=jobs: finished() >= n or run.poll() is not None)
        time.sleep(moments.uniform(0.0, 1.5))
        if left == 1:  # what is said after the last one depends on what it was doing
            faults.wait(lambda run=run: project.jobs() or run.poll() is not None)
        if run.poll() is not None:
            assert run.returncode == 0, project.terminal
            faults.wait(lambda: not project.jobs())  # some outlived the Snakemake before
            shutil.rmtree(project.folder / "results")  # there shall be more to do
            continue
        if left % 2:
            os.kill(run.pid, signal.SIGKILL)
        else:
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        left -= 1
        assert_whole(project, undisturbed)
    faults.wait(lambda: not project.jobs())
    output = fails(project, *CORES)
    incomplete = said(output, ".*seem to be incomplete", ".*--rerun-incomplete.*")
    output = fails(project, *CORES, "--rerun-incomplete")
    locked = said(output, "Error: Directory cannot be locked", ".*--unlock.*")
    see(name, f"{incomplete} … {locked}")
    recovers(project, undisturbed, name)


@pytest.mark.system
def test_full_disk(project, undisturbed, small_disk, see):
    name = "the disk is full"
    project.run(*CORES, PREPARED)
    filler = fill(small_disk, room=8192)
    output = fails_cleanly(project, *CORES)
    assert set(project.made()) == {PREPARED}
    see(name, said(output, r"results.*No space left on device.*make room there and run again"))
    recovers(project, undisturbed, name, filler.unlink)


@pytest.mark.system
def test_full_project(disk, undisturbed, see, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # the room is for Snakemake's log
    name, project = "the project's disk is full", faults.SmallProject(disk / "project")
    filler = fill(disk, room=4096)
    full = "the project's folder: 0.0 MB are left on its disk; make room there.*run again"
    see(name, said(fails_cleanly(project, *CORES), full))
    said(fails(project, "-n"), full)
    recovers(project, undisturbed, name, filler.unlink)


@pytest.mark.system
def test_read_only_project(disk, undisturbed, see):
    name, project = "the project is read-only", faults.SmallProject(disk / "project")
    faults.remount(disk, "ro")
    closed = "the project's folder: cannot be written .Read-only file system.; make it.*"
    see(name, said(fails_cleanly(project, *CORES), closed))
    said(fails(project, "-n"), closed)
    recovers(project, undisturbed, name, lambda: faults.remount(disk, "rw"))
    faults.remount(disk, "ro")
    said(fails(project, *CORES), "[.]snakemake: cannot be written .Read-only file system.")


@pytest.mark.system
def test_read_only_folders(project, undisturbed, small_disk, see):
    name = "folders are read-only"
    faults.remount(small_disk, "ro")
    closed = "data, logs, results: cannot be written .Read-only file system.; make it writable.*"
    see(name, said(fails_cleanly(project, *CORES), closed))
    recovers(project, undisturbed, name, lambda: faults.remount(small_disk, "rw"))

    name = "folders become read-only"
    (project.folder / BLOCK).unlink()
    faults.remount(small_disk, "ro")
    closed = (".*Write-protected output files.*", " *output: results/quick/.*")
    see(name, said(fails_cleanly(project, *CORES), *closed))
    recovers(project, undisturbed, name, lambda: faults.remount(small_disk, "rw"))


@pytest.mark.system
def test_killed_job_after_an_edit(copy, undisturbed, see):
    name = "a job is killed after an edit"
    settings = "config/papers/mtsc/paper.yaml"
    copy.edit(settings, "scale: 1.0", "scale: 2.0")
    copy.run(*CORES, "means_figure")
    assert copy.made()[TRIALS] != undisturbed.made()[TRIALS]

    copy.edit(settings, "scale: 2.0", "scale: 1.0")
    run = copy.begin(*CORES)
    faults.wait(lambda: any(faults.end(job) for job in copy.jobs("evaluate")))
    assert run.wait() != 0
    see(name, said(copy.terminal, "died with .*SIGKILL.*|status 137", r"Error in rule evaluate"))
    assert copy.made().get(TRIALS) != undisturbed.made()[TRIALS]
    recovers(copy, undisturbed, name)


@pytest.mark.system
def test_damaged_artefacts(copy, undisturbed, see):
    name, other = "an artefact is truncated", "a bit of an artefact flips"
    flipped = f"{FIT}/loud/block_0001.h5"
    faults.truncate(copy.folder / BLOCK)
    faults.flip(copy.folder / flipped)
    output = fails_cleanly(copy, *CORES)
    see(name, said(output, f"{BLOCK}: not a whole artefact.*delete it and run again"))
    copy.take(FAULTS[name].steps[0])
    output = fails_cleanly(copy, *CORES)
    see(other, said(output, f"{flipped}: .*delete it and run again"))
    recovers(copy, undisturbed, other)


@pytest.mark.system
def test_damaged_tables(copy, undisturbed, see):
    name, other = "a table is truncated", "a bit of a table flips"
    refused = ": its content does not fit its digest; delete it and run again"
    faults.truncate(copy.folder / TRIALS)
    see(name, said(fails_cleanly(copy, *CORES), f"{TRIALS}{refused}"))
    recovers(copy, undisturbed, name)
    faults.flip(copy.folder / DRAWN)
    see(other, said(fails_cleanly(copy, *CORES), f"{DRAWN}{refused}"))
    recovers(copy, undisturbed, other)


@pytest.mark.system
@pytest.mark.parametrize(
    ("damage", "prepared", "fetched"),
    [
        (faults.truncate, "prepared data are truncated", "fetched data are truncated"),
        (faults.flip, "a bit of prepared data flips", "a bit of fetched data flips"),
    ],
)
def test_damaged_data(copy, undisturbed, see, damage, prepared, fetched):
    damage(copy.folder / PREPARED)
    see(prepared, said(fails_cleanly(copy, *CORES), f"{PREPARED}: .*delete it and run again"))
    copy.take(FAULTS[prepared].steps[0])
    damage(copy.folder / RAW / "values.txt")
    output = fails_cleanly(copy, *CORES)
    changed = f"{RAW}/values.txt: missing or changed since it was fetched"
    see(fetched, said(output, f"{changed}; delete the folder {RAW} and run again"))
    assert not (copy.folder / PREPARED).exists()
    recovers(copy, undisturbed, fetched)


@pytest.mark.system
def test_no_network_and_downloads_that_go_wrong(tmp_path, undisturbed, see):
    project = faults.SmallProject(tmp_path / "project", with_data=False)
    with faults.server() as state:
        address, port = state["address"], state["port"]
    project.edit("config/datasets.yaml", 'http://127.0.0.1:9/(?=", description: an )', address)

    name = "no network"  # nobody listens there any more
    output = project.run(*CORES, PREPARED)
    see(name, said(output, ".*NO SOURCE IS AVAILABLE, A SUBSTITUTE IS USED.*"))
    assert project.made()[PREPARED] != undisturbed.made()[PREPARED]
    with contextlib.ExitStack() as later:
        listen = faults.server(port)
        recovers(project, undisturbed, name, lambda: later.enter_context(listen))

    def refused(name, reason):
        output = fails_cleanly(project, *NO_SUBSTITUTES)
        tried = f"tried: .*{reason}.* or try again later.*"
        see(name, said(output, f"listed is not available; {tried}"))
        assert not (project.folder / RAW).exists()

    refused("no network, no substitutes", "127.0.0.1 refuses the connection")
    with faults.server(port) as state:
        state["mode"] = "truncated"
        refused("a download is truncated", "broke off")
        state["mode"] = "flipped"
        refused("a bit of a download flips", "its SHA-256 is")
        mend = functools.partial(state.update, mode="whole")
        recovers(project, undisturbed, "a bit of a download flips", mend)


@pytest.mark.system
def test_compiled_loops_that_cannot_be_read_or_kept(project, undisturbed, see, monkeypatch):
    cache, is_file = project.folder / "cache", project.folder / "file"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    project.edit("src/small.py", r"(np[.]abs.*)[.]max\(\)", r"largest(\1)")
    with open(project.package / "small.py", "a", encoding="utf-8") as code:
        code.write(LOOP)
    compiles = "import numpy, small; small.largest(numpy.ones(3))"
    subprocess.run([sys.executable, "-c", compiles], env=project.environment, check=True)
    name, (index,) = "compiled loops are damaged", cache.rglob("*.nbi")
    index.write_bytes(b"")
    see(name, said(project.run(*CORES), "privclust compiles its loops.*"))
    assert index.read_bytes()
    recovers(project, undisturbed, name)

    name = "compiled loops have no folder"
    is_file.touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(is_file / "cache"))
    monkeypatch.setenv("NUMBA_CACHE_LOCATOR_CLASSES", "UserProvidedCacheLocator")
    (project.folder / TRIALS).unlink()
    project.run(*CORES, TRIALS)
    log = (project.folder / "logs/quick/mtsc/means/evaluate.log").read_text()
    see(name, said(log, "compiled loops cannot be kept.*"))
    recovers(project, undisturbed, name)


@pytest.mark.system
def test_no_home_and_no_terminal(project, undisturbed, see, monkeypatch):
    name = "no home and no terminal"
    settings = project.folder / "matplotlibrc.latin"
    settings.write_bytes(b"font.family: caf\xe9")
    monkeypatch.setenv("HOME", "/proc/nobody")
    monkeypatch.setenv("MATPLOTLIBRC", str(settings))
    command = ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *project.command(*CORES)]
    subprocess.run(command, cwd=project.folder, env=project.environment, check=True)
    (log,) = (project.folder / ".snakemake/log").iterdir()
    see(name, said(log.read_text(), ".*100%.*"))
    recovers(project, undisturbed, name)


@pytest.mark.system
def test_two_runs_at_once(project, undisturbed, see):
    name = "two runs at once"
    first = project.begin(*CORES)
    faults.wait(project.jobs)
    first.send_signal(signal.SIGSTOP)  # a first run that ends removes the locks meanwhile
    try:
        output = fails(project, *CORES, "--rerun-incomplete")
    finally:
        first.send_signal(signal.SIGCONT)
    see(name, said(output, "Error: Directory cannot be locked", ".*--unlock.*"))
    assert first.wait() == 0, project.terminal
    recovers(project, undisturbed, name)


def files_of(project):
    """All files that a run reads or has made, but for Snakemake's own."""
    folders = ("config", "data", "mirror", "results", "src", "workflow")
    return [file for name in folders for file in sorted((project.folder / name).rglob("*"))]


@pytest.mark.system
def test_clock_that_goes_back(project, undisturbed, see):
    name, tomorrow = "the clock goes back", time.time() + 86400.0
    project.run(*CORES, "--until", "fit")
    for file in files_of(project):
        os.utime(file, (tomorrow, tomorrow))
    output = fails_cleanly(project, *CORES)
    see(name, said(output, "Output .* has older modification time.*clock skew problem"))
    recovers(project, undisturbed, name)


@pytest.mark.system
def test_dates_in_disorder(copy, undisturbed, see):
    name, dates, now = "dates are in disorder", random.Random(365), time.time()
    for file in files_of(copy):
        is_raw = copy.folder / "data/raw" in (file, *file.parents)
        date = now - (366.0 if is_raw else dates.uniform(0.0, 365.0)) * 86400.0
        os.utime(file, (date, date))
    see(name, said(copy.run("-n", *CORES), "Nothing to be done"))
    recovers(copy, undisturbed, name)


@pytest.mark.parametrize("room", [0, 1000, 5000, 100_000, 250_000])
def test_an_artefact_that_does_not_fit_is_an_error_not_a_crash(tmp_path, room):
    path = tmp_path / "fit.h5"
    command = [sys.executable, "-c", LIMITED, str(path), str(room)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "File too large\n", "")
    assert not list(tmp_path.iterdir())


def test_the_table_names_every_fault():
    text = (HERE.parents[1] / "docs/reliability.md").read_text()
    rows = {row[0]: row[1] for row in faults.rows_of(text)}
    assert rows == {name: fault.made for name, fault in FAULTS.items()}
