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


def test_the_projects_own_file_is_valid(project_datasets):
    for dataset in project_datasets.values():
        assert callable(load_object(dataset.reader))
        if dataset.substitute is not None:
            assert callable(load_object(dataset.substitute.generator))
        if dataset.content_digest is not None:
            assert callable(load_object(dataset.content_digest))
        for source in dataset.sources:
            assert source.part is None or callable(load_object(source.part.reader))


def test_hopkins155_goes_to_the_mirror_first(project_datasets):
    dataset = project_datasets["hopkins155"]
    assert [source.kind for source in dataset.sources] == ["mirror", "url", "url"]
    assert dataset.sources[1].location.startswith("http://www.vision.jhu.edu/")
    assert "no number obtained from them is comparable" in dataset.substitute.description
    with pytest.raises(FrozenInstanceError):
        dataset.title = "another"


def test_gowalla_goes_to_the_whole_first_then_to_a_part(
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


@pytest.mark.parametrize(
    ("where", "value", "told"),
    [
        (("reader",), None, ["hopkins155: the key 'reader' is missing"]),
        (("licence",), "MIT", ["hopkins155: unknown key 'licence'; allowed are citation, "]),
        (
            ("sources", 0, "sha256"),
            "abc",
            [
                'hopkins155.sources[0].sha256: got "abc"',
                "it must be 64 lower-case hexadecimal dig",
            ],
        ),
        (("sources", 1, "kind"), "ftp", ['sources[1].kind: got "ftp"; it must be mirror or url']),
        *(
            (("sources", 0, "location"), path, ["sources[0].location: got", "to the mirror direct"])
            for path in ("/data/x.zip", "../x.zip", "a/../../x.zip", "a\\b")
        ),
        (
            ("sources", 1, "location"),
            "ftp://x/y",
            ['sources[1].location: got "ftp://x/y"; it must be an http or https address'],
        ),
        *((("file",), n, ["hopkins155.file: got"]) for n in ("a/b.zip", "receipt.json", ".x", "")),
        (("content_digest",), None, ["content_digest", "give both or neither"]),
        (
            ("sources", 1, "part"),
            {"file": "part.zip", "reader": "a.b"},
            ["hopkins155.sources[1]: the key 'sha256' is missing"],
        ),
        (
            ("sources", 0, "part"),
            {"file": "part.zip"},
            ["sources[0].part: the key 'reader' is missing"],
        ),
        (
            ("sources", 0, "part"),
            {"file": "a/b", "reader": "a.b"},
            ["sources[0].part.file: got"],
        ),
    ],
)
def test_a_wrong_entry_is_named_with_what_it_may_be(problem, where, value, told):
    """None takes a key away."""

    def edit(entry):
        *way, key = where
        for step in way:
            entry = entry[step]
        if value is None:
            del entry[key]
        else:
            entry[key] = value

    message = problem(edit)
    assert all(part in message for part in told)


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


def test_name_of_a_data_set(problem):
    message = problem(lambda entry: {"Hopkins 155": entry})
    assert 'got "Hopkins 155"; it must be lower-case letters' in message


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
        ConfigError, match=r"top level.*: got .*; it must be a mapping from data set names"
    ):
        load_datasets(path, SCHEMA)
