"""Time of the whole workflow on 1 and 2 cores, beside what its jobs' own times predict.

Run: ``OMP_NUM_THREADS=1 python benchmarks/pipeline.py``, or with
``--config "papers=[config/papers/mtsc.yaml]"`` for one paper. Each number of cores gets a copy of
the project of its own, kernels as compiled here. ``--done FOLDER`` runs nothing and reads what a
run in that folder left. ``--into docs/costs.md`` writes the tables there, between the marks of
the effort, as well as to the terminal.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

from privclust.costs import LIMITS, compare_runs, cost_table, predict, read_costs, verdict_lines

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("config", "workflow", "src", "Snakefile", "environment.yml")
COLUMNS = {
    "cpu_s": "CPU-s",
    "work_cpu_s": "of these work",
    "wall_s": "wall s, added up",
    "peak_mb": "peak memory, MB",
    "written_mb": "written, MB",
}


def run_copy(folder, effort, cores, config):
    """Copy the project and run its workflow there."""
    folder.mkdir()
    for name in COPIED:
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy2
        copy(source, folder / name)
    command = [sys.executable, "-m", "snakemake", "--cores", str(cores)]
    command += ["--config", f"effort={effort}", *config]
    print(f"running on {cores} cores in {folder}", flush=True)
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}  # the copy's own package
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"the run on {cores} cores failed:\n{done.stderr[-2000:]}")


def markdown(table):
    """Return a table in Markdown, numbers to whole units from 100 on."""

    def show(value):
        if isinstance(value, float):
            return (
                ""
                if pd.isna(value)
                else f"{value:,.0f}"
                if round(value, 1) >= 100
                else f"{value:.1f}"
            )
        return str(value)

    rows = [table.columns, ["---"] * table.shape[1], *table.itertuples(index=False)]
    return "\n".join("| " + " | ".join(map(show, row)) + " |" for row in rows)


def report(effort, folders):
    """Return tables of what the last folder's run cost and of how long each folder's took."""
    costs = [read_costs(effort, folder) for folder in folders]
    table = cost_table(costs[-1])
    shown = table.rename(columns=COLUMNS)
    parts = [
        markdown(shown[shown.level.isin(levels)][["name", "jobs", *COLUMNS.values()]])
        for levels in (("rule", "total"), ("paper",), ("target",))
    ]
    runs = []
    for found in costs:
        complete = compare_runs(found).query("complete").drop(columns="complete")
        first = predict(costs[0], complete.cores).predicted_s.to_list() if len(complete) else []
        runs.append(complete.assign(predicted_from_first_s=first))
    parts.append(markdown(pd.concat(runs)))
    lines = verdict_lines(table, predict(costs[-1], [2]), effort)
    return "\n\n".join([*(f"- {line}" for line in lines), *parts]).replace("\n\n- ", "\n- ")


def write_into(path, effort, text):
    """Put tables between the marks of an effort in a document."""
    begin, end = f"<!-- costs {effort} -->", f"<!-- end of costs {effort} -->"
    document = path.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(document):
        raise SystemExit(f"{path}: has no marks {begin} and {end}")
    document = pattern.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", document)
    path.write_text(document, encoding="utf-8")


def main():
    """Run or read, print the tables, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--effort", choices=sorted(LIMITS), default="quick")
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--config", nargs="*", default=[], help="passed on to snakemake")
    parser.add_argument("--done", type=Path, help="where the workflow has run already")
    parser.add_argument("--into", type=Path, help="a document with the effort's marks")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folders = [options.done] if options.done else []
        if not options.done:
            for cores in options.cores:
                folders.append(Path(scratch) / f"cores_{cores}")
                run_copy(folders[-1], options.effort, cores, options.config)
        text = report(options.effort, folders)
    print(text)
    if options.into:
        write_into(options.into, options.effort, text)


if __name__ == "__main__":
    main()
