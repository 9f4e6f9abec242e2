"""A small crate that is committed: what was archived once can be checked and restored later.

It is `SmallRun.pack` of conftest.py, as of its day. Where one of these tests fails, archives that
others hold are not read any more: that takes a new version, and a word in CHANGELOG.md.
"""

import zipfile
from pathlib import Path

import numpy as np
import pytest

from privclust_papers.pipeline import artefacts
from privclust_papers.report.crate_file import file_sha256, read_crate
from privclust_papers.report.recomputation import check_project
from privclust_papers.report.restoration import restore
from privclust_papers.report.verification import SAME, compare_outputs, draw

CRATE = Path(__file__).with_name("small.crate.zip")
SHA256 = "aba7e042edf8cf3df48b8ee7ad7712ab8e5a58bc0cc071963d81d7eb12a36e3a"
FIT = "results/quick/p/drawn/fit/m/block_0000.h5"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The crate's code and settings, in the working folder."""
    monkeypatch.chdir(tmp_path)
    crate = read_crate(CRATE)
    with zipfile.ZipFile(CRATE) as file:
        for name in (*crate.code, "config/config.yaml"):
            file.extract(name)
    return crate


def test_it_is_the_committed_file():
    assert file_sha256(CRATE) == SHA256


def test_its_jobs_can_be_drawn_as_on_its_day(project):
    assert check_project(project)["seed"] == 7
    drawn = draw(project, 2, 60.0, 1)
    assert [job.outputs[0] for job in drawn.drawn] == [
        "results/quick/p/drawn/fit/m/block_0000.h5",
        "results/quick/p/had/fit/m/block_0000.h5",
    ]
    assert [job.outputs[0] for job in drawn.needed] == ["data/raw/had", "data/prepared/had.h5"]


def test_its_results_are_restored_and_agree(project):
    restored = restore(CRATE, "quick", 7)
    assert (restored.taken, restored.present) == (5, 0)
    assert (restored.left_out, restored.changed) == (4, 2)
    jobs = [job for job in project.jobs if any("results/quick/p/drawn" in n for n in job.outputs)]
    outcomes = {
        finding.name: finding.outcome for finding in compare_outputs(project, jobs, Path("."), {})
    }
    assert set(outcomes.values()) == {SAME}
    assert FIT in outcomes
    np.testing.assert_array_equal(artefacts.read(FIT, "fit").arrays["n"], np.arange(5))
