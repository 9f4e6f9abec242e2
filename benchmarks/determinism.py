"""Are results the same, byte by byte, however a run is cut and wherever it runs?

    python benchmarks/determinism.py [--papers mtsc ckm ...] [--against changed slurm]
        [--into docs/reliability.md]

Each paper is run at quick effort in copies of the project, which compile their own kernels. The
first is run on two cores. ``--against changed``, the default, compares it with one in which all is
different at once: one core, half as many tasks in a block, and a new environment, made from
requirements.lock. Where anything differs, each of these is tried alone, to say which it was, and
none of them: a run that differs from itself. ``--against slurm`` compares it with runs through both
profiles for SLURM, on a SLURM of this machine alone. What is compared: prepared data, features,
every array of every fit, metrics, tables, figures, verdicts. What says how long something took is
not: ``.tsv`` files, and the audit's figure and table of CPU seconds.

In the document, rows and columns of what was not run stay as they are.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
from scratch import ROOT, copy_project, markdown, run_workflow, write_into

from privclust import artefacts

COMPARED = {".h5", ".csv", ".svg", ".png"}
TIMED = "audit_epsilon"  # shows CPU seconds
CORES, BLOCKS, ENVIRONMENT = "1 core", "half blocks", "new environment"
CHANGES = (CORES, BLOCKS, ENVIRONMENT)
TOGETHER = ", ".join(CHANGES)
AGAIN = "again"  # nothing changed
CHANGED, SLURM = "changed", "slurm"


def halve_blocks(folder):
    """Halve the blocks of all experiments."""
    for file in (folder / "config/papers").glob("*.yaml"):
        halved = re.sub(
            r"\bblock: (\d+)", lambda found: f"block: {-(-int(found[1]) // 2)}", file.read_text()
        )
        file.write_text(halved)


def new_environment(scratch):
    """Return the interpreter of an environment made from the lock, once."""
    folder = scratch / "environment"
    if not folder.exists():
        copy_project(folder)
        subprocess.run(["make", "setup"], cwd=folder, check=True, capture_output=True)
    return str(folder / ".venv/bin/python")


def run(folder, paper, *options, python=sys.executable):
    """Run a paper at quick effort and return what it made."""
    print(f"{folder.name}: {' '.join(options)}", file=sys.stderr, flush=True)
    run_workflow(
        folder, *options, "--config", f"papers=[config/papers/{paper}.yaml]", python=python
    )
    return results(folder)


def run_changed(scratch, paper, changes):
    """Run a paper in a new copy with some changes, of which there may be none."""
    folder = scratch / "_".join([paper, *changes]).replace(" ", "_")
    copy_project(folder)
    if BLOCKS in changes:
        halve_blocks(folder)
    python = new_environment(scratch) if ENVIRONMENT in changes else sys.executable
    return run(folder, paper, "--cores", "1" if CORES in changes else "2", python=python)


def run_on_slurm(scratch, paper):
    """Yield each profile for SLURM and what the paper made through it."""
    spec = importlib.util.spec_from_file_location(
        "cluster", ROOT / "tests/workflow/slurm/cluster.py"
    )
    cluster = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cluster)
    with tempfile.TemporaryDirectory(prefix=cluster.PREFIX, dir="/tmp") as place:  # a short path
        cluster.start(place)
        try:
            for profile in cluster.HASTE:
                folder = scratch / f"{paper}_{profile}"
                copy_project(folder)
                yield profile, run(folder, paper, *cluster.profile_arguments(profile))
        finally:
            cluster.stop(place)


def results(folder):
    """Return a digest of all that is compared, by its name."""
    parts = ("data/prepared", "data/features", "results")
    files = sorted(f for part in parts for f in (folder / part).rglob("*") if f.suffix in COMPARED)
    blocks = [file for file in files if file.parts[-3] == "fit"]
    whole = {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if file not in blocks and "shared" not in file.parts and TIMED not in file.name
    }
    return whole | arrays_of_fits(blocks)


def arrays_of_fits(files):
    """Return a digest of every array of fits by experiment, method and task, not by block."""
    found = {}
    done = {}  # tasks of an experiment's method in the blocks before
    for file in sorted(files, key=lambda file: file.name):
        experiment = file.parents[2].name
        tasks = {}
        for name, array in artefacts.read(file, "fit").arrays.items():
            method, number, rest = name.split("/", 2)
            before = done.get((experiment, method), 0)
            tasks[method] = max(tasks.get(method, 0), before + int(number) + 1)
            text = f"{array.dtype.str} {array.shape} ".encode()
            digest = hashlib.sha256(text + array.tobytes()).hexdigest()
            found[f"{experiment}/{method}/{before + int(number)}/{rest}"] = digest
        done |= {(experiment, method): number for method, number in tasks.items()}
    return found


def difference(expected, found):
    """Return "same" or what differs."""
    differing = sorted(
        name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)
    )
    return "same" if not differing else f"{len(differing)} differ, such as {differing[0]}"


def compare(scratch, paper, against):
    """Return cells of the table: what differs from a run on two cores."""
    expected = run_changed(scratch, paper, ())
    n_arrays = sum(not Path(name).suffix for name in expected)
    row = {"files": str(len(expected) - n_arrays), "arrays of fits": str(n_arrays)}
    if CHANGED in against:
        row[TOGETHER] = difference_from_changed(scratch, paper, expected)
    for profile, made in run_on_slurm(scratch, paper) if SLURM in against else ():
        row[f"profile {profile}"] = difference(expected, made)
    return row


def difference_from_changed(scratch, paper, expected):
    """Return "same" or what differs when all is changed, by the change that does it alone."""
    together = difference(expected, run_changed(scratch, paper, CHANGES))
    if together == "same":
        return together
    alone = {
        change: difference(expected, run_changed(scratch, paper, (change,)))
        for change in (AGAIN, *CHANGES)
    }
    blamed = [f"{change}: {text}" for change, text in alone.items() if text != "same"]
    return "; ".join(blamed) or f"all at once: {together}"


def rows_of(document):
    """Return the rows that a document has between the marks, by paper; end if it has no marks."""
    _, mark, rest = document.read_text(encoding="utf-8").partition("<!-- determinism -->")
    if not mark:
        raise SystemExit(f"{document}: has no mark <!-- determinism -->")
    text = rest.partition("<!-- end")[0]
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line[:1] == "|"]
    head, body = lines[:1], lines[2:]
    return {line[0]: dict(zip(head[0][1:], line[1:], strict=False)) for line in body}


def main():
    """Compare, print the table, and write it where asked, paper by paper."""
    papers = sorted(file.stem for file in (ROOT / "config/papers").glob("*.yaml"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--papers", nargs="+", choices=papers, default=papers)
    parser.add_argument("--against", nargs="+", choices=(CHANGED, SLURM), default=[CHANGED])
    parser.add_argument("--into", type=Path, help="a document with the marks")
    options = parser.parse_args()
    rows = rows_of(options.into) if options.into else {}
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for paper in options.papers:
            rows[paper] = rows.get(paper, {}) | compare(scratch, paper, options.against)
            table = pd.DataFrame.from_dict(rows, orient="index").sort_index().fillna("")
            text = markdown(table.rename_axis("paper").reset_index())
            if options.into:
                write_into(options.into, "determinism", text)
    print(text)


if __name__ == "__main__":
    main()
