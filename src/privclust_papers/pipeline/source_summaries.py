"""What Python sources import and define, remembered from process to process.

Parsing is most of what it takes to follow imports, and few sources change from run to run. What was
read from a text stands, by the text's digest, in a file beside this module's bytecode. Without that
file, or with one that is no good, sources are parsed again, and nothing else is different.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import functools
import hashlib
import importlib.util
import json
import os
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from privclust.core.files import write_text

_FILE = Path(importlib.util.cache_from_source(__file__)).with_suffix(".json")
_LARGEST_NUMBER = 2_000  # of texts, those asked for last


class Summary(NamedTuple):
    """What a source imports, anywhere in it, and the names that it defines at its top level.

    Of an import these are the dots before the module's name, that name, and {local name: its name
    there}, which is empty for ``import module``.
    """

    imports: list[tuple[int, str, dict[str, str]]]
    definitions: list[str]


@functools.cache
def summary_of(text: str) -> Summary:
    """Return the summary of a source, which is parsed if no process has done so before."""
    known = _remembered()
    digest = hashlib.sha256(text.encode()).hexdigest()
    if digest in known:
        known[digest] = known.pop(digest)  # now the last that was asked for
        return known[digest]
    imports = [
        imported for node in _statements(_parsed(text)) for imported in _imports_of_statement(node)
    ]
    known[digest] = Summary(imports, sorted(top_level(text)[0]))
    _remember_at_exit(os.getpid())
    return known[digest]


@functools.cache
def top_level(text: str) -> tuple[dict[str, list[ast.stmt]], list[ast.stmt]]:
    """Return a module's definitions by name, and its statements that are neither these nor imports.

    Of several definitions of a name all count; a docstring does not.
    """
    defined: dict[str, list[ast.stmt]] = {}
    statements = []
    for node in _parsed(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for name in names_in(target):
                    defined.setdefault(name, []).append(node)
        elif not isinstance(node, ast.Import | ast.ImportFrom) and not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            statements.append(node)
    return defined, statements


def names_in(node: ast.AST) -> set[str]:
    """Return the names that a piece of source mentions."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


@functools.cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Go through a module's statements, those of one level before those within them."""
    pending: deque[ast.AST] = deque([tree])
    while pending:
        node = pending.popleft()
        yield node
        for part in ("body", "handlers", "orelse", "finalbody", "cases"):
            pending.extend(getattr(node, part, ()))


def _imports_of_statement(node: ast.AST) -> list[tuple[int, str, dict[str, str]]]:
    if isinstance(node, ast.Import):
        return [(0, alias.name, {}) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        names = {alias.asname or alias.name: alias.name for alias in node.names}
        return [(node.level, node.module or "", names)]
    return []


@functools.cache
def _remembered() -> dict[str, Summary]:
    """Return the summaries of earlier processes by digest, those asked for last at the end."""
    try:
        content = json.loads(_FILE.read_bytes())
        if content["code"] == _digest_of_code():
            return {
                digest: Summary(
                    [(level, module, dict(names)) for level, module, names in imports], definitions
                )
                for digest, (imports, definitions) in content["summaries"].items()
            }
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass
    return {}


@functools.cache
def _remember_at_exit(process: int) -> None:
    """Write the summaries when this process ends; copies of it leave that to it."""

    def write() -> None:
        if os.getpid() == process and not sys.dont_write_bytecode:
            last = dict(list(_remembered().items())[-_LARGEST_NUMBER:])
            content = {"code": _digest_of_code(), "summaries": last}
            with contextlib.suppress(OSError):  # the package may stand where nobody writes
                write_text(_FILE, json.dumps(content, separators=(",", ":")))

    atexit.register(write)


@functools.cache
def _digest_of_code() -> str:
    """Return the SHA-256 of this module, which decides what a summary has."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
