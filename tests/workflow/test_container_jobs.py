"""Jobs in a container: Snakemake hands each to the tool with the image that the settings name.

The tool here is a script that runs what it is given outside any image, and says what it was given.
"""

import os
import sys

import pytest

pytestmark = pytest.mark.system

TOOL = """#!/bin/sh
[ "$1" = exec ] || { echo "apptainer version 1.3.6"; exit; }
while [ "${1%.sif}" = "$1" ]; do shift; done
echo "$1" >> "$IMAGES"
shift
exec "$@"
"""


def test_each_job_runs_in_the_image_that_the_settings_name(undisturbed, tmp_path, monkeypatch):
    project = undisturbed.copy(tmp_path / "project")
    tool, images = tmp_path / "bin/apptainer", tmp_path / "images"
    tool.parent.mkdir()
    tool.write_text(TOOL)
    tool.chmod(0o755)
    (project.folder / "privclust.sif").write_text("no image\n")
    # an image has a Python of its own, which is called by its name
    path = (str(tool.parent), os.path.dirname(sys.executable), os.environ["PATH"])
    monkeypatch.setenv("PATH", os.pathsep.join(path))
    monkeypatch.setenv("IMAGES", str(images))
    # all jobs ran outside a container, and so would run again; a figure and what follows will do
    settings = ("--software-deployment-method", "apptainer", "--config", "container=privclust.sif")
    settings = ("--rerun-triggers", "mtime", "--forcerun", "draw", *settings)
    planned = project.planned(*settings)
    assert planned["draw"] == 1
    before = project.results()
    project.run("--cores", "1", *settings)
    given = images.read_text().splitlines()
    n_jobs = sum(count for rule, count in planned.items() if rule != "all")
    assert [os.path.basename(image) for image in given] == ["privclust.sif"] * n_jobs
    after = project.results()
    assert after.keys() == before.keys()
    figure = "results/quick/targets/means_figure/means_figure.svg"
    assert after[figure] == before[figure]
