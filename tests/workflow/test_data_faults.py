"""Data that is missing, broken or replaced: what the workflow says and leaves behind."""

import shutil
import zipfile

import numpy as np
import pytest
from scipy.io import savemat

pytestmark = pytest.mark.system

ARCHIVE = "hopkins155/Hopkins155.zip"


@pytest.fixture
def archive(tmp_path):
    """A zip of one well-formed sequence, which is not the benchmark."""
    truth = tmp_path / "arm_truth.mat"
    rng = np.random.default_rng(0)
    savemat(truth, {"x": rng.standard_normal((3, 20, 9)), "s": np.repeat([1, 2], 10)[:, None]})
    path = tmp_path / "Hopkins155.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.write(truth, "arm/arm_truth.mat")
    return path


def put(project, path):
    target = project.mirror / ARCHIVE
    target.parent.mkdir()
    shutil.copy(path, target)
    return target


def fails(project, *arguments):
    """Run and return the output of a run that must fail and leave nothing half-written."""
    done = project.run("--cores", "1", *arguments, check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stdout
    assert not list(project.folder.rglob("*.part"))
    assert not (project.folder / "data/prepared/hopkins155.h5").exists()
    return done.stdout


def test_substitute_is_declared_everywhere(finished):
    receipt = (finished.folder / "data/raw/hopkins155/receipt.json").read_text()
    assert '"kind": "substitute"' in receipt
    log = (finished.folder / "logs/fetch/hopkins155.log").read_text()
    assert "A SUBSTITUTE IS USED" in log
    results = finished.results()
    trials = results["results/quick/mtsc/mtsc_heat_map/trials.csv"].decode()
    assert "substitute for hopkins155" in trials
    drawn = results["results/quick/targets/mtsc_fig2/mtsc_fig2.svg"].decode()
    assert "Not comparable with the paper" in drawn


def test_wrong_checksum_is_an_error(new_project, archive):
    project = new_project()
    put(project, archive)
    output = fails(project, "mtsc_fig2")
    assert "replace it by a whole copy or remove it" in output
    assert not (project.folder / "data/raw/hopkins155").exists()


def test_truncated_archive_is_an_error(new_project, archive):
    project = new_project()
    target = put(project, archive)
    target.write_bytes(archive.read_bytes()[:-50])
    assert "Hopkins155.zip" in fails(project, "mtsc_fig2")


def test_missing_data_without_substitutes_is_an_error(new_project):
    project = new_project()
    output = fails(project, "--config", "substitutes=false", "--", "mtsc_fig2")
    assert "PRIVCLUST_DATA_MIRROR" in output


def test_mirror_that_is_not_there_is_an_error(new_project):
    project = new_project()
    output = fails(project, "--config", "mirror=no_such_folder", "--", "mtsc_fig2")
    assert "no_such_folder" in output
