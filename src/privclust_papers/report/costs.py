"""What a run of the workflow cost, and how long one would take on other numbers of cores.

Every job ends its log with its own counts (`PREFIX`), Snakemake's ``benchmark:`` file has how long
it took, and each run of Snakemake leaves a line on itself. A job's record names
the files it read and wrote, so the records alone say which job waits for which.
"""

from __future__ import annotations

import heapq
import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from privclust_papers.pipeline.artefacts import read_table

PREFIX = "cost "  # how the line with a job's record begins
RUNS = "snakemake.jsonl"  # beside an effort's logs: one line a run of Snakemake
OVERHEAD_LIMIT = 0.10  # of the CPU time at paper effort; short jobs are mostly overhead
CORES = (1, 2, 4, 8, 16, 32, 64)  # for which times are predicted
_WORKFLOW_OUTPUTS = ("results/", "data/raw/", "data/prepared/", "data/features/", "data/own/")
_RUN_TIMES = ["planning_s", "planning_cpu_s", "cpu_s", "children_cpu_s"]
_RUN_COLUMNS = ["started", "ended", "cores", *_RUN_TIMES]
_DATA_LOGS = {"fetch": "fetch", "prepare": "prepare", "features": "features", "read_own": "own"}


class CostError(Exception):
    """What a run cost cannot be told from what is there."""


@dataclass(frozen=True)
class Job:
    """What one job cost; sizes are in 10^6 bytes."""

    rule: str
    paper: str  # "data" for what experiments share, "page" for the scorecard
    target: str  # that it draws, else empty
    threads: int
    ended: float  # in seconds since the epoch
    cpu_s: float  # of the job and its children
    work_cpu_s: float  # of fits what the methods took, else what came after the script's imports
    wall_s: float  # as Snakemake saw it
    peak_mb: float  # largest resident memory of one of its processes
    written_mb: float
    needs: tuple[int, ...] = ()  # places of the jobs whose files it read


@dataclass(frozen=True)
class Costs:
    """The jobs behind a page, what was not recorded, and the runs of Snakemake that did them.

    `runs` has a row for each run of Snakemake that did one of the jobs, in its order: ``started``
    and ``ended`` (seconds since the epoch), ``cores`` (missing on a cluster), ``planning_s`` and
    ``planning_cpu_s`` until the first job could start, ``cpu_s`` of Snakemake's own process,
    ``children_cpu_s`` of all processes that it started and waited for.
    """

    jobs: list[Job]  # each after all that it needs
    unrecorded: list[str]  # files of the workflow that jobs read, without a record of their making
    runs: pd.DataFrame

    def done_in(self, run: Any) -> list[int]:
        """Return the places of the jobs that ended during a run, a row of `runs`."""
        return [i for i, job in enumerate(self.jobs) if run.started <= job.ended <= run.ended]

    @cached_property
    def dispatch_s(self) -> float:
        """What Snakemake takes for each job besides planning, in CPU seconds."""
        n_jobs = sum(len(self.done_in(run)) for run in self.runs.itertuples())
        return float((self.runs.cpu_s - self.runs.planning_cpu_s).sum()) / n_jobs

    @cached_property
    def rest_cpu_s(self) -> float:
        """What runs on one machine spent on children beyond these jobs' records, in CPU seconds.

        That is on choosing jobs, on ending interpreters, and on attempts that failed.
        """
        local = self.runs[self.runs.cores.notna()]
        recorded = sum(self.jobs[i].cpu_s for run in local.itertuples() for i in self.done_in(run))
        return float(local.children_cpu_s.sum()) - recorded

    @cached_property
    def planning_s(self) -> float:
        """How long the longest planning took, in seconds of wall time."""
        return float(self.runs.planning_s.max())


def read_costs(effort: str, folder: str | Path = ".") -> Costs:
    """Read what the jobs behind ``results/<effort>/index.html`` cost, where the workflow ran.

    Logs of jobs that the page does not rest on, such as those of an older plan, do not count. It is
    a CostError if the page has no record, or no finished run of Snakemake made it.
    """
    folder = Path(folder)
    logs = [folder / "logs" / name for name in (effort, *_DATA_LOGS.values())]
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
    if not any(len(jobs) - 1 in places for places in done):  # the page, which all others precede
        raise CostError(
            f"{page}: the run of Snakemake that made it has not ended; what it cost itself is "
            "known when it has, so run `snakemake` first and `snakemake costs` after it"
        )
    return replace(costs, runs=costs.runs[list(map(bool, done))].reset_index(drop=True))


def read_cost(path: Path) -> dict | None:
    """Return the last record of a job's log; a job that was killed leaves none."""
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line for line in file if line.startswith(PREFIX)]
    return json.loads(lines[-1].removeprefix(PREFIX)) if lines else None


def _behind(page: str, records: dict[str, dict]) -> tuple[list[dict], list[str]]:
    """Return the records behind a file, each after what it needs, and files without a record."""
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
        raise CostError(f"{benchmark}: not there; it says how long a job took")
    counts = ("threads", "ended", "cpu_s", "peak_mb", "written_mb")
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
    """Add costs up by rule, by paper, by target, and over all.

    Rules, and likewise papers, add up to the total; targets do not, since each has all that it
    rests on, data included, which it may share with others. Columns: ``level`` (rule, paper, target
    or total), ``name``, ``jobs``, ``cpu_s``, ``work_cpu_s``, ``overhead_cpu_s`` (the difference),
    ``overhead`` (as a part of ``cpu_s``), ``wall_s`` (added up over jobs), ``peak_mb``,
    ``written_mb``. The row ``snakemake`` is Snakemake's own process, with `Costs.rest_cpu_s`:
    planning and handing out jobs, none of it work.
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
    """Return a job and all that it rests on, as places."""
    ancestors, pending = set(), [place]
    while pending:
        current = pending.pop()
        if current not in ancestors:
            ancestors.add(current)
            pending += jobs[current].needs
    return ancestors


def makespan(jobs: Sequence[Job], cores: int, dispatch_s: float = 0.0) -> float:
    """Return how long jobs take on some cores, in seconds, by list scheduling.

    A core that is free takes the job that has been ready the longest: Snakemake does not know how
    long a job will take. In whatever order ready jobs are taken, the time is at most
    ``total / cores + (1 - 1 / cores) * critical path`` (Graham, SIAM J. Appl. Math. 17, 1969) where
    each job has one thread.

    Each job comes after those it needs. One of more threads than there are cores takes all cores.
    Handing out a job adds `dispatch_s` to it. Fewer than 1 core is a ValueError.
    """
    if cores < 1:
        raise ValueError(f"cores: got {cores}; it may be 1 or more")
    waiting = [len(job.needs) for job in jobs]
    users: list[list[int]] = [[] for _ in jobs]
    for place, job in enumerate(jobs):
        for need in job.needs:
            users[need].append(place)
    ready = deque(place for place, count in enumerate(waiting) if not count)
    running: list[tuple[float, int]] = []
    free, now = cores, 0.0
    while ready or running:
        while ready and min(jobs[ready[0]].threads, cores) <= free:
            place = ready.popleft()
            free -= min(jobs[place].threads, cores)
            heapq.heappush(running, (now + jobs[place].wall_s + dispatch_s, place))
        now, place = heapq.heappop(running)
        free += min(jobs[place].threads, cores)
        for user in users[place]:
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    return now


def bounds(jobs: Sequence[Job], cores: int, dispatch_s: float = 0.0) -> tuple[float, float]:
    """Return the least and the largest time that any list scheduling of jobs can take.

    That is, in seconds, ``max(total / cores, critical path)``, and Graham's bound (see `makespan`),
    where a job of several threads counts for its threads in the total. The upper one holds for jobs
    of one thread.
    """
    ends: list[float] = []
    total = 0.0
    for job in jobs:
        length = job.wall_s + dispatch_s
        ends.append(max((ends[need] for need in job.needs), default=0.0) + length)
        total += length * min(job.threads, cores)
    longest = max(ends, default=0.0)
    return max(total / cores, longest), total / cores + (1.0 - 1.0 / cores) * longest


def predict(costs: Costs, cores: Iterable[int]) -> pd.DataFrame:
    """Predict how long all would take on some numbers of cores, planning included.

    Columns: ``cores``, ``jobs``, ``predicted_s``, ``lower_s``, ``upper_s`` (see `bounds`).
    """
    rows = [{"cores": n, **_prediction(costs.jobs, n, costs)} for n in cores]
    return pd.DataFrame(rows)


def compare_runs(costs: Costs) -> pd.DataFrame:
    """Predict the time of each run from the jobs that it did, beside what it took.

    The result is as from `predict`, with ``measured_s``; a row for each run on a stated number of
    cores. ``complete`` says whether it did all jobs.
    """
    rows = []
    for run in costs.runs[costs.runs.cores.notna()].itertuples():
        done = costs.done_in(run)
        new = {place: i for i, place in enumerate(done)}
        jobs = [
            replace(costs.jobs[p], needs=tuple(new[n] for n in costs.jobs[p].needs if n in new))
            for p in done
        ]
        row = {"cores": int(run.cores), **_prediction(jobs, int(run.cores), costs)}
        complete = len(done) == len(costs.jobs)
        rows.append(row | {"measured_s": run.ended - run.started, "complete": complete})
    columns = ["cores", "jobs", "predicted_s", "lower_s", "upper_s", "measured_s", "complete"]
    return pd.DataFrame(rows, columns=columns)


def _prediction(jobs: Sequence[Job], cores: int, costs: Costs) -> dict[str, float]:
    lower, upper = (costs.planning_s + b for b in bounds(jobs, cores, costs.dispatch_s))
    predicted = costs.planning_s + makespan(jobs, cores, costs.dispatch_s)
    return {"jobs": len(jobs), "predicted_s": predicted, "lower_s": lower, "upper_s": upper}


def verdict_lines(table: pd.DataFrame, budgets: Mapping[str, float], effort: str) -> list[str]:
    """Say for each paper whether the run kept its budget of CPU seconds.

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
