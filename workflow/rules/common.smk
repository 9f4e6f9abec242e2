import os
import sys

from snakemake.jobs import Job

from privclust_papers.settings.config import ConfigError
from privclust_papers.pipeline import layout
from privclust_papers.pipeline.disk import (
    DiskError,
    check_path,
    check_profile,
    check_room,
    check_writable,
)
from privclust_papers.pipeline.jobs import Jobs
from privclust_papers.pipeline.plan import (
    CLAIMS,
    PRINTED,
    changed_settings,
    load_plan,
    normalise,
    only_at_paper_effort,
)
from privclust_papers.pipeline.sources import source_files

# Numerical libraries use one thread in each job, whatever the shell says.
for variable in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
):
    os.environ[variable] = "1"
# Figures are files: a backend that a notebook has set may not be there.
os.environ.update(MPLBACKEND="agg")


def or_stop(function, *arguments):
    """Call a function; an error of the config or of a disk stops Snakemake in one line."""
    try:
        return function(*arguments)
    except (ConfigError, DiskError) as error:
        raise WorkflowError(str(error))


def stops_with(message):
    """Return an input function that stops Snakemake where its rule is asked for."""

    def stop(wildcards):
        raise WorkflowError(message)

    return stop


def ignore_dates_of_scripts():
    """Leave it to the rules' inputs, where each script stands, to tell that a script was edited.

    Inputs are compared by content. Snakemake 9 itself looks at the dates of scripts alone, so that
    after a touch, or in a new clone, everything would be done again.
    """

    async def none(job):
        return
        yield

    Job.outputs_older_than_script_or_notebook = none


ignore_dates_of_scripts()

or_stop(check_path, os.getcwd())
or_stop(check_profile, sys.argv, os.getcwd())
# Written before any job starts, and by a dry run too.
or_stop(check_writable, ".snakemake")
or_stop(check_room, 10)

# Where results are taken from: it says nothing of what they are, so nothing else sees it.
RESTORED_FROM = config.pop("restore", None)
config.update(normalise(config))
PLAN = or_stop(load_plan, config, "workflow/schemas", os.environ)
if workflow.is_main_process:
    for notice in PLAN.notices:
        logger.warning(notice)
    if RESTORED_FROM:
        from privclust_papers.report.restoration import restore

        taken = or_stop(restore, str(RESTORED_FROM), PLAN.effort, config["seed"])
        logger.info(taken.in_words())
# What the rules below ask; its methods take the wildcards of a job.
JOBS = Jobs(PLAN, changed_settings(config, "config/config.yaml"), config)
