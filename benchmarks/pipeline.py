"""Costs of the whole workflow, and its time on 1 and 2 cores.

Run: ``OMP_NUM_THREADS=1 python benchmarks/pipeline.py``, or with
``--config "papers=[config/papers/mtsc]"`` for one paper. Each number of cores gets a copy of
the project of its own, kernels as compiled here. ``--done FOLDER`` runs nothing and reads what a
run in that folder left. ``--into docs/costs.md`` writes the tables there, between the marks of
the effort, as well as to the terminal. ``--tables docs/results/ckm`` runs nothing either and adds
up what the folders named have of runs of single papers: ``costs.csv`` and ``costs_runs.csv``, as
``snakemake costs`` left them.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import pandas as pd
import yaml
from scratch import copy_project, markdown, run_workflow, write_into

from privclust_papers.report.costs import cost_table, read_costs, run_table

OVERHEAD_LIMIT = 0.10  # of the CPU time at paper effort; short jobs are mostly overhead
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


def lines_on_budgets(table, effort):
    """Return whether each paper kept its budget, and the whole its share of overhead."""
    of_papers = table[table.level == "paper"].set_index("name").cpu_s
    lines = [
        f"- {paper}, CPU seconds: {of_papers[paper]:,.0f}, limit {limit:,.0f}: "
        f"{'within' if of_papers[paper] <= limit else 'NOT within'}"
        for paper, limit in budgets(effort).items()
        if paper in of_papers
    ]
    if effort == "paper":
        overhead = float(table.overhead[table.level == "total"].iloc[0])
        kept = "within" if overhead <= OVERHEAD_LIMIT else "NOT within"
        lines.append(f"- overhead in CPU time: {overhead:.1%}, limit {OVERHEAD_LIMIT:.1%}: {kept}")
    return "\n".join(lines)


def table_text(table, runs, effort):
    """Return the lines on the project's budgets, then the tables, in Markdown."""
    shown = table.rename(columns=COLUMNS)
    parts = [
        markdown(shown[shown.level.isin(levels)][["name", "jobs", *COLUMNS.values()]])
        for levels in (("rule", "total"), ("paper",), ("target",))
    ]
    return "\n\n".join([lines_on_budgets(table, effort), *parts, markdown(runs)])


def report(effort, folders):
    """Return what the last folder's run cost and how long each folder's took, in Markdown."""
    costs = [read_costs(effort, folder) for folder in folders]
    runs = pd.concat([run_table(cost) for cost in costs], ignore_index=True)
    return table_text(cost_table(costs[-1]), runs.drop(columns="complete"), effort)


def add_up(effort, folders):
    """Return what runs of single papers, one after another, cost, in Markdown."""
    missing = [str(folder) for folder in folders if not (folder / "costs.csv").exists()]
    if missing:
        raise SystemExit(f"no costs.csv in {', '.join(missing)}: name folders that have one")
    tables = [pd.read_csv(folder / "costs.csv") for folder in folders]
    kinds = {name: "sum" for name in tables[0].columns[2:]} | {"peak_mb": "max"}
    table = pd.concat(tables).groupby(["level", "name"], sort=False, as_index=False).agg(kinds)
    table["overhead"] = table.overhead_cpu_s / table.cpu_s
    last = {"snakemake": 1, "all": 2}  # what only some papers have goes before these
    table = table.sort_values("name", key=lambda x: x.map(last).fillna(0), kind="stable")
    runs = [pd.read_csv(folder / "costs_runs.csv") for folder in folders]
    for folder, run in zip(folders, runs, strict=True):
        run.insert(0, "paper", folder.name)
    columns = ["paper", "cores", "jobs", "measured_s"]
    return table_text(table, pd.concat(runs, ignore_index=True)[columns], effort)


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
            text = add_up(options.effort, options.tables)
        else:
            text = report(options.effort, folders)
    print(text)
    if options.into:
        write_into(options.into, f"costs {options.effort}", text)


if __name__ == "__main__":
    main()
