"""Attacks by archives of runs: crates that somebody forged, or made to do harm."""

import importlib.util
import json
import struct
import time
import zipfile
from pathlib import Path

import pytest
import yaml

from privclust_papers.pipeline import artefacts
from privclust_papers.report import crate_file, recomputation
from privclust_papers.report.archive import zip_entry
from privclust_papers.report.crate_file import CrateError, read_crate
from privclust_papers.report.recomputation import check_project
from privclust_papers.report.restoration import restore
from privclust_papers.report.verification import (
    DIFFERS,
    compare_cells,
    compare_outputs,
    cost_of,
    draw,
)

CONFIG, JOBS = "config/config.yaml", "jobs.json"
FIT = "results/quick/p/drawn/fit/m/block_0000.h5"
TRIALS = "results/quick/p/drawn/trials.csv"
RECEIPT = b'{"file": "values.txt"}'
FORGED = b"method,error,cpu_seconds\nours,0.0,1.0\n"


def load(path):
    """Import a file of the tests."""
    spec = importlib.util.spec_from_file_location("crates_" + Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


small = load(Path(__file__).parents[1] / "papers/report/conftest.py")


@pytest.fixture
def honest(tmp_path, monkeypatch):
    """An honest archive of a small run, in the folder of that run."""
    monkeypatch.chdir(tmp_path)
    return small.SmallRun(Path(".")).pack()


def said(path):
    """What the jobs of an archive say."""
    with zipfile.ZipFile(path) as file:
        return json.loads(file.read(JOBS))


def with_jobs(path, edit, members=()):
    """Forge an archive whose jobs are edited, with other members and fitting checksums."""
    document = said(path)
    edit(document["jobs"])
    changes = dict(members) | {JOBS: json.dumps(document).encode()}
    return small.forge(path, changes)


def maker_of(jobs, output):
    """The job that made an output."""
    (job,) = [job for job in jobs if output in job["outputs"]]
    return job


def another(outputs, **job):
    """A job that nobody ran."""
    honest = {"rule": "prepare", "inputs": [], "start": 1.0, "end": 2.0, "cpu_s": 0.0}
    return {**honest, "record": {}, "outputs": outputs, **job}


@pytest.mark.attack(
    claim="No code from an archive is run.",
    before="Settings named a file of the archive as the user's own methods: its code was run and "
    "wrote a certificate that everything agrees.",
    now="Settings may name only files that are identical to those in the checker's own copy of "
    "the project. Only data are copied from the archive, not code.",
)
def test_an_archive_brings_no_code(honest):
    settings = read_crate(honest).settings | {"my_methods": "data/own/m.yaml"}
    members = {
        CONFIG: json.dumps(settings).encode(),
        "data/own/m.yaml": b"methods: {mine: {label: mine, class: data.own.evil.E}}\n",
        "data/own/evil.py": b"raise SystemExit\n",
    }

    def edit(jobs):
        jobs.append(another(["data/own/evil.py", "data/own/m.yaml"]))
        maker_of(jobs, FIT)["inputs"].append("data/own/evil.py")

    with pytest.raises(CrateError, match=r"'data/own/m\.yaml' does not match"):
        read_crate(with_jobs(honest, edit, members))
    crate = read_crate(small.forge(honest, members))
    with pytest.raises(CrateError, match=r"names 'data/own/m\.yaml', which differs between"):
        check_project(crate)


@pytest.mark.attack(
    claim="A result that counts as recomputed was computed again.",
    before="If a second job claimed the same table, the table was copied from the archive before "
    "the run, and counted as 'same bytes' although it was invented.",
    now="Each output belongs to one job and lies inside no other output. No result that is drawn "
    "for recomputation exists before its job has run.",
)
@pytest.mark.parametrize("claimed", [TRIALS, "data/raw/drawn/receipt.json", "data/raw"])
def test_a_forged_result_is_not_given_to_the_job_that_makes_it(honest, claimed):
    decoy = "results/quick/decoy.csv"

    def edit(jobs):
        jobs.insert(0, another([decoy, claimed], rule="index"))
        maker_of(jobs[1:], TRIALS)["inputs"].append(decoy)

    with pytest.raises(CrateError, match=r"two jobs list|does not match"):
        read_crate(with_jobs(honest, edit, {decoy: b"x\n", TRIALS: FORGED}))


@pytest.mark.attack(
    claim="The code that a certificate names is the code in the archive.",
    before="An archive without any code was 'of the same files as in the crate'.",
    now="Each file that an archive of this project would contain must be in it.",
)
def test_an_archive_without_code_is_of_another_version(honest):
    assert check_project(read_crate(honest))
    code = [name for name in read_crate(honest).code if name.startswith("src/")]
    with pytest.raises(CrateError, match=r"another version of the code.*src/privclust/x\.py"):
        check_project(read_crate(small.forge(honest, dict.fromkeys(code))))
    Path("src/privclust/more.py").write_text("pass\n")
    with pytest.raises(CrateError, match=r"another version of the code.*src/privclust/more\.py"):
        check_project(read_crate(honest))


@pytest.mark.attack(
    claim="Any result can be drawn for recomputation.",
    before="A forged table could not be drawn if its job was called 'index', or if its checksum "
    "or job was left out. It was not counted among the results that cannot be drawn "
    "either.",
    now="The names of results decide which can be drawn. Results without a job are refused.",
)
def test_no_result_hides_from_the_draw(honest):
    def can_be_drawn(path):
        drawn = draw(read_crate(path), 100, 1e6, 0)
        return TRIALS in {name for job in drawn.drawn for name in job.outputs}

    assert can_be_drawn(honest)
    assert can_be_drawn(with_jobs(honest, lambda jobs: maker_of(jobs, TRIALS).update(rule="index")))
    assert can_be_drawn(
        small.forge(honest, {JOBS: json.dumps(said(honest) | {"digests": {}}).encode()})
    )
    with pytest.raises(CrateError, match=rf"{TRIALS}: no job lists it as an output"):
        read_crate(with_jobs(honest, lambda jobs: jobs.remove(maker_of(jobs, TRIALS))))


@pytest.mark.attack(
    claim="A certificate states which share of a run was recomputed.",
    before="Jobs that ended before they began: '301.63% of its 0 CPU s'.",
    now="Their time counts as 0, because a clock may be set back. Negative costs and end times in "
    "the future are refused.",
)
@pytest.mark.parametrize(
    "change",
    [
        {"cpu_s": -1.0},
        {"end": 1e300},
        {"end": 1e12},
        {"start": -1e9},
        {"cpu_s": 10**400},
        {"outputs": []},
    ],
)
def test_a_job_takes_no_negative_time_and_ends_by_now(honest, change):
    back = {"cpu_s": None, "start": 1e9, "end": 1e8}
    crate = read_crate(with_jobs(honest, lambda jobs: maker_of(jobs, FIT).update(back)))
    assert cost_of(crate.makers[FIT]) == 0.0
    path = with_jobs(honest, lambda jobs: maker_of(jobs, FIT).update(change))
    with pytest.raises(CrateError, match=r"forged\.crate\.zip: its jobs\.json or .* is not in"):
        read_crate(path)


@pytest.mark.attack(
    claim="A certificate is worded by its checker.",
    before="Line breaks in the name of a rule wrote headings, HTML and escape sequences into it.",
    now="Names of rules are words, and names of results are plain. The certificate contains no "
    "other text of the archive.",
)
def test_an_archive_writes_nothing_into_a_certificate(honest):
    evil = "fit\n\n# Certificate: EVERYTHING AGREES\n<script>\x1b[2J[all](https://x.example)\u202e"
    with pytest.raises(CrateError, match=r"is not in this version's format"):
        read_crate(with_jobs(honest, lambda jobs: maker_of(jobs, FIT).update(rule=evil)))
    for name in (
        "results/quick/`</code>`.csv",
        "results/quick/a|b.csv",
        "results/quick/\u202e.csv",
    ):
        with pytest.raises(CrateError, match="does not match"):
            read_crate(with_jobs(honest, lambda jobs, n=name: jobs.append(another([n]))))


@pytest.mark.attack(
    claim="Reading an archive ends, in a time proportional to its size.",
    before="Two archives were read until the process was killed: one of 2.9 MB that unpacks to "
    "200 GB, by another compression method, and one with a few lines of settings that stand for "
    "billions.",
    now="Sizes are added up first. Only one compression method is accepted. Settings are JSON, "
    "which has no aliases.",
)
def test_a_small_archive_does_not_stand_for_a_large_one(honest, monkeypatch):
    other = zip_entry("results/quick/x.js")
    other.compress_type = zipfile.ZIP_BZIP2
    with pytest.raises(CrateError, match=r"x\.js' is not packed as crates are"):
        read_crate(small.forge(honest, {}, extra=[(other, b"x")]))
    zeros = small.forge(honest, {"LICENSE": bytes(2**24)})
    assert read_crate(zeros)
    with monkeypatch.context() as patch:
        patch.setattr(crate_file, "_ROOM", 0)
        with pytest.raises(CrateError, match=r"unpacks to .* bytes, too many for a crate"):
            read_crate(zeros)
    rows = ["a0: &a0 [1, 2]", *(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 60))]
    for text in ("\n".join(rows), "[" * 100_000):
        with pytest.raises(
            CrateError, match=r"config/config\.yaml is not in this version's format"
        ):
            read_crate(small.forge(honest, {CONFIG: text.encode()}))


@pytest.mark.attack(
    claim="Restoring an archive keeps existing files.",
    before="If one result of a job was missing, all its others were replaced, even in a dry run. "
    "A user's file was replaced by one of the archive.",
    now="If any result of a job exists, none is restored. Files that are not results are refused.",
)
def test_restoring_replaces_no_file(honest):
    for name in ("results", "data"):
        Path(name).rename(f"old_{name}")

    def edit(jobs):
        job = maker_of(jobs, TRIALS)
        job["outputs"].append(f"{TRIALS}.sha256")

    path = with_jobs(honest, edit, {f"{TRIALS}.sha256": b"sum\n"})
    Path(TRIALS).parent.mkdir(parents=True)
    Path(TRIALS).write_text("mine\n")
    restored = restore(path, "quick", 7)
    assert (restored["restored"], restored["already here"]) == (4, 1)
    assert Path(TRIALS).read_text() == "mine\n"
    assert not Path(f"{TRIALS}.sha256").exists()
    with pytest.raises(CrateError, match=r"'data/own/x\.sh' does not match"):
        restore(with_jobs(honest, lambda jobs: jobs.append(another(["data/own/x.sh"]))), "quick", 7)


@pytest.mark.attack(
    claim="An archive that cannot be restored is an error, and nothing is written.",
    before="Names that no file system accepts, or that lie inside one another, ended in a "
    "traceback after 80 files. Text nested 100,000 levels deep ended in a traceback even earlier.",
    now="One line, and no file is written. An archive of a run with another seed is refused in "
    "the same way.",
)
def test_an_archive_that_cannot_be_restored_writes_nothing(honest):
    for name in ("results", "data"):
        Path(name).rename(f"old_{name}")
    long = "results/quick/" + "x" * 250 + ".js"
    deep = "results/quick/" + "x/" * 450 + "y.js"
    for members in ({long: b"x"}, {deep: b"x"}, {f"{TRIALS}/a.js": b"x"}, {JOBS: b"[" * 100_000}):
        with pytest.raises(CrateError, match=r"too long|lies inside|is not in this version"):
            restore(small.forge(honest, members), "quick", 7)
    with pytest.raises(CrateError, match=r"seed 7, but this run has seed 8.*--config seed=7"):
        restore(honest, "quick", 8)
    assert not Path("results").exists()
    assert not Path(".snakemake").exists()


def compared(path, output):
    """What comes out for an output of an archive, held against what the honest run made."""
    crate = read_crate(path)
    findings = compare_outputs(crate, [crate.makers[output]], Path("."))
    return {finding.name: (finding.outcome, finding.detail) for finding in findings}


def longer_rows(table):
    """A table with invented cells before those of each row."""
    head, *rows = table.splitlines()
    return b"\n".join([head, *(b"ours,0.0,1.0," + row for row in rows)]) + b"\n"


@pytest.mark.attack(
    claim="All cells of a table must be the same.",
    before="If a row was longer than the header, this program read its last cells and other "
    "programs its first ones, so an invented table had the 'same numbers'. A blank line let any "
    "figure pass unchecked.",
    now="In a table, each row is as long as the header. Other bytes for the same cells count as a "
    "difference.",
)
def test_a_table_with_two_readings_is_refused(honest):
    table = Path(TRIALS).read_bytes()
    for forged in (longer_rows(table), table + b"\n", table.replace(b"a,", b'"a",')):
        outcome, detail = compared(small.forge(honest, {TRIALS: forged}), TRIALS)[TRIALS]
        assert outcome == DIFFERS, detail
    shown = table.replace(b"0.5", b"\x1b[2J\x07")
    outcome, detail = compared(small.forge(honest, {TRIALS: shown}), TRIALS)[TRIALS]
    assert outcome == DIFFERS
    assert detail.isprintable()


@pytest.mark.attack(
    claim="An artefact that agrees has the parameters it states.",
    before="Only the arrays of artefacts were compared: a header with a false 'epsilon: 0.001' "
    "passed the comparison.",
    now="The parameters must be the same.",
)
def test_parameters_of_an_artefact_are_compared(honest, tmp_path):
    fit = artefacts.read(FIT, "fit")
    artefacts.write(tmp_path / "f.h5", "fit", fit.arrays, {"epsilon": 0.001}, fit.inputs)
    path = small.forge(honest, {FIT: (tmp_path / "f.h5").read_bytes()})
    assert compared(path, FIT)[FIT] == (DIFFERS, "in its recorded parameters")


@pytest.mark.attack(
    claim="An archive contains no data of others.",
    before="A file with a receipt made by the archive passed as the real data set, results "
    "without a job counted among the archive's files, and scripts were restored as "
    "results.",
    now="An archive contains receipts and prepared data only of substitutes. Each result has a "
    "job, and no result lies inside another.",
)
@pytest.mark.parametrize(
    "members",
    [
        {"data/raw/had/values.txt": b"1\n", "data/raw/had/receipt.json": RECEIPT},
        {"data/raw/had/receipt.json": RECEIPT},
        {"data/raw/had/receipt.json": b"{}"},
        {"data/raw/evil.py": b"pass\n"},
        {"data/raw/drawn/more/receipt.json": b'{"file": null}'},
        {"data/prepared/had.h5": b"x"},
        {"data/prepared/other.h5": b"x"},
        {"results/quick/scorecard.html": b"x"},
        {"results/paper/verdicts.csv": b"x"},
        {"results/quick/x.csv/conftest.py": b"x"},
    ],
)
def test_archives_hold_no_data_of_others_and_no_lone_result(honest, members):
    with pytest.raises(CrateError, match=r"fetched data|no receipt of|third-party|no job lists"):
        read_crate(small.forge(honest, members))


@pytest.mark.attack(
    claim="No code from an archive is run.",
    before="A container image named in the archive's settings was pulled, if the checker's "
    "profile uses containers.",
    now="The container image is that of the checker's own copy of the project, or none.",
)
def test_an_archive_brings_no_image(honest, tmp_path):
    crate = read_crate(honest)
    settings = dict(crate.settings) | {"container": "docker://evil.example/pwn:1"}
    recomputation._copy_project(crate, settings, Path("."), tmp_path / "scratch")
    written = yaml.safe_load((tmp_path / "scratch" / CONFIG).read_text())
    assert written["container"] is None


@pytest.mark.attack(
    claim="After restoring, the project works.",
    before="After an entry of Snakemake's own metadata had text in place of times, each later run "
    "of Snakemake ended in a traceback.",
    now="Only entries that Snakemake reads are kept, and they must have the types that it reads.",
)
@pytest.mark.parametrize(
    "change",
    [
        {"starttime": "x"},
        {"code": {}},
        {"log": [1]},
        {"record_format_version": "6"},
        {"params": {}},
    ],
)
def test_records_have_the_types_that_snakemake_reads(honest, change):
    path = with_jobs(honest, lambda jobs: maker_of(jobs, FIT)["record"].update(change))
    with pytest.raises(CrateError, match=r"is not in this version's format"):
        read_crate(path)
    odd = with_jobs(honest, lambda jobs: maker_of(jobs, FIT)["record"].update(odd=1))
    assert "odd" not in read_crate(odd).makers[FIT].record


@pytest.mark.attack(
    claim="A draw takes a time proportional to the archive's size.",
    before="A job that names another job's results 100,000 times took a minute, and more names "
    "took hours.",
    now="An input that is named several times is kept once, and each job is found by one of its "
    "results.",
)
def test_a_draw_takes_no_quadratic_time(honest):
    n = 30_000

    def edit(jobs):
        inputs = [f"data/x{i}" for i in range(n)]
        outputs = [f"results/quick/y{i}.tsv" for i in range(n)]
        jobs.append(another(outputs, inputs=inputs))
        maker_of(jobs[:-1], FIT)["inputs"] += outputs + outputs[:1] * n

    start = time.process_time()
    assert draw(read_crate(with_jobs(honest, edit)), 12, 1e6, 0).drawn
    assert time.process_time() - start < 6.0


def repacked(path, edit):
    """Pack an archive again, each member's entry and content as a function gives them."""
    with zipfile.ZipFile(path) as file:
        members = [(entry, file.read(entry)) for entry in file.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for entry, content in members:
            edit(entry)
            file.writestr(entry, content)


@pytest.mark.attack(
    claim="The verified content is the content that any program unpacks.",
    before="A field of the .zip file exchanged the names of a table and a page for some programs. "
    "In other files, one archive preceded another. Both were verified as honest and "
    "unpacked with another number, which matched the checksums.",
    now="The members follow each other from the first byte to the last, each with one name.",
)
@pytest.mark.parametrize("way", ["another name", "before", "behind", "a comment"])
def test_an_archive_has_one_reading(honest, way):
    content = honest.read_bytes()
    if way == "another name":
        other = struct.pack("<BL", 1, 0) + b"docs/other.md"
        field = struct.pack("<HH", 0x7075, len(other)) + other
        repacked(honest, lambda entry: setattr(entry, "extra", field))
    elif way == "a comment":
        with zipfile.ZipFile(honest, "a") as file:
            file.comment = content[:1000]
    else:
        honest.write_bytes(content + content if way == "before" else content + b"\0" * 64)
    with pytest.raises(CrateError, match=r"unpack other contents|none of its members|not a whole"):
        read_crate(honest)


@pytest.mark.attack(
    claim="A certificate names each result that is based on substitutes.",
    before="An archive with a substitute's receipt, but without jobs that name the substitute, "
    "was verified as a run on the real data.",
    now="Each receipt belongs to a substitute that is named.",
)
def test_no_substitute_is_hidden(honest):
    receipt = b'{"file": null, "dataset": "gowalla"}'
    path = with_jobs(honest, lambda jobs: None, {"data/raw/gowalla/receipt.json": receipt})
    with pytest.raises(CrateError, match="gowalla"):
        read_crate(path)


@pytest.mark.attack(
    claim="A figure is compared unless its table contains measured times.",
    before="With a forged column of times, or one cell written differently, a table was 'the same "
    "but for times'. The forged figure next to it was 'not judged', and the certificate "
    "said that everything agrees.",
    now="If only one of two tables has times, this counts as a difference. So does another way of "
    "writing a number.",
)
@pytest.mark.parametrize(
    "forged", [b"method,error,cpu_seconds\nours,0.5,1.0\n", b"method,error\nours,0.50\n"]
)
def test_no_time_is_invented(forged):
    assert compare_cells(forged, b"method,error\nours,0.5\n")[0] == DIFFERS
