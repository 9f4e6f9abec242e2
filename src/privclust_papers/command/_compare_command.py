"""``privclust-papers compare``: differences of two runs of the pipeline."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from privclust.command.arguments import add_command, number
from privclust.command.output import print_result

if TYPE_CHECKING:
    from privclust_papers.report.two_runs import Difference, Run, RunComparison

_LISTED = 30  # most verdicts shown
_LISTED_OF_A_TARGET = 3  # most numbers shown per target


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
    add(
        "--absolute-tolerance",
        type=number,
        default=0.0,
        metavar="T",
        help="they are also equal if |a - b| is at most T; default: 0",
    )
    add("--json", action="store_true", help="print all differences, as JSON instead of text")


def _run(args) -> int:
    if args.tolerance < 0 or args.absolute_tolerance < 0:
        args.usage_error("--tolerance and --absolute-tolerance must be at least 0")

    from privclust_papers.report.two_runs import NoRunError, compare_runs, read_run

    try:
        before, after = read_run(args.before), read_run(args.after)
    except NoRunError as error:
        args.usage_error(str(error))
    outcome = compare_runs(before, after, args.tolerance, args.absolute_tolerance)
    if args.json:
        named = {"a": before.name, "b": after.name, **outcome.as_json()}
        print_result(json.dumps(named, indent=2, ensure_ascii=False) + "\n")
    else:
        print_result(_text(before, after, outcome))
    return 0 if outcome.is_equal else 1


def _text(before: Run, after: Run, outcome: RunComparison) -> str:
    lines = [
        f"a: {before.name}, {len(before.verdicts)} verdicts, {len(before.tables)} targets",
        f"b: {after.name}, {len(after.verdicts)} verdicts, {len(after.tables)} targets",
        "",
        f"verdicts: {len(outcome.verdicts)} differ, {outcome.n_verdicts:,} compared",
        *_listed(outcome.verdicts, _LISTED),
        f"numbers: {len(outcome.numbers)} differ, {outcome.n_numbers:,} compared (tolerance "
        f"{outcome.relative:g} of the larger, or {outcome.absolute:g})",
        *_by_target(outcome.numbers),
        "equal" if outcome.is_equal else "different",
    ]
    return "\n".join(lines) + "\n"


def _by_target(differences: Sequence[Difference]) -> list[str]:
    """Return the number of differing values of each target, and the first of them, as lines."""
    targets: dict[str, list[Difference]] = {}
    for difference in differences:
        targets.setdefault(re.split(r"[.\[]", difference.name)[0], []).append(difference)
    return [
        line
        for target, members in targets.items()
        for line in (f" {target}: {len(members):,}", *_listed(members, _LISTED_OF_A_TARGET))
    ]


def _listed(differences: Sequence[Difference], most: int) -> list[str]:
    lines = [
        f"  {d.name}: only in {'b' if d.before is None else 'a'}"
        if d.before is None or d.after is None
        else f"  {d.name}: {d.before} -> {d.after}"
        for d in differences[:most]
    ]
    more = len(differences) - most
    return [*lines, f"  and {more:,} more (--json prints all)"] if more > 0 else lines
