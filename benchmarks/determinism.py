"""Are results the same, byte by byte, however a run is cut and wherever it runs?

    python benchmarks/determinism.py [--papers mtsc ckm ...] [--against changed slurm]
        [--into docs/reliability.md]

Each paper is run at quick effort in copies of the project, which compile their own kernels. The
first is run on two cores. ``--against changed``, the default, compares it with one in which all is
different at once: one core, half as many tasks in a block, and a new environment, made from
requirements.lock. Where anything differs, each of these is tried alone, to say which it was, and
none of them: a run that differs from itself. ``--against slurm`` compares it with runs through both
profiles for SLURM, on a SLURM of this machine alone.

What is compared: prepared data, features, every array of every fit, metrics, tables, figures,
verdicts and the page; against SLURM, where blocks are cut alike, also the whole files of fits and
of what they share. What says how long something took is not: ``.tsv`` files and the page's table of
them, and of the audit the column of CPU seconds, with the figures and the page's sections of them.

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

from privclust_papers.pipeline import artefacts

COMPARED = {".h5", ".csv", ".svg", ".png", ".html"}
TIMED = "audit_epsilon", "audit_faults"  # the targets whose figures show CPU seconds
TIMED_SECTION = rb'<section class="target" aria-labelledby="audit_(epsilon|faults)">.*?</section>'
CUT = "cut: "  # begins the names of what depends on how experiments are cut into blocks
CORES, BLOCKS, ENVIRONMENT = "1 core", "half blocks", "new environment"
CHANGES = (CORES, BLOCKS, ENVIRONMENT)
TOGETHER = ", ".join(CHANGES)
AGAIN = "again"  # nothing changed
CHANGED, SLURM = "changed", "slurm"
FILES, ARRAYS, BLOCK_FILES = SIZES = ("files", "arrays of fits", "files of blocks")


def halve_blocks(folder):
    """Halve the blocks of all experiments."""
    for file in (folder / "config/papers").glob("*/paper.yaml"):
        halved = re.sub(
            r"\bblock: (\d+)", lambda match: f"block: {-(-int(match[1]) // 2)}", file.read_text()
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
    run_workflow(folder, *options, "--config", f"papers=[config/papers/{paper}]", python=python)
    return results(folder)


def run_changed(scratch, paper, changes):
    """Run a paper in a new copy with some changes, of which there may be none."""
    folder = scratch / "_".join([paper, *changes]).replace(" ", "_")
    copy_project(folder)
    if BLOCKS in changes:
        halve_blocks(folder)
    python = new_environment(scratch) if ENVIRONMENT in changes else sys.executable
    return run(folder, paper, "--cores", "1" if CORES in changes else "2", python=python)


@contextlib.contextmanager
def own_slurm():
    """Start a SLURM on this machine and yield the module that did; end where there can be none."""
    file = ROOT / "tests/workflow/slurm/cluster.py"
    spec = importlib.util.spec_from_file_location("cluster", file)
    cluster = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cluster)
    with tempfile.TemporaryDirectory(prefix=cluster.PREFIX, dir="/tmp") as place:  # a short path
        holder = subprocess.Popen(  # it ends when we do, in whatever way
            [sys.executable, file, "hold", place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            if holder.stdout.readline() != "ready\n":
                raise SystemExit(holder.communicate()[1].strip())
            yield cluster
        finally:
            holder.communicate()


def run_on_slurm(scratch, paper, cluster):
    """Yield each profile for SLURM and what the paper made through it."""
    for profile in cluster.HASTE:
        folder = scratch / f"{paper}_{profile}"
        copy_project(folder)
        yield profile, run(folder, paper, *cluster.profile_arguments(profile))


def comparable(file):
    """Return a file's content without what says how long something took; None if it is all that."""
    content = file.read_bytes()
    if file.suffix == ".csv" and file.stem in TIMED:
        table = pd.read_csv(file, dtype=str).drop(columns="cpu_seconds", errors="ignore")
        return table.to_csv().encode()
    if file.suffix == ".html":
        return re.sub(TIMED_SECTION, b"", content, flags=re.DOTALL)
    return None if file.stem in TIMED else content


def results(folder):
    """Return a digest of all that is compared, by its name."""
    parts = ("data/prepared", "data/features", "results")
    files = sorted(f for part in parts for f in (folder / part).rglob("*") if f.suffix in COMPARED)
    digests = {}
    for file in files:
        name, content = str(file.relative_to(folder)), comparable(file)
        if content is not None:
            cut = file.parts[-3] in ("fit", "shared")
            digests[CUT * cut + name] = hashlib.sha256(content).hexdigest()
    return digests | arrays_of_fits([file for file in files if file.parts[-3] == "fit"])


def arrays_of_fits(files):
    """Return a digest of every array of fits by experiment, method and task, not by block."""
    digests = {}
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
            digests[f"{experiment}/{method}/{before + int(number)}/{rest}"] = digest
        done |= {(experiment, method): number for method, number in tasks.items()}
    return digests


def difference(expected, actual, cut_alike):
    """Return "same" or what differs, also between files that hold the same only if cut alike."""
    names = (n for n in expected.keys() | actual.keys() if cut_alike or not n.startswith(CUT))
    differing = sorted(name for name in names if expected.get(name) != actual.get(name))
    return "same" if not differing else f"{len(differing)} differ, such as {differing[0]}"


def compare(scratch, paper, changed, cluster=None):
    """Return cells of the table: what differs from a run on two cores if changed, if on SLURM."""
    expected = run_changed(scratch, paper, ())
    n_arrays = sum(not Path(name).suffix for name in expected)
    n_cut = sum(name.startswith(CUT) for name in expected)
    row = {
        FILES: str(len(expected) - n_cut - n_arrays),
        ARRAYS: str(n_arrays),
        BLOCK_FILES: str(n_cut),
    }
    if changed:
        row[TOGETHER] = difference_from_changed(scratch, paper, expected)
    for profile, digests in run_on_slurm(scratch, paper, cluster) if cluster else ():
        row[f"profile {profile}"] = difference(expected, digests, cut_alike=True)
    return row


def difference_from_changed(scratch, paper, expected):
    """Return "same" or what differs when all is changed, by the change that does it alone."""
    together = difference(expected, run_changed(scratch, paper, CHANGES), cut_alike=False)
    if together == "same":
        return together
    alone = {
        change: difference(expected, run_changed(scratch, paper, (change,)), change != BLOCKS)
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
    papers = sorted(path.name for path in (ROOT / "config/papers").iterdir())
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--papers", nargs="+", choices=papers, default=papers)
    parser.add_argument("--against", nargs="+", choices=(CHANGED, SLURM), default=[CHANGED])
    parser.add_argument("--into", type=Path, help="a document with the marks")
    options = parser.parse_args()
    rows = rows_of(options.into) if options.into else {}
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(own_slurm()) if SLURM in options.against else None
        for paper in options.papers:
            cells = compare(scratch, paper, CHANGED in options.against, cluster)
            rows[paper] = rows.get(paper, {}) | cells
            table = pd.DataFrame.from_dict(rows, orient="index").sort_index().fillna("")
            order = [name for name in SIZES if name in table] + list(table.columns)
            table = table[list(dict.fromkeys(order))]
            text = markdown(table.rename_axis("paper").reset_index())
            if options.into:
                write_into(options.into, "determinism", text)
    print(text)


if __name__ == "__main__":
    main()
