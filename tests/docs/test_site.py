"""The built site: links, pictures, output of the examples, and what needs no script."""

import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pandas as pd
import pytest

pytestmark = pytest.mark.system

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path.stem for path in DOCS.glob("methods/*.md") if path.stem != "index")


class Html(HTMLParser):
    """What a page refers to, its ids, and the text of blocks of a class."""

    def __init__(self, path):
        super().__init__()
        self.links, self.sources, self.ids, self.tags = [], [], set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append((tag, given))
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if given.get("href"):
            (self.links if tag == "a" else self.sources).append(given["href"])
        if given.get("src"):
            self.sources.append(given["src"])


@pytest.fixture(scope="module")
def pages(site):
    """All pages of the site by their place."""
    return {path: Html(path) for path in sorted(site.rglob("*.html"))}


def missing(pages, path, link):
    """Return whether a link within the site leads nowhere."""
    parts = urlsplit(link)
    if parts.scheme:
        return False
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return True
    return bool(parts.fragment) and unquote(parts.fragment) not in pages[target].ids


def test_links_lead_to_what_is_there(pages):
    found = [(path, link) for path, page in pages.items() for link in page.links]
    assert len(found) > 2000
    nowhere = {(path.name, link) for path, link in found if missing(pages, path, link)}
    assert nowhere == {("404.html", "/")}  # the root of the host


def test_nothing_comes_from_a_network(pages):
    found = [(path, source) for path, page in pages.items() for source in page.sources]
    assert {source for _, source in found if urlsplit(source).scheme not in ("", "data")} == set()
    assert {(path.name, link) for path, link in found if missing(pages, path, link)} == set()


def test_every_document_is_a_page(site, pages):
    documents = {
        path.relative_to(DOCS).with_suffix(".html")
        for folder in (".", "results", "methods", "reference")
        for path in (DOCS / folder).glob("*.md")
    }
    assert len(documents) > 45
    assert documents <= {path.relative_to(site) for path in pages}


@pytest.mark.parametrize("name", PAGES)
def test_the_example_printed_and_drew(site, pages, name):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    path = site / "methods" / f"{name}.html"
    assert '<div class="output highlight-text' in path.read_text(encoding="utf-8")
    (script,) = (link for link in pages[path].links if link.endswith(f"/{name}.py"))
    source = DOCS / f"methods/examples/{name}.py"
    assert (path.parent / unquote(script)).read_bytes() == source.read_bytes()
    (image,) = (
        given
        for tag, given in pages[path].tags
        if tag == "img" and "_images" in given["src"] and not given["src"].startswith("data:")
    )
    assert len(image["alt"]) > 20
    pixels = pyplot.imread(path.parent / unquote(image["src"]))
    assert pixels.shape[1] > 500
    assert pixels[..., :3].std() > 0.02


def pictures(page):
    """Each picture of a page, with the link around it or None."""
    link = None
    for tag, given in page.tags:
        if tag == "a":
            link = given
        elif tag == "img" and "_images/" in given["src"]:
            yield given, link
            link = None


def test_every_picture_can_be_enlarged_by_mouse_and_keyboard(pages):
    """Each is a link to its own file, which a browser shows as large as it is."""
    count = 0
    for page in pages.values():
        for image, link in pictures(page):
            assert link["href"] == image["src"]
            assert "tabindex" not in link
            count += 1
    assert count > 2 * 50  # on its page, and in the gallery


def test_the_gallery_has_every_picture_of_the_pages_it_is_of(site, pages):
    shown = [image["src"].rpartition("/")[2] for image, _ in pictures(pages[site / "gallery.html"])]
    committed = {unquote(name) for name in shown}
    texts = [path.read_text(encoding="utf-8") for path in DOCS.glob("results/*.md")]
    results = {name for text in texts for name in re.findall(r"!\[[^]]*\]\((\w+\.png)\)", text)}
    assert len(results) > 25
    assert results <= committed
    assert {f"{name}.png" for name in PAGES} <= committed
    assert len(shown) == len(set(shown))
    links = {link.partition("#")[0] for link in pages[site / "gallery.html"].links if "#" in link}
    assert {f"methods/{name}.html" for name in PAGES} <= links


def test_what_takes_groups_leads_to_its_reference(site, pages):
    links = pages[site / "people.html"].links
    assert "methods/compressive_kmeans.html#privclust.kmeans.CompressiveKMeans" in links
    assert "methods/sketch.html#privclust.sketches.Sketch" in links


def test_included_files_are_whole(site):
    for name, source in (("changelog", "CHANGELOG.md"), ("contributing", "CONTRIBUTING.md")):
        text = html.unescape((site / f"{name}.html").read_text(encoding="utf-8"))
        headings = re.findall(r"^##+ (.*)$", (DOCS.parent / source).read_text(), re.M)
        assert len(headings) > 3
        for heading in headings:
            assert re.search(rf"<h[23]>{re.escape(heading)}<", text), heading
    assert "src/privclust/kmeans/_one_round.py" in text  # the name of a block's file


@pytest.fixture(scope="module")
def index(site):
    """The index of the search: pages, and where stemmed words are, also in titles."""
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    return json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))


def pages_with(index, where, word):
    """Pages that the search finds a word on, as its script looks it up."""
    stem = pytest.importorskip("snowballstemmer").stemmer("english").stemWord(word.lower())
    numbers = index[where].get(stem, [])
    return {index["docnames"][i] for i in ([numbers] if isinstance(numbers, int) else numbers)}


@pytest.mark.parametrize(
    ("word", "where", "page"),
    [
        ("install", "titleterms", "installation"),
        ("install", "terms", "quickstart"),
        ("StandardScaler", "titleterms", "scaling"),
        ("epsilon", "titleterms", "choosing"),
        ("bounds", "titleterms", "choosing"),
        ("groups", "titleterms", "people"),
        ("customer", "terms", "people"),
        ("parquet", "terms", "command"),
        ("cite", "titleterms", "cite"),
    ],
)
def test_the_search_leads_to_what_is_asked_for(index, word, where, page):
    """Words in titles stand first among what is found."""
    assert page in pages_with(index, where, word)


def test_without_a_script_the_chooser_is_its_tables(site, pages):
    page = pages[site / "choose.html"]
    (form,) = (given for tag, given in page.tags if tag == "form" and given.get("id") == "chooser")
    assert "hidden" in form
    assert sum(tag == "table" for tag, _ in page.tags) == 5
    text = (site / "choose.html").read_text(encoding="utf-8")
    table = pd.read_csv(Path(__file__).parents[2] / "docs" / "results" / "ckm" / "ckm_beyond.csv")
    here = "method == 'compressive' and metric == 'relative_sse' and shape == 'paper'"
    (median,) = table.query(f"{here} and epsilon == 0.1")["median"]
    assert f"CompressiveKMeans</span></a>: {median:g}" in text
