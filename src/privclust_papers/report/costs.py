"""Costs of a run of the workflow.

Every job ends its log with its own counts, Snakemake records when it started and ended and what it
read, and each run of Snakemake logs a line of its own.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from privclust.core.hdf5 import FileError
from privclust_papers.pipeline.artefacts import read_table
from privclust_papers.report.run_records import RECORDS, Job, behind, read_jobs

RUNS = "snakemake.jsonl"  # in the folder of an effort's logs: one line per run of Snakemake
_RUN_COLUMNS = ["started", "ended", "cores", "planning_s", "cpu_s", "children_cpu_s"]
_OF_DATA = ("fetch", "prepare", "features")  # rules of jobs that experiments share


class CostError(Exception):
    """Raised if the records do not determine the costs of a run."""


@dataclass(frozen=True)
class Costs:
    """The costs of the jobs behind a page, and the runs of Snakemake.

    `table` has a row for each of `jobs`: ``rule``; ``paper``, "data" for jobs that experiments
    share and "page" for the scorecard; ``target`` that it draws, else empty; ``ended`` (seconds
    since the epoch); ``cpu_s`` of the job and its children; ``work_cpu_s``, for fits the time of
    the methods, else the time after the script's imports; ``wall_s``; ``peak_mb``, the largest
    resident memory of one of its processes; ``written_mb``. Sizes are in 10^6 bytes.

    `runs` has a row for each run of Snakemake that did one of the jobs, in order: ``started`` and
    ``ended``, ``cores`` (missing on a cluster), ``planning_s`` until the first job could start,
    ``cpu_s`` of Snakemake's own process, ``children_cpu_s`` of all processes that it started and
    waited for. `unrecorded` are outputs of jobs whose logs have no costs.
    """

    jobs: list[Job]
    table: pd.DataFrame
    unrecorded: list[str]
    runs: pd.DataFrame

    def done_in(self, run: Any) -> pd.DataFrame:
        """Return the rows of the jobs that ended during a run, a row of `runs`."""
        return self.table[self.table.ended.between(run.started, run.ended)]

    @cached_property
    def rest_cpu_s(self) -> float:
        """CPU seconds of Snakemake's children on one machine that no job's record includes.

        They go to choosing jobs, to ending interpreters, and to failed attempts.
        """
        local = self.runs[self.runs.cores.notna()]
        recorded = sum(self.done_in(run).cpu_s.sum() for run in local.itertuples())
        return float(local.children_cpu_s.sum()) - recorded


def read_costs(effort: str, folder: str | Path = ".") -> Costs:
    """Read the costs of the jobs behind ``results/<effort>/index.html`` from the workflow's logs.

    Raises a CostError if the page has no record, or no finished run of Snakemake made it.
    """
    page = f"results/{effort}/index.html"
    with contextlib.chdir(folder):
        try:
            jobs = read_jobs(RECORDS, page)
        except FileError as error:
            raise CostError(str(error)) from None
        told = [job for job in jobs if job.cost]
        if all(page not in job.outputs for job in told):
            raise CostError(f"{page}: no job has recorded making it; run `snakemake` first")
        table = pd.DataFrame([_row_of(job, effort) for job in told])
        runs = _read_runs(Path("logs", effort, RUNS))
    unrecorded = [job.outputs[0] for job in jobs if not job.cost]
    costs = Costs(told, table, unrecorded, runs)
    done = [costs.done_in(run) for run in runs.itertuples()]
    if not any("index" in set(rows.rule) for rows in done):
        raise CostError(
            f"{page}: the run of Snakemake that made it has not ended, so its own cost is not yet "
            "known; run `snakemake` first and `snakemake costs` after it"
        )
    # Runs that only planned, or made other targets, are no cost of this page.
    runs = runs[[not rows.empty for rows in done]].reset_index(drop=True)
    return Costs(told, table, unrecorded, runs)


def _row_of(job: Job, effort: str) -> dict[str, Any]:
    cost, is_drawn = job.cost, job.rule == "draw"
    work = cost["cpu_s"] - cost["startup_cpu_s"]
    if job.rule == "fit":
        (path,) = (path for path in job.outputs if path.endswith(".tsv"))
        work = float(pd.read_csv(read_table(path), sep="\t").cpu_seconds.sum())
    # files of an experiment lie in results/<effort>/<paper>/<experiment>
    places = [Path(name).parts for name in (job.inputs if is_drawn else job.outputs)]
    papers = [p[2] for p in places if p[:2] == ("results", effort) and len(p) > 4]
    return {
        "rule": job.rule,
        "paper": "data" if job.rule in _OF_DATA else papers[0] if papers else "page",
        "target": Path(job.outputs[0]).parent.name if is_drawn else "",
        "ended": job.end,
        "cpu_s": cost["cpu_s"],
        "work_cpu_s": work,
        "wall_s": job.end - job.start,
        "peak_mb": cost["peak_mb"],
        "written_mb": cost["written_mb"],
    }


def _read_runs(path: Path) -> pd.DataFrame:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return pd.DataFrame([json.loads(line) for line in lines], columns=_RUN_COLUMNS)


def cost_table(costs: Costs) -> pd.DataFrame:
    """Return the sums of costs by rule, by paper, by target, and in total.

    Rules, and likewise papers, add up to the total. Targets do not, since each includes all jobs
    behind it, some of which targets share. Columns: ``level`` (rule, paper, target or total),
    ``name``, ``jobs``, ``cpu_s``, ``work_cpu_s``, ``overhead_cpu_s`` (the difference), ``overhead``
    (as a part of ``cpu_s``), ``wall_s`` (sum over jobs), ``peak_mb``, ``written_mb``. The row
    ``snakemake`` is Snakemake's own process, with `Costs.rest_cpu_s`, and has no work.
    """
    jobs, runs = costs.table, costs.runs
    engine = _row("snakemake", jobs.iloc[:0])
    engine |= {"cpu_s": runs.cpu_s.sum() + costs.rest_cpu_s, "wall_s": runs.planning_s.sum()}
    rows = []
    for level in ("rule", "paper"):
        rows += [{"level": level} | _row(name, group) for name, group in jobs.groupby(level)]
        rows += [{"level": level} | engine]
    makers = {output: job for job in costs.jobs for output in job.outputs}
    for target, drawn in jobs[jobs.target != ""].groupby("target"):
        needed = behind([costs.jobs[place] for place in drawn.index], makers)
        rows.append({"level": "target"} | _row(target, jobs[[j in needed for j in costs.jobs]]))
    total = _row("all", jobs)
    total |= {key: total[key] + engine[key] for key in ("cpu_s", "wall_s")}
    table = pd.DataFrame([*rows, {"level": "total"} | total])
    table.insert(5, "overhead_cpu_s", table.cpu_s - table.work_cpu_s)
    table.insert(6, "overhead", table.overhead_cpu_s / table.cpu_s)
    return table


def _row(name: str, jobs: pd.DataFrame) -> dict[str, Any]:
    sums = {key: jobs[key].sum() for key in ("cpu_s", "work_cpu_s", "wall_s")}
    sizes = {"peak_mb": jobs.peak_mb.max(), "written_mb": jobs.written_mb.sum()}
    return {"name": name, "jobs": len(jobs), **sums, **sizes}


def run_table(costs: Costs) -> pd.DataFrame:
    """Return the time of each run of Snakemake on a stated number of cores.

    Columns: ``cores``, ``jobs``, ``measured_s`` and ``complete`` (whether the run did all jobs).
    """
    rows = []
    for run in costs.runs[costs.runs.cores.notna()].itertuples():
        n_jobs = len(costs.done_in(run))
        rows.append((int(run.cores), n_jobs, run.ended - run.started, n_jobs == len(costs.jobs)))
    return pd.DataFrame(rows, columns=["cores", "jobs", "measured_s", "complete"])
