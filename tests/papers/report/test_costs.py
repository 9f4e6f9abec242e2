import json
import resource
import shutil
import subprocess
import sys

import pytest

from privclust_papers.pipeline import artefacts
from privclust_papers.report.costs import (
    CostError,
    cost_table,
    read_costs,
    run_table,
)
from privclust_papers.report.run_records import RECORDS, write_record

JOB = """
import subprocess, sys, time, types
from privclust_papers.pipeline import job
snakemake = types.SimpleNamespace(log=["job.log"], output=["a.h5", "a.tsv"])
job.start(snakemake)
BURN = "import time\\nwhile time.process_time() < 0.2: pass"
subprocess.run([sys.executable, "-c", BURN])
start = time.process_time()
while time.process_time() < start + 0.2: pass
held = bytearray(300_000_000)
del held
raise SystemError("the job failed")
"""
EXPERIMENT = "results/quick/mtsc/mtsc_one"


class Run:
    """The files that a run of two fits, a target and a page leaves; jobs end at 1, 2, ... s."""

    def __init__(self, folder):
        self.folder = folder
        self.clock = 0.0

    def write(self, path, text):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def job(self, name, rule, outputs, inputs=(), cpu_s=3.0, peak_mb=100.0):
        self.clock += 1.0
        cost = {"cpu_s": cpu_s, "startup_cpu_s": 1.0, "peak_mb": peak_mb, "written_mb": 0.5}
        log = f"logs/{name}.log"
        self.write(log, f"a line\ncost {json.dumps(cost)}\n")
        record = {"rule": rule, "input": list(inputs), "log": [log], "params": []}
        record |= {"starttime": self.clock - 4.0, "endtime": self.clock}
        for output in outputs:
            write_record(self.folder / RECORDS, output, record)

    def fit(self, block, **kwargs):
        stem = f"{EXPERIMENT}/fit/ssc/block_{block}"
        table = "method\tcpu_seconds\nssc\t1.25\nlsr\t0.5\n"
        artefacts.write_table(self.folder / f"{stem}.tsv", table)
        self.job(
            f"quick/mtsc/mtsc_one/fit/ssc_{block}",
            "fit",
            [f"{stem}.h5", f"{stem}.tsv"],
            ["data/prepared/d.h5"],
            **kwargs,
        )

    def all_jobs(self):
        self.job("prepare/d", "prepare", ["data/prepared/d.h5"], ["data/raw/d"])
        self.fit("0000", peak_mb=700.0)
        self.fit("0001")
        self.fit("0002")  # of an older plan: the metrics do not read it
        self.job(
            "quick/mtsc/mtsc_one/evaluate",
            "evaluate",
            [f"{EXPERIMENT}/metrics.h5"],
            [f"{EXPERIMENT}/fit/ssc/block_{block}.h5" for block in ("0000", "0001")],
        )
        target = "results/quick/targets/mtsc_fig1/mtsc_fig1.svg"
        metrics = [f"{EXPERIMENT}/metrics.h5", "config/printed/mtsc.csv"]
        self.job("quick/draw/mtsc_fig1", "draw", [target], metrics)
        self.job("quick/index", "index", ["results/quick/index.html"], [target])

    def runs(self, *spans, cores=1, children_cpu_s=18.0):
        lines = [
            {
                "started": started,
                "ended": ended,
                "cores": cores,
                "planning_s": 2.0,
                "cpu_s": 4.0,
                "children_cpu_s": children_cpu_s,
            }
            for started, ended in spans
        ]
        self.write("logs/quick/snakemake.jsonl", "".join(json.dumps(x) + "\n" for x in lines))


@pytest.fixture
def run(tmp_path):
    made = Run(tmp_path)
    made.all_jobs()
    made.runs((0.0, 30.0))
    return made


def row(table, level, name):
    return table[(table.level == level) & (table.name == name)].iloc[0]


def test_a_failed_job_logs_its_cost(tmp_path):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", JOB], cwd=tmp_path, capture_output=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 1
    *lines, last = (tmp_path / "job.log").read_text().splitlines()
    assert any("the job failed" in line for line in lines)
    record = json.loads(last.removeprefix("cost "))
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert record["startup_cpu_s"] + 0.4 <= record["cpu_s"] <= spent
    assert record["peak_mb"] > 300


def test_only_jobs_behind_the_page_count(run):
    costs = read_costs("quick", run.folder)
    assert list(costs.table.rule) == ["draw", "evaluate", "fit", "fit", "index", "prepare"]
    assert list(costs.table.paper) == ["mtsc", "mtsc", "mtsc", "mtsc", "page", "data"]
    assert list(costs.table.target) == ["mtsc_fig1", *[""] * 5]


def test_what_is_made_without_a_cost_is_named(run):
    assert read_costs("quick", run.folder).unrecorded == []
    (run.folder / "logs/prepare/d.log").write_text("killed\n")
    assert read_costs("quick", run.folder).unrecorded == ["data/prepared/d.h5"]


def test_last_record_of_a_log_counts(run):
    log = run.folder / "logs/quick/index.log"
    again = json.loads(log.read_text().splitlines()[-1].removeprefix("cost "))
    log.write_text(log.read_text() + f"cost {json.dumps({**again, 'cpu_s': 9.0})}\n")
    assert row(cost_table(read_costs("quick", run.folder)), "rule", "index").cpu_s == 9.0


def test_table_by_rule_paper_and_target(run):
    table = cost_table(read_costs("quick", run.folder))
    fits = row(table, "rule", "fit")
    # work is what the methods took, 1.75 s a job, not what came after start-up
    assert (fits.jobs, fits.cpu_s, fits.work_cpu_s, fits.wall_s) == (2, 6.0, 3.5, 8.0)
    assert (fits.peak_mb, fits.written_mb, fits.overhead) == (700.0, 1.0, 2.5 / 6.0)
    assert row(table, "rule", "evaluate").work_cpu_s == 2.0
    own = row(table, "rule", "snakemake")
    assert (own.cpu_s, own.work_cpu_s, own.jobs, own.overhead) == (4.0, 0.0, 0, 1.0)
    assert row(table, "target", "mtsc_fig1").cpu_s == 15.0  # all but the page
    total = row(table, "total", "all")
    assert total.cpu_s == 6 * 3.0 + 4.0
    assert total.overhead_cpu_s == pytest.approx(22.0 - 3.5 - 4 * 2.0)


def test_rules_and_papers_add_up_to_the_total(run):
    table = cost_table(read_costs("quick", run.folder))
    for level in ("rule", "paper"):
        for column in ("jobs", "cpu_s", "work_cpu_s", "wall_s", "written_mb"):
            added = table[table.level == level][column].sum()
            assert added == pytest.approx(row(table, "total", "all")[column])
    assert set(table[table.level == "paper"].name) == {"data", "mtsc", "page", "snakemake"}


def test_what_children_took_beyond_the_records_is_overhead(run):
    run.runs((0.0, 30.0), children_cpu_s=20.5)
    table = cost_table(read_costs("quick", run.folder))
    assert row(table, "rule", "snakemake").overhead_cpu_s == 4.0 + 20.5 - 6 * 3.0
    assert row(table, "total", "all").cpu_s == 24.5


def test_jobs_on_a_cluster_are_no_children_of_snakemake(run):
    run.runs((0.0, 30.0), cores=None, children_cpu_s=0.5)
    assert read_costs("quick", run.folder).rest_cpu_s == 0.0


def test_runs_that_did_nothing_for_the_page_do_not_count(run):
    run.runs((0.0, 30.0), (40.0, 50.0))
    assert row(cost_table(read_costs("quick", run.folder)), "rule", "snakemake").cpu_s == 4.0


@pytest.mark.parametrize("broken", ["page", "runs", "earlier_runs", "records"])
def test_what_cannot_be_told_is_an_error(run, broken):
    if broken == "page":
        (run.folder / "logs/quick/index.log").write_text("killed\n")
        message = "results/quick/index.html: no job has recorded making it"
    elif broken == "records":
        shutil.rmtree(run.folder / RECORDS)
        message = "results/quick/index.html: Snakemake has no record"
    else:
        # the page was made at 7 s
        run.runs(*([(0.0, 6.5), (7.5, 9.0)] if broken == "earlier_runs" else []))
        message = "run `snakemake` first"
    with pytest.raises(CostError, match=message):
        read_costs("quick", run.folder)


def test_runs_are_listed_with_the_jobs_they_did(run):
    run.runs((0.0, 3.5), (4.5, 30.0))
    found = run_table(read_costs("quick", run.folder))
    assert found.jobs.to_list() == [3, 3]
    assert found.measured_s.to_list() == [3.5, 25.5]
    assert not found.complete.any()
    run.runs((0.0, 30.0))
    assert run_table(read_costs("quick", run.folder)).complete.all()


def test_runs_on_a_cluster_are_not_listed(run):
    run.runs((0.0, 30.0), cores=None)
    assert run_table(read_costs("quick", run.folder)).empty
