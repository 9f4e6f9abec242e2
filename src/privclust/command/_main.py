"""The command ``privclust``: clusters, sketches, what they tell, audits, runs compared and checked.

A command is a module that adds its parser, which names what runs it. Nothing that takes long to
import is imported before the arguments have been understood.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import threading
import warnings
from collections.abc import Iterator

from privclust import __version__
from privclust.command import (
    _audit_command,
    _cluster_command,
    _compare_command,
    _decode_command,
    _plan_command,
    _sketch_command,
    _verify_command,
)
from privclust.command._arguments import Parser
from privclust.command._output import say

_COMMANDS = (
    *(_cluster_command, _sketch_command, _decode_command, _plan_command),
    *(_audit_command, _compare_command, _verify_command),
)
_FAILURE, _INTERRUPTED, _TERMINATED = 1, 130, 143


class _Terminated(BaseException):
    """SIGTERM, as an exception: files under temporary names are removed on the way out."""


def main(argv: list[str] | None = None) -> int:
    """Run the command ``privclust`` and return its exit code.

    Parameters
    ----------
    argv : list of str or None
        Arguments; those of the process where None.

    Returns
    -------
    int
        0; 1 if it failed, with one line on the standard error, if an audit finds a claim
        violated, if two runs differ, or if jobs of an archived run do not come out as they did;
        130 or 143 if it was interrupted or terminated.

    Raises
    ------
    SystemExit
        With code 2 and one line, if the arguments cannot be understood; 0 for ``--help``.
    """
    args = parser().parse_args(argv)
    try:
        with _termination_as_exception(), _warnings_as_lines():
            return args.run(args) or 0
    except KeyboardInterrupt:
        return _fail("interrupted; nothing was written", _INTERRUPTED)
    except _Terminated:
        return _fail("terminated; nothing was written", _TERMINATED)
    except Exception as error:  # one line whatever it is; a library's errors have any type
        return _fail(str(error).strip() or type(error).__name__, _FAILURE)


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands, which the documentation is made from as well."""
    whole = Parser(prog="privclust", description="Clustering under differential privacy.")
    whole.add_argument("--version", action="version", version=f"privclust {__version__}")
    commands = whole.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add_to(commands)
    return whole


@contextlib.contextmanager
def _termination_as_exception() -> Iterator[None]:
    """Turn SIGTERM into `_Terminated` meanwhile; only the main thread may."""

    def stop(signum, frame):
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print a warning as one line and once, without the place in the code that it came from."""
    said = set()

    def show(message, *place):
        line = f"privclust: warning: {' '.join(str(message).split())}"
        if line not in said:
            said.add(line)
            say(line)

    with warnings.catch_warnings():
        warnings.showwarning = show
        # its conversions reach limits on the way, such as log1p(-1), and say so to nobody's use
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="dp_accounting")
        yield


def _fail(message: str, code: int) -> int:
    """Print one line and return the code."""
    say(f"privclust: error: {' '.join(message.split())}")
    return code
