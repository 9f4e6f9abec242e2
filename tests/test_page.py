from html.parser import HTMLParser

import pandas as pd
import pytest

from privclust.page import render
from privclust.verdicts import COLUMNS


class Tags(HTMLParser):
    """Collects tags with their attributes and checks that they close."""

    VOID = ("meta", "img", "br", "link")

    def __init__(self, text):
        super().__init__()
        self.found, self.open = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture
def page():
    target = {
        "name": "mtsc_tab1",
        "paper": "mtsc",
        "kind": "table",
        "title": "errors <of> all",
        "where": "Table 1",
        "ours": False,
        "experiments": ("e",),
        "draw": "m.f",
    }
    spec = {
        "effort": "quick",
        "papers": {"mtsc": {"title": "MTSC", "citation": "Wang", "file": "config/x.yaml"}},
        "targets": {"mtsc_tab1": target},
    }
    row = ("c1", "mtsc", "mtsc_tab1", "Table 1", "a < b & c", "not comparable", "by", "tol")
    verdicts = pd.DataFrame([(*row, "substitute for hopkins155")], columns=list(COLUMNS))
    table = pd.DataFrame(
        {
            "label": ["SSC"],
            "statistic": ["mean"],
            "metric": ["l2_error"],
            "select": ["n_motions=2"],
            "n": [12],
            "printed": [1.6],
            "ours": [1.5],
            "low": [1.01],
            "high": [1.99],
            "ours_report_split": [1.4],
        }
    )
    return render(spec, verdicts, {"mtsc_tab1": table})


def test_page_is_well_formed_and_escapes(page):
    Tags(page)
    assert "a &lt; b &amp; c" in page
    assert "errors &lt;of&gt; all" in page


def test_every_target_has_figure_numbers_command_and_an_anchor(page):
    tags = Tags(page).found
    ids = [attributes.get("id") for _, attributes in tags]
    links = [attributes["href"] for tag, attributes in tags if tag == "a"]
    assert "mtsc_tab1" in ids
    assert {"#mtsc_tab1", "targets/mtsc_tab1/mtsc_tab1.csv", "verdicts.csv"} <= set(links)
    assert all(attributes.get("alt") for tag, attributes in tags if tag == "img")
    assert "snakemake --cores 2 mtsc_tab1" in page


def test_printed_numbers_stand_beside_ours(page):
    assert "1.60" in page
    assert "1.50" in page
    assert "1.01 to 1.99" in page


def test_substitutes_are_flagged(page):
    assert "The paper's data could not be had" in page
    assert "1 not comparable" in page


def test_page_needs_no_network(page):
    assert "http" not in page.replace("http-equiv", "")
