"""The command ``privclust-papers``: check an archived run, and repeat random jobs of it."""

from __future__ import annotations

import argparse
import secrets
from pathlib import Path

from privclust import __version__
from privclust.command.arguments import Parser, add_command, positive_integer, positive_number, seed
from privclust.command.output import print_result, say
from privclust.command.running import run

_FOLDER = "certificate"


def main(argv: list[str] | None = None) -> int:
    """Run the command ``privclust-papers`` on some arguments and return its exit code.

    The code is 0 on success; 1 after a failure (with one line on the standard error), or if a job
    of an archived run does not reproduce its result; 130 or 143 if interrupted or terminated.
    Invalid arguments raise a SystemExit with code 2 and print one line.
    """
    return run(parser(), argv)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command; the documentation uses it as well."""
    whole = Parser(prog="privclust-papers", description="Check archived runs of the papers.")
    whole.add_argument("--version", action="version", version=f"privclust {__version__}")
    commands = whole.add_subparsers(title="commands", required=True, metavar="COMMAND")
    verify = add_command(
        commands,
        "verify",
        _run,
        summary="check an archived run, and repeat some of its jobs",
        description="Check all checksums of an archive of a run (a crate, .zip). Draw jobs at "
        "random with probabilities proportional to their CPU times, repeat them, and compare the "
        f"results with the archive. Write a certificate into the folder {_FOLDER}. Run this in the "
        "project's folder, at the version of the archive. Exit code 0 if all recomputed results "
        "agree, 1 if one differs or could not be recomputed, 2 if the archive cannot be used.",
    )
    add = verify.add_argument
    add("crate", metavar="CRATE", help="an archive of a run (.zip)")
    add(
        "--jobs",
        type=positive_integer,
        default=12,
        metavar="N",
        help="draw at most N jobs; default: 12",
    )
    add(
        "--minutes",
        type=positive_number,
        default=10.0,
        metavar="M",
        help="repeat only jobs that together took at most M minutes of CPU time in the run; "
        "default: 10",
    )
    add(
        "--seed",
        type=seed,
        metavar="S",
        help="seed of the draw; default: a new one, which is printed",
    )
    return whole


def _run(args) -> int:
    from privclust.core.printable import printable
    from privclust_papers.report import verification
    from privclust_papers.report.crate_file import CrateError, read_crate
    from privclust_papers.report.recomputation import check_project, recompute

    chosen = secrets.randbelow(2**32) if args.seed is None else args.seed
    try:
        crate = read_crate(args.crate)
        config = check_project(crate)
        drawn = verification.draw(crate, args.jobs, args.minutes, chosen)
        if not drawn.drawn:
            raise CrateError(
                f"{args.crate}: has no job with comparable results that took at most "
                f"{args.minutes:g} minutes; allow more with --minutes"
            )
        say(
            f"seed {chosen}: {len(drawn.drawn)} jobs drawn, {len(drawn.needed)} needed before "
            f"them, {verification.cost_of(*drawn.jobs):,.1f} CPU s in the run"
        )
        Path(_FOLDER).mkdir(exist_ok=True)
        checked = recompute(crate, config, drawn)
    except CrateError as error:
        args.usage_error(str(error))
    except FileExistsError:
        args.usage_error(
            f"{_FOLDER}: is not a folder; the certificate is written into a folder of this name"
        )
    verification.write_certificate(checked, _FOLDER)
    for finding in checked.findings:
        detail = f" ({finding.detail})" if finding.detail else ""
        print_result(printable(f"{finding.name}: {finding.outcome}{detail}") + "\n")
    for line in checked.messages.splitlines():
        say(printable(line))
    print_result(f"{verification.summary(checked)}\n")
    say(f"certificate: {_FOLDER}/{verification.CERTIFICATE}")
    return 0 if checked.agrees else 1
