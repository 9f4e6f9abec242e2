"""The command ``privclust-papers``: check an archived run, compare two runs."""

from __future__ import annotations

import argparse

from privclust import __version__
from privclust.command.arguments import Parser
from privclust.command.running import run
from privclust_papers.command import _compare_command, _verify_command


def main(argv: list[str] | None = None) -> int:
    """Run the command ``privclust-papers`` on some arguments and return its exit code.

    The code is 0 on success; 1 after a failure (with one line on the standard error), if two runs
    differ, or if a job of an archived run does not reproduce its result; 130 or 143 if interrupted
    or terminated. Invalid arguments raise a SystemExit with code 2 and print one line.
    """
    return run(parser(), argv)


def parser() -> argparse.ArgumentParser:
    """Return the parser of both commands; the documentation uses it as well."""
    whole = Parser(prog="privclust-papers", description="Check and compare runs of the papers.")
    whole.add_argument("--version", action="version", version=f"privclust {__version__}")
    commands = whole.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _verify_command.add_to(commands)
    _compare_command.add_to(commands)
    return whole
