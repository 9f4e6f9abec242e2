"""requirements.lock, workflow/envs and pyproject.toml say the same."""

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
CONDA_NAMES = {"matplotlib": "matplotlib-base"}
# Snakemake runs the jobs, and is not in their environments.
OF_SNAKEMAKE = {
    *("snakemake", "snakemake-executor-plugin-cluster-generic", "snakemake-executor-plugin-slurm"),
}
ENVIRONMENTS = sorted((ROOT / "workflow/envs").glob("*.yaml"))


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


def packages_of(environment):
    """Versions of the packages of a rule's environment, by their names for pip."""
    names = {conda: name for name, conda in CONDA_NAMES.items()}
    pins = {}
    for entry in yaml.safe_load(environment.read_text())["dependencies"]:
        for line in entry["pip"] if isinstance(entry, dict) else [entry]:
            name, _, version = line.replace("==", "=").partition("=")
            pins[names.get(name, name)] = version
    pins.pop("pip", None)
    assert pins.pop("python") == "3.13"
    return pins


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda path: path.stem)
def test_an_environment_has_the_core_and_the_pins_of_the_lock(environment):
    pins, versions = packages_of(environment), locked()
    assert declared("files") - {"pyarrow", "tqdm"} <= pins.keys()  # the core
    assert pins == {name: versions[name] for name in pins}, "give the versions in requirements.lock"


def test_the_environments_together_have_all_that_jobs_need():
    together = set().union(*map(packages_of, ENVIRONMENTS))
    assert together == declared("workflow", "images") - OF_SNAKEMAKE


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


def test_every_upper_limit_says_why_it_is_there():
    text = (ROOT / "pyproject.toml").read_text().partition("[dependency-groups]")[0]
    limited = re.findall(r'^\s*"([^"]*,(<[\d.]+))",\s+# (.*)', text, re.M)
    assert len(limited) == len(re.findall(r",<", text)) > 5
    for requirement, limit, comment in limited:
        assert f"; {limit}: " in comment, requirement


def test_lock_has_hashes_and_no_address():
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text
    assert not re.search(r"--(extra-)?index|--find-links", text)
    packages = [line for line in text.splitlines() if line and line[0] not in " #"]
    assert text.count("--hash=sha256:") >= len(packages)
