"""A command's parser, and the types of its arguments."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any, NoReturn

from privclust.core.printable import printable


class Parser(argparse.ArgumentParser):
    """A parser with one-line errors."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {printable(message)} (see --help)\n")


def add_command(
    commands: Any, name: str, run: Callable[..., Any], summary: str, description: str
) -> argparse.ArgumentParser:
    """Add a command's parser, with the function that runs it and its usage error."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=description
    )
    parser.set_defaults(run=run, usage_error=parser.error)
    return parser


def number(text: str) -> float:
    """Return the number in a text; an ArgumentTypeError unless it is finite."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a finite number, got {text!r}")
    return value


def positive_number(text: str) -> float:
    """A finite number above 0."""
    value = number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"must be greater than 0, got {text!r}")
    return value


def probability(text: str) -> float:
    """A number from 0 to less than 1."""
    value = number(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"must be from 0 to less than 1, got {text!r}")
    return value


def seed(text: str) -> int:
    """A whole number from 0."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a whole number from 0, got {text!r}")
    return int(text)


def positive_integer(text: str) -> int:
    """A whole number from 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, at least 1, got {text!r}")
    return int(text)


def size(text: str) -> int | str:
    """A whole number from 1, or the word auto."""
    return text if text == "auto" else positive_integer(text)


def delimiter(text: str) -> str:
    """One character, or the word tab."""
    character = "\t" if text in ("tab", "\\t") else text
    if len(character) != 1:
        raise argparse.ArgumentTypeError(f"must be one character or 'tab', got {text!r}")
    return character


def names(text: str) -> tuple[str, ...]:
    """Return the names in a text, divided by commas; an ArgumentTypeError for an empty one."""
    parts = tuple(part.strip() for part in text.split(","))
    if not all(parts):
        raise argparse.ArgumentTypeError(f"must be names between commas, got {text!r}")
    return parts


def add_neighbours(add: Callable[..., Any]) -> None:
    """Add ``--neighbours``."""
    add(
        "--neighbours",
        choices=("replace_one", "add_remove"),
        default="replace_one",
        # "replace-one" is accepted, too
        type=lambda name: name.replace("-", "_"),
        help="protect one record's values (replace_one, the default; the number of rows is public, "
        "unless persons are protected), or whether it is present at all (add_remove)",
    )
