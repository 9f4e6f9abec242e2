"""Source files on which a part of the package depends, from its import statements.

Snakemake does not notice edits of imported modules. Each rule therefore has the modules of its
classes and functions as inputs. They are found without importing anything: import statements are
parsed, and names re-exported by a package or its stub are followed to the defining module, so that
a method depends on its own module and not on its neighbours.

A module of figures has many drawings, and an edit should repeat only one. For a drawing function,
only the definitions of its module that it uses count.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

from privclust_papers.pipeline.project_files import PACKAGES
from privclust_papers.pipeline.source_summaries import names_in, summary_of, top_level

_LOCKED = frozenset({"sklearn"})  # packages with methods and a locked version: never edited


def source_files(dotted_paths: Iterable[str]) -> list[str]:
    """Return the sorted source files on which modules, classes or functions depend.

    Dotted paths are such as ``"privclust.segmentation.SSC"``. Imports within the project's packages
    are followed recursively. For other packages only the file of the named module counts, and for
    scikit-learn none, since its files are in the environment. Files below the working folder are
    relative to it. Raises a ValueError if a path has no module, or a module of the project lacks
    the name.
    """
    modules = frozenset(map(_defining_module, dotted_paths))
    return list(_files_of(modules, Path.cwd()))


@functools.cache
def _files_of(modules: frozenset[str], folder: Path) -> tuple[str, ...]:
    """Return the sorted files of modules and of their imports from the project, recursively."""
    pending = list(modules)
    seen: set[str] = set()
    while pending:
        module = pending.pop()
        if module in seen:
            continue
        seen.add(module)
        if module.split(".")[0] in PACKAGES:
            pending.extend(_imports(module))
    edited = {module for module in seen if module.split(".")[0] not in _LOCKED}
    return tuple(sorted({_relative(_file(module), folder) for module in edited}))


def sources_of_function(dotted_path: str) -> tuple[list[str], str]:
    """Return the dependencies of a function or class: other files, and a digest within its module.

    The files are the `source_files` of the imported names that it uses. The digest is the SHA-256
    of the source, with comments, of the function, of the definitions of its module that it uses,
    and of the module's statements other than definitions.
    """
    module, name = _defining_module(dotted_path), dotted_path.rpartition(".")[2]
    text = _text(module)
    defined, statements = top_level(text)
    parts, used = set(statements), {name}
    pending = [name, *(used for node in statements for used in names_in(node))]
    while pending:
        for node in defined.get(pending.pop(), ()):
            if node not in parts:
                parts.add(node)
                names = names_in(node)
                pending.extend(names)
                used |= names
    imported = [
        f"{base}.{names[local]}"
        for base, names in _import_statements(module)
        if base.split(".")[0] in PACKAGES
        for local in names
        if local in used
    ]
    segments = [_segment(text, node) for node in sorted(parts, key=lambda node: node.lineno)]
    return source_files(imported), hashlib.sha256("\0".join(segments).encode()).hexdigest()


def _text(module: str) -> str:
    return _file(module).read_text(encoding="utf-8")


def _segment(text: str, node: ast.stmt) -> str:
    decorators = getattr(node, "decorator_list", [])
    first = min(part.lineno for part in (node, *decorators))
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


@functools.cache
def _defining_module(path: str) -> str:
    """Return the module that defines the object of a dotted path."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        module = ".".join(parts[:end])
        if _find(module) is None:
            continue
        rest = parts[end:]
        return _follow(module, rest[0]) if rest else module
    raise ValueError(f"{path}: no module of that name is on the Python path")


def _follow(module: str, name: str) -> str:
    """Follow a name through re-exports to the module that defines it."""
    for imported, names in _import_statements(module):
        if name in names:
            submodule = f"{imported}.{names[name]}"
            if _find(submodule) is not None:
                return submodule
            return _follow(imported, names[name]) if imported != module else module
    if module.split(".")[0] in PACKAGES and name not in summary_of(_text(module)).definitions:
        raise ValueError(f"{module}.{name}: the module has no such name")
    return module


@functools.cache
def _imports(module: str) -> list[str]:
    needed = []
    for imported, names in _import_statements(module):
        if imported.split(".")[0] not in PACKAGES:
            continue
        if not names:
            needed.append(imported)
        needed.extend(_defining_module(f"{imported}.{name}") for name in names.values())
    return needed


@functools.cache
def _import_statements(module: str) -> list[tuple[str, dict[str, str]]]:
    """Return (imported module, {local name: its name there}) for each import in a module."""
    file = _file(module)
    stub = file.with_suffix(".pyi")  # lazy imports of a package
    texts = [part.read_text(encoding="utf-8") for part in (file, stub) if part.is_file()]
    is_package = file.stem == "__init__"
    return [
        (_absolute(module, level, name, is_package), names)
        for text in texts
        for level, name, names in summary_of(text).imports
    ]


def _absolute(module: str, level: int, name: str, is_package: bool) -> str:
    """Return the absolute name of an imported module, given with `level` leading dots."""
    if not level:
        return name
    parts = module.split(".")
    parts = parts[: len(parts) - level + (1 if is_package else 0)]
    return ".".join([*parts, *([name] if name else [])])


@functools.cache
def _find(module: str) -> Path | None:
    first, *rest = module.split(".")
    if first in PACKAGES:
        folder = Path(__file__).parents[2] / first
    else:
        spec = importlib.util.find_spec(first)
        if spec is None or spec.origin is None:
            return None
        folder = Path(spec.origin).parent
        if not spec.submodule_search_locations:
            return None if rest else Path(spec.origin)
    base = folder.joinpath(*rest)
    for file in (base / "__init__.py", base.with_suffix(".py")):
        if file.is_file():
            return file
    return None


def _file(module: str) -> Path:
    file = _find(module)
    if file is None:
        raise ValueError(f"{module}: no module of that name; sys.path is {sys.path}")
    return file


def shown(file: Path) -> str:
    """Return a path, relative to the working folder if below it."""
    return _relative(file, Path.cwd())


@functools.cache
def _relative(file: Path, folder: Path) -> str:
    try:
        return str(file.resolve().relative_to(folder.resolve()))
    except ValueError:
        return str(file)
