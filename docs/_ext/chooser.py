"""Directives `chooser` and `measured`: the form of docs/choose.md, and its tables without a script.

Both are made from `measured.read` when the site is built. The form's script is _static/choose.js.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from docutils import nodes
from measured import files, read
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

PROMISES = {
    "approximate": "(epsilon, delta)",
    "pure": "epsilon alone (delta = 0)",
    "none": "none: the data may be published",
}
COUNTED = {"approximate": {"approximate", "pure"}, "pure": {"pure"}, "none": {"none"}}
FORM = """
<form id="chooser" class="chooser" hidden>
<label>I want<select name="task">{tasks}</select></label>
<label>under privacy<select name="promise">{promises}</select></label>
<label>rows, n<input name="n" type="number" min="1" step="1" value="100000" required></label>
<label>features, d<input name="d" type="number" min="1" step="1" value="10" required></label>
<label>clusters, k<input name="k" type="number" min="1" step="1" value="10" required></label>
<label>epsilon<input name="epsilon" type="number" min="0" step="any" value="1" required></label>
<button>Answer</button>
</form>
<div id="chooser-answer" role="status"></div>
<script type="application/json" id="chooser-data">{data}</script>
<script src="{script}" defer></script>
"""


class Chooser(SphinxDirective):
    """The form, hidden until its script runs, with all that it answers from."""

    def run(self) -> list[nodes.Node]:
        """Return the form as it stands in the page."""
        tasks = copy.deepcopy(read())
        _depend(self)
        to = self.env.app.builder.get_relative_uri
        for group in (group for task in tasks.values() for group in task["groups"]):
            group["page"] = to(self.env.docname, group["page"])
            for method in group["methods"]:
                method["page"] = method["page"] and to(self.env.docname, method["page"])
        data = {"tasks": tasks, "counted": {key: sorted(value) for key, value in COUNTED.items()}}
        html = FORM.format(
            tasks=_options({name: task["title"] for name, task in tasks.items()}),
            promises=_options(PROMISES),
            data=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
            script="_static/choose.js",
        )
        return [nodes.raw("", html, format="html")]


class Measured(SphinxDirective):
    """The groups of a task as a table: settings, and the best of each promise."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        task = read()[self.arguments[0]]
        _depend(self)
        promises = [
            promise
            for promise in COUNTED
            if any(best(task, group, promise) for group in task["groups"])
        ]
        private = [p for p in promises if p != "none"]
        heads = ["data", "n", "d", "k", *(["epsilon"] if private else [])]
        heads += [f"best with {PROMISES[promise].partition(':')[0]}" for promise in promises]
        rows = [self.row(task, group, promises, bool(private)) for group in task["groups"]]
        return [_table(heads, rows)]

    def row(
        self, task: dict[str, Any], group: dict[str, Any], promises: list[str], has_epsilon: bool
    ) -> list[list[nodes.Node]]:
        """Return the cells of a group."""
        epsilon = group["epsilon"]
        cells = [self.link(group["page"], group["data"])]
        cells += [[nodes.Text(f"{group[name]:,}")] for name in "ndk"]
        if has_epsilon:
            cells.append([nodes.Text("" if epsilon is None else f"{epsilon:g}")])
        for promise in promises:
            method = best(task, group, promise)
            cells.append([])
            if method:
                page, text = method["page"], method["name"]
                if method["label"] != text:
                    text += f" ({method['label']})"
                name = self.link(page, text) if page else [nodes.Text(text)]
                cells[-1] = [*name, nodes.Text(f": {method['value']:.6g}")]
        return cells

    def link(self, page: str, text: str) -> list[nodes.Node]:
        """Return a link to a page of the site."""
        link = addnodes.pending_xref(
            "", reftype="doc", refdomain="std", reftarget=f"/{page}", refexplicit=True
        )
        link += nodes.inline("", text)
        link["refdoc"] = self.env.docname
        return [link]


def best(task: dict[str, Any], group: dict[str, Any], promise: str) -> dict[str, Any] | None:
    """Return the method of the best value among those with a promise, the first of equals."""
    candidates = [method for method in group["methods"] if method["promise"] in COUNTED[promise]]
    choose = max if task["higher_is_better"] else min
    return choose(candidates, key=lambda method: method["value"]) if candidates else None


def _depend(directive: SphinxDirective) -> None:
    for path in files():
        directive.env.note_dependency(str(path))


def _options(texts: dict[str, str]) -> str:
    return "".join(f'<option value="{name}">{text}</option>' for name, text in texts.items())


def _table(heads: list[str], rows: list[list[list[nodes.Node]]]) -> nodes.table:
    group = nodes.tgroup(cols=len(heads))
    group += [nodes.colspec(colwidth=1) for _ in heads]
    group += nodes.thead("", _row([[nodes.Text(head)] for head in heads]))
    group += nodes.tbody("", *(_row(row) for row in rows))
    return nodes.table("", group)


def _row(cells: list[list[nodes.Node]]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("chooser", Chooser)
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
