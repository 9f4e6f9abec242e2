"""Directive `taking`: the public classes with a method that takes an argument of some name."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

PACKAGES = (
    *("embedding", "kmeans", "mixtures", "preprocessing", "segmentation", "sketches"),
    "subspaces",
)


class Taking(SphinxDirective):
    """A list of classes, each with the methods that take the argument."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the list."""
        bullets = nodes.bullet_list()
        for name, methods in taking(self.arguments[0]):
            short = nodes.literal("", name.rpartition(".")[2])
            link = pending_xref("", short, reftype="obj", refdomain="py", reftarget=name)
            link["refdoc"] = self.env.docname
            parts: list[nodes.Node] = [link, nodes.Text(": ")]
            for method in methods:
                parts += [nodes.literal("", method), nodes.Text(", ")]
            bullets += nodes.list_item("", nodes.paragraph("", "", *parts[:-1]))
        return [bullets]


def taking(argument: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the dotted names of public classes, and their methods that take the argument."""
    for package in PACKAGES:
        module = import_module(f"privclust.{package}")
        for name in sorted(module.__all__):
            thing = getattr(module, name)
            if inspect.isclass(thing):
                methods = [
                    method
                    for method, function in inspect.getmembers(thing, inspect.isroutine)
                    if not method.startswith(("_", "set_", "get_")) and takes(function, argument)
                ]
                if methods:
                    yield f"{module.__name__}.{name}", methods


def takes(function: object, argument: str) -> bool:
    """Return whether a function has a parameter of that name."""
    try:
        return argument in inspect.signature(function).parameters
    except (TypeError, ValueError):  # of built-in ones
        return False


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("taking", Taking)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
