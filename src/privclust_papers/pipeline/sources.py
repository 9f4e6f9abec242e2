"""Source files on which a part of the package depends, from its import statements.

Snakemake does not notice edits of imported modules. Each rule therefore has the modules of its
classes and functions as inputs. They are found without importing anything: import statements are
parsed, and names re-exported by a package or its stub are followed to the defining module, so that
a method depends on its own module and not on its neighbours.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

from privclust_papers.pipeline.project_files import PACKAGES

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


@functools.cache
def _defining_module(path: str) -> str:
    """Return the module that defines the object of a dotted path."""
    parts = path.split(".")
    # The longest prefix that is a module; what follows is a name in it.
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
            # A package may import a name from itself, which would never end.
            return _follow(imported, names[name]) if imported != module else module
    if module.split(".")[0] in PACKAGES and name not in _definitions(module):
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
    is_package = file.stem == "__init__"
    found: list[tuple[str, dict[str, str]]] = []
    for node in (node for part in (file, stub) if part.is_file() for node in _statements(part)):
        if isinstance(node, ast.Import):
            found += [(alias.name, {}) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = {alias.asname or alias.name: alias.name for alias in node.names}
            found.append((_absolute(module, node.level, node.module or "", is_package), names))
    return found


def _definitions(module: str) -> set[str]:
    """Return the names that are defined at the top level of a module."""
    names = set()
    for node in _parsed(_file(module)).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = (part for target in targets for part in ast.walk(target))
            names |= {part.id for part in parts if isinstance(part, ast.Name)}
    return names


def _statements(file: Path) -> list[ast.AST]:
    """Return all statements of a source, breadth first; expressions hold no imports."""
    found: list[ast.AST] = [_parsed(file)]
    for node in found:  # the list grows meanwhile
        for part in ("body", "handlers", "orelse", "finalbody", "cases"):
            found.extend(getattr(node, part, ()))
    return found


@functools.cache
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


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
        # By path, the copy that runs here; `find_spec` of a submodule would import its package.
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
