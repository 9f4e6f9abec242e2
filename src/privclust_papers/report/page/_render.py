"""The page as HTML, from a template, a style sheet and a script of this package."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

import pandas as pd

from privclust_papers.report.page import _parts
from privclust_papers.report.page._citation import bibtex
from privclust_papers.report.page._fit_costs import NAME as COSTS
from privclust_papers.report.verdicts import MEANINGS, PAPERS

AUDIT = "audit"  # the paper whose section is the audit
_SVG = re.compile(r'<svg\b[^>]*?\bwidth="([\d.]+)pt" height="([\d.]+)pt"', re.DOTALL)


def render(
    spec: Mapping[str, Any],
    verdicts: pd.DataFrame,
    tables: Mapping[str, pd.DataFrame],
    sizes: Mapping[str, tuple[int, int]],
    sources: Mapping[str, list[str]],
    published: Mapping[str, str] | None = None,
) -> str:
    """Return the page as HTML that works from a file, without network.

    The page has no times, paths or costs, so the same results give the same bytes. `spec` is from
    `privclust_papers.pipeline.jobs.Jobs.page_spec`, `verdicts` from
    `privclust_papers.report.verdicts.judge`, with empty cells as empty text. By target, `tables`
    are the numbers as texts, and `sizes` are the drawing's width and height in pixels (`svg_size`).
    `sources` names the data of each experiment, ``substitute...`` for a substitute; `published` has
    the verdicts of the published run, by id of a claim.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    environment = Environment(
        loader=PackageLoader("privclust_papers.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["slug"] = lambda text: text.replace(" ", "-")
    environment.filters["breakable"] = lambda text: escape(text).replace("_", Markup("_<wbr>"))
    verdicts = verdicts.assign(
        published=[(published or {}).get(name, "") for name in verdicts["id"]]
    )
    targets = _targets(spec, verdicts, tables, sizes, sources)
    inlined = {
        name: Markup(files(__package__).joinpath(file).read_text(encoding="utf-8"))
        for name, file in (("style", "style.css"), ("script", "page.js"))
    }
    return environment.get_template("index.html.j2").render(
        effort=spec["effort"],
        papers=_papers(spec, targets, verdicts),
        targets=targets,
        claims=_parts.claims(verdicts),
        n_claims=int((verdicts["row"] == "").sum()),
        cases=[case for target in targets for case in target["cases"]],
        verdicts={name: Markup(meaning) for name, meaning in MEANINGS.items()},
        whose=_parts.whose(verdicts),
        published=_parts.counts(verdicts[verdicts["of"] == PAPERS], "published"),
        absent=_parts.absent(targets),
        audit=AUDIT,
        names=[target["name"] for target in targets],
        costs=COSTS,
        citation=spec["citation"],
        bibtex=bibtex(spec["citation"]) if spec["citation"] else "",
        costs_command=_parts.command(spec["changed"], "costs"),
        paper_command=_parts.command(spec["changed"] | {"effort": "paper"}),
        **inlined,
    )


def svg_size(text: str) -> tuple[int, int]:
    """Return the width and height of a drawing in CSS pixels, from the head of its SVG file.

    Raises a ValueError unless the sizes are in points, as Matplotlib writes them.
    """
    match = _SVG.search(text)
    if not match:
        raise ValueError(f"SVG: got {text[:60]!r}; it must have a width and a height in pt")
    width, height = (round(float(points) * 96 / 72) for points in match.groups())
    return width, height


def _targets(
    spec: Mapping[str, Any],
    verdicts: pd.DataFrame,
    tables: Mapping[str, pd.DataFrame],
    sizes: Mapping[str, tuple[int, int]],
    sources: Mapping[str, list[str]],
) -> list[dict[str, Any]]:
    results = {paper["name"]: paper["results"] for paper in spec["papers"]}
    targets = []
    for target in spec["targets"]:
        name = target["name"]
        rows = verdicts[verdicts["target"] == name]
        width, height = sizes[name]
        targets.append(
            {
                **target,
                "width": width,
                "height": height,
                "alt": _parts.alternative_text(target, rows),
                "counts": _parts.counts(rows),
                "published": _parts.counts(rows, "published"),
                "results": results[target["paper"]],
                "words": _parts.words(spec, target),
                "claims": (claims := _parts.claims(rows[~_parts.is_number(rows)])),
                "folded": _parts.folded(claims),
                "numbers": _parts.numbers(rows[_parts.is_number(rows)]),
                "cases": _parts.cases(tables[name]),
                "preview": _parts.preview(tables[name]),
                "data": _parts.data(spec, target["experiments"], sources),
                "settings": _parts.settings(spec, target["experiments"]),
                "shared": _parts.shared(spec, target),
                "command": _parts.command(spec["changed"], name),
            }
        )
    return targets


def _papers(
    spec: Mapping[str, Any], targets: Iterable[Mapping[str, Any]], verdicts: pd.DataFrame
) -> list[dict[str, Any]]:
    papers = []
    for about in spec["papers"]:
        name = about["name"]
        of_paper = [target for target in targets if target["paper"] == name]
        rows = verdicts[verdicts["paper"] == name]
        of_itself = rows[rows["of"] == PAPERS]
        parts = {
            "targets": of_paper,
            "n_ours": sum(target["ours"] for target in of_paper),
            "whose": _parts.whose(rows),
            "counts": _parts.counts(of_itself),
            "command": _parts.command(spec["changed"], name),
        }
        papers.append(about | parts)
    return papers
