"""What sources import is remembered from process to process, and remembering changes nothing."""

import json
import os
import subprocess
import sys

import pytest

from privclust_papers.pipeline.source_summaries import summary_of

# Prints what a method depends on, and how many sources were parsed to know it.
PROCESS = """
import ast, json
parse, texts = ast.parse, []
ast.parse = lambda text: texts.append(text) or parse(text)
from privclust_papers.pipeline.sources import source_files
print(json.dumps([source_files(["privclust.bingham", "mine.Mine"]), len(texts)]))
"""


def test_the_summary_of_a_source():
    text = """
import numpy.linalg
from . import near as beside

try:
    from ..above import first, second as other
except ImportError:
    pass

NAMES = WIDTH, HEIGHT = 1, 2

def function():
    import json
"""
    summary = summary_of(text)
    assert summary.imports == [
        (0, "numpy.linalg", {}),
        (1, "", {"beside": "near"}),
        (2, "above", {"first": "first", "other": "second"}),
        (0, "json", {}),
    ]
    assert summary.definitions == ["HEIGHT", "NAMES", "WIDTH", "function"]


@pytest.fixture
def process(tmp_path):
    """Return (source files, number of sources parsed) of a new process."""
    return process_in(tmp_path)


@pytest.fixture(scope="module")
def remembering(tmp_path_factory):
    """A folder where one process has remembered its summaries, how to run more, what it found."""
    folder = tmp_path_factory.mktemp("remembering")
    run = process_in(folder)
    found = run()
    return run, found, remembered(folder), remembered(folder).read_text()


def process_in(tmp_path):
    (tmp_path / "mine.py").write_text("class Mine:\n    pass\n")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)]),
        "PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def run(**changed):
        done = subprocess.run(
            [sys.executable, "-c", PROCESS],
            env=environment | changed,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)

    return run


def with_entries(content, entry):
    """The content of a file of summaries with this one for each text."""
    return content | {"summaries": dict.fromkeys(content["summaries"], entry)}


def remembered(tmp_path):
    return next((tmp_path / "bytecode").rglob("source_summaries.*.json"))


def test_a_second_process_parses_what_was_edited_alone(process, tmp_path):
    files, n_parsed = process()
    assert n_parsed > 3
    assert process() == [files, 0]
    (tmp_path / "mine.py").write_text("from privclust.bingham import full_basis as Mine\n")
    os.utime(tmp_path / "mine.py", (0, 0))  # contents count, not dates
    assert process() == [[file for file in files if file != "mine.py"], 1]
    assert process()[1] == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "",
        lambda text: text[:-20],
        lambda text: "[]",
        lambda text: text.replace('{"code":"', '{"code":"0'),
        lambda text: json.dumps(json.loads(text) | {"summaries": {"0": [1]}}),
        lambda text: json.dumps(json.loads(text) | {"summaries": ["0"]}),
        lambda text: json.dumps(with_entries(json.loads(text), [5, []])),
        lambda text: text.encode().decode("latin-1") + "\xff",
    ],
    ids=["empty", "cut", "list", "other code", "short entry", "no entries", "numbers", "no text"],
)
def test_a_file_that_is_no_good_is_written_anew(remembering, change):
    process, found, file, text = remembering
    file.write_text(change(text), encoding="latin-1")
    assert process() == found
    assert file.read_text() == text


def test_where_bytecode_is_not_wanted_nothing_is_written(process, tmp_path):
    process(PYTHONDONTWRITEBYTECODE="1")
    assert not list((tmp_path / "bytecode").rglob("*"))


def test_what_cannot_be_written_costs_time_alone(process, tmp_path):
    (tmp_path / "bytecode").write_text("a file where the folder would be")
    assert process() == process()
