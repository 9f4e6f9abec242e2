"""What a run cost, from the workflow as a whole."""

import pandas as pd
import pytest

pytestmark = pytest.mark.system


def test_costs_of_a_finished_run(finished_copy):
    finished_copy.run("--cores", "1", "costs")
    folder = finished_copy.folder / "results/quick"
    table = pd.read_csv(folder / "costs.csv")
    records = len(list((finished_copy.folder / "logs").rglob("*.log"))) - 1  # its own
    (total,) = table.jobs[table.level == "total"]
    assert total == records
    assert (table.overhead_cpu_s > -0.02).all()  # fits' seconds are rounded to 1 ms each
    (run,) = pd.read_csv(folder / "costs_runs.csv").itertuples()
    assert (run.cores, run.jobs, run.complete) == (2, total, True)
    assert finished_copy.planned("costs") == {}


def test_costs_of_a_run_that_has_not_ended_are_refused(finished_copy):
    (finished_copy.folder / "results/quick/index.html").unlink()  # made by the same run as costs
    done = finished_copy.run("--cores", "2", "costs", check=False)
    assert done.returncode == 1
    assert "run `snakemake` first and `snakemake costs` after it" in done.stdout
