"""The certificate of a verification, ``codecheck.yml``.

It has the keys of https://codecheck.org.uk/spec/config/1.0/ except for the certificate number, and
what else is needed to check the check: the archive, the draw and the machine.
"""

from __future__ import annotations

import os
import platform
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from privclust import __version__
from privclust.core.files import write_text
from privclust.core.hdf5 import package_versions
from privclust.core.printable import excerpt
from privclust_papers.pipeline.project_files import CITATION, CONFIG
from privclust_papers.report.crate_file import file_sha256
from privclust_papers.report.verification import MISSING, Verification, cost_of
from privclust_papers.settings.config import load_yaml

CERTIFICATE = "codecheck.yml"


def write_certificate(
    verification: Verification, folder: str | os.PathLike[str], *, checker: str = ""
) -> None:
    """Write the certificate into a folder, which is made if needed; `checker` is who checks.

    The project's own config gives the DOI of the crate, and its ``CITATION.cff`` the authors.
    """
    document = _certificate(verification, checker or "not stated")
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    write_text(Path(folder, CERTIFICATE), f"---\n{text}")


def summary(verification: Verification) -> str:
    """Return in a few sentences what was recomputed, what share that was, and what came out."""
    crate, findings = verification.crate, verification.findings
    outcomes = Counter(finding.outcome for finding in findings)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    done, total = cost_of(*verification.redone), cost_of(*crate.jobs)
    share = f" ({done / total:.2%} of its {total:,.0f} CPU s)" if total else ""
    return (
        f"All {len(crate.sums):,} files of the crate have their checksums. "
        f"{len(verification.redone)} of the run's {len(crate.jobs):,} jobs were done again, which "
        f"took {done:,.1f} CPU s in the run{share}. Of the {len(findings)} results they make: "
        f"{counts or 'none compared'}. Nothing is said of results that were not recomputed."
    )


def _certificate(verification: Verification, checker: str) -> dict[str, Any]:
    crate, draw = verification.crate, verification.draw
    citation = load_yaml(CITATION) if Path(CITATION).is_file() else {}
    published = load_yaml(CONFIG).get("published") or {}
    # the DOI is of a crate of these very bytes
    sha256 = file_sha256(crate.path)
    doi = published.get("doi") if published.get("sha256") == sha256 else None
    address = f"https://doi.org/{doi}" if doi else None
    document = {
        "version": "https://codecheck.org.uk/spec/config/1.0/",
        "paper": {
            "title": f"privclust {__version__}, {crate.effort} effort",
            "authors": citation.get("authors", []),
            **({"reference": address} if address else {}),
        },
        "manifest": [
            {"file": f.name, "comment": f"{f.outcome}: {excerpt(f.detail)}".removesuffix(": ")}
            for f in verification.findings
            if f.outcome != MISSING
        ],
        "codechecker": [{"name": checker}],
        "summary": summary(verification),
        "repository": address,
        "check_time": datetime.now(UTC).isoformat(timespec="seconds"),
        "agrees": verification.agrees,
        "not_recomputed": [f.name for f in verification.findings if f.outcome == MISSING],
        "archive": {"sha256": sha256, "substitutes": list(crate.substitutes)},
        "draw": {
            "seed": verification.seed,
            "minutes": verification.minutes,
            "tolerances": dict(verification.tolerances),
            "drawn": [f"{job.rule}: {job.outputs[0]}" for job in draw.drawn],
            "needed_before": [f"{job.rule}: {job.outputs[0]}" for job in draw.needed],
            "too_long": f"{len(draw.too_long)} jobs of {cost_of(*draw.too_long):,.0f} CPU s",
            "incomparable": f"{len(draw.incomparable)} jobs",
        },
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": f"{_processor()}, {os.cpu_count()} cores",
            "python": platform.python_version(),
            "packages": package_versions(),
            "seconds": round(verification.elapsed_s),
        },
        "messages": verification.messages or None,
    }
    return {key: value for key, value in document.items() if value is not None}


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    named = re.search(r"^model name[^:\n]*:(.*)$", text, re.MULTILINE)
    return named[1].strip() if named else platform.processor() or "unknown"
