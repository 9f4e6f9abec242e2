"""Names in docstrings: short ones, those that end in `_`, and those with a page of their own."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

SHAPE = re.compile(r"shape \(.*\)")
OWN_PAGE = re.compile(r"autoclass:: privclust\.\w+\.(\w+)")
BEFORE_NUMPYDOC = 400


def escape_shapes(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Keep a fitted attribute in a shape, such as (n_iter_,), from being read as a reference."""
    lines[:] = [
        SHAPE.sub(lambda match: re.sub(r"_(?=[,)])", r"\\_", match[0]), line) for line in lines
    ]


def has_own_page(
    app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object
) -> bool:
    """Leave a class out of a package's reference that a page in docs/methods documents."""
    pages = Path(app.srcdir, "methods").glob("*.md")
    documented = {
        path for page in pages for path in OWN_PAGE.findall(page.read_text(encoding="utf-8"))
    }
    return skip or (what == "module" and name in documented)


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element
) -> nodes.Node | None:
    """Resolve a name by its last part; private and ambiguous names stay plain code.

    Other roles are left to fail: who writes them means a name that the site has.
    """
    if node.get("reftype") != "obj" or node.get("refdomain") != "py":
        return None
    objects = env.domains.python_domain.objects
    ending = "." + node["reftarget"].rpartition(".")[2]
    # a class is listed under the module that it is written in as well, at the same place
    entries = {
        (entry.docname, entry.node_id): entry
        for name, entry in objects.items()
        if name.endswith(ending)
    }
    if len(entries) != 1:
        return content
    (entry,) = entries.values()
    return make_refnode(
        app.builder, node["refdoc"], entry.docname, entry.node_id, content, node["reftarget"]
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register all."""
    app.connect("autodoc-skip-member", has_own_page)
    app.connect("autodoc-process-docstring", escape_shapes, priority=BEFORE_NUMPYDOC)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
