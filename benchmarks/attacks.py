"""Write the table of attacks in docs/privacy.md from docs/results/audit/audit_epsilon.csv.

python benchmarks/attacks.py
"""

import pandas as pd
from scratch import ROOT, write_into

from privclust.papers.audit import figures as audit
from privclust.pipeline.words import VIOLATED

PAGE = ROOT / "docs/privacy.md"
RESULTS = ROOT / "docs/results/audit/audit_epsilon.csv"
HEAD = (
    "| | case | claim | claimed (epsilon, delta) | epsilon at least | delta at least | verdict | "
    "runs | CPU s |"
)


def attacks():
    """Return the table in Markdown, case by case, a paper's name before its first."""
    cases = pd.read_csv(RESULTS)
    lines = [HEAD, "|" + " --- |" * (HEAD.count("|") - 1)]
    for paper in audit.FAMILIES.values():
        for number, case in enumerate(cases[cases["paper"] == paper].itertuples()):
            verdict = f"**{case.verdict}**" if case.verdict.startswith(VIOLATED) else case.verdict
            cells = (
                "" if number else paper,
                case.case,
                case.claim_by,
                f"({case.claimed_epsilon:g}, {case.claimed_delta:g})",
                f"{case.epsilon_at_least:.2f}",
                audit._lower(case.delta_at_least),
                verdict,
                f"{case.draws:,}",
                f"{case.cpu_seconds:.1f}",
            )
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    write_into(PAGE, "attacks", attacks())
