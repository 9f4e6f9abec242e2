"""Running a command: one line for an error, exit codes, signals and warnings."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from privclust.command.output import say

_FAILURE, _INTERRUPTED, _TERMINATED = 1, 130, 143


class _Terminated(BaseException):
    """SIGTERM, as an exception, so that temporary files are removed."""


def run(parser: argparse.ArgumentParser, argv: list[str] | None = None) -> int:
    """Run the command named by the arguments and return its exit code.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        Its arguments have ``run``, a function that takes the parsed arguments and returns an exit
        code, or None for 0.
    argv : list of str or None
        Arguments; None for those of the process.

    Returns
    -------
    int
        The command's exit code; 1 if it failed, with one line on the standard error; 130 or 143 if
        it was interrupted or terminated.

    Raises
    ------
    SystemExit
        With code 2 and one line, if the arguments are invalid; 0 for ``--help``.
    """
    args = parser.parse_args(argv)
    args.typed = list(sys.argv[1:] if argv is None else argv)  # for the report
    os.environ["MPLBACKEND"] = "agg"  # a backend set by a notebook may be missing
    try:
        with _termination_as_exception(), _warnings_as_lines(parser.prog):
            _check_working_folder()
            return args.run(args) or 0
    except KeyboardInterrupt as error:
        message, code = f"interrupted; {_notes(error) or 'nothing was written'}", _INTERRUPTED
    except _Terminated as error:
        message, code = f"terminated; {_notes(error) or 'nothing was written'}", _TERMINATED
    except Exception as error:  # one line for any error; libraries raise any type
        said = str(error).strip() or type(error).__name__
        message, code = "; ".join(filter(None, [said, _notes(error)])), _FAILURE
    say(f"{parser.prog}: error: {' '.join(message.split())}")
    return code


def _notes(error: BaseException) -> str:
    """Return what the command added to an error: what is spent, and what was written."""
    return "; ".join(getattr(error, "__notes__", []))


def _check_working_folder() -> None:
    """Raise an error if the working folder, to which paths are relative, was removed."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise ValueError("the working folder is gone: change to one that is there") from None


@contextlib.contextmanager
def _termination_as_exception() -> Iterator[None]:
    """Turn SIGTERM into `_Terminated` during the block; only in the main thread."""

    def stop(signum: int, frame: Any) -> None:
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
def _warnings_as_lines(prog: str) -> Iterator[None]:
    said = set()

    def show(message: Warning | str, *place: Any, **more: Any) -> None:
        line = f"{prog}: warning: {' '.join(str(message).split())}"
        if line not in said:
            said.add(line)
            say(line)

    with warnings.catch_warnings():
        warnings.showwarning = show
        # dp-accounting computes log1p(-1): a warning that no user can act on
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="dp_accounting")
        yield
