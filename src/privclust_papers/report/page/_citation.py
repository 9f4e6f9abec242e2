"""BibTeX entries of CITATION.cff: the software, and the papers it reproduces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_SPECIAL = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_"}
_KINDS = {"software": "software", "conference-paper": "inproceedings", "article": "article"}
_ARXIV = "10.48550/arXiv."
_NAMING = re.compile(r"\w{4,}")  # a word of a title that makes a key unique


def bibtex(citation: Mapping[str, Any]) -> str:
    """Return the BibTeX entries for the content of a CITATION.cff.

    Examples
    --------
    >>> authors = [{"family-names": "Jacques", "given-names": "Laurent"}]
    >>> paper = {"type": "article", "title": "On R&D", "authors": authors, "year": 2019}
    >>> print(bibtex({"type": "software", "title": "s", "authors": [], "references": [paper]}))
    @software{software,
      title = {s},
    }
    <BLANKLINE>
    @article{jacques2019,
      title = {On R\\&D},
      author = {Jacques, Laurent},
      year = {2019},
    }
    """
    entries = [citation, *citation.get("references", ())]
    keys: list[str] = []
    texts = []
    for entry in entries:
        key = _key(entry)
        if key in keys:
            key += "".join(_NAMING.findall(entry["title"])[:1]).lower()
        keys.append(key)
        fields = {name: value for name, value in _fields(entry).items() if value}
        lines = [f"  {name} = {{{_escaped(str(value))}}}," for name, value in fields.items()]
        kind = _KINDS.get(entry["type"], "misc")
        texts.append("\n".join([f"@{kind}{{{key},", *lines, "}"]))
    return "\n\n".join(texts)


def _key(entry: Mapping[str, Any]) -> str:
    if entry["type"] == "software":
        return str(entry["title"]).partition(":")[0] if ":" in entry["title"] else "software"
    first = entry["authors"][0] if entry["authors"] else {}
    name = first.get("family-names", first.get("name", "anonymous"))
    return re.sub(r"\W", "", f"{name}{entry.get('year', '')}").lower()


def _fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    doi = entry.get("doi", "")
    is_arxiv = doi.startswith(_ARXIV)
    pages = [str(entry[end]) for end in ("start", "end") if end in entry]
    return {
        "title": entry["title"],
        "author": " and ".join(map(_name, entry.get("authors", ()))),
        "year": entry.get("year"),
        "booktitle": entry.get("conference", {}).get("name"),
        "journal": f"arXiv:{doi.removeprefix(_ARXIV)}" if is_arxiv else entry.get("journal"),
        "series": entry.get("collection-title"),
        "volume": entry.get("volume"),
        "number": entry.get("issue"),
        "pages": "--".join(pages),
        "doi": doi,
        "version": entry.get("version"),
    }


def _name(author: Mapping[str, str]) -> str:
    """Return an author in BibTeX form; an organisation's name is in braces."""
    if "name" in author:
        return f"{{{author['name']}}}"
    family = " ".join(filter(None, [author.get("name-particle"), author["family-names"]]))
    return f"{family}, {author['given-names']}"


def _escaped(text: str) -> str:
    """Escape the special characters of LaTeX, except the braces of `_name`."""
    return "".join(_SPECIAL.get(character, character) for character in text)
