"""Every picture is a link to its full size; directive `gallery`: the pictures of some pages.

A gallery shows what its pages show, with the same words, and links to where they stand. It is
filled when all pages have been read, so that a picture that a page gains stands in it as well.
"""

from __future__ import annotations

import posixpath
from fnmatch import fnmatch
from urllib.parse import quote

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

AFTER_GALLERY = 900
LOGGER = logging.getLogger(__name__)


class gallery(nodes.Element):
    """Where pictures of pages will stand."""


class Gallery(SphinxDirective):
    """The pictures of pages whose names match a pattern, such as ``results/*``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return a place for them."""
        self.env.metadata[self.env.docname]["gallery"] = True
        return [gallery("", pattern=self.arguments[0])]


def with_galleries(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Name the pages that are to be written anew when any page was."""
    return [name for name, about in env.metadata.items() if "gallery" in about]


def fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put pictures into the galleries of a page."""
    for place in list(doctree.findall(gallery)):
        shown = nodes.container(classes=["gallery"])
        for name in sorted(app.env.found_docs - {docname}):
            if fnmatch(name, place["pattern"]):
                images = list(app.env.get_doctree(name).findall(nodes.image))
                for image in images:
                    title = app.env.titles[name] if len(images) == 1 else _section(image)[0]
                    shown += _entry(app, docname, name, image, title.astext())
        if not shown.children:
            LOGGER.warning("no page %s has a picture", place["pattern"], location=docname)
        place.replace_self(shown)


def _section(image: nodes.image) -> nodes.section:
    """Return the section that a picture stands in."""
    node = image
    while not isinstance(node, nodes.section):
        node = node.parent
    return node


def _entry(app: Sphinx, here: str, name: str, image: nodes.image, title: str) -> nodes.container:
    """Return a picture of a page with its words and a link to its place there."""
    captions = [node for node in image.parent.children if isinstance(node, nodes.caption)]
    words = captions[0].astext() if captions else image["alt"]
    uri = app.builder.get_relative_uri(here, name) + f"#{_section(image)['ids'][0]}"
    link = nodes.reference("", title, internal=True, refuri=uri)
    shown = image.deepcopy()
    shown["loading"] = "lazy"
    said = nodes.paragraph("", "", nodes.Text(f"{words.rstrip('.')}. "), link)
    return nodes.container("", shown, said)


def enlarge(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Make each picture a link to its file, which any browser shows as large as it is."""
    if app.builder.format != "html":
        return
    folder = posixpath.join(*[".."] * docname.count("/"), app.builder.imagedir)
    for image in list(doctree.findall(nodes.image)):
        known = app.env.images.get(image["uri"])
        if known is None or isinstance(image.parent, nodes.reference):
            continue
        uri = posixpath.join(folder, quote(known[1]))
        link = nodes.reference("", "", internal=True, refuri=uri, reftitle="Full size")
        link["classes"].append("enlarge")
        image.replace_self(link)
        link += image


def setup(app: Sphinx) -> dict[str, bool]:
    """Register all."""
    app.add_node(gallery)
    app.add_directive("gallery", Gallery)
    app.connect("env-updated", with_galleries)
    app.connect("doctree-resolved", fill)
    app.connect("doctree-resolved", enlarge, priority=AFTER_GALLERY)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
