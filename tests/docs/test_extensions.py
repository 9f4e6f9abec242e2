"""What pages are made from: code that runs, parsers, CITATION.cff, signatures, captions."""

import re
import unicodedata
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from privclust.command import parser

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["choosing", "people", "privacy", "quickstart", "scaling", "tutorial"]
ENTRY = re.compile(r"^@(\w+)\{(\w+),\n(.*?)\n\}$", re.M | re.S)


@pytest.fixture(autouse=True)
def extensions(monkeypatch):
    pytest.importorskip("sphinx", reason="the site needs Sphinx")
    monkeypatch.syspath_prepend(DOCS / "_ext")


def page(*blocks):
    """A page of code and of what it is said to print."""
    return "\n".join(f"```{language}\n{text}```\n" for language, text in blocks)


def test_code_of_a_page_runs_in_one_namespace():
    run_page = import_module("examples").run_page
    text = page(("python", "a = 3\n"), ("python", "print(a + 1)\n"), ("text", "4\n"))
    assert run_page(text, "page") == 2
    assert run_page(page(("python", "raise ValueError\n")), "no promise of an output") == 0


@pytest.mark.parametrize(
    ("code", "said", "error"),
    [
        ("print(1)\n", "2\n", "it printed"),
        ("print(1)\n", "", "it printed"),
        ("pass\n", "1\n", "it printed"),
        ("import warnings; warnings.warn('hot')\n", "", "hot"),
        ("1 / 0\n", "", "division"),
    ],
)
def test_a_page_that_says_something_else_fails(code, said, error):
    run_page = import_module("examples").run_page
    with pytest.raises(Exception, match=error):
        run_page(page(("python", code), ("text", said)), "page")
    if code == "print(1)\n":  # after the last block of text as well
        with pytest.raises(ValueError, match="it printed"):
            run_page(page(("text", ""), ("python", code)), "page")


def test_a_page_that_writes_files_leaves_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "from pathlib import Path\nPath('rows').touch()\nprint(Path('rows').exists())\n"
    assert (
        import_module("examples").run_page(page(("python", code), ("text", "True\n")), "page") == 1
    )
    assert not list(tmp_path.iterdir())


def test_the_script_of_an_example_can_be_downloaded(tmp_path):
    application = pytest.importorskip("sphinx.application")
    pytest.importorskip("myst_parser", reason="the site needs the extra privclust[docs]")
    script = tmp_path / "docs/methods/examples/a.py"
    script.parent.mkdir(parents=True)
    script.write_text("print(1)\n# %% picture\nimport matplotlib.pyplot as plt\nplt.plot([1])\n")
    docs, out = tmp_path / "docs", tmp_path / "out"
    (docs / "conf.py").write_text(
        "extensions, root_doc = ['myst_parser', 'examples'], 'tutorial'\n"
    )
    (docs / "tutorial.md").write_text("# A\n\n```{example} a\n```\n")
    site = application.Sphinx(docs, docs, out, tmp_path / "trees", "html", warningiserror=True)
    site.build()
    (link,) = re.findall(r'href="([^"]*/a[.]py)"', (out / "tutorial.html").read_text())
    assert (out / link).read_text() == script.read_text()


def test_numbers_count_where_compiled_code_is_the_same(monkeypatch):
    """That is on x86, by conf.py; elsewhere only words count."""
    examples = import_module("examples")
    said, printed = "error  1.02: 53 %\n", "error 11.3: 4 %\n"
    monkeypatch.setattr(examples.platform, "machine", lambda: "x86_64")
    assert examples.agree(said, said)
    assert not examples.agree(said, printed)
    monkeypatch.setattr(examples.platform, "machine", lambda: "aarch64")
    assert examples.agree(said, printed)
    assert not examples.agree(said, printed.replace("error", "loss"))


def test_commands_of_a_page_run_in_its_folder():
    run_page = import_module("examples").run_page
    code = "import pathlib\npathlib.Path('a.csv').write_text('x\\n1\\n2\\n')\nprint(1)\n"
    write = ("python", code), ("text", "1\n")
    check = "$ privclust cluster a.csv --check \\\n    --bounds x=0:5\n"
    said = "for you, ...\n2 rows\nx: 0 missing (0.0 %), 0 unreadable (0.0 %), from 1 to 2\n"
    assert run_page(page(*write, ("console", check + said)), "page") == 1
    with pytest.raises(ValueError, match=r"from 1 to 2\s+where the page says\s+3 rows"):
        run_page(page(*write, ("console", f"{check}3 rows\n")), "page")


def test_a_notebook_has_the_prose_the_python_and_the_commands():
    nbformat = pytest.importorskip("nbformat", reason="it checks notebooks")
    text = "# T\n" + page(
        ("python", "print(1)\n"), ("text", "1\n"), ("console", "$ privclust plan\nno\n")
    )
    found = nbformat.reads(import_module("examples").notebook(text), as_version=4)
    nbformat.validate(found)
    assert [cell.source for cell in found.cells] == ["# T", "print(1)", "!privclust plan"]


@pytest.mark.parametrize("name", PAGES)
def test_pages_for_newcomers_say_what_they_print(name):
    """So that the site does not build where they do not run, or print something else."""
    blocks = import_module("examples").BLOCK.findall((DOCS / f"{name}.md").read_text())
    assert {language for language, _ in blocks} - {"console"} == {"python", "text"}


def test_every_option_of_every_command_is_in_its_section():
    command = import_module("command")
    named = dict(command.commands(parser()))
    assert {"cluster", "decode", "plan", "audit"} <= set(named)
    for name, of_command in named.items():
        section = command.section("privclust", name, of_command)
        text = section.astext()
        assert section["ids"] == [f"privclust-{name}"]
        terms = [term.astext() for term in section.findall(command.nodes.term)]
        words = {word.strip(",") for term in terms for word in term.split()}
        help_text = of_command.format_help()
        options = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", help_text.partition("\n\n")[0]))
        assert options - {"-h"} <= words
        assert of_command.description in text


def test_defaults_are_written_out(monkeypatch):
    command = import_module("command")
    example = command.argparse.ArgumentParser(prog="x", description="d")
    example.add_argument("--size", default=7, required=True, help="a size; default: %(default)s")
    assert "a size; default: 7; needed" in command.section("privclust", "x", example).astext()


def plain(text):
    """Text without accents and LaTeX."""
    text = unicodedata.normalize("NFKD", text)
    return "".join(c for c in text if not unicodedata.combining(c) and c not in "{}\\")


def test_bibtex_has_all_that_is_cited():
    citation = import_module("citation")
    cited = yaml.safe_load((DOCS.parent / "CITATION.cff").read_text(encoding="utf-8"))
    text = "\n\n".join(citation.entries(cited))
    found = ENTRY.findall(text)
    assert "\n\n".join(match[0] for match in ENTRY.finditer(text)) == text
    keys = [key for _, key, _ in found]
    assert len(set(keys)) == len(keys) == 1 + len(cited["references"])
    assert keys[0] == "privclust"
    assert f"Version {cited['version']}" in found[0][2]
    for paper, (kind, _, body) in zip(cited["references"], found[1:], strict=True):
        fields = dict(re.findall(r"^  (\w+) = \{(.*)\},$", body, re.M))
        assert len(fields) == body.count("\n") + 1  # every line is a field
        assert all(value.count("{") == value.count("}") for value in fields.values())
        assert plain(fields["title"]) == plain(paper["title"])
        assert fields["year"] == str(paper["year"])
        assert fields["author"].count(" and ") == len(paper["authors"]) - 1
        for author in paper["authors"]:
            assert f"{author['family-names']}, {author['given-names']}" in fields["author"]
        assert {"inproceedings": "booktitle", "article": "journal"}[kind] in fields
        assert fields.get("doi") == paper.get("doi")


def test_bibtex_writes_out_what_latex_reads():
    citation = import_module("citation")
    paper = {
        "type": "article",
        "title": "Cost & gain: 50 % of $k_1$ #2",
        "authors": [{"name": "A & B"}, {"family-names": "Ab", "given-names": "C."}],
        "year": 2020,
        "doi": "10.1/a_b",
    }
    entry = citation.entry("key", paper)
    assert r"{{Cost \& gain: 50 \% of \$k\_1\$ \#2}}" in entry
    assert r"{{A \& B} and Ab, C.}" in entry
    assert "doi = {10.1/a_b}" in entry


def test_what_takes_an_argument_is_told_by_its_signature():
    found = dict(import_module("taking").taking("groups"))
    assert found["privclust.kmeans.CompressiveKMeans"] == ["fit"]
    assert "of" in found["privclust.sketches.Sketch"]
    assert "privclust.kmeans.LloydKMeans" not in found
    assert list(import_module("taking").taking("no_such_argument")) == []


def test_a_block_that_names_its_file_has_it_as_a_caption():
    with_captions = import_module("titles").with_captions
    text = '```python title="a.py"\nx = 1\n```\n```csv title="b.csv" under="c: d:"\n1\n```\n'
    assert with_captions(text) == (
        "```{code-block} python\n:caption: a.py\n\nx = 1\n```\n"
        "```{code-block} text\n:caption: b.csv, under c: d:\n\n1\n```\n"
    )
    assert with_captions("```python\nx\n```\n") == "```python\nx\n```\n"
