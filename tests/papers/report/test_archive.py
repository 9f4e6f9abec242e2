"""Archives of a run too small for Snakemake: two data sets, three rules, one page."""

import base64
import dataclasses
import hashlib
import json
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml

from privclust.core.hdf5 import FileError
from privclust_papers.datasets.fetch import Receipt
from privclust_papers.datasets.registry import Dataset, Substitute
from privclust_papers.pipeline import artefacts
from privclust_papers.pipeline.plan import Plan
from privclust_papers.pipeline.project_files import project_files
from privclust_papers.report.archive import write_archive
from privclust_papers.report.run_records import Job, read_jobs
from privclust_papers.settings.config import ConfigError

PAGE = "results/quick/index.html"
PREPARED = "data/prepared/{}.h5"
RAW = "data/raw/{}"
METRICS = "results/quick/mtsc/small/metrics.h5"
CONFIG = {"effort": "quick", "seed": 7, "substitutes": True, "mirror": "/somewhere/private"}
TOP = {
    "workflow/Snakefile": "rule all:\n",
    "LICENSE": "do what you like\n",
    "README.md": "# small\n",
    "requirements.lock": "numpy==2\n",
    "pyproject.toml": '[project]\nname = "small"\nversion = "1.2"\nlicense = "MIT"\n'
    'authors = [{name = "Somebody"}]\n',
    "config/config.yaml": "effort: paper\n",
    "workflow/scripts/fetch.py": "pass\n",
    "workflow/scripts/prepare.py": "pass\n",
    "workflow/scripts/evaluate.py": "pass\n",
    "workflow/scripts/index.py": "pass\n",
    "src/privclust_papers/report/page.py": "pass\n",
    PAGE: "<p>done</p>\n",
    "results/quick/verdicts.csv": "claim\n",
}
JOBS = [
    Job("evaluate", (PREPARED.format("had"),), (METRICS,), 16.0, 17.0),
    Job("fetch", (), (RAW.format("had"),), 10.0, 11.0),
    Job("fetch", (), (RAW.format("lost"),), 10.5, 12.0),
    Job("index", (METRICS, PREPARED.format("lost")), (PAGE,), 20.0, 21.5),
    Job("prepare", (RAW.format("had"),), (PREPARED.format("had"),), 13.0, 14.0),
    Job("prepare", (RAW.format("lost"),), (PREPARED.format("lost"),), 13.0, 15.0),
]
RECEIPTS = [
    Receipt("had", "mirror", "a local copy", "had/had.zip", "had.zip", "5" * 64, 1234),
    Receipt(
        "lost",
        "substitute",
        "drawn, so not comparable",
        "privclust_papers.datasets.motion.generate",
    ),
]


def plan():
    sets = {
        name: Dataset(
            name=name,
            title=f"The set {name}",
            terms="not to be passed on",
            citation=f"A paper on {name}",
            homepage=None,
            file=f"{name}.zip",
            reader="privclust_papers.datasets.s1.read",
            content_digest=None,
            content_sha256=None,
            sources=(),
            substitute=Substitute("privclust_papers.datasets.motion.generate", {}, "drawn"),
        )
        for name in ("had", "lost")
    }
    papers = {"mtsc": {"title": "A small paper", "citation": "none", "file": "none/paper.yaml"}}
    return Plan("quick", None, True, sets, {}, papers, {}, {})


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """The folder of a project whose run is finished; the test works in it."""
    for name, text in TOP.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for receipt in RECEIPTS:
        folder = tmp_path / RAW.format(receipt.dataset)
        folder.mkdir(parents=True)
        (folder / "receipt.json").write_text(json.dumps(dataclasses.asdict(receipt)))
        (folder / "had.zip").write_text("what must not be passed on")
        source = receipt.dataset if receipt.file else f"substitute for {receipt.dataset}"
        artefacts.write(
            tmp_path / PREPARED.format(receipt.dataset),
            "dataset",
            {"X": np.arange(5.0)},
            {"dataset": receipt.dataset, "source": source},
        )
    artefacts.write(tmp_path / METRICS, "metrics", {"error": np.ones(3)}, {})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pack(name="run.crate.zip", jobs=JOBS):
    """Write an archive and return its files, and its description's entities by identifier."""
    write_archive(name, plan(), CONFIG, jobs)
    with zipfile.ZipFile(name) as file:
        members = {entry: file.read(entry) for entry in file.namelist()}
    graph = json.loads(members["ro-crate-metadata.json"])["@graph"]
    entities = {entity["@id"]: entity for entity in graph}
    assert len(entities) == len(graph)
    return members, entities


def test_every_file_has_its_checksum_in_both_places():
    members, entities = pack()
    sums = dict(line.split("  ")[::-1] for line in members["SHA256SUMS"].decode().splitlines())
    assert set(sums) == set(members) - {"SHA256SUMS"}
    for name, value in sums.items():
        assert hashlib.sha256(members[name]).hexdigest() == value
        if name != "ro-crate-metadata.json":
            assert entities[name]["sha256"] == value
            assert entities[name]["contentSize"] == str(len(members[name]))


def test_all_that_decides_the_run_is_in_the_crate():
    members, _ = pack()
    for name in set(TOP) - {"config/config.yaml", "results/quick/verdicts.csv"}:
        assert members[name] == TOP[name].encode()
    head, *lines = members["versions.txt"].decode().splitlines()
    assert head.startswith("# Python 3.")
    assert f"numpy=={np.__version__}" in lines


def test_configuration_is_that_of_the_run_without_the_mirror():
    members, _ = pack()
    settings = yaml.safe_load(members["config/config.yaml"])
    assert settings == CONFIG | {"mirror": None}
    assert not any(b"/somewhere/private" in content for content in members.values())


def test_data_are_named_with_checksums_but_not_included():
    members, entities = pack()
    assert not [name for name in members if name.startswith("data/") or name.endswith(".h5")]
    assert entities["#data/raw/had"]["sha256"] == "5" * 64
    assert entities["#data/raw/had"]["contentSize"] == "1234"
    assert entities["#data/raw/had"]["conditionsOfAccess"] == "not to be passed on"
    digests = json.loads(members["jobs.json"])["digests"]
    assert digests.keys() == {PREPARED.format("had"), PREPARED.format("lost"), METRICS}
    for path, sha256 in digests.items():
        assert sha256 == entities[f"#{path}"]["sha256"]
        assert sha256 == hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_a_substitute_is_said_wherever_its_data_are_named():
    _, entities = pack()
    assert entities["#data/raw/lost"]["name"] == "substitute for lost"
    assert "drawn, so not comparable" in entities["#data/raw/lost"]["description"]
    assert "Substitutes were used for lost:" in entities["./"]["description"]


def test_times_are_those_of_the_jobs():
    _, entities = pack()
    assert entities["#job/data/raw/lost"]["startTime"] == "1970-01-01T00:00:10.500+00:00"
    assert entities["#job/results/quick/index.html"]["endTime"] == "1970-01-01T00:00:21.500+00:00"
    assert entities["./"]["datePublished"] == "1970-01-01T00:00:21.500+00:00"


def test_same_run_gives_the_same_bytes(project):
    pack("a.zip")
    for path in project.rglob("*"):
        path.touch()
    pack("b.zip", list(JOBS))
    assert Path("a.zip").read_bytes() == Path("b.zip").read_bytes()
    with zipfile.ZipFile("a.zip") as file:  # whose clock is too coarse for two runs to differ
        assert {entry.date_time for entry in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_damaged_artefact_is_an_error():
    path = Path(PREPARED.format("had"))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FileError, match=r"^data/prepared/had\.h5: .*run again$"):
        pack()
    assert not Path("run.crate.zip").exists()


@pytest.mark.parametrize("name", ["requirements.lock", PAGE])
def test_missing_file_is_an_error(name):
    Path(name).unlink()
    with pytest.raises(FileError, match=f"^{name}: .*No such file"):
        pack()


def test_path_of_the_machine_is_an_error(project):
    Path("config/README.md").write_text(f"mine: {project}\n")
    with pytest.raises(ConfigError, match=r"^config/README\.md: holds .*make it relative"):
        pack()


def test_part_of_a_longer_path_is_no_path_of_the_machine(project):
    Path("config/README.md").write_text(f"other: x{project}\nelse: {project}_b\n")
    assert "config/README.md" in pack()[0]


@pytest.mark.parametrize("name", ["/elsewhere/method.py", "../method.py", "/elsewhere/own.npz"])
def test_input_from_outside_the_project_is_an_error(name):
    jobs = [*JOBS[:-1], dataclasses.replace(JOBS[-1], inputs=(*JOBS[-1].inputs, name))]
    with pytest.raises(ConfigError, match=f"^{name}: .*outside the project's folder"):
        pack(jobs=jobs)


def test_code_of_the_users_own():
    Path("methods.py").write_text("class Mine: ...\n")
    inputs = (*JOBS[-1].inputs, "methods.py", ".venv/site-packages/other.py")
    members, entities = pack(jobs=[*JOBS[:-1], dataclasses.replace(JOBS[-1], inputs=inputs)])
    assert "methods.py" in members
    assert not any("site-packages" in name for name in (*members, *entities))


def test_project_files_are_sources_only(project):
    for name in ("src/privclust/__pycache__/page.pyc", "workflow/rules/.fit.smk.swp"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("")
    expected = sorted(name for name in TOP if not name.startswith("results/"))
    assert project_files(project) == expected


def test_files_named_in_settings_are_the_projects(project):
    settings = {
        "papers": ["config/papers/ckm", "mine/paper"],
        "datasets": "config/datasets.yaml",
        "my_methods": "mine/methods.yaml",
        "features": "config/lost.yaml",
    }
    named = [
        *("config/papers/ckm/paper.yaml", "config/papers/ckm/printed.csv"),
        *("mine/paper/claims.yaml", "config/datasets.yaml", "mine/methods.yaml"),
    ]
    for name in (*named, "config/other.yaml", "config/papers/dpem/paper.yaml"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("text\n")
    plain = set(project_files(project))
    assert set(project_files(project, settings)) - plain == set(named)
    (project / "config/config.yaml").write_text(json.dumps(settings))
    assert set(project_files(project)) - plain == set(named)


def test_all_files_of_this_project_are_declared():
    """What is added to it must be found by a pattern, or archives would lack it."""
    root = Path(__file__).parents[3]
    folders = ("config", "src", "workflow")
    present = {
        path.relative_to(root).as_posix()
        for folder in folders
        for path in (root / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert present >= {"workflow/Snakefile", "config/my_methods.yaml", "src/privclust/py.typed"}
    tracked = subprocess.run(
        ["git", "ls-files", "--", *folders], cwd=root, capture_output=True, text=True, check=False
    ).stdout.split()
    missing = (set(tracked) & present or present) - set(project_files(root))
    assert missing == set()


def record(output, rule, inputs=(), start=1.0, end=2.0, **changes):
    """Write a record as Snakemake does: a long name is cut into folders that begin with @."""
    text = base64.urlsafe_b64encode(output.encode()).decode()
    parts = [text[i : i + 100] for i in range(0, len(text), 100)]
    path = Path("records", *(f"@{part}" for part in parts[:-1]), parts[-1])
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "rule": rule,
        "log": [f"logs/{rule}.log"],
        "input": list(inputs),
        "params": ["'name'", '\'{"it":"d\\\'oh"}\''],
        "starttime": start,
        "endtime": end,
    }
    path.write_text(json.dumps(content | changes))
    return path


def test_jobs_are_those_that_led_to_the_result():
    long = "data/" + "x" * 150
    record(PAGE, "index", ["results/quick/a.csv", "src/page.py"])
    record("results/quick/a.csv", "draw", [long], start=3.0, end=5.0)
    record("results/quick/a.svg", "draw", [long], start=2.5, end=6.0)
    record(long, "fetch")
    record("results/paper/index.html", "index", [long], log=["logs/paper/index.log"])
    draw, fetch, index = read_jobs("records", PAGE)
    files = ("results/quick/a.csv", "results/quick/a.svg")
    assert draw == Job("draw", (long,), files, 2.5, 6.0)
    assert fetch.outputs == (long,)
    assert index.inputs == ("results/quick/a.csv", "src/page.py")


def test_result_without_a_record_is_an_error():
    Path("records").mkdir()
    with pytest.raises(FileError, match=f"^{PAGE}: Snakemake has no record"):
        read_jobs("records", PAGE)


@pytest.mark.parametrize("changes", [{"starttime": None}, {"input": None}, {"log": None}])
def test_record_of_another_form_is_an_error(changes):
    record(PAGE, "index", **changes)
    with pytest.raises(FileError, match="not a record of a job as Snakemake 9 writes it"):
        read_jobs("records", PAGE)
