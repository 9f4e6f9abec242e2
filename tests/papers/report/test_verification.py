"""Jobs drawn to be done again, what they need, and what came out held against the crate."""

import contextlib
import dataclasses
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import psutil
import pytest
import yaml

from privclust_papers.command import main
from privclust_papers.pipeline import artefacts
from privclust_papers.report.crate_file import CrateError, file_sha256, read_crate
from privclust_papers.report.recomputation import (
    _copy_project,
    _run_snakemake,
    check_project,
)
from privclust_papers.report.verification import (
    DIFFERS,
    EQUAL,
    MISSING,
    NOT_JUDGED,
    SAME,
    Draw,
    Finding,
    Verification,
    compare_arrays,
    compare_cells,
    compare_outputs,
    draw,
    read_cells,
    write_certificate,
)

ROOT = Path(__file__).parents[3]
FIT = "results/quick/p/{}/fit/m/block_0000.h5"
METRICS = "results/quick/p/{}/metrics.h5"
TRIALS = "results/quick/p/{}/trials.csv"


@pytest.fixture
def crate(small_crate):
    return read_crate(small_crate)


def outputs(jobs):
    return {output for job in jobs for output in job.outputs}


def test_what_a_job_needs_is_done_before_it(crate):
    only = dataclasses.replace(crate, jobs=(crate.makers[FIT.format("drawn")],))
    assert draw(only, 1, 60.0, 0).needed == ()  # other jobs are known by `makers`
    needs = draw(crate, 20, 60.0, 0)
    assert {"data/raw/had", "data/prepared/had.h5"} <= outputs(needs.jobs)
    assert "data/raw/drawn" not in outputs(needs.jobs)


def test_the_draw_follows_its_seed_and_keeps_both_limits(crate):
    assert draw(crate, 3, 60.0, 5) == draw(crate, 3, 60.0, 5)
    assert len({draw(crate, 3, 60.0, seed).drawn for seed in range(20)}) > 1
    for seed in range(20):
        chosen = draw(crate, 3, 1.1, seed)
        assert len(chosen.drawn) <= 3
        assert sum(job.cpu_s for job in chosen.jobs) <= 66.0
        assert not set(chosen.drawn) & set(chosen.needed)
    chosen = draw(crate, 12, 0.5, 0)
    assert {job.rule for job in chosen.too_long} == {"fit", "evaluate", "summarise"}
    # of the substitute's run the inputs are in the crate, so only the fit is too long there
    late = [output for output in outputs(chosen.too_long) if "drawn" in output]
    assert late == [FIT.format("drawn")]


def test_jobs_are_drawn_in_proportion_to_their_cost(crate):
    """Of 2 fits of 60 s among 133 s of what can be drawn, one comes first in 9 of 10 draws."""
    first = Counter(draw(crate, 1, 1e6, seed).drawn[0].rule for seed in range(600))
    weights = {"fit": 120.0, "evaluate": 8.0, "summarise": 4.0, "prepare": 2.0}
    total = sum(weights.values())
    assert set(first) <= set(weights)
    for rule, weight in weights.items():
        expected = 600 * weight / total
        assert abs(first[rule] - expected) < 4.0 * np.sqrt(expected) + 1.0


@pytest.fixture
def remade(crate, small_run):
    """The crate, and a folder in which all was made again and came out the same."""
    for top in ("results", "data"):
        shutil.copytree(top, f"again/{top}")
    return crate, Path("again")


def findings(remade):
    crate, folder = remade
    return {f.name: f for f in compare_outputs(crate, crate.jobs, folder)}


def test_the_same_bytes_agree_in_the_crate_or_not(remade):
    outcomes = findings(remade)
    assert {finding.outcome for finding in outcomes.values()} == {SAME}
    assert {FIT.format("had"), FIT.format("drawn"), TRIALS.format("had")} <= outcomes.keys()


def rewrite(folder, name, kind, **arrays):
    before = artefacts.read(folder / name, kind)
    artefacts.write(folder / name, kind, before.arrays | arrays, before.parameters, before.inputs)


X = np.linspace(1.0, 2.0, 50)


@pytest.mark.parametrize(
    ("of", "change", "outcome", "detail"),
    [
        ("drawn", {"X": X * (1 + 1e-9)}, DIFFERS, "in 1 of 2 arrays, first X"),
        ("drawn", {"cpu_s": np.zeros(3)}, EQUAL, "except for times"),
        ("drawn", {"X": np.ones(49)}, DIFFERS, ""),
        ("drawn", {"X": np.full(50, np.nan)}, DIFFERS, ""),
        ("drawn", {"Y": np.ones(1)}, DIFFERS, ""),
        ("had", {"cpu_s": np.zeros(3)}, DIFFERS, "the crate has only its checksum"),
    ],
)
def test_artefacts_agree_but_for_times(remade, of, change, outcome, detail):
    name = FIT.format(of)
    rewrite(remade[1], name, "fit", **change)
    finding = findings(remade)[name]
    assert finding.outcome == outcome
    assert detail in finding.detail


def test_what_was_not_made_or_cannot_be_read_is_told(remade):
    (remade[1] / FIT.format("drawn")).unlink()
    (remade[1] / METRICS.format("drawn")).write_bytes(b"no artefact")
    outcomes = findings(remade)
    for name, outcome in ((FIT, MISSING), (METRICS, DIFFERS)):
        assert outcomes[name.format("drawn")].outcome == outcome
    assert not list(remade[1].rglob("*.before"))


def test_a_figure_is_judged_where_its_table_is_the_same(crate, small_run):
    folder = "results/quick/targets/t/"
    small_run.write(f"{folder}t.csv", b"method,cpu_seconds\na,0.5\n")
    small_run.write(f"{folder}t.svg", b"<svg>0.5</svg>")
    small_run.job("fit", [], [f"{folder}t.csv", f"{folder}t.svg"], 1.0)
    crate = read_crate(small_run.pack())
    shutil.copytree("results", "again/results")
    Path("again", folder, "t.svg").write_text("<svg>0.4</svg>")

    def outcome(table):
        Path("again", folder, "t.csv").write_text(table)
        return findings((crate, Path("again")))[f"{folder}t.svg"].outcome

    assert outcome("method,cpu_seconds\na,0.5\n") == DIFFERS
    assert outcome("method,cpu_seconds\nb,0.5\n") == DIFFERS
    assert outcome("method,cpu_seconds\na,0.4\n") == NOT_JUDGED


def test_arrays_of_any_values_are_compared():
    values = {"a": np.array([np.inf, np.nan, 0.0]), "b": np.array([b"x"]), "c": np.array(1 + 1j)}
    assert compare_arrays(values, values)[0] == EQUAL
    other = values | {"a": np.array([-np.inf, np.nan, 0.0])}
    assert compare_arrays(values, other)[0] == DIFFERS
    assert compare_arrays(values, {})[0] == DIFFERS


def verification(crate, *findings, **more):
    jobs = tuple(job for job in crate.jobs if job.rule == "fit")
    made = {"redone": []} | more
    return Verification(crate, Draw(jobs, (), seed=3), list(findings), **made)


@pytest.mark.parametrize(
    ("outcomes", "agrees"),
    [
        ([SAME, EQUAL, NOT_JUDGED], True),
        ([SAME, DIFFERS], False),
        ([SAME, MISSING], False),
        ([NOT_JUDGED], False),
        ([], False),
    ],
)
def test_nothing_agrees_that_was_not_recomputed(crate, outcomes, agrees):
    found = [Finding(f"results/{i}.csv", o) for i, o in enumerate(outcomes)]
    assert verification(crate, *found).agrees is agrees


@pytest.mark.parametrize(
    ("changes", "members", "message"),
    [
        ({"seed": "x"}, {}, r"config/config\.yaml: seed.*its settings cannot be used"),
        ({"my_methods": "../other.yaml"}, {}, "which differs between the crate and this folder"),
        ({"my_methods": "/etc/passwd"}, {}, "which differs between the crate and this folder"),
        ({"my_methods": "docs/m.yaml"}, {"docs/m.yaml": b"methods: {}\n"}, "differs between the"),
        ({"papers": ["mine"]}, {}, r"names 'mine/paper\.yaml', which differs between"),
        ({"papers": ["mine"]}, {"mine/paper.yaml": b"paper: mine\n"}, ""),
    ],
)
def test_settings_of_a_crate_name_nothing_that_is_another_here(
    small_run, small_crate, forged, changes, members, message
):
    settings = read_crate(small_crate).settings
    assert settings["papers"] == ["config/papers/p"]
    small_run.write("mine/paper.yaml", b"paper: mine\n")
    content = json.dumps(settings | changes).encode()
    crate = read_crate(forged(small_crate, {"config/config.yaml": content} | members))
    expected = pytest.raises(CrateError, match=message) if message else contextlib.nullcontext()
    with expected:
        assert check_project(crate)["papers"] == ["mine"]


def test_what_settings_name_is_copied_wherever_it_lies(small_run, tmp_path):
    """Methods beside the documents."""
    small_run.write("docs/mine.yaml", b"methods: {}\n")
    crate = read_crate(small_run.pack("own.zip", my_methods="./docs/mine.yaml"))
    _copy_project(crate, check_project(crate), Path("."), tmp_path / "scratch")
    copied = tmp_path / "scratch/docs/mine.yaml"
    assert copied.read_bytes() == Path("docs/mine.yaml").read_bytes()


def test_the_command_refuses_what_it_cannot_use(small_crate, small_run, capsys, forged):
    def refused(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main(["verify", *map(str, arguments)])
        assert stopped.value.code == 2
        assert not Path("certificate").exists()
        return capsys.readouterr().err

    assert "cannot be read" in refused("nowhere.zip")
    assert "content does not match its checksum" in refused(
        forged(small_crate, {TRIALS.format("had"): b"x"}, fitting=False)
    )
    small_run.write("src/privclust/x.py", b"pass # edited\n")
    assert "another version of the code: src/privclust/x.py differ" in refused(small_crate)
    Path("workflow/Snakefile").unlink()
    assert "run this in the project's folder" in refused(small_crate)


def test_the_certificate_has_what_was_recomputed_and_no_more(crate):
    done, lost = FIT.format("drawn"), FIT.format("had")
    found = Finding(done, EQUAL, "except for times"), Finding(lost, MISSING)
    redone = [job for job in crate.jobs if job.outputs == (done,)]
    write_certificate(verification(crate, *found, redone=redone), "out")
    document = yaml.safe_load(Path("out/certificate.yml").read_text())
    expected = {
        "results": {done: "same numbers: except for times", lost: "not recomputed"},
        "agrees": False,
        "archive": {"sha256": file_sha256(crate.path), "substitutes": ["drawn"]},
    }
    assert document | expected == document
    assert document["draw"]["seed"] == 3
    # 60 of 2 * (0.5 + 1 + 60 + 4 + 2) + 1 CPU seconds
    assert "1 of the run's 11 jobs were repeated; they took 60.0 CPU s" in document["summary"]
    assert "(44.12% of its 136 CPU s)" in document["summary"]


def test_a_table_says_which_cell_differs(remade):
    name = TRIALS.format("drawn")
    (remade[1] / name).write_text("method,error,cpu_seconds\na,0.5,1.0\nb,0.2501,2.0\n")
    said = "in 1 of 4 cells, by up to 0.0004, first error of row 2: 0.25 -> 0.2501"
    assert findings(remade)[name].detail == said
    (remade[1] / name).write_text("method,error,cpu_seconds\na,0.5,7.0\nb,0.25,2.0\n")
    assert findings(remade)[name].outcome == EQUAL
    (remade[1] / name).write_bytes(b"\xff\xfe\x00")
    assert findings(remade)[name].outcome == DIFFERS


@pytest.mark.parametrize(
    ("old", "new", "timed", "outcome"),
    [
        ("partly,0.2 s", "reproduced,0.1 s", "fast", EQUAL),
        ("partly,0.2 s", "reproduced,0.1 s", "good", DIFFERS),
        ("0.5", "0.6", "fast", DIFFERS),
    ],
)
def test_verdicts_on_times_are_no_difference(old, new, timed, outcome):
    before = "id,verdict,decided_by\nfast,partly,0.2 s\ngood,partly,0.5\n"
    after = before.replace(old, new)
    assert compare_cells(before.encode(), after.encode(), {timed})[0] == outcome


def test_tables_of_other_shapes_differ():
    before = b"metric,mean\nerror,0.5\ncpu_s,9\n"
    assert compare_cells(before, b"metric,mean\nerror,0.5\ncpu_s,90\n")[0] == EQUAL
    for after in (
        b"metric,mean\nerror,0.5\n",
        b"metric,mean,n\nerror,0.5,1\ncpu_s,9,1\n",
        b"metric,mean,cpu_seconds\nerror,0.5,1\ncpu_s,9,1\n",
        b"metric,mean\ncpu_s,9\nerror,0.5\n",
    ):
        assert compare_cells(before, after)[0] == DIFFERS


def test_cells_are_read_as_they_are():
    table = read_cells(b'n,name,n\n1,"a, ""b""\nc",\n2,NA,x\n')
    assert list(table) == ["n", "name", "n.1"]
    assert table.to_numpy().tolist() == [["1", 'a, "b"\nc', ""], ["2", "NA", "x"]]
    assert list(read_cells(b"a,b\n")) == ["a", "b"]
    for text in (b"a,b\n1,2,3\n", b"a,b\n1\n", b"a,b\n1,2\n\n", b'a,b\n"1,2\n', b"a\n\xff\n"):
        with pytest.raises(ValueError, match=r"more or fewer cells|unexpected end|decode"):
            read_cells(text)
    with pytest.raises(ValueError, match="have the same name"):
        read_cells(b"n,n.1,n\n1,2,3\n")


def test_what_rests_on_other_data_is_not_recomputed(remade):
    """Such as a substitute where the run had the data, or the data where it had a substitute."""
    rewrite(remade[1], "data/prepared/had.h5", "dataset", X=np.ones(50))
    outcomes = {name: finding.outcome for name, finding in findings(remade).items()}
    assert outcomes.pop("data/prepared/had.h5") == DIFFERS
    for name, outcome in outcomes.items():
        assert outcome == (MISSING if "had" in name else SAME)


def test_what_ends_a_verification_ends_its_jobs(tmp_path, monkeypatch):
    """In place of Snakemake a script that waits for a job."""
    program, job = tmp_path / "program", tmp_path / "job"
    program.write_text(f"#!/bin/sh\nsleep 300 &\necho $! > {job}\nwait\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    end = time.monotonic() + 20.0

    def interrupt(_):
        while not (job.exists() and job.read_text().strip()):
            assert time.monotonic() < end
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupt)
    with pytest.raises(KeyboardInterrupt):
        _run_snakemake(["results/quick/index.html"], tmp_path)
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(int(job.read_text()))
        while process.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < end
            time.sleep(0.05)
