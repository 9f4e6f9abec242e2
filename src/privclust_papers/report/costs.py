"""Costs of a run of the workflow.

Every job ends its log with its own counts (`PREFIX`), Snakemake's ``benchmark:`` file has its wall
time, and each run of Snakemake logs a line of its own. A job's record names the files that it read
and wrote, which gives the graph of the jobs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from privclust_papers.pipeline.artefacts import read_table

PREFIX = "cost "  # start of the log line with a job's record
RUNS = "snakemake.jsonl"  # in the folder of an effort's logs: one line per run of Snakemake
OVERHEAD_LIMIT = 0.10  # of the CPU time at paper effort; short jobs are mostly overhead
_WORKFLOW_OUTPUTS = ("results/", "data/raw/", "data/prepared/", "data/features/")
_RUN_TIMES = ["planning_s", "planning_cpu_s", "cpu_s", "children_cpu_s"]
_RUN_COLUMNS = ["started", "ended", "cores", *_RUN_TIMES]
_DATA_LOGS = ("fetch", "prepare", "features")


class CostError(Exception):
    """Raised if the records do not determine the costs of a run."""


@dataclass(frozen=True)
class Job:
    """Costs of one job; sizes are in 10^6 bytes."""

    rule: str
    paper: str  # "data" for jobs that experiments share, "page" for the scorecard
    target: str  # target that the job draws, else empty
    ended: float  # in seconds since the epoch
    cpu_s: float  # of the job and its children
    work_cpu_s: float  # for fits the time of the methods, else the time after the script's imports
    wall_s: float  # measured by Snakemake
    peak_mb: float  # largest resident memory of one of its processes
    written_mb: float
    needs: tuple[int, ...] = ()  # positions of the jobs that made its inputs


@dataclass(frozen=True)
class Costs:
    """The jobs behind a page, input files without a record, and the runs of Snakemake.

    `runs` has a row for each run of Snakemake that did one of the jobs, in order: ``started`` and
    ``ended`` (seconds since the epoch), ``cores`` (missing on a cluster), ``planning_s`` and
    ``planning_cpu_s`` until the first job could start, ``cpu_s`` of Snakemake's own process,
    ``children_cpu_s`` of all processes that it started and waited for.
    """

    jobs: list[Job]  # in topological order
    unrecorded: list[str]  # inputs made by the workflow, but by no recorded job
    runs: pd.DataFrame

    def done_in(self, run: Any) -> list[int]:
        """Return the positions of the jobs that ended during a run, a row of `runs`."""
        return [i for i, job in enumerate(self.jobs) if run.started <= job.ended <= run.ended]

    @cached_property
    def rest_cpu_s(self) -> float:
        """CPU seconds of Snakemake's children on one machine that no job's record includes.

        They go to choosing jobs, to ending interpreters, and to failed attempts.
        """
        local = self.runs[self.runs.cores.notna()]
        recorded = sum(self.jobs[i].cpu_s for run in local.itertuples() for i in self.done_in(run))
        return float(local.children_cpu_s.sum()) - recorded


def read_costs(effort: str, folder: str | Path = ".") -> Costs:
    """Read the costs of the jobs behind ``results/<effort>/index.html`` from the workflow's logs.

    Logs of jobs that the page does not depend on, such as those of an older plan, are ignored.
    Raises a CostError if the page has no record, or no finished run of Snakemake made it.
    """
    folder = Path(folder)
    logs = [folder / "logs" / name for name in (effort, *_DATA_LOGS)]
    records = {}
    for path in (path for log in logs for path in sorted(log.rglob("*.log"))):
        record = read_cost(path)
        if record:
            record["log"] = str(path.relative_to(folder / "logs"))
            records |= dict.fromkeys(record["outputs"], record)
    page = f"results/{effort}/index.html"
    if page not in records:
        raise CostError(f"{page}: no job has recorded making it; run `snakemake` first")
    order, unrecorded = _behind(page, records)
    place = {record["log"]: i for i, record in enumerate(order)}
    jobs = []
    for record in order:
        makers = {place[records[p]["log"]] for p in record["inputs"] if p in records}
        jobs.append(replace(_job(record, folder), needs=tuple(sorted(makers))))
    costs = Costs(jobs, unrecorded, _read_runs(folder / "logs" / effort / RUNS))
    done = [costs.done_in(run) for run in costs.runs.itertuples()]
    if not any(len(jobs) - 1 in places for places in done):  # the page is the last job
        raise CostError(
            f"{page}: the run of Snakemake that made it has not ended, so its own cost is not yet "
            "known; run `snakemake` first and `snakemake costs` after it"
        )
    return replace(costs, runs=costs.runs[list(map(bool, done))].reset_index(drop=True))


def read_cost(path: Path) -> dict | None:
    """Return the last record of a job's log; None if the job was killed."""
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line for line in file if line.startswith(PREFIX)]
    return json.loads(lines[-1].removeprefix(PREFIX)) if lines else None


def _behind(page: str, records: dict[str, dict]) -> tuple[list[dict], list[str]]:
    """Return the records behind a file in topological order, and inputs without a record."""
    order: dict[str, dict] = {}
    unrecorded = set()
    stack = [(records[page], False)]
    while stack:
        record, needs_stand = stack.pop()
        if record["log"] in order:
            continue
        if needs_stand:
            order[record["log"]] = record
            continue
        stack.append((record, True))
        for path in record["inputs"]:
            if path in records:
                stack.append((records[path], False))
            elif path.startswith(_WORKFLOW_OUTPUTS):
                unrecorded.add(path)
    return list(order.values()), sorted(unrecorded)


def _job(record: dict, folder: Path) -> Job:
    rule, wildcards = record["rule"], record["wildcards"]
    work = record["cpu_s"] - record["startup_cpu_s"]
    if rule == "fit":
        (path,) = (path for path in record["outputs"] if path.endswith(".tsv"))
        work = float(pd.read_csv(read_table(folder / path), sep="\t").cpu_seconds.sum())
    paper = "data" if rule in _DATA_LOGS else wildcards.get("paper", "page")
    if rule == "draw":
        paper = Path(record["inputs"][0]).parts[2]
    benchmark = folder / "benchmarks/out" / Path(record["log"]).with_suffix(".tsv")
    if not benchmark.exists():
        raise CostError(f"{benchmark}: not found; it has the time of a job")
    counts = ("ended", "cpu_s", "peak_mb", "written_mb")
    return Job(
        rule=rule,
        paper=paper,
        target=wildcards.get("target", ""),
        work_cpu_s=work,
        wall_s=float(pd.read_csv(benchmark, sep="\t").s.iloc[0]),
        **{key: record[key] for key in counts},
    )


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
    jobs = pd.DataFrame([job.__dict__ for job in costs.jobs]).drop(columns="needs")
    runs = costs.runs
    engine = _row("snakemake", jobs.iloc[:0])
    engine |= {"cpu_s": runs.cpu_s.sum() + costs.rest_cpu_s, "wall_s": runs.planning_s.sum()}
    rows = []
    for level in ("rule", "paper"):
        rows += [{"level": level} | _row(name, group) for name, group in jobs.groupby(level)]
        rows += [{"level": level} | engine]
    for place in sorted((i for i, t in enumerate(jobs.target) if t), key=lambda i: jobs.target[i]):
        behind = jobs.iloc[sorted(_ancestors(costs.jobs, place))]
        rows.append({"level": "target"} | _row(jobs.target[place], behind))
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


def _ancestors(jobs: Sequence[Job], place: int) -> set[int]:
    """Return the positions of a job and of all jobs that it depends on."""
    ancestors, pending = set(), [place]
    while pending:
        current = pending.pop()
        if current not in ancestors:
            ancestors.add(current)
            pending += jobs[current].needs
    return ancestors


def run_table(costs: Costs) -> pd.DataFrame:
    """Return the time of each run of Snakemake on a stated number of cores.

    Columns: ``cores``, ``jobs``, ``measured_s`` and ``complete`` (whether the run did all jobs).
    """
    rows = []
    for run in costs.runs[costs.runs.cores.notna()].itertuples():
        n_jobs = len(costs.done_in(run))
        rows.append((int(run.cores), n_jobs, run.ended - run.started, n_jobs == len(costs.jobs)))
    return pd.DataFrame(rows, columns=["cores", "jobs", "measured_s", "complete"])


def verdict_lines(table: pd.DataFrame, budgets: Mapping[str, float], effort: str) -> list[str]:
    """Return lines on whether each paper kept its budget of CPU seconds.

    At paper effort a line on the overhead follows. `table` is from `cost_table`.
    """
    of_papers = table[table.level == "paper"].set_index("name").cpu_s
    checks = [
        (
            f"{paper}, CPU seconds",
            f"{of_papers[paper]:,.0f}",
            f"{limit:,.0f}",
            of_papers[paper] <= limit,
        )
        for paper, limit in budgets.items()
        if paper in of_papers
    ]
    if effort == "paper":
        overhead = float(table.overhead[table.level == "total"].iloc[0])
        shown = f"{overhead:.1%}", f"{OVERHEAD_LIMIT:.1%}"
        checks.append(("overhead in CPU time", *shown, overhead <= OVERHEAD_LIMIT))
    return [
        f"{what}: {cost}, limit {limit}: {'within' if is_within else 'NOT within'}"
        for what, cost, limit, is_within in checks
    ]
