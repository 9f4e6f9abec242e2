"""A user's methods, added to the papers before a run is planned.

config/my_methods.yaml adds a class to the experiments of any target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from privclust_papers.pipeline.words import OWN_CLAIM
from privclust_papers.settings.config import ConfigError, load_validated
from privclust_papers.settings.dotted import load_object


def join_own_methods(documents: Sequence[dict[str, Any]], path: str, schemas: Path) -> None:
    """Add the methods of config/my_methods.yaml to the papers' experiments, in place.

    Raises a ConfigError with file, key and method if a class cannot be imported or lacks a method
    that fits call, a target does not exist or accepts no other methods, or a name is taken.
    """
    config = load_validated(path, schemas / "my_methods.schema.yaml")
    for name, method in config["methods"].items():
        where = f"{path}: methods.{name}"
        estimator = _own_class(method["class"], f"{where}.class")
        for target in method["targets"]:
            document = _paper_of(target, documents, f"{where}.targets")
            _add_method(document, name, method, where)
            entry = document["targets"][target]
            document["targets"][target] = {**entry, "own": [*entry.get("own", ()), name]}
            for experiment in entry["experiments"]:
                fitted = document["experiments"][experiment]
                fit = document["open_fits"][fitted["fit"]]
                _check_fits(estimator, fit, f"{where}.targets.{target}", method["class"])
                use = {"params": method["targets"][target].get("params", {})}
                if fitted["methods"].get(name, use) != use:
                    raise ConfigError(
                        f"{where}.targets.{target}: another target of the same fits "
                        f"({experiment}) gives it other parameters; take another name there"
                    )
                fitted["methods"] = {**fitted["methods"], name: use}


def _own_class(dotted: str, where: str) -> Any:
    """Import a class, with any error of the import in the message."""
    try:
        loaded = load_object(dotted)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"{where}: {dotted}: cannot be imported ({type(error).__name__}: {reason})"
        ) from error
    if not isinstance(loaded, type):
        raise ConfigError(f"{where}: got {dotted}, which is not a class")
    return loaded


def _paper_of(target: str, documents: Sequence[dict[str, Any]], where: str) -> dict[str, Any]:
    is_open = {}
    for document in documents:
        for name, entry in document["targets"].items():
            fits = {document["experiments"][e].get("fit") for e in entry["experiments"]}
            is_open[name] = fits <= document.get("open_fits", {}).keys()
            if name == target and is_open[name]:
                return document
    problem = f"{target} compares no methods" if target in is_open else f"got {target!r}"
    possible = ", ".join(sorted(name for name, free in is_open.items() if free))
    raise ConfigError(f"{where}: {problem}; it must be one of {possible}")


def _add_method(document: dict[str, Any], name: str, method: Mapping[str, Any], where: str) -> None:
    """Define a method in a paper, or raise a ConfigError if its name is taken."""
    entry = {"label": f"{method['label']} {OWN_CLAIM}", "class": method["class"]}
    if document["methods"].get(name, entry) != entry:
        raise ConfigError(f"{where}: {document['paper']} has a method of that name")
    document["methods"] = {**document["methods"], name: entry}


def _check_fits(estimator: type, fit: Mapping[str, str], where: str, dotted: str) -> None:
    """Raise a ConfigError if a class cannot be fitted, before any job starts."""
    needed = fit["calls"]
    if not callable(getattr(estimator, needed, None)):
        raise ConfigError(
            f"{where}: {dotted} has no method {needed!r}; the class must have {needed} and, after "
            f"it was called, {fit['reads']}"
        )
