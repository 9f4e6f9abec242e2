"""CONTRIBUTING.md, followed in a copy of the project, section by section."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import pandas as pd
import pytest

pytestmark = pytest.mark.system

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
STEP = re.compile(r'```\w+ title="([^"]+)"(?: under="([^"]+)")?\n(.*?)```', re.S)


def section(name):
    """The steps of a section: files, what they get, and below which of their lines."""
    return STEP.findall(TEXT.partition(f"\n## {name}\n")[2].partition("\n## ")[0])


def follow(folder, steps):
    for name, under, content in steps:
        file = folder / name
        if not under:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
            continue
        lines, at = file.read_text().splitlines(keepends=True), 0
        for key in re.findall(r"[\w.]+:|.+", under):
            at = next(i for i in range(at, len(lines)) if lines[i].strip().startswith(key.strip()))
            at += 1
        file.write_text("".join([*lines[:at], content, *lines[at:]]))
    return {name for name, _, _ in steps}


@pytest.fixture(scope="module")
def project(project_in, tmp_path_factory):
    """A copy with a small figure of private k-means and a small audit."""
    project = project_in(tmp_path_factory.mktemp("contributing"))
    for paper in ("ckm", "audit"):
        file = project.folder / f"config/papers/{paper}/paper.yaml"
        shutil.copy(HERE / f"own_{paper}.yaml", file)
        file.with_name("claims.yaml").unlink()  # they speak of all the paper's targets
    both = "papers/ckm\n  - config/papers/audit"
    project.edit("config/config.yaml", "papers/mtsc", both)
    project.edit("config/papers/ckm/paper.yaml", "ckm_privacy", "ckm_beyond")
    project.edit("config/papers/ckm/paper.yaml", "ckm_fig3", "ckm_beyond")
    for name in ("tests/library/test_public_api.py", "pyproject.toml"):
        (project.folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, project.folder / name)
    return project


def test_the_steps_fit_the_settings_of_the_project(project_in, tmp_path, monkeypatch):
    project = project_in(tmp_path, small=False)
    names = "method", "paper", "metric", "data set", "claim", "case of the audit"
    for name in names:
        steps = section(f"A {name}")
        assert steps, name
        follow(project.folder, steps)
    monkeypatch.setenv("PYTHONPATH", str(project.folder / "src"))
    planned = project.run("-n", "--cores", "1", "--config", "effort=paper", "--list-target-rules")
    assert {"ckm_beyond", "audit_epsilon", "rounds_fig1"} <= set(planned.split())


def table(project, path):
    return pd.read_csv(project.folder / "results/quick" / path)


def test_a_private_method_is_compared_checked_and_attacked(project):
    touched = follow(project.folder, section("A method"))
    # its test, the page and its example, the list of pages, CHANGELOG
    assert len(touched) + 5 <= 9
    checks = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "tests/library/test_public_api.py",
        "-k",
        "OneRound",
    ]
    done = subprocess.run(
        [*checks, "-p", "no:cacheprovider"],
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) == 5
    project.run("--cores", "2", "ckm_beyond", "audit_epsilon")
    trials = table(project, "ckm/ckm_beyond/trials.csv")
    assert (trials["method"] == "one_round").sum() == (trials["method"] == "lloyd").sum() > 0
    case = table(project, "targets/audit_epsilon/audit_epsilon.csv").set_index("method")
    assert case.loc["ckm_one_round", "claimed_epsilon"] == 1.0
    assert 0.2 < case.loc["ckm_one_round", "epsilon_at_least"] <= 1.0


def test_a_paper_is_one_folder_one_line_and_a_page_of_results(project):
    touched = follow(project.folder, section("A paper"))
    outside = {name for name in touched if not name.startswith("src/privclust_papers/rounds/")}
    assert outside == {"config/config.yaml", "docs/results/rounds.md"}
    project.run("--cores", "2")
    drawn = table(project, "targets/rounds_fig1/rounds_fig1.csv")
    assert set(drawn["label"]) == {"1 round", "5 rounds"}
    verdicts = table(project, "verdicts.csv")
    identifiers = verdicts.loc[verdicts["paper"] == "rounds", "id"].str.partition("/")[0]
    assert list(identifiers) == ["rounds_fig1_falls", "rounds_fig1_numbers"]
    page = (project.folder / "results/quick/index.html").read_text()
    assert "the error of five rounds falls with epsilon" in page


def has_paper(project):
    """Follow the section on a paper, unless a test before did."""
    if not (project.folder / "src/privclust_papers/rounds").exists():
        follow(project.folder, section("A paper"))


def test_a_metric_and_a_claim_on_it(project):
    """The metric is a function and its name in a paper: two files."""
    has_paper(project)
    assert len(follow(project.folder, section("A metric"))) == 2
    follow(project.folder, section("A claim"))
    project.run("--cores", "2", "rounds", "results/quick/verdicts.csv")
    summary = table(project, "rounds/rounds_error/summary.csv")
    means = summary.pivot_table("mean", "metric", "method")
    assert (means.loc["largest_distance"] ** 2 > means.loc["error"]).all()
    verdicts = table(project, "verdicts.csv").set_index("id")
    said = verdicts.loc["rounds_fig1_covers", "decided_by"]
    assert "the distance of the furthest row to its center" in said


def test_a_data_set_is_its_entry_and_its_reader(project):
    has_paper(project)
    assert len(follow(project.folder, section("A data set"))) == 3
    (project.mirror / "two_groups").mkdir()
    (project.mirror / "two_groups/two_groups.txt").write_text("-1.0\n-0.9\n0.9\n1.0\n")
    project.run("--cores", "1", "data/prepared/two_groups.h5")
    with h5py.File(project.folder / "data/prepared/two_groups.h5") as file:
        assert file["X"][:].tolist() == [[-1.0], [-0.9], [0.9], [1.0]]


def test_a_case_of_the_audit_is_attacked(project):
    assert len(follow(project.folder, section("A case of the audit"))) == 2
    project.run("--cores", "2", "audit_epsilon")
    case = table(project, "targets/audit_epsilon/audit_epsilon.csv").set_index("method")
    assert case.loc["rounded_count", "claimed_epsilon"] == 1.0
    assert 0.5 < case.loc["rounded_count", "epsilon_at_least"] <= 1.0
