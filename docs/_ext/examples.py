"""Scripts and pages that are run when the site is built; directives `example` and `picture`.

A script of docs/methods/examples/ has two parts, divided by the line ``# %% picture``. The first
computes and prints, the second draws with Matplotlib. ``picture`` shows what was drawn,
``example`` the first part, what it printed, folded how the picture is drawn, and a link to the
file. Both are of one run. A script that fails, warns, prints nothing or draws nothing fails the
build.

A page with blocks of ``text`` after its Python runs all its Python in one namespace. The build
fails if a block prints something else than the ``text`` after it. Blocks of ``console`` hold
commands (``$ ...``) with their output. In both kinds of output ``...`` stands for any text.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

MARK = "# %% picture\n"
TUTORIAL = "tutorial"
BLOCK = re.compile(r"^```(python|text|console)\n(.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n", re.M)
NUMBER = re.compile(r"\d[\d,.]*")
PROGRESS = re.compile(r"^(?:\d[\d,]* of .* done|.* rows read|privclust compiles .*)\n", re.M)
LOGGER = logging.getLogger(__name__)
STYLE = {
    "figure.figsize": (6.4, 3.2),
    "figure.dpi": 110,
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "font.size": 9,
}


@dataclass(frozen=True)
class Outcome:
    """What a script is and did."""

    computing: str
    drawing: str
    output: str
    picture: Path


@cache
def run(script: Path, folder: Path) -> Outcome:
    """Run a script and keep its picture in a folder."""
    computing, mark, drawing = script.read_text(encoding="utf-8").partition(MARK)
    if not mark:
        raise ValueError(f"no line {MARK.strip()!r}")
    printed = io.StringIO()
    with (
        plt.rc_context({**matplotlib.rcParamsDefault, "backend": "agg", **STYLE}),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(printed),
    ):
        warnings.simplefilter("error")
        plt.close("all")
        try:
            exec(compile(computing + "\n" + drawing, str(script), "exec"), {"__name__": "example"})
            if not printed.getvalue().strip():
                raise ValueError("it printed nothing")
            if len(plt.get_fignums()) != 1:
                raise ValueError(f"it drew {len(plt.get_fignums())} figures in place of one")
            folder.mkdir(parents=True, exist_ok=True)
            picture = folder / f"{script.stem}.png"
            plt.savefig(picture)
        finally:
            plt.close("all")
    return Outcome(computing.strip(), drawing.strip(), printed.getvalue().rstrip(), picture)


def run_page(text: str, name: str) -> int:
    """Run a page's Python if the page says what it prints; return how many blocks ran.

    It runs in an empty folder, as some pages write files.

    Raises
    ------
    ValueError
        If something else is printed than the page says, or what it does not say.
    Exception
        Whatever its Python raises; a warning is an error.
    """
    blocks = BLOCK.findall(text)
    if not any(language == "text" for language, _ in blocks):
        return 0
    namespace, printed = {"__name__": "example"}, io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for language, block in [*blocks, ("text", "")]:
            if language == "console":
                check_commands(block)
            elif language == "python":
                with warnings.catch_warnings(), contextlib.redirect_stdout(printed):
                    warnings.simplefilter("error")
                    exec(compile(block, name, "exec"), namespace)
            elif not agree(block, printed.getvalue()):
                raise ValueError(f"it printed\n{printed.getvalue()}where the page says\n{block}")
            else:
                printed = io.StringIO()
    return sum(language == "python" for language, _ in blocks)


def agree(expected: str, printed: str) -> bool:
    """Return whether a page says what was printed; ``...`` stands for any text.

    Numbers count on x86 only, where conf.py chooses the same compiled code for all machines.
    """
    if platform.machine() != "x86_64":
        expected, printed = (
            " ".join(NUMBER.sub("0", text).split()) for text in (expected, printed)
        )
    return doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS)


def check_commands(block: str) -> None:
    """Run the commands of a block, and compare their output with the rest of the block.

    Raises
    ------
    ValueError
        If a command prints something else than the block says, without lines of progress.
    """
    _, *parts = COMMAND.split(block)
    for command, expected in zip(parts[::2], parts[1::2], strict=True):
        words = shlex.split(command.replace("\\\n", " "))
        words[:1] = [sys.executable, "-m", "privclust"]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        printed = subprocess.run(words, **streams, text=True, check=False).stdout
        printed = PROGRESS.sub("", printed)
        if not agree(expected, printed):
            raise ValueError(f"{command}\nprinted\n{printed}where the page says\n{expected}")


def check_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Run a page when it is read; what is wrong is a warning, which fails the build."""
    try:
        run_page(source[0], docname)
    except Exception as error:
        LOGGER.warning("its Python failed: %r", error, location=docname)


def notebook(text: str) -> str:
    """Return a page as a Jupyter notebook: its prose, its Python and its commands."""
    cells, start = [], 0
    for block in [*BLOCK.finditer(text), None]:
        prose = text[start : block.start() if block else len(text)].strip()
        if prose:
            cells.append({"cell_type": "markdown", "metadata": {}, "source": prose})
        if block is None:
            break
        start, code = block.end(), block[2]
        if block[1] == "console":
            code = "".join(f"!{command}\n" for command in COMMAND.findall(code))
        if block[1] != "text" and code:
            cell = {"cell_type": "code", "execution_count": None, "outputs": []}
            cells.append({**cell, "metadata": {}, "source": code.rstrip()})
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    head = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}}
    return json.dumps({**head, "cells": cells}, indent=1, ensure_ascii=False) + "\n"


def write_notebooks(app: Sphinx, exception: Exception | None) -> None:
    """Write the tutorial as a notebook next to its page."""
    if exception is None and app.builder.format == "html":
        page = Path(app.srcdir, f"{TUTORIAL}.md").read_text(encoding="utf-8")
        Path(app.outdir, f"{TUTORIAL}.ipynb").write_text(notebook(page), encoding="utf-8")


class _OfScript(SphinxDirective):
    required_arguments = 1

    def outcome(self) -> Outcome:
        """Run the script that is named, once for both directives."""
        script = Path(self.env.srcdir, "methods", "examples", f"{self.arguments[0]}.py")
        self.env.note_dependency(str(script))
        try:
            return run(script, Path(self.env.doctreedir, "examples"))
        except Exception as error:
            trace = traceback.format_exc(limit=-3)
            raise self.error(f"{script.name} failed: {error!r}\n{trace}") from error


class Picture(_OfScript):
    """What a script draws, with a caption as content and a text that stands for it."""

    has_content = True
    option_spec: ClassVar = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Return a figure."""
        here = Path(self.env.doc2path(self.env.docname)).parent
        uri = Path(os.path.relpath(self.outcome().picture, here)).as_posix()
        figure = nodes.figure("", nodes.image(uri=uri, alt=self.options["alt"]), align="default")
        figure += nodes.caption("", "", *self.parse_inline(" ".join(self.content))[0])
        self.set_source_info(figure)
        return [figure]


class Example(_OfScript):
    """What a script computes, what it prints, and how it draws."""

    def run(self) -> list[nodes.Node]:
        """Return code, output and the folded code of the picture."""
        outcome = self.outcome()
        return [
            _literal(outcome.computing, "python"),
            nodes.paragraph("", "It prints:"),
            _literal(outcome.output, "text", "output"),
            nodes.raw("", "<details><summary>How the picture is drawn</summary>", format="html"),
            _literal(outcome.drawing, "python"),
            nodes.raw("", "</details>", format="html"),
            nodes.paragraph("", "", nodes.Text("The whole script: "), self.download()),
        ]

    def download(self) -> nodes.Node:
        """Return a link to the file of the script."""
        name = f"{self.arguments[0]}.py"
        return addnodes.download_reference(
            "",
            "",
            nodes.literal("", name),
            refdoc=self.env.docname,
            reftarget=f"/methods/examples/{name}",
        )


def _literal(text: str, language: str, *classes: str) -> nodes.literal_block:
    return nodes.literal_block(text, text, language=language, classes=list(classes))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.connect("source-read", check_page)
    app.connect("build-finished", write_notebooks)
    app.add_directive("picture", Picture)
    app.add_directive("example", Example)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
