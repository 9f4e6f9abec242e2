"""The workflow as a whole: reruns, cores, blocks, bad configs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from privclust_papers.pipeline.plan import load_plan
from privclust_papers.settings.config import load_yaml

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.system


def test_run_makes_every_file_and_a_second_run_does_nothing(finished):
    results = finished.results()
    for target in ("mtsc_fig1", "mtsc_fig2"):
        for suffix in ("svg", "png", "csv"):
            assert results[f"results/quick/targets/{target}/{target}.{suffix}"]
    assert b"mtsc_fig1" in results["results/quick/index.html"]
    assert finished.planned() == {}


def test_every_job_leaves_a_log(finished):
    jobs = [path for path in finished.results() if path.endswith(".h5")]
    logs = list((finished.folder / "logs").rglob("*.log"))
    assert len(logs) > len(jobs)
    fit = finished.folder / "logs/quick/mtsc/mtsc_synthetic/fit/ssc_0000.log"
    assert "mtsc_synthetic ssc: 5 of 5" in fit.read_text()


def test_one_core_and_other_blocks_give_the_same(finished, finished_copy):
    """All is made anew on one core; only the fits of one experiment are cut into other files."""
    finished_copy.edit("config/papers/mtsc/paper.yaml", "block: 5", "block: 8")
    shutil.rmtree(finished_copy.folder / "results")
    finished_copy.run("--cores", "1")

    def comparable(project):
        found = project.results().items()
        return {path: content for path, content in found if "mtsc_synthetic/fit/" not in path}

    expected = comparable(finished)
    assert any("/fit/" in path for path in expected)
    assert comparable(finished_copy) == expected


def test_a_named_target_is_made_alone(finished_copy, undisturbed, tmp_path):
    """Another seed changes every fit, and what depends on it."""
    seeded = ("--config", "seed=1", "--")
    rules = {"fit": 4, "evaluate": 1, "draw": 1, "mtsc_fig1": 1}
    assert finished_copy.planned(*seeded, "mtsc_fig1") == rules
    project = undisturbed.copy(tmp_path / "seeded")
    project.run("--cores", "2", *seeded, "means_figure")
    before, after = undisturbed.results(), project.results()
    assert before.keys() == after.keys()
    folders = {path.split("/")[2] for path in before if before[path] != after[path]}
    assert folders == {"mtsc", "targets"}


@pytest.mark.parametrize(
    ("path", "pattern", "new", "rules"),
    [
        ("src/privclust_papers/mtsc/figures.py", "mean of", "average of", {"draw", "index", "all"}),
        (
            "src/privclust/metrics/segmentation.py",
            "return float\\(\\(y.size",
            "return float(1.0 * (y.size",
            {"evaluate", "draw", "verdicts", "index", "all"},
        ),
        ("src/privclust_papers/report/page/index.html.j2", "<h1>", "<h1 >", {"index", "all"}),
        ("config/papers/mtsc/paper.yaml", "colour: sky", "colour: green", {"draw", "index", "all"}),
        (
            "config/papers/mtsc/claims.yaml",
            "lowest l2 error",
            "smallest l2 error",
            {"verdicts", "index", "all"},
        ),
    ],
)
def test_an_edit_reruns_what_depends_on_it(finished_copy, path, pattern, new, rules):
    finished_copy.edit(path, pattern, new)
    assert set(finished_copy.planned()) == rules


def test_an_edited_method_refits_that_method_alone(finished_copy):
    finished_copy.edit("src/privclust/segmentation/_lsr.py", '^"""', '"""Edited. ')
    plan = finished_copy.planned()
    assert plan["fit"] == finished_copy_lsr_jobs(finished_copy)
    assert "prepare" not in plan


def finished_copy_lsr_jobs(project):
    return len(list((project.folder / "results").rglob("fit/lsr/*.h5")))


def test_touching_a_source_reruns_nothing(finished_copy):
    for file in (finished_copy.folder / "src").rglob("*.py"):
        os.utime(file)
    assert finished_copy.planned() == {}


SETTINGS = "config/config.yaml"


@pytest.mark.parametrize(
    ("file", "pattern", "new", "reason"),
    [
        (SETTINGS, "quick\n", "fast\n", 'effort: got "fast"; it must be one of "quick", "paper"'),
        (SETTINGS, "\ncontainer: null", "", "the key 'container' is missing; it needs effort, "),
        (SETTINGS, "(?s).+", "{}", "the key 'effort' is missing; it needs effort, seed, "),
        (SETTINGS, "config/datasets.yaml", "3", "datasets: got 3; it must be of type string"),
        (
            "config/papers/mtsc/paper.yaml",
            "privclust.segmentation.LSR",
            "nowhere.Method",
            "nowhere.Method: no module of that name",
        ),
    ],
)
def test_bad_config_is_one_line_and_not_zero(new_project, file, pattern, new, reason):
    project = new_project()
    project.edit(file, pattern, new)
    done = project.run("-n", check=False)
    assert done.returncode != 0
    assert reason in done.stdout
    assert "Traceback" not in done.stdout


def test_a_blank_in_the_path_of_python_is_refused(undisturbed, tmp_path, monkeypatch):
    (tmp_path / "my env").symlink_to(sys.prefix)
    monkeypatch.setattr("sys.executable", f"{tmp_path}/my env/bin/python")
    done = undisturbed.run("-n", "means_figure", check=False)
    assert done.returncode != 0
    assert "Snakemake's Python has ' ' in its path, at which a shell splits it" in done.stdout


def test_snakemake_report(finished_copy):
    finished_copy.run("--report", "report.html")
    page = (finished_copy.folder / "report.html").read_text(encoding="utf-8")
    assert len(page) > 100_000
    for number in (1, 2):
        assert re.search(rf"<p>[^<]+: Figure {number}\)[.]\\nIt is drawn from trials", page)


def test_all_commands_for_papers_and_targets_can_be_planned(new_project, monkeypatch):
    """Commands for everything are planned together with each target by its name."""
    project = new_project(small=False)
    monkeypatch.chdir(project.folder)
    lines = (ROOT / "docs/reproduce.md").read_text().splitlines()
    commands = [line.partition("#")[0].split() for line in lines if line.startswith("snakemake ")]
    assert len(commands) >= 5
    efforts = set()
    for _, *arguments in commands:
        arguments = [part.replace("/path/to/directory", str(project.mirror)) for part in arguments]
        if arguments[2:3] != ["--config"]:
            project.run("-n", "--quiet", "rules", *arguments)
            continue
        config = {"effort": "quick", **dict(setting.split("=") for setting in arguments[3:])}
        efforts.add(config["effort"])
        config = load_yaml("config/config.yaml") | config
        targets = set(load_plan(config, "workflow/schemas", {}).targets)
        assert {"mtsc_fig1", "dpem_fig1", "ckm_fig2", "dpsc_fig1", "audit_epsilon"} < targets
        plan = project.planned(*arguments, "--quiet", "rules", "--", "all", *sorted(targets))
        assert plan["draw"] == len(targets)
        assert {name: plan.get(name) for name in targets} == dict.fromkeys(targets, 1)
    assert efforts == {"quick", "paper"}


MODULE = """
configfile: "config/config.yaml"

module privclust:
    snakefile: {snakefile}
    config: config

use rule * from privclust
"""


@pytest.fixture
def calls(tmp_path, project_in):
    """Make a folder whose workflow takes the project as a module from a place."""

    def make(project, snakefile):
        caller = tmp_path / "caller"
        (caller / "workflow").mkdir(parents=True)
        (caller / "workflow/Snakefile").write_text(MODULE.format(snakefile=snakefile))
        shutil.copytree(project.folder / "config", caller / "config")
        shutil.copytree(project.mirror, caller / "mirror")
        return project_in.at(caller, project.package)

    return make


@pytest.fixture
def hosted(new_project, tmp_path, monkeypatch):
    """A project at an address of GitHub, which Git takes from a folder; no clone is left of it."""
    project, host = new_project(), tmp_path / "host"
    as_somebody = ("-c", "user.name=somebody", "-c", "user.email=somebody@localhost")
    for command in (
        ("init", "--quiet", "--initial-branch", "main"),
        ("add", "config", "workflow"),
        (*as_somebody, "commit", "--quiet", "--message", "all"),
        ("tag", "v1"),
        ("clone", "--quiet", "--bare", ".", host / "somebody/privclust"),
    ):
        subprocess.run(["git", *command], cwd=project.folder, check=True)
    shutil.rmtree(project.folder / "workflow")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{host}/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://github.com/")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return project


def of_figure(project):
    """The results of the smallest project without its page."""
    page = ("index.html", "verdicts.csv")
    return {k: v for k, v in project.results().items() if not k.endswith(page)}


def test_another_workflow_takes_it_as_a_module(undisturbed, smallest, calls, tmp_path):
    """Files of the workflow are found where it lies, settings and results where it is run."""
    project = smallest(tmp_path / "project")
    here = calls(project, f'"{project.folder}/workflow/Snakefile"')
    here.run("--cores", "2", "means_figure")
    assert here.results() == of_figure(undisturbed)
    assert here.planned("means_figure") == {}


@pytest.mark.parametrize("version", ['tag="v1"', 'branch="main"'])
def test_another_workflow_takes_it_from_an_address(finished, hosted, calls, version):
    """Snakemake has copies of the workflow's files; of a branch they lie elsewhere in each run.

    This target has data, which is fetched and prepared by jobs that read schemas.
    """
    address = f'github("somebody/privclust", path="workflow/Snakefile", {version})'
    here = calls(hosted, address)
    here.run("--cores", "2", "mtsc_fig2")
    made = here.results()
    assert any(path.endswith("mtsc_fig2.svg") for path in made)
    assert made == {path: content for path, content in finished.results().items() if path in made}
    assert here.planned("mtsc_fig2") == {}


def test_another_folder_takes_the_results(undisturbed, smallest, project_in, tmp_path):
    project, folder = smallest(tmp_path / "project"), tmp_path / "elsewhere"
    folder.mkdir()
    project.edit("config/config.yaml", "mirror: mirror", f"mirror: {project.mirror}")
    project.run("--directory", folder, "--cores", "2", "means_figure")
    assert project_in.at(folder).results() == of_figure(undisturbed)
    assert project.planned("--directory", folder, "means_figure") == {}


@pytest.mark.parametrize("profile", ["default", "local", "slurm", "cluster-generic"])
def test_profiles_apply(new_project, profile):
    if profile == "slurm":
        pytest.importorskip("snakemake_executor_plugin_slurm", reason="the profile is for SLURM")
    # a profile that is not found is passed over without a word, so the path is what matters
    project = new_project()
    output = project.run("-n", "--workflow-profile", f"workflow/profiles/{profile}", "mtsc_fig1")
    assert f"Using workflow specific profile workflow/profiles/{profile}" in output
    settings = load_yaml(project.folder / f"workflow/profiles/{profile}/profile.yaml")
    assert settings["rerun-triggers"] == ["input", "mtime", "params", "software-env"]


def test_a_profile_is_found_where_snakemake_finds_it(new_project):
    """Next to the Snakefile, and below the folder in which Snakemake was started."""
    project = new_project()
    project.edit("config/config.yaml", "mirror: mirror", f"mirror: {project.mirror}")
    elsewhere = ("-n", "--directory", "../elsewhere", "--workflow-profile")
    for arguments in (
        ("-n", "--workflow-profile", "local"),
        (*elsewhere, "workflow/profiles/local"),
    ):
        output = project.run(*arguments, "mtsc_fig1")
        assert "Using workflow specific profile workflow/profiles/local" in output
    refused = project.run(*elsewhere, "workflow/profiles/loca", "mtsc_fig1", check=False).stdout
    assert "--workflow-profile workflow/profiles/loca: there is no such" in refused
