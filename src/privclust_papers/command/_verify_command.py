"""``privclust-papers verify``: an archived run, of which jobs drawn at random are done again."""

from __future__ import annotations

import argparse
import secrets
from pathlib import Path

from privclust.command.arguments import (
    add_command,
    number,
    positive_integer,
    positive_number,
    seed,
)
from privclust.command.output import print_result, say

_KINDS = ("data", "features", "shared", "fit", "metrics", "table")


def add_to(commands) -> None:
    """``privclust-papers verify``."""
    parser = add_command(
        commands,
        "verify",
        _run,
        summary="check an archived run, and do some of its jobs again",
        description="Check all checksums of an archive of a run (a crate, .zip), draw jobs at "
        "random in proportion to what they took, do them again, hold the results against the "
        "archive, and write a certificate. To be run in the project's folder, at the version of "
        "the archive. Exit code 0 if all that was recomputed agrees, 1 if something does not or "
        "could not be recomputed, 2 if the archive cannot be used.",
    )
    add = parser.add_argument
    add("crate", metavar="CRATE", help="an archive of a run (.zip)")
    add("--jobs", type=positive_integer, default=12, metavar="N", help="at most; default: 12")
    add(
        "--minutes",
        type=positive_number,
        default=10.0,
        metavar="M",
        help="of CPU time that the jobs took in the run, at most; default: 10",
    )
    add("--seed", type=seed, metavar="S", help="of the draw; default: a new one, which is printed")
    add("--cores", type=positive_integer, default=1, metavar="N", help="default: 1")
    add(
        "--tolerance",
        type=_tolerance,
        action="append",
        default=[],
        metavar="KIND=R",
        help="largest relative difference of numbers in results of a kind, "
        f"{', '.join(_KINDS)}; may come several times; default: none",
    )
    add("--checker", default="", metavar="NAME", help="who checks, for the certificate")
    add(
        "-o",
        "--output",
        type=_folder,
        default="certificate",
        metavar="FOLDER",
        help="for certificate.md and codecheck.yml, which are replaced; default: certificate",
    )


def _tolerance(text: str) -> tuple[str, float]:
    """A kind of results and the difference that is allowed."""
    kind, _, value = text.partition("=")
    if kind not in _KINDS or not value or number(value) < 0:
        raise argparse.ArgumentTypeError(
            f"must be KIND=R with R at least 0 and KIND one of {', '.join(_KINDS)}, got {text!r}"
        )
    return kind, number(value)


def _folder(text: str) -> str:
    """The name of a folder."""
    if not text:
        raise argparse.ArgumentTypeError("must be the name of a folder, got ''")
    return text


def _run(args) -> int:
    """Check, draw, do again, compare, and write the certificate."""
    from privclust.core.printable import printable
    from privclust_papers.report.certificate import CERTIFICATE, summary, write_certificate
    from privclust_papers.report.crate_file import read_crate
    from privclust_papers.report.crate_members import CrateError
    from privclust_papers.report.recomputation import check_project, published_as, recompute
    from privclust_papers.report.verification import draw, total_cost

    try:
        crate = read_crate(args.crate)
        config = check_project(crate)
    except CrateError as error:
        args.usage_error(str(error))
    chosen = secrets.randbelow(2**32) if args.seed is None else args.seed
    drawn = draw(crate, args.jobs, args.minutes, chosen)
    if not drawn.drawn and not drawn.too_long:
        args.usage_error(f"{args.crate}: none of its jobs makes a result that can be compared")
    if not drawn.drawn:
        args.usage_error(
            f"{args.crate}: no job can be done again within {args.minutes:g} minutes; --minutes "
            "allows for more"
        )
    try:
        Path(args.output).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        args.usage_error(f"--output: {args.output} is no folder ({error.strerror})")
    say(
        f"seed {chosen}: {len(drawn.drawn)} jobs drawn, {len(drawn.needed)} needed before them, "
        f"{total_cost(drawn.jobs):,.1f} CPU s in the run"
    )
    how = {"seed": chosen, "minutes": args.minutes, "tolerances": dict(args.tolerance)}
    try:
        verification = recompute(crate, drawn, config, cores=args.cores, **how)
    except CrateError as error:
        args.usage_error(str(error))
    doi = published_as(crate)
    write_certificate(verification, args.output, checker=args.checker, doi=doi)
    for finding in verification.findings:
        detail = f" ({finding.detail})" if finding.detail else ""
        print_result(printable(f"{finding.name}: {finding.outcome}{detail}") + "\n")
    if verification.messages:
        say(verification.messages)
    print_result(f"{summary(verification)}\n")
    say(f"certificate: {args.output}/{CERTIFICATE}")
    return 0 if verification.agrees else 1
