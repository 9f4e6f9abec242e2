"""What every job does first."""

import re
import subprocess
import sys

JOB = """
import sys, types, warnings
from privclust_papers.pipeline import job
snakemake = types.SimpleNamespace(
    log=["job.log"], rule="fit", wildcards={}, threads=1, input={}, output=[]
)
"""
WARNS = """
job.start(snakemake)
for hidden in (1, 2, 1, 1):
    with warnings.catch_warnings():  # the end of each lets warnings be said again
        warnings.simplefilter("ignore")
    warnings.warn(f"noise may hide {hidden} of 3")
"""


FAILS = """
log = job.start(snakemake)
log.info("one of two")
1 / 0
"""


def run(code, folder):
    """Run code in a job; return its errors and its log."""
    command = [sys.executable, "-c", f"{JOB}{code}"]
    done = subprocess.run(command, cwd=folder, stderr=subprocess.PIPE, text=True, check=False)
    return done.stderr, (folder / "job.log").read_text()


def test_a_log_has_each_warning_once(tmp_path):
    err, log = run(WARNS, tmp_path)
    assert [log.count(f"noise may hide {hidden} of 3") for hidden in (1, 2)] == [1, 1]
    assert "noise" not in err


def test_a_log_has_an_error_with_traceback_and_lines_before(tmp_path):
    err, log = run(FAILS, tmp_path)
    last = "ZeroDivisionError: division by zero"
    pattern = (
        f"one of two\nTraceback .most recent call last.:\n(  .*\n)+{last}\n{last} .*\ncost .*\n"
    )
    assert re.fullmatch(pattern, log), log
    assert err == f"one of two\n{last} (see job.log)\n"
