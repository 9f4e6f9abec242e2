"""Constructions that readers had to read twice stay rare, in pages, docstrings and claims."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CONFIG = [*(ROOT / "config").rglob("*.yaml"), *(ROOT / "workflow/schemas").glob("*.yaml")]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
CONSTRUCTIONS = {  # pattern, and the most per 10,000 words
    "what": (r"\bwhat\b", 6.0),
    "whose": (r"\bwhose\b", 4.5),
    "alone": (r"\balone\b", 1.5),
    "Of ...": (r"^Of\b", 1.0),
    "beside": (r"\bbeside\b", 1.0),
    "of what": (r"\bof what\b", 0.5),
    "tells of": (r"\btells of\b|\b(?:is|are|was) told\b|\btold (?:by|from|of)\b", 0.5),
    "drawn in": (r"\bdrawn in(?:to| to)\b", 0.3),
    "noised": (r"\bnoised\b", 0.5),
    "normal noise": (r"\bnormal noise\b", 0.5),
}
NOT_YET = {  # texts to be rewritten, with their present counts: these only fall
    "docs/results/audit/certificate.md": 3,
    "docs/results/ckm/certificate.md": 3,
    "docs/results/dpem/certificate.md": 3,
    "docs/results/dpsc/certificate.md": 3,
    "docs/results/frontier/certificate.md": 3,
    "docs/results/mtsc/certificate.md": 3,
    "docs/results/privatemail/certificate.md": 3,
    "docs/results/whole/certificate.md": 3,
}


def sentences(markdown):
    """Return the sentences of a page, without code, headings, links and questions."""
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1\s*$", "\n\n", markdown, flags=re.M | re.S)
    text = re.sub(r"^#.*$", "\n\n", text, flags=re.M)
    text = re.sub(r"\$[^$]*\$|`[^`]*`", "code", text)
    text = re.sub(r"\[[^\]]*\]\([^)]*\)", "link", text)
    blocks = re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.)\s|\|", text)
    joined = (re.sub(r"[*_\s]+", " ", block).strip() for block in blocks)
    found = [part for block in joined for part in re.split(r"(?<=[.!?:;])\s+", block)]
    return [part for part in found if part and not part.endswith("?")]


def docstrings(path):
    """Return the public docstrings of a module, in one text."""
    texts = []

    def visit(node):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.ClassDef, ast.FunctionDef)) and not child.name.startswith(
                "_"
            ):
                texts.append(ast.get_docstring(child) or "")
                visit(child)

    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts.append(ast.get_docstring(tree) or "")
    visit(tree)
    return "\n\n".join(re.sub(r"^>>>.*$|^\.\.\. .*$", "", text, flags=re.M) for text in texts)


def strings(node):
    """Return all texts of a node of YAML that are more than one word."""
    if isinstance(node, str):
        return [node] if " " in node else []
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return [text for child in children for text in strings(child)]


def counted(text):
    """Return the number of words, and how often each construction occurs."""
    parts = sentences(text)
    words = sum(len(part.split()) for part in parts)
    found = {
        name: sum(len(re.findall(pattern, part, 0 if name == "Of ..." else re.I)) for part in parts)
        for name, (pattern, _) in CONSTRUCTIONS.items()
    }
    return words, found


def rooms():
    """Return the public modules of each room of the library, and of the two other packages."""
    source = ROOT / "src"
    found = {f"src/privclust/{room.name}": room for room in (source / "privclust").iterdir()}
    found |= {f"src/{name}": source / name for name in ("privclust_audit", "privclust_papers")}
    return {name: sorted(room.rglob("*.py")) for name, room in found.items() if room.is_dir()}


@cache
def texts():
    """Return the counts of each page and of the docstrings of each room."""
    found = {str(path.relative_to(ROOT)): counted(path.read_text("utf-8")) for path in PAGES}
    for path in CONFIG:
        document = yaml.safe_load(path.read_text("utf-8"))
        found[str(path.relative_to(ROOT))] = counted("\n\n".join(strings(document)))
    for name, paths in rooms().items():
        found[name] = counted("\n\n".join(map(docstrings, paths)))
    return found


def test_rewritten_texts_stay_below_the_limits():
    rewritten = [value for name, value in texts().items() if name not in NOT_YET]
    words = sum(n for n, _ in rewritten)
    totals = {name: sum(found[name] for _, found in rewritten) for name in CONSTRUCTIONS}
    over = {k: n for k, n in totals.items() if n > CONSTRUCTIONS[k][1] * words / 10_000}
    assert over == {}


@pytest.mark.parametrize("name", NOT_YET)
def test_other_texts_only_get_better(name):
    _, found = texts()[name]
    assert 0 < sum(found.values()) <= NOT_YET[name], found
