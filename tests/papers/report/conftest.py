"""A run too small for Snakemake, archived with its artefacts, and forged copies of the archive."""

import hashlib
import json
import zipfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from privclust_papers.datasets.fetch import Receipt
from privclust_papers.datasets.registry import Dataset, Substitute
from privclust_papers.pipeline import artefacts
from privclust_papers.pipeline.plan import Plan
from privclust_papers.report.archive import write_archive, zip_entry
from privclust_papers.report.run_records import Job

PREPARED = "data/prepared/{}.h5"
RAW = "data/raw/{}"
FIT = "results/quick/p/{}/fit/m/block_0000.h5"
METRICS = "results/quick/p/{}/metrics.h5"
TRIALS = "results/quick/p/{}/trials.csv"
PAGE = "results/quick/index.html"
RULES = ("fetch", "prepare", "fit", "evaluate", "summarise", "index")
TOP = {
    **dict.fromkeys(("LICENSE", "README.md", "requirements.lock"), "text\n"),
    **{f"workflow/scripts/{rule}.py": f"# {rule}\n" for rule in RULES},
    "workflow/Snakefile": "rule all:\n",
    "pyproject.toml": '[project]\nname = "small"\nversion = "1"\nlicense = "MIT"\n'
    'authors = [{name = "Somebody"}]\n',
    "config/config.yaml": "effort: quick\n",
    "src/privclust/x.py": "pass\n",
    PAGE: "<p>done</p>\n",
}
SCHEMA = "workflow/schemas/config.schema.yaml"
CONFIG = {
    **{"effort": "quick", "seed": 7, "substitutes": True, "mirror": None, "artefacts": True},
    **{"papers": ["config/papers/p"], "features_model": None, "container": None},
    **dict.fromkeys(("datasets", "features", "my_methods"), "config/none.yaml"),
}


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def dataset(name):
    generator = Substitute("privclust_papers.datasets.motion.generate", {}, "drawn")
    return Dataset(
        name, f"The set {name}", "not to be passed on", "none", None, f"{name}.zip",
        "privclust_papers.datasets.s1.read", None, None, (), generator,
    )  # fmt: skip


class SmallRun:
    """The folder of a finished run of two data sets, ``had`` and ``drawn``, a substitute."""

    def __init__(self, folder):
        self.folder, self.jobs, self.clock = folder, [], 1_000_000_000.0
        for name, text in TOP.items():
            self.write(name, text.encode())
        self.write(SCHEMA, (Path(__file__).parents[3] / SCHEMA).read_bytes())
        for name, file in (("had", "had.zip"), ("drawn", None)):
            kind = "mirror" if file else "substitute"
            receipt = Receipt(name, kind, "somewhere", "x", file, "5" * 64 if file else None)
            self.write(f"{RAW.format(name)}/receipt.json", json.dumps(asdict(receipt)).encode())
            self.job("fetch", [], [RAW.format(name)], 0.5)
            self.artefact("prepare", RAW.format(name), PREPARED.format(name), "dataset", 1.0)
            self.artefact("fit", PREPARED.format(name), FIT.format(name), "fit", 60.0)
            self.artefact("evaluate", FIT.format(name), METRICS.format(name), "metrics", 4.0)
            table = b"method,error,cpu_seconds\na,0.5,1.0\nb,0.25,2.0\n"
            self.write(TRIALS.format(name), table)
            self.job("summarise", [METRICS.format(name)], [TRIALS.format(name)], 2.0)
        self.job("index", [TRIALS.format("had"), TRIALS.format("drawn")], [PAGE], 1.0)

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def artefact(self, rule, source, output, kind, cpu_s):
        content = {"X": np.linspace(1.0, 2.0, 50), "n": np.arange(5), "cpu_s": np.ones(3)}
        artefacts.write(self.folder / output, kind, content, {"source": source})
        self.job(rule, [source], [output], cpu_s)

    def job(self, rule, inputs, outputs, cpu_s):
        self.clock += 10.0
        inputs = [*inputs, f"workflow/scripts/{rule}.py"]
        files = [name for name in inputs if (self.folder / name).is_file()]
        sums = {name: f"sha256:{sha256((self.folder / name).read_bytes())}" for name in files}
        record = {
            **{"rule": rule, "input": sorted(inputs), "input_checksums": sums, "params": ["'m'"]},
            **{"log": [f"logs/{rule}_{len(self.jobs)}.log"], "incomplete": True},
            **{"starttime": self.clock - 9, "endtime": self.clock},
        }
        job = Job(rule, tuple(inputs), tuple(outputs), self.clock - 9, self.clock, cpu_s, record)
        self.jobs.append(job)

    def pack(self, name="run.crate.zip", **config):
        papers = {"p": {"title": "A paper", "citation": "none", "file": "none/paper.yaml"}}
        sets = {name: dataset(name) for name in ("had", "drawn")}
        plan = Plan("quick", None, True, sets, {}, papers, {}, {})
        write_archive(self.folder / name, plan, CONFIG | config, self.jobs)
        return self.folder / name


def forge(path, changes, fitting=True, extra=()):
    """Write a copy of a crate with other members; return its path.

    `changes` has contents by name, None for a member to leave out. With `fitting`, checksums are
    those of what is in it, as whoever forges a crate would take care of. `extra` are entries that
    are added as they are: ZipInfo and content.
    """
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    members = {name: c for name, c in (members | changes).items() if c is not None}
    if fitting:
        names = sorted(members.keys() - {"SHA256SUMS"})
        lines = [f"{sha256(members[name])}  {name}\n" for name in names]
        lines += [f"{sha256(content)}  {entry.filename}\n" for entry, content in extra]
        members["SHA256SUMS"] = "".join(lines).encode()
    forged = path.with_name("forged.crate.zip")
    with zipfile.ZipFile(forged, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(zip_entry(name), content)
        for entry, content in extra:
            file.writestr(entry, content)
    return forged


@pytest.fixture
def small_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return SmallRun(Path("."))


@pytest.fixture
def small_crate(small_run):
    return small_run.pack()


@pytest.fixture
def forged():
    return forge
