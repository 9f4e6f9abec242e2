"""A crate that somebody else gave is checked as a whole; results are taken from it by content."""

import json
import zipfile
from pathlib import Path

import pytest

from privclust_papers.report.archive import zip_entry
from privclust_papers.report.crate_file import CrateError, file_sha256, read_crate
from privclust_papers.report.recomputation import check_project
from privclust_papers.report.restoration import RECORDS, restore
from privclust_papers.report.run_records import read_jobs
from privclust_papers.report.verification import SAME, compare_outputs, draw

JOBS, METADATA, SUMS = "jobs.json", "ro-crate-metadata.json", "SHA256SUMS"
FIT = "results/quick/p/drawn/fit/m/block_0000.h5"
METRICS = "results/quick/p/drawn/metrics.h5"
TRIALS = "results/quick/p/drawn/trials.csv"
COMMITTED = Path(__file__).with_name("small.crate.zip")
SHA256 = "c033e8d4081d71db31d19258f1b44a4647b3fd201db8b3a50119fdda1718df21"


def test_a_crate_is_read_with_its_jobs_and_checksums(small_run, small_crate):
    crate = read_crate(small_crate)
    assert (crate.effort, crate.substitutes) == ("quick", ("drawn",))
    of_run = [(job.rule, job.outputs, job.end, job.cpu_s) for job in small_run.jobs]
    assert [(job.rule, job.outputs, job.end, job.cpu_s) for job in crate.jobs] == of_run
    for name in (FIT, TRIALS, FIT.replace("drawn", "had"), "data/prepared/had.h5"):
        assert crate.digests[name] == file_sha256(name) != ""
    assert not [name for name in crate.sums if "had" in name and name.endswith((".h5", ".json"))]


def test_a_flipped_byte_is_found_in_whatever_member_it_is(small_crate):
    """Bytes of the zip file are flipped one at a time, in the middle of each member."""
    content = small_crate.read_bytes()
    with zipfile.ZipFile(small_crate) as file:
        entries = file.infolist()
    for entry in entries:
        damaged = bytearray(content)
        damaged[entry.header_offset + 30 + len(entry.filename) + entry.compress_size // 2] ^= 1
        Path("damaged.zip").write_bytes(damaged)
        with pytest.raises(CrateError, match=rf"^damaged\.zip: .*({entry.filename}|{SUMS}|zip)"):
            read_crate("damaged.zip")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {TRIALS: b"method,error\n", FIT: b"x"},
            f"{FIT}, {TRIALS}: content does not match",
        ),
        *(({name: None}, name) for name in (TRIALS, JOBS, SUMS, METADATA)),
        ({"results/quick/more.csv": b"x"}, r"more\.csv: is in the crate, but not listed"),
    ],
)
def test_what_does_not_fit_its_checksum_is_named(small_crate, forged, changes, message):
    with pytest.raises(CrateError, match=rf"forged\.crate\.zip: .*{message}"):
        read_crate(forged(small_crate, changes, fitting=False))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    "name",
    ["../out", "/tmp/out", "a/../../out", "a//out", "a/./out", "C:\\out", "out/", "line\nbreak",
     "link", TRIALS],
)  # fmt: skip
def test_a_name_that_is_no_new_file_below_a_folder_is_refused(small_crate, forged, name):
    entry = zip_entry("placeholder")
    entry.filename = name
    if name == "link":
        entry.external_attr = 0o120777 << 16
    path = forged(small_crate, {}, extra=[(entry, b"x")])
    before = sorted(Path().rglob("*"))
    with pytest.raises(CrateError, match=r"which is not a file inside a folder, .* nothing was un"):
        read_crate(path)
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize("content", [b"", b"no zip file", b"PK\x03\x04" + b"\0" * 99, None])
def test_what_is_no_zip_file_is_refused(small_crate, content):
    with pytest.raises(CrateError, match="cannot be read"):
        read_crate("other.zip")
    Path("other.zip").write_bytes(small_crate.read_bytes()[:-9] if content is None else content)
    with pytest.raises(CrateError, match=r"^other\.zip: not a whole \.zip file"):
        read_crate("other.zip")


@pytest.mark.parametrize(
    "change",
    [
        *({"outputs": [name]} for name in ("../../home/x.h5", "results/paper/x.h5", "--forceall")),
        *({"outputs": name} for name in (["src/privclust/x.py"], "results/quick/x")),
        *({"end": end} for end in (float("nan"), "now")),
        *({"record": record} for record in ([], {"input_checksums": {"a": 1}})),
        {"inputs": [1]},
    ],
)
def test_jobs_of_another_form_are_refused(small_crate, forged, change):
    with zipfile.ZipFile(small_crate) as file:
        document = json.loads(file.read(JOBS))
    document["jobs"][3].update(change)
    with pytest.raises(CrateError, match=r"jobs\.json .*is not in|as an output of a job"):
        read_crate(forged(small_crate, {JOBS: json.dumps(document).encode()}))


@pytest.fixture
def fresh(small_crate):
    """The project's folder without any result; the crate is in it."""
    for name in ("results", "data"):
        Path(name).rename(f"old_{name}")
    return small_crate


def restored(path):
    """How many jobs' results were taken, were there, are not in the crate, or do not fit."""
    return tuple(restore(path, "quick", 7).values())


def test_results_without_data_of_others_are_taken(fresh, small_run):
    # fetch, prepare, fit, evaluate and summarise of the substitute; of the other set the table is
    # in the crate, but not what it is made from, and the page reads that table
    assert restored(fresh) == (5, 0, 4, 2)
    for job in small_run.jobs:
        for name in (n for n in job.outputs if "drawn" in n and n.startswith("results/")):
            assert Path(name).read_bytes() == Path(f"old_{name}").read_bytes()
            assert Path(name).stat().st_mtime == job.end
    assert Path("data/raw/drawn/.snakemake_timestamp").stat().st_mtime == small_run.jobs[5].end
    assert not list(Path("results").rglob("had"))
    (again,) = (job for job in read_jobs(RECORDS, METRICS) if job.rule == "evaluate")
    assert again.record["input_checksums"] == small_run.jobs[8].record["input_checksums"]
    inode = Path(FIT).stat().st_ino
    assert restored(fresh) == (0, 5, 4, 2)
    assert Path(FIT).stat().st_ino == inode


@pytest.mark.parametrize(
    ("place", "content", "counts", "there"),
    [
        ("workflow/scripts/fit.py", b"# another\n", (2, 0, 4, 5), False),
        (FIT, None, (4, 1, 4, 2), True),  # what is there stays, and is built on if it is the same
        (FIT, b"other", (2, 1, 4, 4), False),
    ],
)
def test_what_other_code_or_inputs_made_is_not_taken(fresh, place, content, counts, there):
    content = Path(f"old_{FIT}").read_bytes() if content is None else content
    Path(place).parent.mkdir(parents=True, exist_ok=True)
    Path(place).write_bytes(content)
    assert restored(fresh) == counts
    assert Path(place).read_bytes() == content
    assert Path(METRICS).exists() is there
    assert Path("data/prepared/drawn.h5").exists()


def test_nothing_is_taken_that_was_made_from_what_was_forged(fresh, forged):
    """With checksums that fit in the crate, the record of the next job still has the true one."""
    assert restored(forged(fresh, {FIT: b"other"})) == (3, 0, 4, 4)
    assert not Path(METRICS).exists()


def test_archives_that_others_hold_are_read_as_on_their_day(tmp_path, monkeypatch):
    """It is `SmallRun.pack` of conftest.py; reading it no more takes a new version."""
    monkeypatch.chdir(tmp_path)
    assert file_sha256(COMMITTED) == SHA256
    crate = read_crate(COMMITTED)
    with zipfile.ZipFile(COMMITTED) as file:
        for name in (*crate.code, "config/config.yaml"):
            file.extract(name)
    assert check_project(crate)["seed"] == 7
    drawn = draw(crate, 2, 60.0, 1)
    assert [job.outputs[0] for job in drawn.drawn] == [FIT, FIT.replace("drawn", "had")]
    assert [job.outputs[0] for job in drawn.needed] == ["data/raw/had", "data/prepared/had.h5"]
    assert restored(COMMITTED) == (5, 0, 4, 2)
    jobs = [job for job in crate.jobs if any("results/quick/p/drawn" in n for n in job.outputs)]
    assert {finding.outcome for finding in compare_outputs(crate, jobs, Path())} == {SAME}
