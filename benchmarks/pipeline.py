"""Time of the whole workflow on 1 and 2 cores, beside what its jobs' own times predict.

Run: ``OMP_NUM_THREADS=1 python benchmarks/pipeline.py``, or with
``--config "papers=[config/papers/mtsc.yaml]"`` for one paper. Each number of cores gets a copy of
the project of its own, kernels as compiled here. ``--done FOLDER`` runs nothing and reads what a
run in that folder left. ``--into docs/costs.md`` writes the tables there, between the marks of
the effort, as well as to the terminal, and beside it ``costs_quick.png`` or ``costs_paper.png``:
what the first run's jobs predict for any number of cores, and what the runs took.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import pandas as pd
from scratch import copy_project, markdown, run_workflow, write_into

from privclust.costs import (
    CORES,
    LIMITS,
    compare_runs,
    cost_table,
    predict,
    read_costs,
    verdict_lines,
)
from privclust.figures.costs import draw_costs

COLUMNS = {
    "cpu_s": "CPU-s",
    "work_cpu_s": "of these work",
    "wall_s": "wall s, added up",
    "peak_mb": "peak memory, MB",
    "written_mb": "written, MB",
}


def report(effort, folders):
    """Return what the last folder's run cost and how long each folder's took: text, drawing."""
    costs = [read_costs(effort, folder) for folder in folders]
    table = cost_table(costs[-1])
    shown = table.rename(columns=COLUMNS)
    parts = [
        markdown(shown[shown.level.isin(levels)][["name", "jobs", *COLUMNS.values()]])
        for levels in (("rule", "total"), ("paper",), ("target",))
    ]
    runs = pd.concat([compare_runs(found) for found in costs], ignore_index=True)
    first = predict(costs[0], CORES).set_index("cores").predicted_s
    whole = runs.complete.astype(bool)
    runs["predicted_from_first_s"] = runs.cores.map(first).where(whole)
    parts.append(markdown(runs.drop(columns="complete")))
    lines = verdict_lines(table, predict(costs[-1], [2]), effort)
    text = "\n\n".join([*(f"- {line}" for line in lines), *parts]).replace("\n\n- ", "\n- ")
    return text, draw_costs(table, predict(costs[0], CORES), runs, effort)


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
        text, drawing = report(options.effort, folders)
    print(text)
    if options.into:
        name = f"costs_{options.effort}.png"
        drawing.figure.savefig(options.into.with_name(name), dpi=100)
        picture = "![CPU time by rule and by paper, and the time on some cores]"
        write_into(options.into, f"costs {options.effort}", f"{picture}({name})\n\n{text}")


if __name__ == "__main__":
    main()
