"""Write the tables of attacks in two pages of docs/ from docs/results/audit/.

python benchmarks/attacks.py
"""

import pandas as pd
from scratch import ROOT, write_into

from privclust_papers.audit import figures as audit
from privclust_papers.pipeline.words import VIOLATED

PAGES = {"attacks": ROOT / "docs/audit_results.md", "sweeps": ROOT / "docs/gibbs.md"}
RESULTS = ROOT / "docs/results/audit"
SWEPT = (  # name, start and pair of audit_sweeps
    ("A, start from the data", "start from the data", "best"),
    ("A, random start", "random start", "best"),
    ("B, random start", "random start", "stray"),
)
HEAD = (
    "| | case | claim | claimed (epsilon, delta) | epsilon at least | delta at least | verdict | "
    "runs |"
)


def attacks():
    """Return the table in Markdown, case by case, a paper's name before its first."""
    cases = pd.read_csv(RESULTS / "audit_epsilon.csv")
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
            )
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def sweeps():
    """Return the exact loss over sweeps, and what an attack proves, in bold where it convicts."""
    table = pd.read_csv(RESULTS / "audit_sweeps.csv")
    numbers = sorted(table["sweeps"].unique())
    lines = ["| sweeps | " + " | ".join(map(str, numbers)) + " | many |"]
    lines.append("|" + " --- |" * (len(numbers) + 2))
    for name, start, pair in SWEPT:
        rows = table[(table["start"] == start) & (table["pair"] == pair)].sort_values("sweeps")
        exact = [f"{loss:.2f}" for loss in rows["exact_epsilon"]]
        lower = [
            f"**{row.epsilon_at_least:.2f}**"
            if row.verdict.startswith(VIOLATED)
            else f"{row.epsilon_at_least:.2f}"
            for row in rows.itertuples()
        ]
        limit = f"{rows['limit_epsilon'].iloc[0]:.2f}"
        lines.append(f"| {name}: exact loss | " + " | ".join([*exact, limit]) + " |")
        lines.append("| epsilon at least | " + " | ".join(lower) + " | |")
    return "\n".join(lines)


if __name__ == "__main__":
    for name, table in (("attacks", attacks), ("sweeps", sweeps)):
        write_into(PAGES[name], name, table())
