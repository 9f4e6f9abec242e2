"""Time of the whole workflow on 1 and 2 cores, beside what its jobs' own times predict.

Run: ``OMP_NUM_THREADS=1 python benchmarks/pipeline.py``, or with
``--config "papers=[config/papers/mtsc.yaml]"`` for one paper. Each number of cores gets a copy of
the project of its own, kernels as compiled here. ``--done FOLDER`` runs nothing and reads what a
run in that folder left. ``--into docs/costs.md`` writes the tables there, between the marks of
the effort, as well as to the terminal.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import pandas as pd
from scratch import copy_project, markdown, run_workflow, write_into

from privclust.costs import LIMITS, compare_runs, cost_table, predict, read_costs, verdict_lines

COLUMNS = {
    "cpu_s": "CPU-s",
    "work_cpu_s": "of these work",
    "wall_s": "wall s, added up",
    "peak_mb": "peak memory, MB",
    "written_mb": "written, MB",
}


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
                copy_project(folders[-1], with_kernels=True)
                print(f"running on {cores} cores in {folders[-1]}", flush=True)
                settings = ["--config", f"effort={options.effort}", *options.config]
                run_workflow(folders[-1], "--cores", str(cores), *settings)
        text = report(options.effort, folders)
    print(text)
    if options.into:
        write_into(options.into, f"costs {options.effort}", text)


if __name__ == "__main__":
    main()
