"""What the wheel holds, and that it works with no more beside it than estimators need."""

import importlib.util
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPTIONAL = "optional-dependencies"
BUILD = "import sys; from hatchling import build; print(getattr(build, sys.argv[1])(sys.argv[2]))"
FIT = """
import numpy as np
import privclust
from privclust.kmeans import DPLloyd

X = np.random.default_rng(0).uniform(-0.5, 0.5, (100, 2))
model = DPLloyd(2, epsilon=1.0, norm_bound=1.0, random_state=0).fit(X)
print(privclust.__file__, model.guarantee_.epsilon, model.predict(X).shape)
"""

pytestmark = pytest.mark.system


def build(kind, source, folder):
    """Build a wheel or an sdist of a source tree without fetching anything."""
    folder.mkdir()
    command = [sys.executable, "-c", BUILD, f"build_{kind}", str(folder)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=True)
    return folder / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel") / "dist")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist") / "dist")


def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_the_library_and_the_audit_only(wheel):
    found = names(wheel)
    sources = {
        path.relative_to(ROOT / "src").as_posix()
        for package in ("privclust", "privclust_audit")
        for path in (ROOT / "src" / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in found if ".dist-info/" not in name} == sources
    assert {
        "privclust/py.typed",
        "privclust/kmeans/__init__.pyi",
        "privclust/report/report.html.j2",
        "privclust_audit/command.py",
    } <= found
    assert any(name.endswith("licenses/LICENSE") for name in found)
    (scripts,) = (name for name in found if name.endswith("entry_points.txt"))
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(scripts).decode()
    assert "privclust = privclust.command:main" in text
    assert "audit = privclust_audit.command" in text
    assert "privclust-papers" not in text  # of a clone


def test_the_sdist_is_the_whole_project(sdist):
    """All that a clone has: its tests, pages, settings and pipeline work from it as well."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a clone: there is nothing to compare with")
    with tarfile.open(sdist) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    tracked = {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}
    assert len(tracked) > 500
    assert tracked - found == set()
    assert {name for name in found - tracked if "__pycache__" in name or "_build" in name} == set()
    assert not any(name.startswith(("results/quick", "data/raw", ".venv")) for name in found)


def test_links_of_the_long_description_lead_into_the_sdist(wheel, sdist):
    """The package is on no index: README is read in a clone, or in the sdist."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode()
    head, _, description = text.partition("\n\n")
    assert "Description-Content-Type: text/markdown" in head
    with tarfile.open(sdist) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    links = re.findall(r"\]\(([^)#]+)", description)
    assert len(links) > 10
    assert {link for link in links if not re.match(r"https?:", link)} <= found


def test_extras_are_named_as_they_can_be_installed():
    """README and the page on installing name each extra that there is, and none that is not."""
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][OPTIONAL])
    page = (ROOT / "docs/installation.md").read_text(encoding="utf-8")
    assert extras <= set(re.findall(r"^\| `(\w+)` \|", page, re.M))
    for text in (page, (ROOT / "README.md").read_text(encoding="utf-8")):
        named = re.findall(r"pip install '[^'\n]*\[([\w,]+)\]'", text)
        assert {extra for names in named for extra in names.split(",")} <= extras
        assert not re.search(r"pip install '?privclust(\[|\s|$)", text)


def test_the_sdist_builds_the_same_wheel(wheel, sdist, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source")  # our own: no need of a filter, which 3.11.2 lacks
    (source,) = (tmp_path / "source").iterdir()
    again = build("wheel", source, tmp_path / "wheel")
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(again) as second:
        assert first.namelist() == second.namelist()
        assert all(first.read(name) == second.read(name) for name in first.namelist())


@pytest.fixture(scope="module")
def run(wheel, tmp_path_factory):
    """Run Python where the wheel and what estimators need are, and nothing else."""
    spec = importlib.util.spec_from_file_location("core", Path(__file__).with_name("core_alone.py"))
    core = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(core)
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    for distribution in core.closure(*core.CORE):
        for file in metadata.files(distribution):
            top = file.parts[0]
            if top != ".." and not (site / top).exists():
                (site / top).symlink_to(Path(file.locate()).parents[len(file.parts) - 1] / top)

    def python(code, *arguments):
        code = f"import sys; sys.path.insert(0, {str(site)!r})\n{code}"
        command = [sys.executable, "-I", "-S", "-c", code, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return python


def test_it_fits_with_five_packages_beside_it(run):
    done = run(FIT)
    assert done.returncode == 0, done.stderr
    file, epsilon, shape = done.stdout.split(maxsplit=2)
    assert not Path(file).is_relative_to(ROOT)
    assert (epsilon, shape.strip()) == ("1.0", "(100,)")
    assert run("import pandas").returncode == 1


def test_its_command_says_how_it_is_used(run):
    done = run("import runpy; runpy.run_module('privclust', run_name='__main__')", "--help")
    assert done.returncode == 0, done.stderr
    assert {"cluster", "audit"} <= set(done.stdout.split())
