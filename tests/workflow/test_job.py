"""What every job does first."""

import subprocess
import sys

WARNS = """
import sys, types, warnings
from privclust_papers.pipeline import job
snakemake = types.SimpleNamespace(
    log=["job.log"], rule="fit", wildcards={}, threads=1, input={}, output=[]
)
job.start(snakemake)
for hidden in (1, 2, 1, 1):
    with warnings.catch_warnings():  # the end of each lets warnings be said again
        warnings.simplefilter("ignore")
    warnings.warn(f"noise may hide {hidden} of 3")
"""


def test_a_log_has_each_warning_once(tmp_path):
    command = [sys.executable, "-c", WARNS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    log = (tmp_path / "job.log").read_text()
    assert [log.count(f"noise may hide {hidden} of 3") for hidden in (1, 2)] == [1, 1]
    assert "noise" not in done.stderr
