"""The description of an archived run: JSON-LD after the profile Process Run Crate 0.5.

The id of a file in the crate is its path; the id of any other file is ``#`` and its path.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from privclust_papers.datasets.fetch import Receipt
from privclust_papers.datasets.registry import Dataset
from privclust_papers.pipeline import layout
from privclust_papers.pipeline.plan import Plan
from privclust_papers.report.run_records import Job, is_code

_CONTEXTS = ["https://w3id.org/ro/crate/1.1/context"]
_CONTEXTS += ["https://w3id.org/ro/terms/workflow-run/context"]
_PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
_LEFT_OUT = (
    "Data sets, and HDF5 artefacts that are not in the crate, are listed with their checksums; the "
    "workflow in the crate makes them again."
)


def describe(
    plan: Plan,
    jobs: list[Job],
    project: Mapping[str, Any],
    members: Mapping[str, bytes],
    digests: Mapping[str, str],
    receipts: Mapping[str, Receipt],
) -> str:
    """Return the text of ``ro-crate-metadata.json``: JSON-LD, with entities and keys sorted.

    `project` is the table ``project`` of pyproject.toml, with the version. `members` has each file
    in the crate by its path, `digests` the SHA-256 of the outputs outside, `receipts` those of the
    data sets by name.
    """
    folders = {layout.RAW.format(dataset=name): name for name in plan.datasets}
    files = (name for job in jobs for name in (*job.outputs, *job.inputs) if not is_code(name))
    named = set(files) - members.keys() - folders.keys()
    steps = {f"workflow/scripts/{job.rule}.py" for job in jobs}
    entities = [
        *(_file(name, content, name in steps) for name, content in sorted(members.items())),
        *(_outside(name, digests.get(name)) for name in named),
        *(_dataset(plan.datasets[name], f, receipts[name]) for f, name in folders.items()),
        *(_action(job, members) for job in jobs),
    ]
    entities += _root(plan, jobs, project, entities, receipts)
    document = {"@context": _CONTEXTS, "@graph": sorted(entities, key=lambda e: e["@id"])}
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _entity(place: str, kind: Any, **properties: Any) -> dict[str, Any]:
    """Return an entity without its missing properties."""
    return {"@id": place, "@type": kind, **{k: v for k, v in properties.items() if v is not None}}


def _references(entities: Iterable[Mapping[str, Any]], kind: str) -> list[dict[str, str]]:
    return [{"@id": entity["@id"]} for entity in entities if kind in entity["@type"]]


def _file(name: str, content: bytes, is_step: bool) -> dict[str, Any]:
    kinds = ["File", "SoftwareSourceCode"] if is_step else ["File"]
    return _entity(
        quote(name),
        kinds,
        name=name,
        sha256=hashlib.sha256(content).hexdigest(),
        contentSize=str(len(content)),
    )


def _outside(name: str, sha256: str | None) -> dict[str, Any]:
    return _entity(
        f"#{quote(name)}", "CreativeWork", name=name, description="Not in the crate.", sha256=sha256
    )


def _dataset(dataset: Dataset, folder: str, receipt: Receipt) -> dict[str, Any]:
    name, description = dataset.name, f"{dataset.title}, from: {receipt.source}"
    if receipt.is_substitute:
        name = f"substitute for {dataset.name}"
        description = f"Not {dataset.title}, but a substitute: {receipt.source}"
    return _entity(
        f"#{quote(folder)}",
        "Dataset",
        name=name,
        description=description,
        identifier=receipt.location,
        sha256=receipt.sha256,
        contentSize=receipt.bytes and str(receipt.bytes),
        conditionsOfAccess=dataset.terms,
        citation=dataset.citation,
        url=dataset.homepage,
    )


def _action(job: Job, members: Collection[str]) -> dict[str, Any]:
    def refer(name: str) -> dict[str, str]:
        return {"@id": quote(name) if name in members else f"#{quote(name)}"}

    return _entity(
        f"#job/{quote(job.outputs[0])}",
        "CreateAction",
        name=f"{job.rule}: {job.outputs[0]}",
        instrument={"@id": f"workflow/scripts/{job.rule}.py"},
        object=[refer(name) for name in job.inputs if not is_code(name)],
        result=[refer(name) for name in job.outputs],
        startTime=_iso(job.start),
        endTime=_iso(job.end),
    )


def _root(
    plan: Plan,
    jobs: Iterable[Job],
    project: Mapping[str, Any],
    entities: list[dict[str, Any]],
    receipts: Mapping[str, Receipt],
) -> list[dict[str, Any]]:
    """Return the crate itself, with a note on substitutes of data sets, its licence and author."""
    titles = "; ".join(paper["title"] for paper in plan.papers.values())
    replaced = ", ".join(name for name, receipt in receipts.items() if receipt.is_substitute)
    substitutes = (
        f" Substitutes were used for {replaced}: numbers obtained from them are not comparable "
        "with those of the papers."
    )
    licence = f"https://spdx.org/licenses/{project['license']}"
    return [
        _entity(
            "ro-crate-metadata.json",
            "CreativeWork",
            about={"@id": "./"},
            conformsTo={"@id": "https://w3id.org/ro/crate/1.1"},
        ),
        _entity(
            "./",
            "Dataset",
            name=f"{project['name']} {project['version']}, {plan.effort} effort",
            description=f"Reproduction of: {titles}. {_LEFT_OUT}{substitutes * bool(replaced)}",
            datePublished=_iso(max(job.end for job in jobs)),
            license={"@id": licence},
            author={"@id": "#authors"},
            conformsTo={"@id": _PROFILE},
            hasPart=_references(entities, "File"),
            mentions=_references(entities, "CreateAction"),
        ),
        _entity(_PROFILE, "CreativeWork", name="Process Run Crate", version="0.5"),
        _entity(licence, "CreativeWork", name=project["license"], identifier=licence),
        _entity("#authors", "Organization", name=project["authors"][0]["name"]),
    ]


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
