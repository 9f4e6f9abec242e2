"""CITATION.cff, CHANGELOG.md, CONTRIBUTING.md and the catalog's files are true to the project."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import privclust

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
PAPERS = sorted((ROOT / "config/papers").glob("*/paper.yaml"))


def loaded(path):
    return yaml.safe_load((ROOT / path).read_text())


def test_the_version_is_the_same_everywhere():
    assert privclust.__version__ == str(CITATION["version"])
    assert PROJECT["license"] == CITATION["license"]


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.parent.name)
def test_every_paper_is_cited(path):
    paper = yaml.safe_load(path.read_text())
    if paper["paper"] in ("audit", "frontier"):
        return  # ours, and a table that ours is held against
    (reference,) = (
        entry
        for entry in CITATION["references"]
        if entry["title"].casefold() == paper["title"].casefold()
    )
    assert f"`snakemake {paper['paper']}`" in reference["notes"]
    for author in reference["authors"]:
        assert author["family-names"] in paper["citation"]


def test_the_changelog_begins_with_what_is_not_released():
    headings = re.findall(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert headings[0] == "Unreleased"


def test_contributing_names_files_that_are_there():
    for path in re.findall(r"`((?:config|docs|src|tests|workflow)/[\w./]+)`", CONTRIBUTING):
        assert (ROOT / path).exists(), path


def section(title):
    """Return a section's code spans."""
    (text,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", CONTRIBUTING, re.M | re.S)
    return set(re.findall(r"`([^`\n]+)`", text))


def test_contributing_names_the_kinds_of_check():
    check = loaded("workflow/schemas/claims.schema.yaml")["items"]["properties"]["check"]
    assert set(check["properties"]["kind"]["enum"]) <= section("A claim")


@pytest.mark.parametrize(
    ("title", "schema", "where"),
    [
        ("A paper", "paper", ()),
        ("A paper", "paper", ("properties", "experiments", "additionalProperties")),
        ("A paper", "paper", ("properties", "targets", "additionalProperties")),
        ("A paper", "paper", ("$defs", "effort")),
        ("A data set", "datasets", ("$defs", "dataset")),
        ("A claim", "claims", ("items",)),
    ],
)
def test_contributing_names_the_keys_that_are_required(title, schema, where):
    found = loaded(f"workflow/schemas/{schema}.schema.yaml")
    for key in where:
        found = found[key]
    assert set(found["required"]) <= section(title)


def test_the_catalog_offers_what_there_is():
    usage = loaded(".snakemake-workflow-catalog.yml")["usage"]
    offered = {name for name, is_so in usage["software-stack-deployment"].items() if is_so}
    assert offered == {"conda"}
    rules = "\n".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    assert "conda:" in rules
    assert "container:" not in rules
    assert usage["report"] == ("report(" in rules)


def test_the_workflow_is_where_the_catalog_looks():
    assert (ROOT / "workflow/Snakefile").is_file()


def test_folders_that_a_run_fills_say_what_will_lie_there(tmp_path):
    """What a run makes is ignored, and `make clean` keeps what is not."""
    for folder in ("data", "results"):
        assert (ROOT / folder / "README.md").is_file()
        (tmp_path / folder / "quick").mkdir(parents=True)
        (tmp_path / folder / "README.md").touch()
        (tmp_path / folder / "quick/index.html").touch()
    for name in (".gitignore", "Makefile"):
        shutil.copy(ROOT / name, tmp_path)
    for command in (["git", "init", "-q"], ["git", "add", "."], ["make", "-s", "clean"]):
        subprocess.run(command, cwd=tmp_path, check=True)
    listed = subprocess.run(["git", "ls-files"], cwd=tmp_path, check=True, capture_output=True)
    names = set(listed.stdout.decode().split())
    assert names == {".gitignore", "Makefile", "data/README.md", "results/README.md"}
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["README.md"]


def test_the_readme_of_the_config_names_every_file_and_key():
    text = (ROOT / "config/README.md").read_text()
    named = set(re.findall(r"`([^`]+)`", text))
    entries = {
        path.name + "/" * path.is_dir()
        for path in (ROOT / "config").iterdir()
        if path.name not in ("README.md", "config.yaml")
    }
    assert entries <= named
    assert set(loaded("workflow/schemas/config.schema.yaml")["properties"]) <= named
    schema = loaded("workflow/schemas/my_methods.schema.yaml")["properties"]
    entry = schema["methods"]["additionalProperties"]["properties"]
    assert {*schema, *entry} <= named
    for link in re.findall(r"\]\(([^)]*)\)", text):
        assert (ROOT / "config" / link).is_file(), link


def test_hooks_are_checks_of_make_lint_without_network():
    (repo,) = loaded(".pre-commit-config.yaml")["repos"]
    assert repo["repo"] == "local"
    (rules,) = re.findall(r"^lint: setup\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    linted = {line.split()[0] for line in rules.splitlines()}
    for hook in repo["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"].split()[0] in linted
        assert "files" in hook or "types_or" in hook
        assert not set(hook) & {"additional_dependencies", "rev"}
    assert {Path(hook["entry"].split()[0]).name for hook in repo["hooks"]} >= {"ruff", "mypy"}


def test_names_of_tests_have_fewer_than_60_characters():
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    names = {name for text in texts for name in re.findall(r"^ *def (test_\w+)", text, re.M)}
    assert len(names) > 1000
    assert not [name for name in names if len(name) >= 60]
