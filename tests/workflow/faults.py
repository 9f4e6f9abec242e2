"""The faults of a run, their causes and remedies, and the program that writes their table.

python tests/workflow/faults.py --into docs/reliability.md   causes all faults, writes the table
"""

import argparse
import contextlib
import hashlib
import http.server
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import psutil

HERE = Path(__file__).parent
COMMANDS = ("snakemake", "rm", "find")
WHOLE = "snakemake --cores 2"
FIT = "results/quick/mtsc/means/fit"
TRIALS = "results/quick/mtsc/means/trials.csv"
DRAWN = "results/quick/targets/means_figure/means_figure.csv"
PREPARED = "data/prepared/listed.h5"
RAW = "data/raw/listed"
ONLINE = ("wait for the network or the server", f"{WHOLE} --config substitutes=false")
NUMBERS = "".join(f"{number * number % 1009}\n" for number in range(5000)).encode()
DATASET = """
listed:
  title: Numbers
  terms: none
  citation: none
  file: values.txt
  reader: small.read
  sources:
    - {{kind: mirror, location: listed/values.txt, description: a copy, sha256: {sha256}}}
    - {{kind: url, location: "http://127.0.0.1:9/", description: an address, sha256: {sha256}}}
  substitute: {{generator: small.generate, parameters: {{size: 5000}}, description: 0 to 4999.}}
"""
TABLE = re.compile(r"^\| fault \|.*\n(\|.*\n)*", re.M)


class Fault(NamedTuple):
    """The cause of a fault, and the steps after which a run has the same bytes as without it.

    A step that begins with one of `COMMANDS` is a command, which tests run as it stands; any other
    is text, and the test contains its code.
    """

    made: str
    steps: tuple[str, ...]


AGAIN = (WHOLE,)
FAULTS = {
    "a job is killed": Fault("SIGKILL to a random running job, 18 times at random moments", AGAIN),
    "a job is killed after an edit": Fault(
        "a method's setting is changed; SIGKILL to the evaluation after its old output is gone, "
        "while tables and figures of the old setting still exist",
        AGAIN,
    ),
    "Snakemake is killed": Fault(
        "SIGKILL 8 times at random moments, alternately to Snakemake alone (its jobs go on) and to "
        "Snakemake and its jobs",
        ("snakemake --unlock", f"{WHOLE} --rerun-incomplete"),
    ),
    "a worker's daemon is killed": Fault(
        "SIGKILL to SLURM's slurmd, 4 times at random moments; each time it is restarted at once",
        ("no step: the run goes on by itself",),
    ),
    "the disk is full": Fault(
        "results, data and logs on a disk with room for 8 KiB", ("make room", WHOLE)
    ),
    "the project's disk is full": Fault(
        "the disk of the whole project has room for 4 KiB", ("make room", WHOLE)
    ),
    "the project is read-only": Fault(
        "the disk of the whole project is mounted read-only before anything was run",
        ("mount it writable", WHOLE),
    ),
    "folders are read-only": Fault(
        "the disk of results, data and logs is mounted read-only while it is empty",
        ("mount it writable", WHOLE),
    ),
    "folders become read-only": Fault(
        "the same disk is mounted read-only when everything except one fit is done",
        ("mount it writable", WHOLE),
    ),
    "an artefact is truncated": Fault(
        "the second half of a fit is cut off", (f"rm {FIT}/quiet/block_0000.h5", WHOLE)
    ),
    "a bit of an artefact flips": Fault(
        "one bit in the middle of a fit", (f"rm {FIT}/loud/block_0001.h5", WHOLE)
    ),
    "a table is truncated": Fault(
        "the second half of the table of trials is cut off", (f"rm {TRIALS}", WHOLE)
    ),
    "a bit of a table flips": Fault(
        "one bit in the middle of the numbers behind a figure", (f"rm {DRAWN}", WHOLE)
    ),
    "prepared data are truncated": Fault(
        "the second half of the file is cut off", (f"rm {PREPARED}", WHOLE)
    ),
    "a bit of prepared data flips": Fault(
        "one bit in the middle of the file", (f"rm {PREPARED}", WHOLE)
    ),
    "fetched data are truncated": Fault(
        "the second half of the file is cut off before preparation", (f"rm -r {RAW}", WHOLE)
    ),
    "a bit of fetched data flips": Fault(
        "one bit in the middle of the file, before preparation", (f"rm -r {RAW}", WHOLE)
    ),
    "a download is truncated": Fault(
        "the server stops each answer in the middle; substitutes are not allowed", ONLINE
    ),
    "a bit of a download flips": Fault(
        "the server flips one bit; substitutes are not allowed", ONLINE
    ),
    "no network, no substitutes": Fault(
        "every address refuses the connection; substitutes are not allowed", ONLINE
    ),
    "no network": Fault(
        "every address refuses the connection; the run succeeds with a substitute",
        ("wait for the network", f"{WHOLE} --forcerun fetch"),
    ),
    "compiled loops are damaged": Fault(
        "every index of the cache of compiled loops is cut to 0 bytes",
        ("no step: the run goes on by itself",),
    ),
    "compiled loops have no folder": Fault(
        "the folder for the cache of compiled loops is below a file, so that it cannot be made; "
        "the message is in the job's log",
        ("no step: the run goes on by itself",),
    ),
    "no home and no terminal": Fault(
        "HOME names a folder that cannot be made, the standard error is closed, and the user's "
        "matplotlibrc is not text; the message is in the log below `.snakemake/log`",
        ("no step: the run goes on by itself",),
    ),
    "two runs at once": Fault(
        "a second run with `--rerun-incomplete` is started while jobs of the first are running",
        ("no step: the first run goes on by itself",),
    ),
    "the clock goes back": Fault(
        "by one day, after the fits: all files written earlier have tomorrow's date",
        ("find config data results src workflow -newermt now -exec touch {} +", WHOLE),
    ),
    "dates are in disorder": Fault(
        "each file of sources, settings, data and results gets a random date of the last year, "
        "after those of `data/raw`",
        ("no step: files are compared by content (folders in `data/raw` by date)",),
    ),
}


def load(name):
    """Import a file of this folder, whatever other module has its name."""
    spec = importlib.util.spec_from_file_location(f"workflow_{Path(name).stem}", HERE / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class SmallProject(load("conftest.py").Project):
    """A copy of the project with a paper that computes almost nothing; the mirror may have data."""

    def __init__(self, folder, with_data=True):
        folder.mkdir(parents=True)
        super().__init__(folder)
        self.put_paper(HERE / "small.yaml")
        shutil.copy(HERE / "small.py", self.folder / "src")
        with open(self.folder / "config/datasets.yaml", "a", encoding="utf-8") as file:
            file.write(DATASET.format(sha256=hashlib.sha256(NUMBERS).hexdigest()))
        if with_data:
            (self.mirror / "listed").mkdir()
            (self.mirror / "listed/values.txt").write_bytes(NUMBERS)

    def begin(self, *arguments):
        """Start a run whose terminal is the file ``terminal`` of the project."""
        with open(self.folder / "terminal", "w", encoding="utf-8") as terminal:
            return subprocess.Popen(
                self.command(*arguments),
                cwd=self.folder,
                env=self.environment,
                stdout=terminal,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def terminal(self):
        """The output of the last run that was started."""
        return (self.folder / "terminal").read_text()

    def jobs(self, rule=""):
        """The running processes of a rule's jobs, including those that outlive their Snakemake."""
        scripts = f"{self.folder}/.snakemake/scripts/"
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if any(
                    part.startswith(scripts) and part.endswith(f"{rule}.py")
                    for part in process.cmdline()
                ):
                    found.append(process)
        return found

    def made(self):
        """The bytes, by path, of all files that a run writes whole or not at all."""
        prepared = self.folder / PREPARED
        data = {PREPARED: prepared.read_bytes()} if prepared.is_file() else {}
        return self.results() | data

    def take(self, step, how=None):
        """Take a step of a fault: run its command, or call ``how``."""
        name, *arguments = shlex.split(step)
        if name == "snakemake":
            self.run(*arguments)
        elif name in COMMANDS:
            subprocess.run([name, *arguments], cwd=self.folder, check=True)
        elif not step.startswith("no step"):
            how()


def end(process):
    """Send SIGKILL to a process and say whether it was still there."""
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return False
    return True


def truncate(path):
    """Cut off the second half of a file."""
    os.truncate(path, path.stat().st_size // 2)


def flip(path):
    """Flip one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@contextlib.contextmanager
def mounted(folder, *options):
    """Mount a disk in memory on a new folder; raise PermissionError where that is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", *options, "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise PermissionError("there is no command mount") from None
    if done.returncode != 0:
        raise PermissionError(" ".join(done.stderr.split()))
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def remount(folder, how):
    """Make a mounted disk writable, ``"rw"``, or read-only, ``"ro"``."""
    subprocess.run(["mount", "-o", f"remount,{how}", str(folder)], check=True)


@contextlib.contextmanager
def server(port=0):
    """Serve the numbers on a port of the loopback interface as the yielded dict's "mode" says."""
    state = {"mode": "whole"}

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            content = bytearray(NUMBERS)
            if state["mode"] == "flipped":
                content[len(content) // 2] ^= 1
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            half = len(content) // 2
            self.wfile.write(content[:half] if state["mode"] == "truncated" else content)

        def log_message(self, *_):
            """Print nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", port), Answer) as listener:
        thread = threading.Thread(target=listener.serve_forever)
        thread.start()
        state["port"] = listener.server_port
        state["address"] = f"http://127.0.0.1:{listener.server_port}/"
        try:
            yield state
        finally:
            listener.shutdown()
            thread.join()


def wait(condition, seconds=120.0):
    """Wait until something holds; raise TimeoutError if it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{condition} does not hold after {seconds} s")
        time.sleep(0.02)


def said(output, *patterns):
    """Return one match of each pattern in a terminal's lines; a traceback is a failure."""
    assert "Traceback" not in output, output
    found = [re.search(pattern, output) for pattern in patterns]
    assert None not in found, f"{patterns[found.index(None)]} is not in:\n{output}"
    return " … ".join(match.group().strip() for match in found)


def table(seen):
    """Return the Markdown table of all faults; `seen` has the message on the terminal by fault."""
    rows = [
        "| fault | how the test causes it | message on the terminal | remedy |",
        "| --- " * 4 + "|",
    ]
    for name, fault in FAULTS.items():
        steps = [f"`{s}`" if s.startswith(COMMANDS) else s for s in fault.steps]
        cells = [name, fault.made, f"`{seen[name]}`", ", ".join(steps)]
        rows.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(rows) + "\n"


def rows_of(text):
    """Return the cells of each row of the table of faults in a document, without its head."""
    lines = TABLE.search(text).group().splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def make_all(path):
    """Run the tests and write what they saw into a document; raise SystemExit if one fails."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        files = sorted(str(file) for file in HERE.rglob("test_faults*.py"))
        options = ["-q", "-k", "not the_table", "-o", "junit_family=xunit1"]
        command = [sys.executable, "-m", "pytest", *options, f"--junit-xml={report}", *files]
        if subprocess.run(command, cwd=HERE.parents[1], check=False).returncode != 0:
            sys.exit("the table stays as it is, since a fault did not end well")
        root = ElementTree.parse(report).getroot()
    properties = root.iter("property")
    seen = {p.get("name"): p.get("value") for p in properties if p.get("name") in FAULTS}
    missing = ", ".join(name for name in FAULTS if name not in seen)
    if missing:
        sys.exit(f"the table stays as it is, since these could not be made here: {missing}")
    text = path.read_text(encoding="utf-8")
    old = TABLE.search(text)
    path.write_text(text[: old.start()] + table(seen) + text[old.end() :], encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--into", type=Path, required=True, help="document that has the table")
    make_all(parser.parse_args().into)
