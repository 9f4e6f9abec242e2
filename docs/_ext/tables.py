"""Directive `tables`: the committed CSV files of a paper; and links to their folders."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
from docutils import nodes
from sphinx.addnodes import download_reference
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

FOLDER_LINK = re.compile(r"\]\((?:results/)?(\w+)/\)")


class Tables(SphinxDirective):
    """A list of the files of docs/results/<paper>/, each with its columns and number of rows."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return a bullet list."""
        bullets = nodes.bullet_list()
        for path in sorted(Path(self.env.srcdir, "results", self.arguments[0]).glob("*.csv")):
            self.env.note_dependency(str(path))
            table = pd.read_csv(path)
            target = f"/results/{self.arguments[0]}/{path.name}"
            link = download_reference("", "", nodes.literal("", path.name), reftarget=target)
            text = f": {len(table):,} rows; {', '.join(table.columns)}"
            bullets += nodes.list_item("", nodes.paragraph("", "", link, nodes.Text(text)))
        return [bullets]


def link_to_tables(app: Sphinx, docname: str, source: list[str]) -> None:
    """Point links to a folder of CSV files, which the site does not have, at their list."""
    source[0] = FOLDER_LINK.sub(r"](#tables-\1)", source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register both."""
    app.add_directive("tables", Tables)
    app.connect("source-read", link_to_tables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
