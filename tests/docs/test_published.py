"""The published tables are those of one whole run, made at one commit."""

import csv
import hashlib
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[2] / "docs" / "results"
COMMITS = RESULTS / "commits.csv"
# folders with tables from older runs, of which no commit was noted: these only get fewer
NOT_YET = {"audit", "ckm", "dpem", "dpsc", "frontier", "mtsc", "privatemail", "whole"}
FOLDERS = sorted({path.parent.name for path in RESULTS.glob("*/*.csv")})


def noted():
    """Return the rows of commits.csv by file."""
    if not COMMITS.exists():
        return {}
    with COMMITS.open(newline="", encoding="utf-8") as file:
        return {row["file"]: row for row in csv.DictReader(file)}


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_table_names_the_commit_that_made_it(folder):
    if folder in NOT_YET:
        assert not any(name.startswith(f"{folder}/") for name in noted())
        return
    for path in (RESULTS / folder).glob("*.csv"):
        row = noted()[f"{folder}/{path.name}"]
        assert row["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest(), path


def test_all_tables_were_made_at_one_commit():
    assert len({row["commit"] for row in noted().values()}) <= 1
    assert set(FOLDERS) >= NOT_YET
