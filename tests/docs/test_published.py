"""The published tables are those of one whole run, made at one commit; pages judge in one form."""

import csv
import hashlib
import re
from pathlib import Path

import pytest

from privclust_papers.report.verdicts import NOT_RUN, VERDICTS

RESULTS = Path(__file__).parents[2] / "docs" / "results"
COMMITS = RESULTS / "commits.csv"
# folders with tables from older runs, of which no commit was noted: these only get fewer
NOT_YET = {"audit", "ckm", "dpem", "dpsc", "frontier", "mtsc", "privatemail", "whole"}
ON_PAGES = {*VERDICTS, "not yet judged", "no verdict"} - {NOT_RUN}
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


@pytest.mark.parametrize("page", ["ckm", "dpem", "dpsc", "mtsc", "privatemail"])
def test_each_verdict_is_a_word_of_the_rules_with_a_number(page):
    text = (RESULTS / f"{page}.md").read_text(encoding="utf-8")
    tables = text.split("| statement | verdict | expected, and how it is judged | found |\n")[1:]
    assert len(tables) == 2  # the paper's statements, and our own
    rules = (RESULTS / "rules.md").read_text(encoding="utf-8").lower()
    for table in tables:
        for line in table.split("\n\n")[0].splitlines()[1:]:
            _, verdict, expected, found = (cell.strip() for cell in line.strip("|").split(" | "))
            word = verdict.strip("*")
            assert word in ON_PAGES, line
            assert f"| {word} |" in rules or f"**{word}**" in rules, word
            assert expected, line
            assert word == "no verdict" or re.search(r"\d", found), line
