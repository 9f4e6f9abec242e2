"""Are results the same, byte by byte, however a run is cut and wherever it runs?

    python benchmarks/determinism.py [--papers mtsc ckm ...] [--slurm mtsc ...] [--into FILE]

The papers are run at quick effort in copies of the project, which compile their own kernels. The
first is run on two cores. In the second all is different at once: one core; half as many tasks in
a block; a job for each method, where the first fits several in one; and a new environment, made
from requirements.lock. Where anything differs, each of these is tried alone, to say which it was.
The papers named by ``--slurm`` are also run through both profiles for SLURM, on a SLURM of this
machine alone. What is compared: prepared data, features, every array of every fit, metrics, tables,
figures, verdicts. What says how long something took is not: ``.tsv`` files, and the audit's figure
and table of CPU seconds.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import yaml
from scratch import ROOT, copy_project, markdown, run_workflow, write_into

from privclust import artefacts

COMPARED = {".h5", ".csv", ".svg", ".png"}
TIMED = "audit_epsilon"  # shows CPU seconds
REST = "data and verdicts"
CORES, BLOCKS, ENVIRONMENT = "1 core", "half blocks, no batches", "new environment"
CHANGES = (CORES, BLOCKS, ENVIRONMENT)


def other_blocks(folder):
    """Halve the blocks of all experiments, and give each method a job of its own."""
    for file in (folder / "config/papers").glob("*.yaml"):
        text = re.sub(
            r"\bblock: (\d+)", lambda found: f"block: {-(-int(found[1]) // 2)}", file.read_text()
        )
        file.write_text(text.replace("together: true", "together: false"))


def run(folder, papers, *options, python=sys.executable):
    """Run papers at quick effort."""
    print(f"{folder.name}: {' '.join(papers)}", file=sys.stderr, flush=True)
    files = ",".join(f"config/papers/{paper}.yaml" for paper in papers)
    run_workflow(folder, *options, "--config", f"papers=[{files}]", python=python)
    return results(folder, papers)


def run_changed(folder, papers, changes):
    """Run papers in a new copy in which some things are not as they were first; none is."""
    copy_project(folder)
    python = sys.executable
    if BLOCKS in changes:
        other_blocks(folder)
    if ENVIRONMENT in changes:
        subprocess.run(["make", "setup"], cwd=folder, check=True, capture_output=True)
        python = str(folder / ".venv/bin/python")
    return run(folder, papers, "--cores", "1" if CORES in changes else "2", python=python)


def run_on_slurm(scratch, papers):
    """Run papers through each profile for SLURM, and return what each made."""
    spec = importlib.util.spec_from_file_location(
        "cluster", ROOT / "tests/workflow/slurm/cluster.py"
    )
    cluster = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cluster)
    made = {}
    with tempfile.TemporaryDirectory(prefix=cluster.PREFIX) as place:
        cluster.start(place)
        try:
            for profile in cluster.HASTE:
                folder = scratch / profile
                copy_project(folder, with_kernels=True)
                made[profile] = run(folder, papers, *cluster.profile_arguments(profile))
        finally:
            cluster.stop(place)
    return made


def results(folder, papers):
    """Return digests of all that is compared, by paper and name."""
    rows = {paper: {} for paper in [*papers, REST]}
    targets = {name: paper for paper in papers for name in read_paper(folder, paper)["targets"]}
    for file in sorted(folder.glob("*/**/*")):
        path = file.relative_to(folder)
        top, kind, *rest = path.parts
        if file.suffix not in COMPARED or (top, kind) not in (
            ("results", "quick"),
            ("data", "prepared"),
            ("data", "features"),
        ):
            continue
        if "fit" in rest:
            rows[rest[0]].setdefault("fits", []).append(file)
        elif "shared" not in rest and TIMED not in file.name:
            paper = targets[rest[1]] if rest[0] == "targets" else rest[0]
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            rows[paper if paper in rows else REST][str(path)] = digest
    for found in rows.values():
        found |= fits(found.pop("fits", []))
    return rows


def read_paper(folder, paper):
    """Return a paper's settings."""
    return yaml.safe_load((folder / f"config/papers/{paper}.yaml").read_text())


def fits(files):
    """Return a digest of every array of fits by experiment, method and task, not by block."""
    found = {}
    done = {}  # tasks of an experiment's method in the blocks before
    for file in sorted(files, key=lambda file: file.name):
        experiment = file.parents[2].name
        numbers = {}
        for name, array in artefacts.read(file, "fit").arrays.items():
            method, number, rest = name.split("/", 2)
            numbers.setdefault(method, set()).add(int(number))
            task = done.get((experiment, method), 0) + int(number)
            text = f"{array.dtype.str} {array.shape} ".encode()
            found[f"{experiment}/{method}/{task}/{rest}"] = hashlib.sha256(
                text + array.tobytes()
            ).hexdigest()
        for method, seen in numbers.items():
            done[experiment, method] = done.get((experiment, method), 0) + max(seen) + 1
    return found


def difference(expected, found):
    """Return "same" or what differs."""
    differing = sorted(
        name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)
    )
    return "same" if not differing else f"{len(differing)} differ, such as {differing[0]}"


def blame(expected, scratch, paper):
    """Return which single changes make a difference to a paper, and what differs."""
    found = {
        change: run_changed(scratch / f"{paper}_{number}", [paper], (change,))[paper]
        for number, change in enumerate(CHANGES)
    }
    alone = {change: difference(expected[paper], made) for change, made in found.items()}
    return "; ".join(f"{change}: {text}" for change, text in alone.items() if text != "same")


def compare(papers, on_slurm, scratch):
    """Return the table: what differs from a run on two cores."""
    expected = run_changed(scratch / "first", papers, ())
    changed = run_changed(scratch / "second", papers, CHANGES)
    clustered = run_on_slurm(scratch, on_slurm) if on_slurm else {}
    rows = []
    for paper, files in expected.items():
        together = difference(files, changed[paper])
        if together != "same" and paper != REST:
            together = blame(expected, scratch, paper) or f"all at once: {together}"
        row = {"paper": paper, "compared": len(files), ", ".join(CHANGES): together}
        for profile, made in clustered.items():
            known = paper in on_slurm
            row[f"profile {profile}"] = difference(files, made[paper]) if known else ""
        rows.append(row)
    return pd.DataFrame(rows)


def main():
    """Compare, print the table, and write it where asked."""
    known = sorted(file.stem for file in (ROOT / "config/papers").glob("*.yaml"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--papers", nargs="+", choices=known, default=known)
    parser.add_argument("--slurm", nargs="+", choices=known, default=[], metavar="PAPER")
    parser.add_argument("--into", type=Path, help="a document with the marks")
    options = parser.parse_args()
    if not set(options.slurm) <= set(options.papers):
        parser.error("--slurm: may name papers that --papers has")
    os.environ.pop("PYTHONPATH", None)  # each copy has its own package
    with tempfile.TemporaryDirectory() as scratch:
        table = markdown(compare(options.papers, options.slurm, Path(scratch)))
    print(table)
    if options.into:
        write_into(options.into, "determinism", table)


if __name__ == "__main__":
    main()
