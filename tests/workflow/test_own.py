"""docs/own.md, executed: a method of one's own, and what is said of wrong ones."""

import copy
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

pytestmark = pytest.mark.system

HERE = Path(__file__).parent
TEXT = (HERE.parents[1] / "docs/own.md").read_text()
STEPS = re.findall(r'```(\w+)(?: title="([^"]+)")?\n(.*?)```', TEXT, re.S)


def add_target_of_paper_effort(file):
    paper = yaml.safe_load(file.read_text())
    experiment = copy.deepcopy(paper["experiments"]["ckm_privacy"])
    del experiment["effort"]["quick"]
    paper["experiments"]["ckm_several"] = experiment
    drawn = {"experiments": ["ckm_several"], "draw": "privclust_papers.ckm.figures.beyond"}
    paper["targets"]["ckm_beyond"] = paper["targets"]["ckm_fig3"] | drawn
    file.write_text(yaml.safe_dump(paper, sort_keys=False))


@pytest.fixture(scope="module")
def followed(project_in, tmp_path_factory):
    """A copy in which the tutorial was followed, with a small paper."""
    project = project_in(tmp_path_factory.mktemp("own"))
    project.put_paper(HERE / "own_ckm.yaml", "ckm")
    add_target_of_paper_effort(project.folder / "config/papers/ckm/paper.yaml")
    project.edit("config/config.yaml", "papers/mtsc", "papers/ckm")
    for kind, name, content in STEPS:
        if name:
            (project.folder / name).write_text(content)
            continue
        assert kind == "bash"
        for command in content.splitlines():
            program, *arguments = shlex.split(command)
            if program == "snakemake":
                project.run(*arguments)
            elif program == "python":
                subprocess.run([sys.executable, *arguments], cwd=project.folder, check=True)
            else:
                assert command == "export PYTHONPATH=$PWD"  # the copy's folder is on it
    return project


def table(project, path):
    return pd.read_csv(project.folder / "results/quick" / path)


def test_figure_table_and_page_have_the_method(followed):
    numbers = table(followed, "targets/ckm_fig3/ckm_fig3.csv")
    mine = numbers[(numbers["method"] == "one_round") & (numbers["metric"] == "relative_sse")]
    assert list(mine["epsilon"]) == [0.1, 1.0]
    assert (mine["mean"] > 1.0).all()
    page = (followed.folder / "results/quick/index.html").read_text()
    assert "one round (own claim)" in page


def test_a_method_of_ones_own_shares_data_and_reference(followed):
    trials = table(followed, "ckm/ckm_privacy/trials.csv")
    counts = trials.groupby("method")["trial"].count()
    assert counts["one_round"] == counts["lloyd"] == counts["dplloyd_uniform"]


def test_what_was_done_stays_done(followed):
    assert followed.planned() == {}
    followed.edit("my_package.py", "One round of noisy", "One round of slightly noisy")
    planned = followed.planned()
    assert planned["evaluate"] == 1  # this job fits the methods of the panel as well
    followed.edit("my_package.py", "slightly noisy", "noisy")
    assert followed.planned() == {}


def test_what_only_paper_effort_has_is_told(followed):
    said = "ckm_beyond is made at effort=paper only, as it takes long; to make it: "
    said += "snakemake --cores 2 ckm_beyond --config effort=paper"
    file = followed.folder / "config/my_methods.yaml"
    before = file.read_text()
    try:
        followed.edit(
            "config/my_methods.yaml", "ckm_fig3: {}", "ckm_fig3: {}\n      ckm_beyond: {}"
        )
        whole = followed.run("-n", "--cores", "1")
        asked = followed.run("-n", "--cores", "1", "ckm_beyond", check=False)
    finally:
        file.write_text(before)
    assert f"targets.ckm_beyond: left out of this run: {said}" in whole
    assert asked.returncode != 0
    assert said in asked.stdout
    assert "No rule to produce" not in asked.stdout


NO_FIT = (
    "config/my_methods.yaml: methods.one_round.targets.ckm_fig3: my_package.OneRound has no method "
    "'fit'; the class must have fit and, after it was called, cluster_centers_ or means_"
)
NO_TARGET = "config/my_methods.yaml: methods.one_round.targets: got 'ckm_fig9'; it must be one of "


@pytest.mark.parametrize(
    ("file", "pattern", "new", "message"),
    [
        ("my_package.py", "def fit", "def learn", NO_FIT),
        ("config/my_methods.yaml", "ckm_fig3: {}", "ckm_fig9: {}", NO_TARGET),
    ],
)
def test_messages_name_the_file_the_key_and_the_fault(followed, file, pattern, new, message):
    before = (followed.folder / file).read_text()
    try:
        followed.edit(file, pattern, new)
        done = followed.run("-n", "--cores", "1", check=False)
    finally:
        (followed.folder / file).write_text(before)
    assert done.returncode != 0
    assert message in done.stdout
    assert "Traceback" not in done.stdout
