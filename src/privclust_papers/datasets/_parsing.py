"""Parsing shared by readers: lines of numbers, MATLAB files, encoded images."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from privclust.core.packages import require
from privclust_papers.datasets.registry import DataError, damaged


def wrong_line(where: object, number: int, line: bytes, expected: str) -> DataError:
    """Return an error with a wrong line of a text file and the expected format."""
    return damaged(where, f"line {number}: got {line[:80]!r}; it must be {expected}")


def lines_of(path: str | os.PathLike[str], opened: Callable[..., Any] = open) -> list[bytes]:
    """Return the lines of a text file; `opened` opens a compressed one."""
    try:
        with opened(path, "rb") as file:
            return file.read().splitlines()
    except (OSError, EOFError) as error:
        raise damaged(path, f"cannot be read ({error})") from error


def rows_of_numbers(
    path: str | os.PathLike[str],
    lines: Iterable[bytes],
    separator: bytes | None,
    is_row: Callable[[list[float]], bool],
    expected: str,
    name: str = "row",
) -> np.ndarray:
    """Return lines of numbers as a table; empty lines are skipped."""
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = [float(field) for field in line.split(separator)]
        except ValueError:
            row = []
        if not is_row(row):
            raise wrong_line(path, number, line, expected)
        rows.append(row)
    if not rows:
        raise damaged(path, f"holds no {name}")
    return np.array(rows)


def matlab_variables(
    where: str, file: str | os.PathLike[str] | BinaryIO, contents: Mapping[str, str], **options: Any
) -> list[Any]:
    """Return variables of a MATLAB 5 file; `contents` describes each in a word, for messages."""
    from scipy.io import loadmat

    try:
        variables = loadmat(file, variable_names=tuple(contents), **options)
    except Exception as error:  # SciPy raises many types for damaged bytes
        raise damaged(where, f"cannot be read as MATLAB 5 ({error})") from error
    for name, content in contents.items():
        if name not in variables:
            raise damaged(where, f"has no variable {name} ({content})")
    return [variables[name] for name in contents]


@contextmanager
def opened_image(where: str, content: bytes) -> Iterator[Any]:
    """Open an encoded image by Pillow."""
    pillow = require("PIL.Image", "images")
    try:
        with pillow.open(io.BytesIO(content)) as image:
            yield image
    except Exception as error:  # Pillow raises many types for damaged bytes
        raise damaged(where, f"cannot be decoded ({error})") from error
