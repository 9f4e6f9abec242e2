"""Directive `bibtex`: the entries of CITATION.cff for LaTeX."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

SOURCE = Path(__file__).parents[2] / "CITATION.cff"
TYPES = {"conference-paper": "inproceedings", "article": "article", "software": "misc"}
SPECIAL = re.compile(r"([&%$#_])")


class Bibtex(SphinxDirective):
    """One block: this software, and each paper that it reproduces."""

    def run(self) -> list[nodes.Node]:
        """Return the block."""
        self.env.note_dependency(str(SOURCE))
        text = "\n\n".join(entries(yaml.safe_load(SOURCE.read_text(encoding="utf-8"))))
        return [nodes.literal_block(text, text, language="bibtex")]


def entries(citation: dict[str, Any]) -> list[str]:
    """Return a BibTeX entry for the software and for each of its references."""
    software = entry(
        "privclust", citation | {"note": f"Version {citation['version']}, {citation['license']}"}
    )
    return [software, *(entry(key_of(paper), paper) for paper in citation["references"])]


def entry(key: str, cited: dict[str, Any]) -> str:
    """Return one entry."""
    booktitle = cited.get("conference", {}).get("name")
    pages = f"{cited['start']}--{cited['end']}" if "start" in cited else None
    doi = cited.get("doi", "")
    arxiv = doi.partition("arXiv.")[2]
    fields = {
        "author": " and ".join(map(author, cited["authors"])),
        "title": f"{{{escaped(cited['title'])}}}",
        "booktitle": booktitle and escaped(booktitle),
        "series": cited.get("collection-title"),
        "journal": f"arXiv:{arxiv}" if arxiv else None,
        "volume": cited.get("volume"),
        "number": cited.get("issue"),
        "pages": pages,
        "year": cited.get("year"),
        "doi": doi,
        "note": cited.get("note"),
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{TYPES[cited['type']]}{{{key},", *lines, "}"])


def author(of: dict[str, str]) -> str:
    """Return a name as BibTeX reads it: family first; what is no person in braces."""
    if "name" in of:
        return f"{{{escaped(of['name'])}}}"
    family = " ".join(filter(None, [of.get("name-particle"), of["family-names"]]))
    return escaped(f"{family}, {of['given-names']}")


def key_of(paper: dict[str, Any]) -> str:
    """Return the first author, the year and the first word of a title that tells papers apart."""
    words = [word for word in re.findall(r"\w+", paper["title"].lower()) if len(word) > 3]
    name = unicodedata.normalize("NFKD", paper["authors"][0]["family-names"])
    return re.sub(r"[^a-z0-9]", "", f"{name.lower()}{paper['year']}{words[0]}")


def escaped(text: str) -> str:
    """Return text with LaTeX's own characters written out."""
    return SPECIAL.sub(r"\\\1", text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("bibtex", Bibtex)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
