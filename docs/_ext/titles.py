"""Code blocks that name their file, as tests of the pages read them, name it on the site too."""

from __future__ import annotations

import re
from pathlib import Path

from pygments.lexers import get_all_lexers
from sphinx.application import Sphinx

TITLED = re.compile(r'^```(\w+) title="([^"]+)"(?: under="([^"]*)")?$', re.M)
KNOWN = {alias for _, aliases, *_ in get_all_lexers() for alias in aliases}


def with_captions(text: str) -> str:
    """Return Markdown whose blocks with a title have it as a caption."""

    def block(match: re.Match) -> str:
        language, title, place = match.groups()
        language = language if language in KNOWN else "text"
        under = f", under {place.lstrip('# ')}" if place else ""  # a # would begin a comment
        return f"```{{code-block}} {language}\n:caption: {title}{under}\n"

    return TITLED.sub(block, text)


def in_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Caption a page's blocks."""
    source[0] = with_captions(source[0])


def in_included(app: Sphinx, path: Path, parent: str, content: list[str]) -> None:
    """Caption the blocks of a file that a page includes."""
    content[0] = with_captions(content[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register both."""
    app.connect("source-read", in_page)
    app.connect("include-read", in_included)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
