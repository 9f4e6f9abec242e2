"""Every public estimator has one page with all its parts; what can be told without a build."""

import inspect
import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
import yaml
from sklearn.base import BaseEstimator

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path for path in DOCS.glob("methods/*.md") if path.stem != "index")
PACKAGES = ["embedding", "kmeans", "mixtures", "segmentation", "subspaces"]
HEADINGS = [
    "What it does",
    "Privacy",
    "When to use it",
    "Paper",
    "Picture",
    "Example",
    "Reference",
]
SEEDED = re.compile(r"random_state=|default_rng\(seed\)")


def estimators():
    """Return the dotted names of all exported estimators."""
    found = {}
    for package in PACKAGES:
        module = import_module(f"privclust.{package}")
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) and issubclass(thing, BaseEstimator):
                found[f"privclust.{package}.{name}"] = thing
    return found


def test_every_estimator_has_one_page():
    documented = Counter(
        name
        for path in PAGES
        for name in re.findall(r"autoclass:: (\S+)", path.read_text(encoding="utf-8"))
    )
    assert set(estimators()) <= set(documented)
    assert set(documented.values()) == {1}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_has_its_parts(path):
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.M) == HEADINGS
    parts = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    assert all(len(part.split()) > 5 for name, part in parts.items() if name in HEADINGS[:4])
    (title,) = re.findall(r"^# (.*)$", text, re.M)
    assert f".{title}\n" in parts["Reference"]
    for directive, part in (("picture", "Picture"), ("example", "Example")):
        assert f"```{{{directive}}} {path.stem}\n" in parts[part]


def test_no_text_is_that_of_another_page():
    """What a page says is about its method: no sentence of some length stands on two pages."""
    sentences = Counter()
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        prose = re.sub(r"\s+", " ", text.partition("## Paper")[0])
        sentences.update({part.strip() for part in re.split(r"[.:;] ", prose) if len(part) > 90})
    assert {part for part, count in sentences.items() if count > 1} == set()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_privacy_is_said_plainly(path):
    """A page says "none" of an estimator without a guarantee, and else what the guarantee is of."""
    text = path.read_text(encoding="utf-8")
    (privacy,) = re.findall(r"^## Privacy\n(.*?)^## ", text, re.M | re.S)
    names = re.findall(r"autoclass:: (\S+)", text)
    docs = [inspect.getdoc(thing) for name, thing in estimators().items() if name in names]
    if not docs or "guarantee_ :" in docs[0]:
        for word in ("Protected", "Released", "Definition", "Trusted"):
            assert f"*{word}*" in privacy
    else:
        assert privacy.strip().startswith("None.")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_seed_of_private_noise_is_not_for_release(path):
    """Where a page's method is private, its seeded example says that a release must not be."""
    script = path.parent / "examples" / f"{path.stem}.py"
    code = script.read_text(encoding="utf-8").partition("# %% picture")[0]
    if "epsilon=" in code and SEEDED.search(code):
        assert "for a release" in code


def test_examples_and_pages_are_pairs():
    scripts = {path.stem for path in (DOCS / "methods" / "examples").glob("*.py")}
    assert scripts == {path.stem for path in PAGES}


def test_the_chooser_leaves_out_what_is_not_private():
    """No method that counts as private is as printed, in CDP, or begun from the data."""
    tasks = yaml.safe_load((DOCS / "_ext" / "chooser.yaml").read_text(encoding="utf-8"))
    seen = 0
    for source in (source for task in tasks.values() for source in task["sources"]):
        paper = source["table"].split("/")[0]
        config = yaml.safe_load((DOCS.parent / f"config/papers/{paper}/paper.yaml").read_text())
        for name in source["experiments"]:
            methods = config["experiments"][name]["methods"]
            for method in set(source["private"]) & set(methods):
                params = (methods[method] or {}).get("params") or {}
                assert params.get("variant", "corrected") == "corrected", method
                assert params.get("accounting", "pld") != "cdp", method
                starts = ("random", "uniform", "separated", "sulq", "moments")
                assert params.get("init", "random") in starts, method
                assert params.get("neighbours") != "attribute", method
                seen += 1
    assert seen > 40


@pytest.mark.parametrize(
    ("script", "name", "arguments", "results"),
    [
        ("attacks", "attacks", (), "audit_epsilon.csv"),
        ("attacks", "sweeps", (), None),
        ("scores", "scores", ("frontier_tab1",), None),
    ],
)
def test_a_table_is_that_of_the_results(monkeypatch, tmp_path, script, name, arguments, results):
    monkeypatch.syspath_prepend(DOCS.parent / "benchmarks")
    module, scratch = import_module(script), import_module("scratch")
    page = tmp_path / "page.md"
    committed = getattr(module, "PAGES", {}).get(name) or module.PAGE
    page.write_text(committed.read_text(encoding="utf-8"), encoding="utf-8")
    table = getattr(module, name)(*arguments)
    scratch.write_into(page, name, table)
    assert page.read_text(encoding="utf-8") == committed.read_text(encoding="utf-8")
    if results is not None:
        assert table.count("\n") == 1 + len(pd.read_csv(module.RESULTS / results))


def test_the_page_of_numbers_lists_every_folder():
    """Links to a folder lead there; one that is missing fails the site's build, minutes later."""
    folders = {path.parent.name for path in (DOCS / "results").glob("*/*.csv")}
    page = (DOCS / "results" / "data.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\(tables-(\w+)\)=$", page, re.M)) == folders
    assert set(re.findall(r"^```\{tables\} (\w+)$", page, re.M)) == folders


def test_every_page_of_results_with_a_picture_is_in_the_gallery():
    gallery = (DOCS / "gallery.md").read_text(encoding="utf-8")
    for path in (DOCS / "results").glob("*.md"):
        if "![" in path.read_text(encoding="utf-8"):
            assert f"```{{gallery}} results/{path.stem}\n" in gallery
