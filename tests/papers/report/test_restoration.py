"""Results taken from a crate: what fits, of the time when it was made, and nothing else."""

import json
import shutil
from pathlib import Path

import pytest

from privclust_papers.report.crate_members import CrateError
from privclust_papers.report.restoration import restore
from privclust_papers.report.run_records import read_jobs

FIT = Path("results/quick/p/drawn/fit/m/block_0000.h5")
METRICS = Path("results/quick/p/drawn/metrics.h5")
RECORDS = ".snakemake/metadata"


@pytest.fixture
def fresh(small_crate):
    """The project's folder without any result; the crate is in it."""
    for name in ("results", "data"):
        Path(name).rename(f"old_{name}")
    return small_crate


def counts(restored):
    return restored.taken, restored.present, restored.left_out, restored.changed


def there():
    return sorted(str(p) for top in ("results", "data") for p in Path(top).rglob("*.*"))


def test_what_no_data_of_others_is_behind_is_taken_with_its_record_and_date(fresh, small_run):
    restored = restore(fresh, "quick", 7)
    # fetch, prepare, fit, evaluate and summarise of the substitute; of the other set the table is
    # in the crate, but not what it is made from, and the page reads that table
    assert counts(restored) == (5, 0, 4, 2)
    assert "results of 5 jobs were taken" in restored.in_words()
    for job in small_run.jobs:
        for name in (n for n in job.outputs if "drawn" in n and n.startswith("results/")):
            assert Path(name).read_bytes() == Path(f"old_{name}").read_bytes()
            assert Path(name).stat().st_mtime == job.end
    assert Path("data/raw/drawn/.snakemake_timestamp").stat().st_mtime == small_run.jobs[5].end
    assert not any("had" in name for name in there())
    assert not Path("results/quick/index.html").exists()
    (again,) = (job for job in read_jobs(RECORDS, str(METRICS)) if job.rule == "evaluate")
    assert again.record["input_checksums"] == small_run.jobs[8].record["input_checksums"]


def test_a_second_time_nothing_is_written(fresh):
    restore(fresh, "quick", 7)
    before = {name: Path(name).stat().st_ino for name in there()}
    assert counts(restore(fresh, "quick", 7)) == (0, 5, 4, 2)
    assert {name: Path(name).stat().st_ino for name in there()} == before


def test_what_other_code_made_is_not_taken_nor_what_is_made_from_it(fresh):
    Path("workflow/scripts/fit.py").write_text("# another\n")
    assert counts(restore(fresh, "quick", 7)) == (2, 0, 4, 5)
    assert not FIT.exists()
    assert not METRICS.exists()
    assert Path("data/prepared/drawn.h5").exists()


def test_what_is_there_stays_and_if_it_is_another_nothing_is_built_on_it(fresh):
    FIT.parent.mkdir(parents=True)
    FIT.write_bytes(b"of another run")
    assert counts(restore(fresh, "quick", 7)) == (2, 1, 4, 4)
    assert FIT.read_bytes() == b"of another run"
    assert not METRICS.exists()


def test_what_is_there_and_the_same_is_built_on(fresh):
    FIT.parent.mkdir(parents=True)
    shutil.copy(f"old_{FIT}", FIT)
    assert counts(restore(fresh, "quick", 7)) == (4, 1, 4, 2)


def test_without_artefacts_only_what_rests_on_nothing_could_be_taken(small_run, small_crate):
    path = small_run.pack("without.zip", artefacts=False)
    for name in ("results", "data"):
        Path(name).rename(f"old_{name}")
    assert restore(path, "quick", 7).taken == 0
    assert there() == []


def test_another_effort_is_an_error_and_nothing_is_written(fresh):
    with pytest.raises(CrateError, match="is of a run at quick effort, and this one is at paper"):
        restore(fresh, "paper", 7)
    assert there() == []


def test_a_damaged_crate_writes_nothing(fresh, forged):
    path = forged(fresh, {str(FIT): b"other"}, fitting=False)
    with pytest.raises(CrateError, match=str(FIT)):
        restore(path, "quick", 7)
    assert there() == []
    assert not Path(".snakemake").exists()


def test_nothing_is_taken_that_was_made_from_what_was_forged(fresh, forged):
    """With checksums that fit in the crate, the record of the next job still has the true one."""
    assert counts(restore(forged(fresh, {str(FIT): b"other"}), "quick", 7)) == (3, 0, 4, 4)
    assert not METRICS.exists()
    records = [json.loads(path.read_text()) for path in Path(RECORDS).rglob("*")]
    assert [record["incomplete"] for record in records] == [False] * 3
