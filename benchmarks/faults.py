"""Known faults, and who finds them: the table in docs/audit_quality.md.

    OMP_NUM_THREADS=1 python benchmarks/faults.py [--effort quick|paper] [FAULT ...]
        [--into docs/audit_quality.md]

Each fault of `privclust_audit.faults` is attacked on its pair by the audit from outputs alone, by
the audit with the likelihood ratio where densities are known, both until they have seen enough, by
a look inside, and by DP-Sniper's method with ten times the runs that the first took (at least
20,000 and at most 2,000,000 on each data set). How many runs that method needs is searched for by
doubling, from 500 on each data set; as each search may stop at a lucky one, that favours it.
Private mechanisms and twins are attacked likewise, but for the doubling, and listed where one is
convicted. Quick effort has a hundredth of the runs and takes less than a minute.
"""

import argparse
import dataclasses
import time
from pathlib import Path

import numpy as np
from scratch import write_into

from privclust_audit.black_box import (
    CANNOT_TELL,
    VIOLATED,
    audit_mechanism,
    likelihood_ratio,
)
from privclust_audit.faults import FAULTS
from privclust_papers.audit.fault_trials import look_at
from privclust_papers.audit.sniper import sniper

MOST = {"quick": 40_000, "paper": 4_000_000}  # runs on each data set, of an audit
MOST_PRIVATE = {"quick": 4_000, "paper": 200_000}  # the same where there is nothing to find
SNIPER_RUNS = {"quick": (2_000, 20_000), "paper": (20_000, 2_000_000)}
SNIPER_FACTOR, SNIPER_LEAST = 10, 500
HEAD = (
    "fault", "claim", "true", "printed", "outputs alone", "runs", "CPU s", "likelihood ratio",
    "runs", "CPU s", "looked inside", "runs", "CPU s", "DP-Sniper's method", "runs", "CPU s",
    "finds it from",
)  # fmt: skip
MISSING = ("", "", "")


def of_audit(fault, mechanism, most, log_density=None):
    """Audit a mechanism; return whether it is convicted, the bound, all runs, and CPU seconds."""
    statistic = None
    if log_density is not None:
        statistic = likelihood_ratio(log_density, fault.data, fault.neighbour)
    result = audit_mechanism(
        mechanism, fault.data, fault.neighbour, fault.epsilon, fault.delta, most, statistic, 0,
        stopping="anytime",
    )  # fmt: skip
    bound = result.epsilon_lower_bound
    return result.verdict == VIOLATED, bound, 2 * result.n_trials, result.cpu_seconds


def of_sniper(fault, mechanism, n_runs):
    """The same by DP-Sniper's method, with so many runs on each data set."""
    start = time.process_time()
    rng = np.random.default_rng(0)
    bound, n_made = sniper(mechanism, fault.data, fault.neighbour, n_runs, rng)
    return bound > fault.epsilon, bound, n_made, time.process_time() - start


def of_look(fault, mechanism):
    """The same by a look inside; of the verdict, in place of whether it is convicted."""
    start = time.process_time()
    verdict, epsilon, n_runs = look_at(fault, mechanism)
    return verdict, epsilon, n_runs, time.process_time() - start


def least_of_sniper(fault, effort):
    """Runs on both data sets from which DP-Sniper's method finds a fault; None up to the most."""
    n_runs = SNIPER_LEAST
    while n_runs <= SNIPER_RUNS[effort][1]:
        found, _, both, _ = of_sniper(fault, fault.mechanism, n_runs)
        if found:
            return both
        n_runs *= 2
    return None


def compared(fault, mechanism, effort, most, log_density):
    """What the four tools say of a mechanism; None where the density is not known."""
    alone = of_audit(fault, mechanism, most)
    ratio = log_density and of_audit(fault, mechanism, most, log_density)
    fewest, largest = SNIPER_RUNS[effort]
    n_runs = min(max(SNIPER_FACTOR * alone[2] // 2, fewest), largest)
    return alone, ratio, of_look(fault, mechanism), of_sniper(fault, mechanism, n_runs)


def cells(finding):
    """Cells of a tool: the bound, whether it convicts, runs and CPU seconds."""
    if finding is None:
        return MISSING
    verdict, bound, runs, seconds = finding
    word = CANNOT_TELL if verdict == CANNOT_TELL else "**found**" if is_found(verdict) else "no"
    words = f"{word}, {bound:.3g}" if bound or not isinstance(verdict, str) else word
    return words, f"{runs:,}", f"{seconds:.1f}" if seconds >= 0.05 else f"{seconds:.3f}"


def is_found(verdict):
    """Whether a tool convicts."""
    return verdict == VIOLATED if isinstance(verdict, str) else bool(verdict)


def number(value):
    """A number as a cell; what is not known is empty."""
    return "" if value is None else f"{value:.3g}"


def row(name, fault, findings, least):
    """A row of the table."""
    claim = f"{fault.epsilon:.3g}"
    parts = [name, claim, number(fault.loss), number(fault.published)]
    parts += [cell for finding in findings for cell in cells(finding)]
    parts.append("never" if least is None else f"{least:,}")
    return "| " + " | ".join(parts) + " |"


def table(effort, names):
    """Return the table and a line on private mechanisms, in Markdown."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + " --- |" * len(HEAD)]
    tools = ("outputs alone", "likelihood ratio", "looked inside", "DP-Sniper's method")
    convicted, n_private, n_faults, counts = [], 0, 0, np.zeros(4, dtype=int)
    n_unseen, n_fewer = 0, 0
    for name in names:
        fault = FAULTS[name]
        if not fault.is_private:
            findings = compared(fault, fault.mechanism, effort, MOST[effort], fault.log_density)
            counts += [one is not None and is_found(one[0]) for one in findings]
            n_faults += 1
            n_unseen += findings[2][0] == CANNOT_TELL
            least = least_of_sniper(fault, effort)
            alone, sniper = findings[0], findings[3]
            if least is None and is_found(sniper[0]):  # found with more runs than were searched
                least = sniper[2]
            n_fewer += alone[0] and (least is None or SNIPER_FACTOR * alone[2] <= least)
            lines.append(row(name, fault, findings, least))
            print(lines[-1], flush=True)
        corrected = dataclasses.replace(
            fault, mechanism=fault.twin or fault.mechanism, twin=None, name=f"{name} (corrected)"
        )
        density = fault.log_density if fault.is_private else None
        found = compared(corrected, corrected.mechanism, effort, MOST_PRIVATE[effort], density)
        says = [one is not None and is_found(one[0]) for one in found]
        convicted += [
            f"{corrected.name}: {tool}" for tool, one in zip(tools, says, strict=True) if one
        ]
        n_private += 1
    known = sum(not FAULTS[one].is_private and bool(FAULTS[one].log_density) for one in names)
    lines += [
        "",
        f"Found: {counts[0]} of {n_faults} from outputs alone, {counts[1]} of {known} by the "
        f"likelihood ratio, {counts[2]} of {n_faults - n_unseen} by looking inside ({n_unseen} "
        f'more are "cannot tell"), {counts[3]} of {n_faults} by DP-Sniper\'s method. In '
        f"{n_fewer} of {n_faults} cases, the audit by outputs alone takes at most a tenth of the "
        f"runs that DP-Sniper's method needs. Of {n_private} private mechanisms, convicted: "
        f"{', '.join(convicted) or 'none'}.",
    ]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="FAULT", default=list(FAULTS))
    parser.add_argument("--effort", choices=tuple(MOST), default="quick")
    parser.add_argument("--into", type=Path)
    args = parser.parse_args()
    start = time.process_time()
    text = table(args.effort, args.names)
    print(text.rpartition("\n")[2])
    print(f"{time.process_time() - start:.0f} CPU-s")
    if args.into:
        write_into(args.into, "faults", text)


if __name__ == "__main__":
    main()
