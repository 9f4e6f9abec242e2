"""A user's own methods and data, joined to the papers before anything is planned.

config/my_methods.yaml puts a class into the experiments behind any target, and a class that claims
to be private into the audit. config/my_data.yaml makes a paper of its own out of a template: for
each data set one copy of each of its experiments and targets.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from privclust.core.config import ConfigError, load_validated, load_yaml, validate
from privclust.core.dotted import load_object
from privclust.pipeline.words import OWN_CLAIM

OPEN_FITS = {
    "privclust.papers.mtsc.data.fit_segmentation": "labels_",
    "privclust.papers.ckm.data.fit_clusters": "cluster_centers_ or means_",
    "privclust.papers.dpem.data.fit_mixture": "weights_, means_ and covariances_",
    "privclust.papers.dpem.data.fit_centers": "cluster_centers_ or means_",
    "privclust.papers.dpsc.data.fit_subspaces": "subspaces_",
    "privclust.papers.privatemail.data.fit_retrieval": "search(task), in place of fit",
}
"""Functions that fit any class, and what it must have after ``fit``."""

_SEARCHES = "privclust.papers.privatemail.data.fit_retrieval"
_AUDIT, _AUDITED = "audit", "audit_mechanisms"
_CASE = "privclust.papers.audit.cases.user_method.OwnMethod"
_LARGEST = 1e100  # of a bound


@dataclass(frozen=True)
class OwnData:
    """A data set of a user's own: an entry of config/my_data.yaml.

    Attributes
    ----------
    name, file : str
    low, high : float or tuple of float
        Corners of a box that is known without looking at the data.
    n_clusters : int
    columns : tuple of str or None
        Of a table with named columns; None for all.
    """

    name: str
    file: str
    low: float | tuple[float, ...]
    high: float | tuple[float, ...]
    n_clusters: int
    columns: tuple[str, ...] | None

    def spec(self) -> dict[str, Any]:
        """Return all that decides the prepared rows besides the file's content, as JSON values."""
        return asdict(self)


def load_own_data(path: str, schemas: Path) -> tuple[dict[str, OwnData], str]:
    """Read the data sets of config/my_data.yaml, and the path of the template for their panels.

    Raises
    ------
    ConfigError
        If the file breaks its schema, a data file is not there, or bounds are no box.
    """
    document = load_validated(path, schemas / "my_data.schema.yaml")
    found = {}
    for name, entry in document["data"].items():
        where = f"{path}: data.{name}"
        if not Path(entry["file"]).is_file():
            raise ConfigError(f"{where}.file: got {entry['file']!r}; there is no such file")
        low, high = entry["bounds"]
        _check_box(low, high, f"{where}.bounds")
        columns = entry.get("columns")
        found[name] = OwnData(
            name=name,
            file=entry["file"],
            low=tuple(low) if isinstance(low, list) else low,
            high=tuple(high) if isinstance(high, list) else high,
            n_clusters=entry["n_clusters"],
            columns=tuple(columns) if columns else None,
        )
    return found, document["panels"]


def _check_box(low, high, where: str) -> None:
    """Refuse bounds that are no box."""
    if isinstance(low, list) != isinstance(high, list) or (
        isinstance(low, list) and len(low) != len(high)
    ):
        raise ConfigError(
            f"{where}: got {[low, high]}; it may be two numbers, or two lists of the same length"
        )
    pairs = zip(low, high, strict=True) if isinstance(low, list) else [(low, high)]
    for least, largest in pairs:
        if not (math.isfinite(least) and math.isfinite(largest) and least < largest) or (
            max(abs(least), abs(largest)) > _LARGEST
        ):
            raise ConfigError(
                f"{where}: got {least} and {largest}; the first may be a finite number below the "
                "second"
            )


def paper_of_own_data(
    data: Mapping[str, OwnData], template: str, schemas: Path
) -> dict[str, Any] | None:
    """Return the paper that has a copy of the template's experiments for each data set.

    Parameters
    ----------
    data : mapping of str to OwnData
    template : str
        A config of a paper. Names of experiments and targets get the data set's in front; each
        grid gets its number of clusters.
    schemas : Path

    Returns
    -------
    dict or None
        None where there are no data.
    """
    if not data:
        return None
    document = load_validated(template, schemas / "paper.schema.yaml")
    experiments, targets = {}, {}
    for name, own in data.items():
        for key, entry in document["experiments"].items():
            made = copy.deepcopy(entry) | {"dataset": name}
            for settings in made["effort"].values():
                grids = settings.get("grid", [{}])
                settings["grid"] = [{**part, "n_clusters": own.n_clusters} for part in grids]
            experiments[f"{name}_{key}"] = made
        for key, entry in document["targets"].items():
            targets[f"{name}_{key}"] = {
                **entry,
                "title": f"{entry['title']}: {name}",
                "experiments": [f"{name}_{experiment}" for experiment in entry["experiments"]],
            }
    return {**document, "experiments": experiments, "targets": targets}


def join_own_methods(
    documents: Sequence[dict[str, Any]], path: str, schemas: Path
) -> list[dict[str, Any]]:
    """Put the methods of config/my_methods.yaml into the papers' experiments, in place.

    Parameters
    ----------
    documents : sequence of dict
        The papers' configs.
    path : str
    schemas : Path

    Returns
    -------
    list of dict
        The file's claims, each with the ``paper`` of its target.

    Raises
    ------
    ConfigError
        Naming the file, the key and the method: a class that cannot be imported or has no ``fit``,
        a target that there is not or that takes no other methods, a name that is taken.
    """
    own = load_validated(path, schemas / "my_methods.schema.yaml")
    for name, method in own["methods"].items():
        where = f"{path}: methods.{name}"
        estimator = _own_class(method["class"], f"{where}.class")
        for target in method["targets"]:
            document = _paper_of(target, documents, f"{where}.targets")
            _add_method(document, name, method, f"{where}")
            entry = document["targets"][target]
            document["targets"][target] = {**entry, "own": [*entry.get("own", ()), name]}
            for experiment in entry["experiments"]:
                entry = document["experiments"][experiment]
                _check_fits(estimator, entry["fit"], f"{where}.targets.{target}", method["class"])
                use = {"params": method["targets"][target].get("params", {})}
                if entry["methods"].get(name, use) != use:
                    raise ConfigError(
                        f"{where}.targets.{target}: another target of the same fits "
                        f"({experiment}) gives it other parameters; take another name there"
                    )
                entry["methods"] = {**entry["methods"], name: use}
        if "audit" in method:
            _add_to_audit(documents, name, method, where)
    if own["claims"]:
        validate(own["claims"], load_yaml(schemas / "claims.schema.yaml"), f"{path}: claims")
    papers = {target: d["paper"] for d in documents for target in d["targets"]}
    for claim in own["claims"]:
        if claim["target"] not in papers:
            raise ConfigError(
                f"{path}: claims.{claim['id']}.target: got {claim['target']!r}; it may be one of "
                f"{', '.join(sorted(papers))}"
            )
    return [{**claim, "paper": papers[claim["target"]]} for claim in own["claims"]]


def _own_class(dotted: str, where: str) -> Any:
    """Import a class; its own errors are the user's to see."""
    try:
        found = load_object(dotted)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"{where}: {dotted}: cannot be imported ({type(error).__name__}: {reason})"
        ) from error
    if not isinstance(found, type):
        raise ConfigError(f"{where}: got {dotted}, which is no class; it may be one")
    return found


def _paper_of(target: str, documents: Sequence[dict[str, Any]], where: str) -> dict[str, Any]:
    """Return the paper that has a target open to other methods."""
    is_open = {}
    for document in documents:
        for name, entry in document["targets"].items():
            fits = {document["experiments"][e].get("fit") for e in entry["experiments"]}
            is_open[name] = fits <= OPEN_FITS.keys()
            if name == target and is_open[name]:
                return document
    known = ", ".join(sorted(name for name, free in is_open.items() if free))
    if target in is_open:
        raise ConfigError(f"{where}: {target} compares no methods; it may be one of {known}")
    raise ConfigError(f"{where}: got {target!r}; it may be one of {known}")


def _add_method(document: dict[str, Any], name: str, method: Mapping[str, Any], where: str) -> None:
    """Define a method in a paper, which must have no other of its name."""
    entry = {"label": f"{method['label']} {OWN_CLAIM}", "class": method["class"]}
    for other, known in document["methods"].items():
        if other == name and known != entry:
            raise ConfigError(f"{where}: {document['paper']} has a method of that name")
        if other != name and known["label"] in (method["label"], entry["label"]):
            raise ConfigError(
                f"{where}.label: got {method['label']!r}, which is the label of {other} in "
                f"{document['paper']}; take another"
            )
    document["methods"] = {**document["methods"], name: entry}


def _check_fits(estimator: type, fit: str, where: str, dotted: str) -> None:
    """Refuse a class that cannot be fitted before any job starts."""
    needed = "search" if fit == _SEARCHES else "fit"
    if not callable(getattr(estimator, needed, None)):
        raise ConfigError(
            f"{where}: {dotted} has no method {needed!r}; a class there has {needed}, and then "
            f"{OPEN_FITS[fit]}"
        )


def _add_to_audit(
    documents: Sequence[dict[str, Any]], name: str, method: Mapping[str, Any], where: str
) -> None:
    """Add an attack on a whole fit to the audit, where the run has one."""
    for document in documents:
        if document["paper"] != _AUDIT:
            continue
        claim = method["audit"]
        try:
            load_object(claim["pair"])
        except ConfigError as error:
            raise ConfigError(f"{where}.audit.pair: {error}") from error
        case = {"label": f"{method['label']} {OWN_CLAIM}", "class": _CASE}
        if name in document["methods"]:
            raise ConfigError(f"{where}: the audit has a case of that name; take another")
        document["methods"] = {**document["methods"], name: case}
        params = {**claim, "estimator": method["class"]}
        entry = document["experiments"][_AUDITED]
        use = {"params": params, "code": [method["class"], claim["pair"]]}
        entry["methods"] = {**entry["methods"], name: use}
