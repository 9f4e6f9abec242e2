"""Are results the same, byte by byte, however a run is cut and wherever it runs?

    python benchmarks/determinism.py [--papers mtsc ckm ...] [--slurm] [--into docs/reliability.md]

Each paper is run at quick effort in copies of the project, which compile their own kernels: on two
cores, on one, with half as many tasks in a block and a job for each method, and in a new
environment installed from requirements.lock; with ``--slurm`` also through a SLURM of one node that
is brought up for it. Compared with the first are prepared data, features, metrics, tables, figures
and verdicts, and the fits where blocks are the same. What says how long something took is not:
`.tsv` files, and the audit's figure and table of CPU seconds.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
from scratch import ROOT, copy_project, markdown, run_workflow, write_into

COMPARED = {".h5", ".csv", ".svg", ".png"}
TIMED = "audit_epsilon"  # shows CPU seconds


def other_blocks(folder):
    """Halve the blocks of all experiments, and give each method a job of its own."""
    for file in (folder / "config/papers").glob("*.yaml"):
        text = re.sub(
            r"\bblock: (\d+)", lambda found: f"block: {-(-int(found[1]) // 2)}", file.read_text()
        )
        file.write_text(text.replace("together: true", "together: false"))


def run(folder, paper, *options, **how):
    """Run one paper at quick effort."""
    run_workflow(folder, *options, "--config", f"papers=[config/papers/{paper}.yaml]", **how)


def run_anew(folder, paper):
    """Install the lock into a new environment, and run there."""
    subprocess.run(["make", "setup"], cwd=folder, check=True, capture_output=True)
    run(folder, paper, "--cores", "2", python=str(folder / ".venv/bin/python"))


def run_on_slurm(folder, paper):
    """Run through the profile for SLURM, on a cluster of this machine alone."""
    cluster = [sys.executable, str(ROOT / "tests/workflow/slurm/cluster.py")]
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([*cluster, "start", place], check=True)
        try:
            run(folder, paper, "--workflow-profile", "workflow/profiles/slurm", "--jobs", "2")
        finally:
            subprocess.run([*cluster, "stop", place], check=True)


def results(folder):
    """Return the bytes of all that is compared, by path."""
    files = [
        file
        for part in ("data/prepared", "data/features", "results")
        for file in (folder / part).rglob("*")
        if file.suffix in COMPARED and TIMED not in file.name
    ]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def difference(expected, found, with_fits):
    """Return "same" or which files differ."""
    if not with_fits:
        expected, found = (
            {path: content for path, content in one.items() if "/fit/" not in path}
            for one in (expected, found)
        )
    differing = sorted(
        path for path in expected.keys() | found.keys() if expected.get(path) != found.get(path)
    )
    return "same" if not differing else f"{len(differing)} differ, such as {differing[0]}"


def compare(paper, scratch, slurm):
    """Return a row of the table: what differs from a run on two cores."""
    variants = {
        "2 cores": (lambda folder: run(folder, paper, "--cores", "2"), True),
        "1 core": (lambda folder: run(folder, paper, "--cores", "1"), True),
        "half blocks, no batches": (
            lambda folder: (other_blocks(folder), run(folder, paper, "--cores", "2")),
            False,
        ),
        "new environment": (lambda folder: run_anew(folder, paper), True),
    }
    if slurm:
        variants["SLURM"] = (lambda folder: run_on_slurm(folder, paper), True)
    row, expected = {"paper": paper}, None
    for name, (make, with_fits) in variants.items():
        folder = scratch / f"{paper}_{name.replace(' ', '_').replace(',', '')}"
        print(f"{paper}: {name}", file=sys.stderr, flush=True)
        copy_project(folder)
        make(folder)
        found = results(folder)
        if expected is None:
            expected = found
            row["files"] = len(found)
        else:
            row[name] = difference(expected, found, with_fits)
        if folder != scratch / f"{paper}_2_cores":
            shutil.rmtree(folder)
    return row


def main():
    """Compare, print the table, and write it where asked."""
    papers = sorted(file.stem for file in (ROOT / "config/papers").glob("*.yaml"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--papers", nargs="+", choices=papers, default=papers)
    parser.add_argument("--slurm", action="store_true")
    parser.add_argument("--into", type=Path, help="a document with the marks")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        rows = [compare(paper, Path(scratch), options.slurm) for paper in options.papers]
    table = markdown(pd.DataFrame(rows))
    print(table)
    if options.into:
        write_into(options.into, "determinism", table)


if __name__ == "__main__":
    main()
