"""An archived run of the small project, checked by doing jobs again, and restored."""

import importlib.util
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from privclust_papers.pipeline import artefacts
from privclust_papers.report import recomputation
from privclust_papers.report.crate_file import read_crate
from privclust_papers.report.verification import Draw

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
CRATE = "results/quick/privclust-quick.crate.zip"
FIT = "results/quick/mtsc/means/fit/loud/block_0001.h5"
OTHER_FIT = "results/quick/mtsc/means/fit/quiet/block_0000.h5"
TOP = ("LICENSE", "README.md", "pyproject.toml", "requirements.lock")


def load(path):
    spec = importlib.util.spec_from_file_location(f"verify_{Path(path).stem}", ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def archived(project, *config):
    for name in TOP:
        shutil.copy(ROOT / name, project.folder)
    project.run("--cores", "2", "--config", *config, "effort=quick", "--", "archive")
    return project


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """A run on a substitute, archived with its artefacts; tests must leave it as it is."""
    small = load("tests/workflow/faults.py").SmallProject
    folder = tmp_path_factory.mktemp("made_up") / "project"
    return archived(small(folder, with_data=False), "artefacts=true")


def fresh(project, folder):
    clone = project.clone(folder)
    for file in folder.rglob("*"):
        file.touch()
    return clone


def verify(project, crate, *arguments):
    """Run the command in the project's folder: its exit code, output and messages."""
    done = subprocess.run(
        [sys.executable, "-m", "privclust_papers", "verify", str(crate), *map(str, arguments)],
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    outcomes = dict(
        line.split(": ", 1) for line in done.stdout.splitlines() if line.startswith(("res", "data"))
    )
    return done.returncode, outcomes, done.stdout + done.stderr


def test_jobs_done_again_agree_and_the_project_stays_as_it_is(made_up):
    before = made_up.results()
    code, outcomes, said = verify(made_up, CRATE, "--jobs", 3, "--seed", 1)
    assert code == 0, said
    assert "seed 1: 3 jobs drawn, 0 needed before them" in said
    assert set(outcomes.values()) == {"same bytes"}
    assert made_up.results() == before
    text = (made_up.folder / "certificate/certificate.yml").read_text()
    document = yaml.safe_load(text)
    assert document["results"] == outcomes
    assert "3 of the run's 10 jobs were repeated" in document["summary"]
    assert document["agrees"]
    assert document["archive"]["substitutes"] == ["listed"]
    assert str(made_up.folder) not in text


def test_what_lies_between_two_drawn_jobs_is_not_done_again(made_up, monkeypatch):
    monkeypatch.chdir(made_up.folder)
    crate = read_crate(CRATE)
    config = recomputation.check_project(crate)
    jobs = {job.rule: job for job in crate.jobs}
    ends, compare, said = (jobs["verdicts"], jobs["prepare"]), recomputation.compare_outputs, []

    def listening(crate, jobs, scratch):
        said.extend(path.read_text() for path in scratch.glob(".snakemake/log/*.log"))
        return compare(crate, jobs, scratch)

    monkeypatch.setattr(recomputation, "compare_outputs", listening)
    outcome = recomputation.recompute(crate, config, Draw(ends, (jobs["fetch"],)))
    assert {finding.outcome for finding in outcome.findings} == {"same bytes"}
    assert len(outcome.redone) == 3
    n_done = map(int, re.findall(r"of (\d+) steps \(100%\)", "".join(said)))
    assert sum(n_done) == 3


def test_one_number_that_was_changed_is_found_by_name(made_up, tmp_path):
    """The forger took care of all checksums and of the artefact's own digest."""
    crate = tmp_path / "run.crate.zip"
    shutil.copy(made_up.folder / CRATE, crate)
    with zipfile.ZipFile(crate) as file:
        (tmp_path / "fit.h5").write_bytes(file.read(FIT))
    fit = artefacts.read(tmp_path / "fit.h5", "fit")
    name = min(fit.arrays)
    changed = fit.arrays[name].copy()
    changed.flat[7] += 1e-6
    arrays = fit.arrays | {name: changed}
    artefacts.write(tmp_path / "fit.h5", "fit", arrays, fit.parameters, fit.inputs)
    forge = load("tests/papers/report/conftest.py").forge
    forged = forge(crate, {FIT: (tmp_path / "fit.h5").read_bytes()})
    code, outcomes, said = verify(made_up, forged, "--jobs", 20)
    assert code == 1, said
    assert f"differs (in 1 of {len(arrays)} arrays, first {name})" in outcomes.pop(FIT)
    assert OTHER_FIT in outcomes
    assert set(outcomes.values()) == {"same bytes"}
    assert "agrees: false" in (made_up.folder / "certificate/certificate.yml").read_text()


def test_data_of_others_are_fetched_again_or_nothing_agrees(undisturbed, tmp_path):
    project = archived(undisturbed.copy(tmp_path / "project"))
    code, outcomes, said = verify(project, CRATE, "--jobs", 20)
    assert code == 0, said
    assert "8 jobs drawn, 1 needed before them" in said  # the page is not drawn
    assert {"data/prepared/listed.h5", FIT, OTHER_FIT} <= outcomes.keys()
    assert set(outcomes.values()) == {"same bytes"}
    assert "9 of the run's 10 jobs were repeated" in said
    project.mirror.rename(tmp_path / "away")
    project.mirror.mkdir()
    code, outcomes, said = verify(project, CRATE, "--jobs", 20)
    assert code == 1, said
    assert set(outcomes.values()) == {"not recomputed"}
    assert "0 of the run's 10 jobs were repeated" in said
    assert "listed is not available" in said  # what the job itself said
    assert str(project.mirror) not in (project.folder / "certificate/certificate.yml").read_text()


def test_a_restored_run_has_nothing_left_to_do(made_up, tmp_path):
    project = fresh(made_up, tmp_path / "clone")
    said = project.run("--cores", "1", "--config", f"restore={made_up.folder / CRATE}")
    assert "results of jobs: 10 restored" in said
    assert "Nothing to be done" in said
    assert project.results() == made_up.results()
    assert project.planned() == {}
    project.edit("config/papers/mtsc/paper.yaml", r"scale: 0\.1", "scale: 0.2")
    assert project.planned()["fit"] == 2  # of parameters, Snakemake's records are asked


def test_dates_of_scripts_and_clones_rerun_nothing(made_up, tmp_path):
    project = fresh(made_up, tmp_path / "clone")
    for name in (
        "results",
        "data",
        ".snakemake",
    ):  # copied with their dates, which are before those of the clone's files
        shutil.copytree(made_up.folder / name, project.folder / name)
    assert project.planned() == {}
    project.edit("workflow/scripts/draw.py", "Draw one", "Draw a")
    assert project.planned()["draw"] == 1
    assert "fit" not in project.planned()
