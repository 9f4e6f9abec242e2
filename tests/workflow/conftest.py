"""A copy of the project in a scratch folder, with a small paper in it, to run the workflow in."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MADE = ("results", "data", ".snakemake", "logs", "benchmarks")
DRAWN = ("h5", "csv", "svg", "png", "html")
# Compiled code that another process is writing just now, under a name that is soon gone.
HALF_WRITTEN = shutil.ignore_patterns("*.pyc.*", "*.nb?.tmp.*")


class Project:
    def __init__(self, folder, small=True):
        self.folder = Path(folder)
        for name in ("config", "workflow", "src"):  # with the caches of compiled kernels
            shutil.copytree(ROOT / name, self.folder / name, ignore=HALF_WRITTEN)
        self.package, self.mirror = self.folder / "src", self.folder / "mirror"
        self.mirror.mkdir()
        if small:
            self.put_paper(ROOT / "tests/workflow/tiny.yaml")
            self.edit("config/config.yaml", r"mirror: null", "mirror: mirror")
            # one small paper says of the pipeline what there is to say
            self.edit("config/config.yaml", r"\n  - config/papers/(?!mtsc)\w+", "")
            # no test looks anything up on the network
            self.edit("config/datasets.yaml", r"https?://", "http://127.0.0.1:9/")

    @classmethod
    def at(cls, folder, package=None):
        """A copy that is there already, or a folder that takes the package from a copy."""
        project = object.__new__(cls)
        project.folder, project.mirror = folder, folder / "mirror"
        project.package = package or folder / "src"
        return project

    def copy(self, folder):
        shutil.copytree(self.folder, folder, symlinks=True)
        return self.at(folder)

    def clone(self, folder):
        shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns(*MADE))
        return self.at(folder)

    def put_paper(self, file, name="mtsc"):
        """Run a small paper in place of one of the papers; its claims stay."""
        shutil.copy(file, self.folder / "config/papers" / name / "paper.yaml")

    def edit(self, path, pattern, new):
        file = self.folder / path
        text, count = re.subn(pattern, new, file.read_text())
        assert count, f"{pattern} is not in {path}"
        file.write_text(text)

    def command(self, *arguments):
        """The command line of a run, which ends as soon as its jobs have ended."""
        rate = ("--max-jobs-per-timespan", "100/1s")
        return [sys.executable, "-m", "snakemake", *rate, *map(str, arguments)]

    @property
    def environment(self):
        """The environment of a run: the copy's own package and modules, no mirror from outside."""
        kept = {k: v for k, v in os.environ.items() if k != "PRIVCLUST_DATA_MIRROR"}
        return {**kept, "PYTHONPATH": f"{self.package}{os.pathsep}{self.folder}"}

    def run(self, *arguments, check=True):
        """Run Snakemake and return its output, both streams together."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if check:
            assert done.returncode == 0, done.stdout
            return done.stdout
        return done

    def start(self, *arguments):
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def results(self):
        files = [f for f in (self.folder / "results").rglob("*") if f.suffix[1:] in DRAWN]
        return {str(file.relative_to(self.folder)): file.read_bytes() for file in files}

    def planned(self, *arguments):
        output = self.run("-n", "--cores", "1", *arguments)
        if "Nothing to be done" in output:
            return {}
        table = output.rpartition("Job stats:")[2]
        found = re.findall(r"^(\w+)\s+(\d+)$", table, re.M)
        return {rule: int(count) for rule, count in found if rule != "total"}


@pytest.fixture
def new_project(tmp_path):
    made = []

    def make(small=True):
        folder = tmp_path / f"project{len(made)}"
        folder.mkdir()
        made.append(Project(folder, small))
        return made[-1]

    return make


@pytest.fixture(scope="session")
def smallest():
    """Make a project of next to no work in a new folder."""
    spec = importlib.util.spec_from_file_location("faults", Path(__file__).parent / "faults.py")
    faults = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(faults)
    return faults.SmallProject


@pytest.fixture(scope="session")
def undisturbed(made_once, smallest):
    """A project of next to no work in which nothing went wrong; tests must leave it as it is."""

    def run(folder):
        smallest(folder / "project").run("--cores", "2")

    return smallest.at(made_once("undisturbed", run) / "project")


@pytest.fixture(scope="session")
def project_in():
    """Make a copy of the project in a folder: what `new_project` does, for fixtures of a module."""
    return Project


@pytest.fixture(scope="session")
def finished(made_once):
    """A copy in which everything was run on two cores; tests must leave it as it is."""

    def run(folder):
        Project(folder).run("--cores", "2")

    return Project.at(made_once("finished", run))


@pytest.fixture
def finished_copy(finished, tmp_path):
    """A copy of the finished project that a test may change."""
    return finished.copy(tmp_path / "copy")
