"""Imports and definitions of Python sources, cached between processes.

Parsing takes most of the time to follow imports, and few sources change between runs. Summaries are
stored by the digest of the source, in a file next to this module's bytecode. Without a valid file
sources are parsed again, with the same result.
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
_LARGEST_NUMBER = 2_000  # of summaries in the file, the most recently used


class Summary(NamedTuple):
    """All imports of a source, and the names defined at its top level.

    An import is the number of leading dots, the module's name, and {local name: imported name},
    which is empty for ``import module``.
    """

    imports: list[tuple[int, str, dict[str, str]]]
    definitions: list[str]


@functools.cache
def summary_of(text: str) -> Summary:
    """Return the summary of a source, from the cache or by parsing."""
    known = _remembered()
    digest = hashlib.sha256(text.encode()).hexdigest()
    if digest in known:
        known[digest] = known.pop(digest)  # moved to the end: most recently used
        return known[digest]
    imports = [
        imported for node in _statements(_parsed(text)) for imported in _imports_of_statement(node)
    ]
    known[digest] = Summary(imports, sorted(top_level(text)[0]))
    _remember_at_exit(os.getpid())
    return known[digest]


@functools.cache
def top_level(text: str) -> tuple[dict[str, list[ast.stmt]], list[ast.stmt]]:
    """Return a module's definitions by name, and its statements other than these and imports.

    All definitions of a name are included; docstrings are not.
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
    """Return the names in a node."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


@functools.cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield a module's statements in breadth-first order."""
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
    """Return the cached summaries by digest, the most recently used last."""
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
    """Write the cache when this process ends, but not when its forks end."""

    def write() -> None:
        if os.getpid() == process and not sys.dont_write_bytecode:
            last = dict(list(_remembered().items())[-_LARGEST_NUMBER:])
            content = {"code": _digest_of_code(), "summaries": last}
            with contextlib.suppress(OSError):  # the package's folder may be read-only
                write_text(_FILE, json.dumps(content, separators=(",", ":")))

    atexit.register(write)


@functools.cache
def _digest_of_code() -> str:
    """Return the SHA-256 of this module, which defines the content of summaries."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
