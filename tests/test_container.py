"""The Dockerfile and the Apptainer definition: what they copy is there, and both do the same.

They are built where there is a base image and a tool (docs/cluster.md); this needs neither.
"""

import json
import re
import shlex
import tomllib
from fnmatch import fnmatch
from pathlib import Path

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
FOLDER = "/opt/privclust"
PYTHON = {"trixie": "3.13"}  # of a Debian's package python3


def instructions():
    """Return the instructions of the Dockerfile, each its name and the rest on one line."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.M)
    lines = filter(None, re.sub(r"\\\n\s*", "", text).splitlines())
    return [tuple(line.split(maxsplit=1)) for line in lines]


def of(name):
    """Return what follows the instructions of a name."""
    return [rest for instruction, rest in instructions() if instruction == name]


def definition():
    """Return the lines of each section of the Apptainer definition, those above first."""
    text = re.sub(r"^#.*\n", "", (ROOT / "privclust.def").read_text(), flags=re.M)
    head, *sections = re.split(r"^%", text, flags=re.M)
    lines = {"head": head.splitlines()}
    for section in sections:
        name, *rest = section.splitlines()
        lines[name] = [line.strip() for line in rest if line.strip()]
    return lines


def copied():
    """Return what the Dockerfile copies of the project, and where to."""
    files = {}
    for line in of("COPY"):
        *sources, folder = line.split()
        for source in sources:
            files[source] = f"{FOLDER}/{source if folder == './' else folder}"
    return files


def test_what_is_copied_is_what_the_installation_reads():
    files = copied()
    for source in files:
        assert (ROOT / source).exists(), source
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    (needed,) = re.findall(r"^\.venv/ready: (.*)$", (ROOT / "Makefile").read_text(), re.M)
    expected = {
        "Makefile",
        *needed.split(),
        project["project"]["readme"],
        *project["project"]["license-files"],
        "hatch_build.py",
        *(package.split("/")[0] for package in packages),
    }
    assert set(files) == expected


def test_nothing_else_is_sent_to_the_builder():
    first, *rest = (
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line and line[0] != "#"
    )
    assert first == "*"
    assert {line[1:] for line in rest if line[0] == "!"} == set(copied())


def test_the_definition_does_what_the_dockerfile_does():
    sections = definition()
    (base,) = (line.split("=")[1] for line in of("ARG"))
    assert sections["head"] == ["Bootstrap: docker", f"From: {base}", ""]
    assert dict(line.split() for line in sections["files"]) == copied()
    commands = [command for line in of("RUN") for command in line.split(" && ")]
    assert of("WORKDIR")[0] == FOLDER
    place = commands.index("make setup PYTHON=python3")
    commands.insert(place, f"cd {FOLDER}")
    assert sections["post"] == [command.strip() for command in commands]
    variables = [word for line in of("ENV") for word in shlex.split(line)]
    exported = [line.removeprefix("export ") for line in sections["environment"]]
    assert exported == [word for word in variables if not word.startswith(("HOME=", "USER="))]


def test_pythons_are_those_that_the_project_supports():
    (base,) = (line.split("=")[1] for line in of("ARG"))
    image, tag = base.split(":")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert image == "debian"
    assert PYTHON[tag.removesuffix("-slim")] in SpecifierSet(project["requires-python"])
    assert "python3 python3-venv" in of("RUN")[0]


def test_rules_of_dockerfiles():
    names = [name for name, _ in instructions()]
    assert names[:2] == ["ARG", "FROM"]
    assert set(names) <= {"ARG", "FROM", "RUN", "WORKDIR", "COPY", "ENV", "CMD"}
    for command in of("RUN"):
        assert "sudo" not in command
        assert "--trusted-host" not in command
        for installing in re.findall(r"apt-get install[^&]*", command):
            assert "--yes" in installing
            assert "--no-install-recommends" in installing
            assert command.startswith("apt-get update")
            assert command.endswith("rm -rf /var/lib/apt/lists/*")
    assert all(folder.startswith("/") for folder in of("WORKDIR"))
    assert not any(fnmatch(source, "*.env*") or source == "." for source in copied())
    (command,) = of("CMD")
    assert json.loads(command)[0] == "privclust"
