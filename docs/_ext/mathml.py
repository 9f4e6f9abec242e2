"""Formulas as MathML, made when the site is built: no script and no network draws them."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

# what docutils does not read, and what says the same; brackets grow by themselves
REWRITTEN = (
    (re.compile(r"\\dots\b"), r"\\ldots"),
    (re.compile(r"\\Big\b"), ""),
    (re.compile(r"\\(t?frac)(\d)(\d)"), r"\\\1{\2}{\3}"),
)


def _inline(writer: HTML5Translator, node: nodes.math) -> None:
    writer.body.append(tex2mathml(_known(node.astext()), as_block=False))
    raise nodes.SkipNode


def _block(writer: HTML5Translator, node: nodes.math_block) -> None:
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    writer.body.append(tex2mathml(_known(_aligned(node.astext())), as_block=True))
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def _known(formula: str) -> str:
    for pattern, other in REWRITTEN:
        formula = pattern.sub(other, formula)
    return formula


def _aligned(formula: str) -> str:
    """Say what Sphinx says for its other writers: lines of a formula are aligned at `&`."""
    if r"\\" in formula and r"\begin" not in formula:
        return rf"\begin{{align*}}{formula}\end{{align*}}"
    return formula


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
