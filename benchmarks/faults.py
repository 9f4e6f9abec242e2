"""Known faults, and who finds them: the table in docs/audit.md.

    OMP_NUM_THREADS=1 python benchmarks/faults.py [--effort quick|paper] [--into docs/audit.md]
        [--inside MODULE:FUNCTION] [FAULT ...]

Each fault of `privclust.privacy.faults` is attacked on its pair by the audit from outputs alone, by
the audit with the likelihood ratio where densities are known, both until they have seen enough, and
by DP-Sniper's method with ten times the runs that the first took (at least 20,000 and at most
2,000,000 on each data set). Sound mechanisms and twins are attacked likewise, and listed where one
is convicted. Quick effort has a hundredth of the runs and takes less than a minute.

`--inside` names a function that takes a `Fault` and returns whether it finds one by looking inside;
it is asked about each fault and each twin.
"""

import argparse
import dataclasses
import time
from pathlib import Path

import numpy as np
from scratch import write_into

from privclust.core.dotted import load_object
from privclust.papers.audit.sniper import sniper
from privclust.privacy.audit import VIOLATED, audit_mechanism, likelihood_ratio
from privclust.privacy.faults import FAULTS

MOST = {"quick": 40_000, "paper": 4_000_000}  # runs on each data set, of an audit
MOST_SOUND = {"quick": 4_000, "paper": 200_000}  # the same where there is nothing to find
SNIPER_RUNS = {"quick": (2_000, 20_000), "paper": (20_000, 2_000_000)}
SNIPER_FACTOR = 10
HEAD = (
    "fault", "claim", "true", "printed", "outputs alone", "runs", "CPU s", "likelihood ratio",
    "runs", "CPU s", "DP-Sniper's method", "runs", "CPU s",
)  # fmt: skip
MISSING = ("", "", "")


def of_audit(fault, mechanism, most, log_density=None):
    """Audit a mechanism; return whether it is convicted, the bound, all runs, and CPU seconds."""
    statistic = None
    if log_density is not None:

        def density(output, data):
            return log_density(output, data)

        density.many = log_density
        statistic = likelihood_ratio(density)
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
    result = sniper(mechanism, fault.data, fault.neighbour, n_runs, rng)
    bound = result.epsilon_lower_bound
    return bound > fault.epsilon, bound, result.n_runs, time.process_time() - start


def compared(fault, mechanism, effort, most, log_density):
    """What the three tools say of a mechanism; None where the density is not known."""
    alone = of_audit(fault, mechanism, most)
    ratio = log_density and of_audit(fault, mechanism, most, log_density)
    fewest, largest = SNIPER_RUNS[effort]
    n_runs = min(max(SNIPER_FACTOR * alone[2] // 2, fewest), largest)
    return alone, ratio, of_sniper(fault, mechanism, n_runs)


def cells(finding):
    """Cells of a tool: the bound, whether it convicts, runs and CPU seconds."""
    if finding is None:
        return MISSING
    is_found, bound, runs, seconds = finding
    return f"{'**found**' if is_found else 'no'}, {bound:.3g}", f"{runs:,}", f"{seconds:.1f}"


def number(value):
    """A number as a cell; what is not known is empty."""
    return "" if value is None else f"{value:.3g}"


def row(name, fault, findings, inside):
    """A row of the table."""
    claim = f"{fault.epsilon:.3g}"
    parts = [name, claim, number(fault.loss), number(fault.published)]
    parts += [cell for finding in findings for cell in cells(finding)]
    if inside is not None:
        parts.append("**found**" if inside(fault) else "no")
    return "| " + " | ".join(parts) + " |"


def table(effort, names, inside):
    """Return the table and a line on what is sound, in Markdown."""
    head = [*HEAD, *(["inside"] if inside else [])]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    tools = ("outputs alone", "likelihood ratio", "DP-Sniper's method", "inside")
    convicted, n_sound, n_faults, counts = [], 0, 0, np.zeros(3, dtype=int)
    for name in names:
        fault = FAULTS[name]
        if not fault.is_sound:
            findings = compared(fault, fault.mechanism, effort, MOST[effort], fault.log_density)
            counts += [one is not None and one[0] for one in findings]
            n_faults += 1
            lines.append(row(name, fault, findings, inside))
            print(lines[-1], flush=True)
        sound = dataclasses.replace(
            fault, mechanism=fault.twin or fault.mechanism, twin=None, name=f"{name} (sound)"
        )
        density = fault.log_density if fault.is_sound else None
        found = compared(sound, sound.mechanism, effort, MOST_SOUND[effort], density)
        says = [one is not None and one[0] for one in found]
        says.append(inside is not None and inside(sound))
        convicted += [f"{sound.name}: {tool}" for tool, one in zip(tools, says, strict=True) if one]
        n_sound += 1
    known = sum(not FAULTS[one].is_sound and bool(FAULTS[one].log_density) for one in names)
    lines += [
        "",
        f"Found: {counts[0]} of {n_faults} from outputs alone, {counts[1]} of {known} by the "
        f"likelihood ratio, {counts[2]} of {n_faults} by DP-Sniper's method. Of {n_sound} sound "
        f"mechanisms, convicted: {', '.join(convicted) or 'none'}.",
    ]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="FAULT", default=list(FAULTS))
    parser.add_argument("--effort", choices=tuple(MOST), default="quick")
    parser.add_argument("--into", type=Path)
    parser.add_argument("--inside", metavar="MODULE:FUNCTION")
    args = parser.parse_args()
    inside = args.inside and load_object(args.inside.replace(":", "."))
    start = time.process_time()
    text = table(args.effort, args.names, inside)
    print(text.rpartition("\n")[2])
    print(f"{time.process_time() - start:.0f} CPU-s")
    if args.into:
        write_into(args.into, "faults", text)


if __name__ == "__main__":
    main()
