"""Time of the whole workflow on 1 and 2 cores, beside what its jobs' own times predict.

Run: ``OMP_NUM_THREADS=1 python benchmarks/pipeline.py``, or with
``--config "papers=[config/papers/mtsc]"`` for one paper. Each number of cores gets a copy of
the project of its own, kernels as compiled here. ``--done FOLDER`` runs nothing and reads what a
run in that folder left. ``--into docs/costs.md`` writes the tables there, between the marks of
the effort, as well as to the terminal, and beside it ``costs_quick.png`` or ``costs_paper.png``:
what the first run's jobs predict for any number of cores, and what the runs took. ``--tables
docs/results/ckm`` runs nothing either and adds up what the folders named have of runs of single
papers: ``costs.csv``, ``costs_model.csv`` and ``costs_runs.csv``, as ``snakemake costs`` left them.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import pandas as pd
import yaml
from scratch import copy_project, markdown, run_workflow, write_into

from privclust_papers.report.costs import (
    CORES,
    compare_runs,
    cost_table,
    predict,
    read_costs,
    verdict_lines,
)
from privclust_papers.report.drawing.run_costs import draw_costs

COLUMNS = {
    "cpu_s": "CPU-s",
    "work_cpu_s": "of which work, CPU-s",
    "wall_s": "wall s, added up",
    "peak_mb": "peak memory, MB",
    "written_mb": "written, MB",
}


def budgets(effort):
    """Return the budget of each paper, CPU seconds, as its config states it."""
    papers = Path(__file__).parents[1].glob("config/papers/*/paper.yaml")
    documents = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(papers)]
    return {paper["paper"]: paper["cpu_seconds"][effort] for paper in documents}


def table_text(table, runs, effort):
    """Return the lines on the project's budgets, then the tables, in Markdown."""
    shown = table.rename(columns=COLUMNS)
    parts = [
        markdown(shown[shown.level.isin(levels)][["name", "jobs", *COLUMNS.values()]])
        for levels in (("rule", "total"), ("paper",), ("target",))
    ]
    lines = verdict_lines(table, budgets(effort), effort)
    head = "\n".join(f"- {line}" for line in lines)
    return "\n\n".join([head, *parts, markdown(runs)])


def report(effort, folders):
    """Return what the last folder's run cost and how long each folder's took: text, drawing."""
    costs = [read_costs(effort, folder) for folder in folders]
    table = cost_table(costs[-1])
    runs = pd.concat([compare_runs(cost) for cost in costs], ignore_index=True)
    first = predict(costs[0], CORES)
    whole = runs.complete.astype(bool)
    from_first = runs.cores.map(first.set_index("cores").predicted_s)
    runs["predicted_from_first_s"] = from_first.where(whole)
    text = table_text(table, runs.drop(columns="complete"), effort)
    return text, draw_costs(table, first, runs)


def add_up(effort, folders):
    """Return what runs of single papers, one after another, cost: text, drawing."""
    missing = [str(folder) for folder in folders if not (folder / "costs.csv").exists()]
    if missing:
        raise SystemExit(f"no costs.csv in {', '.join(missing)}: name folders that have one")
    tables, models, runs = (
        [pd.read_csv(folder / f"costs{name}.csv") for folder in folders]
        for name in ("", "_model", "_runs")
    )
    kinds = {name: "sum" for name in tables[0].columns[2:]} | {"peak_mb": "max"}
    table = pd.concat(tables).groupby(["level", "name"], sort=False, as_index=False).agg(kinds)
    table["overhead"] = table.overhead_cpu_s / table.cpu_s
    last = {"snakemake": 1, "all": 2}  # what only some papers have goes before these
    table = table.sort_values("name", key=lambda x: x.map(last).fillna(0), kind="stable")
    sums = {"jobs": "sum", "predicted_s": "sum", "lower_s": "sum", "upper_s": "sum"}
    model = pd.concat(models).groupby("cores", as_index=False).agg(sums)
    for folder, run in zip(folders, runs, strict=True):
        run.insert(0, "paper", folder.name)
    together = pd.concat(runs, ignore_index=True)
    text = table_text(table, together.drop(columns="complete"), effort)
    whole = together[together.complete.astype(bool)].groupby("cores", as_index=False)
    measured = whole.agg(complete=("paper", "nunique"), measured_s=("measured_s", "sum"))
    measured["complete"] = measured.complete == len(folders)
    return text, draw_costs(table, model, measured)


def main():
    """Run or read, print the tables, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--effort", choices=("paper", "quick"), default="quick")
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--config", nargs="*", default=[], help="passed on to snakemake")
    parser.add_argument("--done", type=Path, help="where the workflow has run already")
    parser.add_argument("--tables", type=Path, nargs="*", help="folders with tables of papers")
    parser.add_argument("--into", type=Path, help="a document with the effort's marks")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folders = [options.done] if options.done else []
        if not (options.done or options.tables):
            for cores in options.cores:
                folders.append(Path(scratch) / f"cores_{cores}")
                copy_project(folders[-1], with_kernels=True)
                print(f"running on {cores} cores in {folders[-1]}", flush=True)
                settings = ["--config", f"effort={options.effort}", *options.config]
                run_workflow(folders[-1], "--cores", str(cores), *settings)
        if options.tables:
            text, drawing = add_up(options.effort, options.tables)
        else:
            text, drawing = report(options.effort, folders)
    print(text)
    if options.into:
        name = f"costs_{options.effort}.png"
        drawing.figure.savefig(options.into.with_name(name), dpi=100)
        picture = "![CPU time by rule and by paper, and the time on different numbers of cores]"
        write_into(options.into, f"costs {options.effort}", f"{picture}({name})\n\n{text}")


if __name__ == "__main__":
    main()
