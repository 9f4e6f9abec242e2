"""A crate that somebody else gave: what is damaged, forged or hostile is named and not used."""

import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from privclust_papers.report.crate_file import read_crate
from privclust_papers.report.crate_members import CrateError

JOBS = "jobs.json"
FIT = "results/quick/p/drawn/fit/m/block_0000.h5"
TRIALS = "results/quick/p/drawn/trials.csv"


def said(path):
    with zipfile.ZipFile(path) as file:
        return json.loads(file.read(JOBS))


def test_a_crate_is_read_with_its_jobs_and_the_checksums_of_their_results(small_run, small_crate):
    crate = read_crate(small_crate)
    assert (crate.effort, crate.substitutes) == ("quick", {"drawn": None})
    assert (crate.title, crate.author) == ("small 1, quick effort", "Somebody")
    of_run = [(job.rule, job.outputs, job.end, job.cpu_s) for job in small_run.jobs]
    assert [(job.rule, job.outputs, job.end, job.cpu_s) for job in crate.jobs] == of_run
    for name in (FIT, TRIALS, FIT.replace("drawn", "had"), "data/prepared/had.h5"):
        assert crate.digests[name] == crate.sums.get(name, crate.digests[name]) != ""
    assert "data/raw/had" not in crate.digests


def test_of_a_substitute_that_is_a_part_the_checksum_is_read(small_run):
    place = Path("data/raw/drawn/receipt.json")
    part = {"file": "drawn.npz", "sha256": "6" * 64, "bytes": 6}
    place.write_text(json.dumps(json.loads(place.read_text()) | part))
    assert read_crate(small_run.pack()).substitutes == {"drawn": "6" * 64}


def test_artefacts_of_data_of_others_stay_out(small_run, small_crate):
    crate = read_crate(small_crate)
    inside = {name for name in crate.sums if name.endswith(".h5")}
    drawn = {name for job in small_run.jobs for name in job.outputs if "drawn" in name}
    assert inside == {name for name in drawn if name.endswith(".h5")}
    assert "data/raw/drawn/receipt.json" in crate.sums
    assert not [name for name in crate.sums if name.startswith("data/raw/had")]
    without = read_crate(small_run.pack("without.zip", artefacts=False))
    assert not [name for name in without.sums if name.startswith("data/") or name.endswith(".h5")]


def test_a_flipped_byte_is_found_in_whatever_member_it_is(small_crate):
    """Bytes of the zip file are flipped one at a time, in the middle of each member."""
    content = small_crate.read_bytes()
    with zipfile.ZipFile(small_crate) as file:
        entries = file.infolist()
    for entry in entries:
        head = 30 + len(entry.filename)
        damaged = bytearray(content)
        damaged[entry.header_offset + head + entry.compress_size // 2] ^= 1
        Path("damaged.zip").write_bytes(damaged)
        with pytest.raises(CrateError, match=r"^damaged\.zip: ") as raised:
            read_crate("damaged.zip")
        if entry.filename != "SHA256SUMS":
            assert entry.filename in str(raised.value)


def test_changed_content_with_old_checksums_is_named(small_crate, forged):
    path = forged(small_crate, {TRIALS: b"method,error\n", FIT: b"other"}, fitting=False)
    with pytest.raises(CrateError, match="content and checksum do not fit") as raised:
        read_crate(path)
    assert FIT in str(raised.value)
    assert TRIALS in str(raised.value)


@pytest.mark.parametrize(
    "name",
    ["../out", "/tmp/out", "a/../../out", "a//out", "a/./out", "C:\\out", "a\\..\\out", "out/",
     "..", "C:/out", "line\nbreak"],
)  # fmt: skip
def test_a_name_that_leads_out_of_a_folder_is_refused(small_crate, forged, name):
    entry = zipfile.ZipInfo("placeholder")
    entry.filename = name
    path = forged(small_crate, {}, extra=[(entry, b"x")])
    before = sorted(Path().rglob("*"))
    with pytest.raises(CrateError, match="no file below a folder; nothing was unpacked"):
        read_crate(path)
    assert sorted(Path().rglob("*")) == before


def test_links_and_names_that_come_twice_are_refused(small_crate, forged):
    link = zipfile.ZipInfo("results/quick/link")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    with pytest.raises(CrateError, match="no file below a folder"):
        read_crate(forged(small_crate, {}, extra=[(link, b"/etc/passwd")]))
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = forged(small_crate, {}, extra=[(zipfile.ZipInfo(TRIALS), b"x")])
    with pytest.raises(CrateError, match="twice"):
        read_crate(path)


@pytest.mark.parametrize("lacking", [TRIALS, JOBS, "SHA256SUMS", "ro-crate-metadata.json"])
def test_a_missing_member_is_named(small_crate, forged, lacking):
    with pytest.raises(CrateError, match=rf"forged.crate.zip: .*{lacking}"):
        read_crate(forged(small_crate, {lacking: None}, fitting=False))


def test_a_member_without_a_checksum_is_named(small_crate, forged):
    path = forged(small_crate, {"results/quick/more.csv": b"x"}, fitting=False)
    with pytest.raises(CrateError, match=r"results/quick/more\.csv: is in the crate, and has no"):
        read_crate(path)


def test_checksums_in_two_places_must_be_the_same(small_crate, forged):
    with zipfile.ZipFile(small_crate) as file:
        graph = json.loads(file.read("ro-crate-metadata.json"))
    path = forged(small_crate, {TRIALS: b"method,error\na,0.1\n"})
    description = json.dumps(graph).encode()  # as it was before the table was forged
    with zipfile.ZipFile(path) as file:
        sums = file.read("SHA256SUMS").decode().splitlines()
    digest = hashlib.sha256(description).hexdigest()
    lines = [f"{digest}{s[64:]}" if s.endswith("ro-crate-metadata.json") else s for s in sums]
    changes = {"ro-crate-metadata.json": description, "SHA256SUMS": "\n".join(lines).encode()}
    path.rename("half.zip")
    with pytest.raises(CrateError, match="give other checksums"):
        read_crate(forged(Path("half.zip"), changes, fitting=False))


@pytest.mark.parametrize("content", [b"", b"no zip file", b"PK\x03\x04" + b"\0" * 100])
def test_what_is_no_zip_file_is_refused(small_crate, content):
    Path("other.zip").write_bytes(content)
    with pytest.raises(CrateError, match=r"^other\.zip: not a whole \.zip file"):
        read_crate("other.zip")
    Path("cut.zip").write_bytes(small_crate.read_bytes()[:-200])
    with pytest.raises(CrateError, match=r"not a whole \.zip file"):
        read_crate("cut.zip")
    with pytest.raises(CrateError, match="cannot be read"):
        read_crate("nowhere.zip")


@pytest.mark.parametrize(
    "change",
    [
        lambda job: job.update(outputs="results/quick/x"),
        lambda job: job.update(inputs=[1]),
        lambda job: job.update(end=float("nan")),
        lambda job: job.update(end="now"),
        lambda job: job.update(record=[]),
        lambda job: job.update(cpu_s=float("inf")),
        lambda job: job["record"].update(input_checksums={"a": 1}),
        lambda job: job["record"].update(input=[None]),
        lambda job: job.pop("rule"),
        lambda job: job.update(outputs=["../../home/x.h5"]),
        lambda job: job.update(outputs=["results/paper/x.h5"]),
        lambda job: job.update(outputs=["src/privclust/x.py"]),
        lambda job: job.update(outputs=["--forceall"]),
    ],
)
def test_jobs_of_another_form_are_refused(small_crate, forged, change):
    entries = said(small_crate)
    change(entries["jobs"][3])
    with pytest.raises(CrateError, match=r"jobs\.json or .* is not as|says that a job made"):
        read_crate(forged(small_crate, {JOBS: json.dumps(entries).encode()}))


def test_code_that_differs_is_named(small_run, small_crate):
    crate = read_crate(small_crate)
    assert crate.changed_code() == []
    Path("config/config.yaml").write_text("effort: paper\n")  # what a run is told is no code
    assert crate.changed_code() == []
    small_run.write("README.md", b"another page\n")
    small_run.write("requirements.lock", b"another version\n")
    assert crate.changed_code() == []
    small_run.write("src/privclust/x.py", b"pass # edited\n")
    Path("workflow/Snakefile").unlink()
    assert crate.changed_code() == ["src/privclust/x.py", "workflow/Snakefile"]
