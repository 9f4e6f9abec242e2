"""The description of an archived run: JSON-LD after the profile Provenance Run Crate 0.5.

The id of a file in the crate is its path; the id of any other file is ``#`` and its path.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate

from privclust.core import hdf5
from privclust_papers.datasets.fetch import read_receipt
from privclust_papers.datasets.registry import Dataset
from privclust_papers.pipeline import artefacts
from privclust_papers.pipeline.plan import Plan
from privclust_papers.pipeline.project_files import WORKFLOW
from privclust_papers.report.run_records import Job, is_code, own_data, read_content

# Kind of artefact that each rule writes.
_KINDS = {"prepare": "dataset", "features": "features", "share": "shared"}
_KINDS |= {"fit": "fit", "evaluate": "metrics"}
_FORMATS = {
    ".csv": "text/csv",
    ".h5": "application/x-hdf5",
    ".html": "text/html",
    ".md": "text/markdown",
    ".png": "image/png",
    ".py": "text/x-python",
    ".svg": "image/svg+xml",
    ".tsv": "text/tab-separated-values",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
_TYPES = {bool: "Boolean", int: "Integer", str: "Text"}
_PARAMETERS = ("effort", "seed", "substitutes")
_RUN_TERMS = "https://w3id.org/ro/terms/workflow-run/context"
_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/provenance/0.5": ("Provenance Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
_LEFT_OUT = (
    "Data sets, and HDF5 artefacts that are not in the crate, are listed with their checksums; the "
    "workflow in the crate makes them again."
)
_OWN = (
    " The user's own data, and artefacts made from them, are listed without checksum and size. "
    "Tables, figures and the page contain exact scores of these data, so they are not private."
)


def describe(
    plan: Plan,
    config: Mapping[str, Any],
    jobs: list[Job],
    project: Mapping[str, Any],
    members: Mapping[str, bytes],
) -> str:
    """Return the text of ``ro-crate-metadata.json``: JSON-LD, with entities and keys sorted.

    `project` is the table ``project`` of pyproject.toml, with the version. `members` has each
    file in the crate by its path; see `privclust_papers.report.archive.write_archive` for the rest,
    and errors.
    """
    run = _Run(plan, config, jobs, project, members)
    _describe(run)
    graph = run.crate.metadata.generate()
    graph["@graph"].sort(key=lambda entity: entity["@id"])
    return json.dumps(graph, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


@dataclass(eq=False)
class _Run:
    """Arguments of `describe`, and the description under construction."""

    plan: Plan
    config: Mapping[str, Any]
    jobs: list[Job]
    project: Mapping[str, Any]
    members: Mapping[str, bytes]
    crate: ROCrate = field(default_factory=lambda: ROCrate(version="1.1"))
    versions: set[tuple[str, str]] = field(default_factory=set)  # of packages, from the artefacts
    substitutes: list[str] = field(default_factory=list)  # data sets replaced by substitutes

    def __post_init__(self) -> None:
        self.crate.metadata.extra_contexts.append(_RUN_TERMS)
        self.makers = {output: job for job in self.jobs for output in job.outputs}
        self.own = own_data(self.jobs, self.members)

    def add(self, entity: str, kind: Any, **properties: Any) -> dict[str, str]:
        """Add an entity that is not a file of the crate, and return a reference to it."""
        values = {k: _alone(value) for k, value in properties.items() if value not in (None, [])}
        self.crate.add(ContextEntity(self.crate, entity, {"@type": kind, **values}))
        return {"@id": entity}

    def refer(self, path: str) -> dict[str, str]:
        """Return the reference to a file in the crate or outside."""
        return {"@id": quote(path) if path in self.members else f"#{quote(path)}"}


def _alone(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _describe(run: _Run) -> None:
    licence = run.project["license"]
    licence_entity = run.add(
        f"https://spdx.org/licenses/{licence}", "CreativeWork", name=licence, identifier=licence
    )
    author = run.add("#authors", "Organization", name=run.project["authors"][0]["name"])
    engine = run.add(
        "#software/snakemake",
        "SoftwareApplication",
        name="Snakemake",
        softwareVersion=metadata.version("snakemake"),
        url="https://snakemake.readthedocs.io",
    )
    parameters = _add_parameters(run)
    datasets = [_add_dataset(run, dataset) for dataset in run.plan.datasets.values()]
    outputs = _add_outputs(run)
    workflow = _add_files(run)
    _add_kept_outside(run)
    steps, tools, actions, controls = _add_jobs(run)
    configs = sorted(name for name in run.members if name.startswith("config/"))
    main = run.add(
        "#run",
        "CreateAction",
        name=f"Run at {run.plan.effort} effort",
        description="From the start of the first job behind the results to the end of the last "
        "one. The jobs may come from several runs of Snakemake.",
        instrument={"@id": WORKFLOW},
        object=[*parameters, *datasets, *map(run.refer, configs)],
        result=[run.refer(name) for name in sorted(run.makers) if name in run.members],
        startTime=_iso(min(job.start for job in run.jobs)),
        endTime=_iso(max(job.end for job in run.jobs)),
    )
    facts = {"name": "Run of Snakemake", "instrument": engine, "result": main, "object": controls}
    organised = run.add("#engine", "OrganizeAction", **facts)
    inputs = [{"@id": f"#input/{name}"} for name in (*_PARAMETERS, *run.plan.datasets)]
    workflow["license"], workflow["creator"] = licence_entity, author
    workflow["hasPart"], workflow["step"] = tools, steps
    workflow["input"], workflow["output"] = inputs, outputs
    workflow["softwareRequirements"] = _add_software(run)
    _describe_root(run, licence_entity, author, [main, organised, *actions])


def _describe_root(run: _Run, licence: Any, author: Any, actions: list[Any]) -> None:
    """Describe the crate itself, with a note on substitutes of data sets."""
    root, substitutes = run.crate.root_dataset, ""
    if run.substitutes:
        substitutes = (
            f" Substitutes were used for {', '.join(run.substitutes)}: numbers obtained from them "
            "are not comparable with those of the papers."
        )
    titles = "; ".join(paper["title"] for paper in run.plan.papers.values())
    root["name"] = f"{run.project['name']} {run.project['version']}, {run.plan.effort} effort"
    own = _OWN if run.own else ""
    root["description"] = f"Reproduction of: {titles}. {_LEFT_OUT}{own}{substitutes}"
    root["datePublished"] = _iso(max(job.end for job in run.jobs))
    root["license"], root["author"] = licence, author
    root["mentions"] = actions
    root["conformsTo"] = [
        run.add(address, "CreativeWork", name=name, version=version)
        for address, (name, version) in _PROFILES.items()
    ]


def _add_parameters(run: _Run) -> list[dict[str, str]]:
    values = []
    for name in _PARAMETERS:
        value, formal = run.config[name], {"@id": f"#input/{name}"}
        # as text: some readers do not show a JSON false
        text = json.dumps(value).strip('"')
        actual = run.add(
            f"#parameter/{name}", "PropertyValue", name=name, value=text, exampleOfWork=formal
        )
        kind = _TYPES[type(value)]
        run.add(
            formal["@id"], "FormalParameter", name=name, additionalType=kind, workExample=actual
        )
        values.append(actual)
    return values


def _add_dataset(run: _Run, dataset: Dataset) -> dict[str, str]:
    folder = f"data/raw/{dataset.name}"
    receipt = read_receipt(folder)
    entity = run.refer(folder)
    formal = run.add(
        f"#input/{dataset.name}",
        "FormalParameter",
        name=dataset.name,
        additionalType="Dataset",
        workExample=entity,
    )
    value = json.dumps(receipt.is_substitute)
    flag = run.add(f"#{folder}/substitute", "PropertyValue", name="substitute", value=value)
    if receipt.is_substitute:
        run.substitutes.append(dataset.name)
        name = f"substitute for {dataset.name}"
        description = f"Not {dataset.title}, but a substitute: {receipt.source}"
    else:
        name, description = dataset.name, f"{dataset.title}, from: {receipt.source}"
    return run.add(
        entity["@id"],
        "Dataset",
        name=name,
        description=description,
        identifier=receipt.location,
        alternateName=receipt.file,
        sha256=receipt.sha256,
        contentSize=receipt.bytes and str(receipt.bytes),
        conditionsOfAccess=dataset.terms,
        citation=dataset.citation,
        url=dataset.homepage,
        additionalProperty=flag,
        exampleOfWork=formal,
    )


def _slots(plan: Plan) -> dict[str, tuple[str, list[str]]]:
    """Return the outputs of the workflow by name: a description and the files."""
    folder = f"results/{plan.effort}"
    return {
        **{
            name: (
                f"{target.title} ({target.where})",
                [f"{folder}/targets/{name}/{name}.{suffix}" for suffix in ("csv", "png", "svg")],
            )
            for name, target in plan.targets.items()
        },
        "verdicts": ("The run's verdict on each claim", [f"{folder}/verdicts.csv"]),
        "page": ("All targets and verdicts on one page", [f"{folder}/index.html"]),
    }


def _add_outputs(run: _Run) -> list[dict[str, str]]:
    return [
        run.add(
            f"#output/{name}",
            "FormalParameter",
            name=name,
            description=description,
            additionalType="File",
            workExample=[run.refer(file) for file in files],
        )
        for name, (description, files) in _slots(run.plan).items()
    ]


def _add_files(run: _Run) -> Any:
    slots = {file: name for name, (_, files) in _slots(run.plan).items() for file in files}
    engine = metadata.version("snakemake")
    workflow = run.crate.add_workflow(
        dest_path=WORKFLOW, main=True, lang="snakemake", lang_version=engine
    )
    workflow["name"], workflow["version"] = run.project["name"], run.project["version"]
    workflow.properties()["@type"].append("HowTo")
    for name, content in sorted(run.members.items()):
        entity = workflow if name == WORKFLOW else run.crate.add_file(dest_path=name)
        entity["sha256"], entity["contentSize"] = _sha256(content), str(len(content))
        entity["encodingFormat"] = _FORMATS.get(Path(name).suffix, "text/plain")
        if name in slots:
            entity["exampleOfWork"] = {"@id": f"#output/{slots[name]}"}
        if name == "README.md":
            entity["about"] = {"@id": "./"}
        if name.endswith(".py"):
            entity.properties()["@type"] = ["File", "SoftwareSourceCode"]
            entity["name"], entity["version"] = name, run.project["version"]
    return workflow


def _add_kept_outside(run: _Run) -> None:
    """Describe artefacts and files outside the crate; for a user's own data, only the name.

    A checksum or size of these data, or of deterministic results from them, would allow anybody to
    test a guess of the data.
    """
    inputs = {name for job in run.jobs for name in job.inputs if not is_code(name)}
    for name in sorted({*run.makers, *inputs}):
        is_artefact = name in run.makers and name.endswith(".h5")
        kind = _KINDS.get(run.makers[name].rule) if is_artefact else None
        if Path(name).is_dir() or (name in run.members and not kind):
            continue  # already described, by _add_dataset or _add_files
        content, is_own = read_content(name), name in run.own
        artefact = artefacts.read(name, kind) if kind else None
        run.versions |= set(artefact.versions.items()) if artefact else set()
        if name in run.members:
            file = run.crate.get(quote(name))
            file["identifier"] = artefact.digest
            file["description"] = f"An artefact. {_origin(artefact)}".strip()
            continue
        run.add(
            run.refer(name)["@id"],
            "File",
            name=name,
            description=f"Not in the crate. {_origin(artefact)}".strip(),
            sha256=None if is_own else _sha256(content),
            contentSize=None if is_own else str(len(content)),
            encodingFormat=_FORMATS.get(Path(name).suffix),
            identifier=artefact.digest if artefact and not is_own else None,
        )


def _origin(artefact: hdf5.Contents | None) -> str:
    source = artefact.parameters.get("source") if artefact else None
    return f"Made from {source}." if source else ""


def _add_jobs(run: _Run) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    rules = sorted({job.rule for job in run.jobs})
    tools = {rule: {"@id": f"workflow/scripts/{rule}.py"} for rule in rules}
    steps = {
        rule: run.add(f"#step/{rule}", "HowToStep", name=rule, workExample=tools[rule])
        for rule in rules
    }
    actions, controls = [], []
    for job in run.jobs:
        name = job.outputs[0]
        action = run.add(
            f"#job/{name}",
            "CreateAction",
            name=f"{job.rule}: {name}",
            description=f"Parameters: {job.spec}" if job.spec else None,
            instrument=tools[job.rule],
            object=[run.refer(name) for name in job.inputs if not is_code(name)],
            result=[run.refer(name) for name in job.outputs],
            startTime=_iso(job.start),
            endTime=_iso(job.end),
        )
        actions.append(action)
        starts = {"name": f"Snakemake starts {job.rule}", "instrument": steps[job.rule]}
        controls.append(run.add(f"#control/{name}", "ControlAction", object=action, **starts))
    return list(steps.values()), list(tools.values()), actions, controls


def _add_software(run: _Run) -> list[dict[str, str]]:
    versions = {("python", platform.python_version()), *run.versions}
    kind = "SoftwareApplication"
    return [
        run.add(f"#software/{name}-{version}", kind, name=name, softwareVersion=version)
        for name, version in sorted(versions)
    ]


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
