"""The commit that a project's files are of."""

import subprocess

import pytest

from privclust_papers.pipeline.project_files import commit_of


def git(folder, *arguments):
    who = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
    command = ["git", *who, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout(tmp_path):
    project = tmp_path / "a project"
    (project / "workflow").mkdir(parents=True)
    (project / "workflow/Snakefile").write_text("rule all:\n")
    (project / "README.md").write_text("what it is\n")
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")
    return project, git(project, "rev-parse", "HEAD").strip()


def test_the_commit_of_a_checkout(checkout):
    project, commit = checkout
    assert commit_of(project, {}) == commit
    (project / "results.csv").write_text("none of the project's files\n")
    assert commit_of(project, {}) == commit


@pytest.mark.parametrize("name", ["README.md", "workflow/rules/new.smk"])
def test_files_that_are_other_than_the_commits_are_told(checkout, name):
    project, commit = checkout
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).write_text("other\n")
    assert commit_of(project, {}) == f"{commit}, with files changed since"


def test_no_commit_is_that_of_a_folder_around_the_project(checkout, tmp_path):
    project, _ = checkout
    assert commit_of(project / "workflow", {}) == ""
    (tmp_path / "none").mkdir()
    assert commit_of(tmp_path / "none", {}) == ""


def test_there_may_be_no_git(checkout, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert commit_of(checkout[0], {}) == ""
