"""The target `archive`: a run as a Process Run Crate that stands on its own."""

import hashlib
import json
import os
import shutil
import zipfile
from datetime import datetime
from importlib import resources
from pathlib import Path

import pytest
import rocrate
from rocrate.rocrate import ROCrate

ROOT = Path(__file__).parents[2]
CRATE = "results/quick/privclust-quick.crate.zip"
DESCRIPTION = "ro-crate-metadata.json"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"

pytestmark = pytest.mark.system


@pytest.fixture
def project(finished_copy):
    """A finished run, with the files of the top folder that an archive holds."""
    for name in ("LICENSE", "README.md", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, finished_copy.folder)
    return finished_copy


def several(value):
    """A property's values, which may be one, several or none."""
    return value if isinstance(value, list) else [] if value is None else [value]


def types(entity):
    return set(several(entity["@type"]))


def references(value):
    if isinstance(value, dict):
        return [value["@id"]]
    return [found for item in value for found in references(item)] if type(value) is list else []


def unpack(project, folder):
    """Unpack the archive; return its entities by identifier."""
    with zipfile.ZipFile(project.folder / CRATE) as file:
        assert file.testzip() is None
        assert file.namelist() == sorted(file.namelist())
        file.extractall(folder)
    document = json.loads((folder / DESCRIPTION).read_text())
    assert document["@context"][0] == "https://w3id.org/ro/crate/1.1/context"
    entities = {entity["@id"]: entity for entity in document["@graph"]}
    assert len(entities) == len(document["@graph"])
    return entities


def check_root(entities):
    """What RO-Crate 1.1 and the profile ask of the root."""
    descriptor, root = entities[DESCRIPTION], entities["./"]
    assert descriptor["about"] == {"@id": "./"}
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert root["conformsTo"] == {"@id": PROFILE}
    assert "CreativeWork" in types(entities[PROFILE])
    assert root["name"]
    assert root["description"]
    datetime.fromisoformat(root["datePublished"])
    assert references(root["license"]) == ["https://spdx.org/licenses/BSD-3-Clause"]


def check_actions(entities):
    """Jobs refer to what the profile asks for."""
    actions = {k: v for k, v in entities.items() if "CreateAction" in types(v)}
    for action in actions.values():
        assert "SoftwareSourceCode" in types(entities[action["instrument"]["@id"]])
        start, end = (datetime.fromisoformat(action[f"{end}Time"]) for end in ("start", "end"))
        assert start <= end
        assert references(several(action["result"]))
    assert set(references(entities["./"]["mentions"])) == set(actions)


def check_graph(entities):
    """References lead somewhere, properties are words of the vocabulary, parts are files."""
    text = resources.files(rocrate).joinpath("data/ro-crate.jsonld").read_text()
    words = {*json.loads(text)["@context"], "@id", "@type"}
    for entity in entities.values():
        assert words >= set(entity), entity["@id"]
        assert words >= types(entity), entity["@id"]
        for name in (found for value in entity.values() for found in references(value)):
            assert name in entities or name.startswith("https://"), (entity["@id"], name)
    assert all("File" in types(entities[name]) for name in references(entities["./"]["hasPart"]))


def check_files(entities, folder):
    """Every file is described with its checksum, and every part is there."""
    parts = set(references(entities["./"]["hasPart"]))
    there = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert there - parts == {DESCRIPTION, "SHA256SUMS"}
    assert parts <= there
    for name in parts:
        content = (folder / name).read_bytes()
        assert entities[name]["sha256"] == hashlib.sha256(content).hexdigest()
        assert entities[name]["contentSize"] == str(len(content))
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    assert {line[66:] for line in lines} == there - {"SHA256SUMS"}
    for line in lines:
        assert hashlib.sha256((folder / line[66:]).read_bytes()).hexdigest() == line[:64]


def check_against_the_run(entities, project):
    """Checksums of what is outside the crate are those of the run, and all of it is named."""
    results = [name for name in project.results() if name.startswith("results/quick/")]
    for name in results:
        entity = entities[f"#{name}" if name.endswith(".h5") else name]
        content = (project.folder / name).read_bytes()
        assert entity["sha256"] == hashlib.sha256(content).hexdigest()
    made = references([several(v["result"]) for v in entities.values() if "result" in v])
    assert {name for name in results if name.endswith(".h5")} <= {m[1:] for m in made}


def test_archive_of_a_run_is_a_whole_process_run_crate(project, tmp_path):
    project.run("--cores", "1", "archive")
    folder = tmp_path / "crate"
    entities = unpack(project, folder)
    check_root(entities)
    check_actions(entities)
    check_graph(entities)
    check_files(entities, folder)
    check_against_the_run(entities, project)
    assert len(ROCrate(folder).get_by_type("CreateAction")) == len(entities["./"]["mentions"])

    # nothing was had for the only data set, and the crate says so
    assert entities["#data/raw/hopkins155"]["name"] == "substitute for hopkins155"
    assert "Substitutes were used for hopkins155:" in entities["./"]["description"]
    assert not (folder / "data").exists()
    for path in folder.rglob("*"):
        assert path.is_dir() or str(project.folder).encode() not in path.read_bytes(), path

    # the workflow in it plans the same jobs as the project
    shutil.rmtree(folder / "results")
    jobs = sum("#job/" in name for name in entities)
    assert sum(project.at(folder).planned().values()) == jobs + 1  # and the rule `all`

    first = (project.folder / CRATE).read_bytes()
    assert project.planned("archive") == {}
    project.run("--cores", "1", "--forcerun", "archive", "--", "archive")
    assert (project.folder / CRATE).read_bytes() == first
    project.edit("workflow/scripts/index.py", "Write the page", "Write one page")
    assert project.planned("archive")["archive"] == 1


def test_without_records_one_line_says_what_is_missing(project):
    shutil.rmtree(project.folder / ".snakemake/metadata")
    done = project.run("--cores", "1", "archive", check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stdout
    said = "results/quick/index.html: Snakemake has no record in .snakemake/metadata of the job"
    assert said in done.stdout
    assert not (project.folder / CRATE).exists()


def test_altered_artefact_is_not_archived(project):
    path = project.folder / "data/prepared/hopkins155.h5"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    times = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # so that no other job sees it
    done = project.run("--cores", "1", "archive", check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stdout
    assert "Error in rule archive:" in done.stdout
    assert "data/prepared/hopkins155.h5: " in done.stdout
    assert not (project.folder / CRATE).exists()
