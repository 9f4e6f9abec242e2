"""config/datasets.yaml and what is said about a wrong one."""

import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
import yaml

from privclust_papers.datasets.registry import DataError, load_datasets
from privclust_papers.settings.config import ConfigError
from privclust_papers.settings.dotted import load_object

ROOT = Path(__file__).parents[3]
CONFIG = ROOT / "config" / "datasets.yaml"
SCHEMA = ROOT / "workflow" / "schemas" / "datasets.schema.yaml"


@pytest.fixture
def problem(tmp_path):
    """Change the real file's entry and return the message that this gives."""

    def change(edit):
        entries = yaml.safe_load(CONFIG.read_text())
        entries = edit(entries["hopkins155"]) or entries
        path = tmp_path / "datasets.yaml"
        path.write_text(yaml.safe_dump(entries))
        with pytest.raises(ConfigError) as error:
            load_datasets(path, SCHEMA)
        message = str(error.value)
        assert message.startswith(f"{path}: ")
        assert "\n" not in message
        return message

    return change


def test_the_projects_own_file_is_valid_and_every_dotted_path_imports(project_datasets):
    for dataset in project_datasets.values():
        assert callable(load_object(dataset.reader))
        if dataset.substitute is not None:
            assert callable(load_object(dataset.substitute.generator))
        if dataset.content_digest is not None:
            assert callable(load_object(dataset.content_digest))
        for source in dataset.sources:
            assert source.part is None or callable(load_object(source.part.reader))


def test_hopkins155_goes_to_the_mirror_first_then_to_the_official_address(project_datasets):
    dataset = project_datasets["hopkins155"]
    assert [source.kind for source in dataset.sources] == ["mirror", "url", "url"]
    assert dataset.sources[1].location.startswith("http://www.vision.jhu.edu/")
    assert "no number obtained from them is comparable" in dataset.substitute.description
    with pytest.raises(FrozenInstanceError):
        dataset.title = "another"


def test_gowalla_goes_to_the_whole_first_then_to_a_part_that_is_called_a_substitute(
    project_datasets,
):
    dataset = project_datasets["gowalla"]
    assert [(source.kind, source.part is None) for source in dataset.sources] == [
        ("mirror", True),
        ("url", True),
        ("mirror", False),
    ]
    assert dataset.sources[1].location == (
        "https://snap.stanford.edu/data/loc-gowalla_totalCheckins.txt.gz"
    )
    for text in (dataset.sources[2].description, dataset.substitute.description):
        assert "no number obtained from" in text
        assert "is comparable" in text
    assert dataset.sources[2].part.file != dataset.file


def test_missing_key_is_named(problem):
    assert "hopkins155: the key 'reader' is missing" in problem(
        lambda entry: entry.pop("reader") and None
    )


def test_unknown_key_is_named_with_the_known_ones(problem):
    message = problem(lambda entry: entry.update(licence="MIT"))
    assert "hopkins155: unknown key 'licence'; it may have citation, " in message


def test_wrong_checksum_says_what_it_got_and_may_be(problem):
    message = problem(lambda entry: entry["sources"][0].update(sha256="abc"))
    assert 'hopkins155.sources[0].sha256: got "abc"' in message
    assert "it may be 64 lower-case hexadecimal digits" in message


def test_unknown_kind_of_source(problem):
    message = problem(lambda entry: entry["sources"][1].update(kind="ftp"))
    assert 'sources[1].kind: got "ftp"; it may be mirror or url' in message


@pytest.mark.parametrize("location", ["/data/x.zip", "../x.zip", "a/../../x.zip", "a\\b"])
def test_mirror_location_stays_inside_the_mirror(problem, location):
    message = problem(lambda entry: entry["sources"][0].update(location=location))
    assert "sources[0].location: got" in message
    assert "relative to the mirror directory" in message


def test_url_is_an_address(problem):
    message = problem(lambda entry: entry["sources"][1].update(location="ftp://x/y"))
    assert 'sources[1].location: got "ftp://x/y"; it may be an http or https address' in message


@pytest.mark.parametrize("file", ["a/b.zip", "receipt.json", ".hidden", ""])
def test_file_is_a_plain_name(problem, file):
    assert "hopkins155.file: got" in problem(lambda entry: entry.update(file=file))


def test_content_checksum_needs_its_function(problem):
    message = problem(lambda entry: entry.pop("content_digest") and None)
    assert "content_digest" in message
    assert "give both or neither" in message


def test_every_source_can_be_verified(problem):
    def edit(entry):
        del entry["content_digest"], entry["content_sha256"]

    assert re.search(r"hopkins155\.sources\[[12]\]: the key 'sha256' is missing", problem(edit))


def test_published_md5_verifies_a_source(tmp_path):
    entries = yaml.safe_load(CONFIG.read_text())
    del entries["hopkins155"]["content_digest"], entries["hopkins155"]["content_sha256"]
    for source in entries["hopkins155"]["sources"][1:]:
        source["md5"] = "0" * 32
    path = tmp_path / "datasets.yaml"
    path.write_text(yaml.safe_dump(entries))
    assert load_datasets(path, SCHEMA)["hopkins155"].sources[1].md5 == "0" * 32


def test_part_needs_file_reader_and_a_checksum_of_its_own(problem):
    part = {"file": "part.zip", "reader": "a.b"}
    message = problem(lambda entry: entry["sources"][1].update(part=part))
    assert "hopkins155.sources[1]: the key 'sha256' is missing" in message
    message = problem(lambda entry: entry["sources"][0].update(part={"file": "part.zip"}))
    assert "sources[0].part: the key 'reader' is missing" in message
    message = problem(lambda entry: entry["sources"][0].update(part=part | {"file": "a/b"}))
    assert "sources[0].part.file: got" in message


def test_name_of_a_data_set(problem):
    message = problem(lambda entry: {"Hopkins 155": entry})
    assert 'got "Hopkins 155"; it may be lower-case letters' in message


def test_file_that_is_not_yaml(tmp_path):
    path = tmp_path / "datasets.yaml"
    path.write_text("a: [1,\nb")
    with pytest.raises(ConfigError, match="not YAML") as error:
        load_datasets(path, SCHEMA)
    assert "\n" not in str(error.value)


def test_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read \(No such file"):
        load_datasets(tmp_path / "none.yaml", SCHEMA)


@pytest.mark.parametrize("dotted", ["no.such.module", "math.nothing", "plain"])
def test_wrong_dotted_path(dotted):
    with pytest.raises(ConfigError, match=f"{dotted}: cannot be imported"):
        load_object(dotted)


def test_advice_follows_the_problem():
    error = DataError("a\n  b", "do this")
    assert (str(error), error.problem) == ("a b; do this", "a b")


@pytest.mark.parametrize("text", ["", "[]", "{}"])
def test_file_without_entries(tmp_path, text):
    path = tmp_path / "datasets.yaml"
    path.write_text(text)
    with pytest.raises(
        ConfigError, match=r"top level.*: got .*; it may be a mapping from data set names"
    ):
        load_datasets(path, SCHEMA)
