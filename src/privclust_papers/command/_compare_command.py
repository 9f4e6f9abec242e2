"""``privclust-papers compare``: differences of two runs of the pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privclust.command.arguments import add_command, number
from privclust.command.output import print_result

if TYPE_CHECKING:
    from privclust_papers.report.two_runs import Difference, Run, RunComparison


def add_to(commands) -> None:
    """``privclust-papers compare``."""
    parser = add_command(
        commands,
        "compare",
        _run,
        summary="compare two runs of the papers",
        description="Compare the verdicts of two finished runs, and the numbers behind each figure "
        "and table. Times are ignored. Exit code 0 if nothing differs, 1 if something does, 2 if a "
        "run cannot be read.",
    )
    add = parser.add_argument
    runs = "a folder results/EFFORT, or an archive of a run (.zip)"
    add("before", metavar="A", help=runs)
    add("after", metavar="B", help=runs)
    add(
        "--tolerance",
        type=number,
        default=0.0,
        metavar="R",
        help="numbers a, b are equal if |a - b| is at most R times the larger of |a| and |b|; "
        "default: 0",
    )


def _run(args) -> int:
    if args.tolerance < 0:
        args.usage_error("--tolerance must be at least 0")

    from privclust_papers.report.two_runs import NoRunError, compare_runs, read_run

    try:
        before, after = read_run(args.before), read_run(args.after)
    except NoRunError as error:
        args.usage_error(str(error))
    outcome = compare_runs(before, after, args.tolerance)
    print_result(_text(before, after, outcome))
    return 0 if outcome.is_equal else 1


def _text(before: Run, after: Run, outcome: RunComparison) -> str:
    lines = [
        f"a: {before.name}, {len(before.verdicts)} verdicts, {len(before.tables)} targets",
        f"b: {after.name}, {len(after.verdicts)} verdicts, {len(after.tables)} targets",
        "",
        f"verdicts: {len(outcome.verdicts)} differ, {outcome.n_verdicts:,} compared",
        *map(_line, outcome.verdicts),
        f"numbers: {len(outcome.numbers)} differ, {outcome.n_numbers:,} compared (tolerance "
        f"{outcome.relative:g} of the larger)",
        *map(_line, outcome.numbers),
        "equal" if outcome.is_equal else "different",
    ]
    return "\n".join(lines) + "\n"


def _line(difference: Difference) -> str:
    if difference.before is None or difference.after is None:
        return f"  {difference.name}: only in {'b' if difference.before is None else 'a'}"
    return f"  {difference.name}: {difference.before} -> {difference.after}"
