"""What a verification says of itself: a certificate for people, and one after CODECHECK's form.

The file ``codecheck.yml`` has the keys of https://codecheck.org.uk/spec/config/1.0/, its paths are
those in the crate, and its manifest has what was recomputed alone. It has no certificate number,
which CODECHECK gives.
"""

from __future__ import annotations

import html
import os
import platform
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from privclust import __version__
from privclust.core.files import write_text
from privclust.core.hdf5 import package_versions
from privclust.core.printable import excerpt
from privclust_papers.report.run_records import Job
from privclust_papers.report.verification import (
    KINDS,
    MISSING,
    SAME,
    Finding,
    Verification,
    cost_of,
    total_cost,
)

CERTIFICATE, CODECHECK = "certificate.md", "codecheck.yml"
_SPECIFICATION = "https://codecheck.org.uk/spec/config/1.0/"
_NOT_STATED = "not stated"


def write_certificate(
    verification: Verification,
    folder: str | os.PathLike[str],
    *,
    checker: str = "",
    doi: str = "",
    seconds: float | None = None,
) -> None:
    """Write both files into a folder, which is made if needed.

    `checker` is who checks, `doi` of the crate, as text; `seconds` the time since 1970, None for
    now.
    """
    when = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    time = when.isoformat(timespec="seconds")
    write_text(Path(folder, CERTIFICATE), _text(verification, time, checker, doi))
    document = _codecheck(verification, time, checker, doi)
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    write_text(Path(folder, CODECHECK), f"---\n{text}")


def summary(verification: Verification) -> str:
    """Return in a few sentences what was recomputed, what share that was, and what came out."""
    crate, findings = verification.crate, verification.findings
    outcomes = Counter(finding.outcome for finding in findings)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    done, total = total_cost(verification.redone), total_cost(crate.jobs)
    share = f" ({done / total:.2%} of its {total:,.0f} CPU s)" if total else ""
    return (
        f"All {len(crate.sums):,} files of the crate have their checksums. "
        f"{len(verification.redone)} of the run's {len(crate.jobs):,} jobs were done again, which "
        f"took {done:,.1f} CPU s in the run{share}. Of the {len(findings)} results they make: "
        f"{counts or 'none compared'}. Nothing is said of results that were not recomputed."
    )


def _machine() -> list[tuple[str, str]]:
    """Return what the machine here is, without its name or any path."""
    versions = package_versions()
    packages = ", ".join(f"{name} {versions[name]}" for name in sorted(versions))
    return [
        ("system", f"{platform.system()} {platform.machine()}"),
        ("processor", f"{_processor()}, {os.cpu_count()} cores"),
        ("Python", platform.python_version()),
        ("packages", packages),
    ]


def _processor() -> str:
    """Return the model of the processor, where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = [line for line in file if line.startswith("model name")]
    except OSError:
        lines = []
    return lines[0].partition(":")[2].strip() if lines else platform.processor() or "unknown"


def _text(verification: Verification, time: str, checker: str, doi: str) -> str:
    """Return the certificate for people, in Markdown."""
    crate, draw = verification.crate, verification.draw
    total = total_cost(crate.jobs)
    facts = [
        ("crate", f"{crate.title}, run ended {crate.created}"),
        ("SHA-256 of the crate", crate.sha256),
        ("DOI", doi or _NOT_STATED),
        ("checked by", checker or _NOT_STATED),
        ("checked at", time),
        ("code", f"privclust {__version__}, the same files as in the crate"),
        *_machine(),
        ("took", f"{verification.elapsed_s:,.0f} s"),
        ("seed of the draw", str(verification.seed)),
        (
            "limit of the draw",
            f"{verification.minutes:g} min of CPU time, by the run's own records",
        ),
        ("tolerance", _tolerances(verification.tolerances)),
    ]
    if crate.substitutes:
        facts.append(("substitutes stood in for", ", ".join(crate.substitutes)))
    verdict = "agrees" if verification.agrees else "DOES NOT AGREE, or was not recomputed"
    too_long = total_cost(draw.too_long) / total if total else 0.0
    parts = [
        f"# Certificate: what was recomputed {verdict}",
        summary(verification),
        _table(("", ""), [(name, _plain(value)) for name, value in facts]),
        "## Jobs",
        "Drawn one after another, each with a probability in proportion to what it took in the "
        f"run, by the run's own records. {len(draw.too_long)} jobs, {too_long:.1%} of the run's "
        "CPU time, take longer than the limit with what they need, and could not be drawn. "
        f"{len(draw.incomparable)} jobs make nothing that could be compared: the page, fetched "
        "data, data of one's own.",
        _table(
            ("job", "why", "CPU s in the run"),
            [
                *((_name_of(job), "drawn", f"{cost_of(job):,.1f}") for job in draw.drawn),
                *((_name_of(job), "needed by one", f"{cost_of(job):,.1f}") for job in draw.needed),
            ],
        ),
        "## Results",
        _table(
            ("result", "kind", "outcome", "detail"),
            [(f"`{f.name}`", f.kind, f.outcome, _plain(f.detail)) for f in verification.findings],
        ),
    ]
    if verification.messages:
        parts += ["## What Snakemake said last", f"```\n{verification.messages}\n```"]
    return "\n\n".join(parts) + "\n"


def _name_of(job: Job) -> str:
    """Name a job by its rule and what it makes."""
    return f"{job.rule}: `{job.outputs[0]}`"


def _plain(text: object) -> str:
    """Return a text that stands in Markdown as it is, without markup, links or images."""
    short = html.escape(excerpt(text), quote=False)
    return re.sub(r"([\\`*_\[\]!#])", r"\\\1", short)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    cells = [[str(cell).replace("|", "/") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _tolerances(tolerances: Mapping[str, float]) -> str:
    """Say what differences were allowed."""
    stated = [f"{kind} {tolerances[kind]:g}" for kind in KINDS if tolerances.get(kind)]
    if not stated:
        return "none: numbers must be the same"
    return (
        f"{', '.join(stated)}; of arrays in parts of the array's largest entry, of tables in parts "
        "of the larger of two cells; all else must be the same"
    )


def _codecheck(verification: Verification, time: str, checker: str, doi: str) -> dict[str, Any]:
    """Return the content of ``codecheck.yml``."""
    crate = verification.crate
    authors = [{"name": excerpt(crate.author)}]
    paper: dict[str, Any] = {"title": excerpt(crate.title), "authors": authors}
    address = f"https://doi.org/{doi}" if doi else ""
    if address:
        paper["reference"] = address
    document = {
        "version": _SPECIFICATION,
        "paper": paper,
        "manifest": [
            {"file": finding.name, "comment": _comment(finding)}
            for finding in verification.findings
            if finding.outcome != MISSING
        ],
        "codechecker": [{"name": checker or _NOT_STATED}],
        "summary": summary(verification),
        "repository": address or None,
        "check_time": time,
        "report": CERTIFICATE,
    }
    return {key: value for key, value in document.items() if value is not None}


def _comment(finding: Finding) -> str:
    """Say what came out for a result, in the manifest."""
    if finding.outcome == SAME or not finding.detail:
        return finding.outcome
    return f"{finding.outcome}: {excerpt(finding.detail)}"
