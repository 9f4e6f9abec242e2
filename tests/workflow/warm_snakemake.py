"""Runs of Snakemake in copies of a process that has imported it and what jobs import.

Most of a small run is imports: of Snakemake, and of packages by the process that is copied for its
jobs. Here both are copies of one process, which the first test that asks starts; all else is as in
a run of ``python -m snakemake``, as which this file may be started once that process is there.
"""

import importlib.util
import os
import sys
from pathlib import Path

SNAKEMAKE = "PRIVCLUST_WARM_SNAKEMAKE"  # where the process is asked for a copy
_SPEC = importlib.util.spec_from_file_location(
    "warm", Path(__file__).parents[2] / "workflow" / "scripts" / "warm.py"
)
warm = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(warm)


def command():
    """Return the beginning of a command line that stands for ``python -m snakemake``."""
    if sys.platform != "linux":  # copies are made on Linux alone
        return [sys.executable, "-m", "snakemake"]
    if SNAKEMAKE not in os.environ:
        before = os.environ.pop(warm.ADDRESS, None)  # of the run that tests are part of
        warm.__file__ = __file__  # which is what is started
        warm.start()
        os.environ[SNAKEMAKE] = os.environ.pop(warm.ADDRESS)
        if before is not None:
            os.environ[warm.ADDRESS] = before
    return [sys.executable, __file__]


def _serve():
    """Serve runs of Snakemake, and jobs of these runs."""
    warm._PACKAGES += ("snakemake.cli", "snakemake.executors.local", "psutil")
    warm.start = _serve_jobs
    sys.modules["warm"] = warm  # which a run's Snakefile imports
    warm.main()


def _serve_jobs():
    """Have a run's jobs ask where the run itself did; return what stops it."""
    os.environ[warm.ADDRESS] = os.environ[SNAKEMAKE]
    return lambda: os.environ.pop(warm.ADDRESS, None)


def _ask():
    """Run Snakemake in a copy and end as it ends."""
    os.environ[warm.ADDRESS] = os.environ[SNAKEMAKE]
    sys.path[0] = os.getcwd()
    sys.argv[0] = importlib.util.find_spec("snakemake").origin.replace("__init__", "__main__")
    warm.run_there(sys.argv[0])
    sys.exit("there is no process to copy")


if __name__ == "__main__":
    (_ask if SNAKEMAKE in os.environ else _serve)()
