"""The command ``privclust``: its own commands, and those of packages installed next to it.

A command is a module with a function ``add_to(commands)``, which adds the command's parser. The
parser names the function that runs the command. Slow imports follow after the arguments have been
parsed.
"""

from __future__ import annotations

import argparse
from importlib.metadata import entry_points

from privclust import __version__
from privclust.command import _cluster_command, _decode_command, _plan_command
from privclust.command.arguments import Parser
from privclust.command.running import run

COMMANDS = "privclust.commands"
"""The group of entry points by which another package adds a command."""


def main(argv: list[str] | None = None) -> int:
    """Run the command ``privclust`` with arguments; None for those of the process.

    Returns its exit code, and raises SystemExit, as `privclust.command.running.run` does.
    """
    return run(parser(), argv)


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands, which the documentation also uses."""
    whole = Parser(prog="privclust", description="Clustering under differential privacy.")
    whole.add_argument("--version", action="version", version=f"privclust {__version__}")
    commands = whole.add_subparsers(title="commands", required=True, metavar="COMMAND")
    others = sorted(entry_points(group=COMMANDS), key=lambda entry: entry.name)
    own = _cluster_command, _decode_command, _plan_command
    for command in (*own, *(entry.load() for entry in others)):
        command.add_to(commands)
    return whole
