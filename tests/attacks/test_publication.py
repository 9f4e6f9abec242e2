"""Attacks on what is published: archives of runs, names and downloads."""

import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from privclust_papers.datasets.registry import load_datasets
from privclust_papers.pipeline import artefacts
from privclust_papers.pipeline.plan import Plan
from privclust_papers.report.archive import write_archive
from privclust_papers.report.run_records import Job
from privclust_papers.settings.config import load_yaml

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "workflow" / "schemas"
NAMES = (
    "abc",
    "0" * 64,
    "0" * 32,
    "a.zip",
    "package.module.name",
    "https://a.b/c",
    "x.npz",
    "column=value",
)


def patterns(schema):
    """All patterns of a schema."""
    parts = schema.values() if isinstance(schema, dict) else schema
    for part in parts if isinstance(schema, dict | list) else ():
        yield from patterns(part)
    if isinstance(schema, dict) and isinstance(schema.get("pattern"), str):
        yield schema["pattern"]


@pytest.mark.attack(
    claim="A name consists of letters, digits and underscores.",
    before="17 of 17 patterns accepted a name that ends in a line break, which then appears in "
    "paths.",
    now="No pattern of any schema accepts one.",
)
@pytest.mark.parametrize("schema", sorted(path.name for path in SCHEMAS.glob("*.yaml")))
def test_no_name_ends_in_a_line_break(schema):
    for pattern in patterns(load_yaml(SCHEMAS / schema)):
        allowed = [name for name in NAMES if re.search(pattern, name)]
        assert allowed, pattern
        assert not [name for name in allowed if re.search(pattern, name + "\n")], pattern


@pytest.mark.attack(
    claim="The content of a download is verified.",
    before="Gowalla and CUB-200-2011 were checked only by MD5, for which collisions can be made.",
    now="CUB-200-2011 is checked by SHA-256. Gowalla is still checked only by MD5, since no other "
    "checksum is known; the configuration names it.",
)
def test_a_download_checked_only_by_md5_is_named():
    path = ROOT / "config" / "datasets.yaml"
    datasets = load_datasets(path, SCHEMAS / "datasets.schema.yaml")
    weak = {n for n, d in datasets.items() for s in d.sources if s.md5 and not s.sha256}
    strong = {n for n, d in datasets.items() if d.content_sha256}
    assert weak - strong == {"gowalla"}
    assert "no SHA-256 of it is known" in path.read_text(encoding="utf-8")


PAGE = "results/quick/index.html"
METRICS = "results/quick/p/e/metrics.h5"
TOP = {
    **dict.fromkeys(("LICENSE", "README.md", "requirements.lock"), "text\n"),
    "workflow/scripts/index.py": "pass\n",
    "pyproject.toml": '[project]\nname = "small"\nversion = "1"\nlicense = "MIT"\n'
    'authors = [{name = "Somebody"}]\n',
    "workflow/Snakefile": "rule all:\n",
    "src/privclust/x.py": "pass\n",
    "workflow/scripts/evaluate.py": "pass\n",
    "config/config.yaml": "effort: quick\n",
    PAGE: "<p>done</p>\n",
}
INTRUDERS = (
    "config/credentials.json",
    "config/credentials.yaml",
    "config/papers/ckm/rows.csv",
    "workflow/profiles/slurm/token.txt",
    "workflow/secrets.yaml",
    "src/privclust_papers/report/page/key/pem",
    "src/privclust/account.json",
)


@pytest.fixture
def published(tmp_path, monkeypatch):
    """The files of an archived run, in whose folders others lie."""
    monkeypatch.chdir(tmp_path)
    for name, text in (TOP | dict.fromkeys(INTRUDERS, "token: hunter2\n")).items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    Path(METRICS).parent.mkdir(parents=True)
    artefacts.write(METRICS, "metrics", {"X": np.arange(4.0)}, {})
    jobs = [Job("evaluate", (), (METRICS,), 3.0, 4.0), Job("index", (METRICS,), (PAGE,), 4.0, 5.0)]
    papers = {"p": {"title": "A paper", "citation": "none", "file": "none/paper.yaml"}}
    plan = Plan("quick", None, True, {}, {}, papers, {}, {})
    config = {"effort": "quick", "seed": 1, "substitutes": True, "mirror": None}
    write_archive("run.crate.zip", plan, config, jobs)
    with zipfile.ZipFile("run.crate.zip") as file:
        return {name: file.read(name) for name in file.namelist()}


@pytest.mark.attack(
    claim="An archive contains the project's files, and no other files from its folders.",
    before="7 of 7 files with a token in config/, workflow/ or src/ were archived.",
    now="None of 7: the files are declared, with or without git.",
)
def test_a_file_with_credentials_is_not_archived(published):
    assert not set(INTRUDERS) & published.keys()
    assert not any(b"hunter2" in content for content in published.values())
    assert set(TOP) <= published.keys()


@pytest.mark.attack(
    claim="The page on data of one's own names the results that are not private.",
    before="docs/own.md named only bounds that would leak, not exact scores or seeds.",
    now="It says that errors on the exact data are not private, and neither are seeded fits.",
)
def test_the_page_says_that_results_of_own_data_are_not_private():
    text = " ".join((ROOT / "docs/own.md").read_text(encoding="utf-8").split())
    assert "The output is not private" in text
    for reason in ("on the exact data without noise", "seeds"):
        assert reason in text
