import os
import sys

import privclust_papers

from privclust_papers.settings.config import ConfigError, load_yaml, validate
from privclust_papers.pipeline import layout
from privclust_papers.pipeline.disk import (
    DiskError,
    check_path,
    check_profile,
    check_room,
    check_writable,
    copy_if_changed,
)
from privclust_papers.pipeline.jobs import Jobs
from privclust_papers.pipeline.plan import (
    CLAIMS,
    PRINTED,
    changed_settings,
    found_beside,
    load_plan,
    normalise,
    only_at_paper_effort,
)
from privclust_papers.pipeline.project_files import project_files
from privclust_papers.pipeline.sources import source_files

PACKAGE = os.path.dirname(os.path.dirname(privclust_papers.__file__))
COPIES = ".snakemake/privclust"  # of the workflow's files, if it is at an address

# Numerical libraries use one thread in each job, whatever the shell says.
for variable in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
):
    os.environ[variable] = "1"
# Figures are files: a user's backend, which may be missing, and settings do not apply.
os.environ.update(MPLBACKEND="agg", MATPLOTLIBRC=os.devnull)


# Jobs use the package that planned them, also in a conda environment without it.
if os.path.basename(PACKAGE) == "src":
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    others = [part for part in given if part and part != PACKAGE]
    os.environ.update(PYTHONPATH=os.pathsep.join([PACKAGE, *others]))


def of_workflow(name):
    """Return the path of a file of the workflow, relative if it is below the working folder.

    A workflow at an address has no local files. Its files are then copied below the working
    folder: Snakemake's own copies have other names, and other places and dates in each run.
    """
    path = os.path.normpath(os.path.join(WORKFLOW, name))
    if not os.path.exists(path):
        path = os.path.normpath(os.path.join(COPIES, "workflow", name))
        copy_if_changed(workflow.source_path(f"../{name}"), path)
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative


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


or_stop(check_path, "the project's folder", os.getcwd())
or_stop(check_path, "Snakemake's Python", sys.executable)
or_stop(check_profile, sys.argv, workflow.rundir, str(workflow.main_snakefile))
# Written before any job starts, and by a dry run too.
or_stop(check_writable, ".snakemake")
or_stop(check_room, 10)

# Naming each file fetches it, if the workflow is at an address.
(SCHEMAS,) = {
    os.path.dirname(of_workflow(f"schemas/{name}.schema.yaml"))
    for name in (*("claims", "config", "datasets", "features", "my_methods", "paper"),)
}
# Where results are taken from: it says nothing of what they are, so nothing else sees it.
RESTORED_FROM = config.pop("restore", None)
config.update(normalise(config))
or_stop(validate, dict(config), load_yaml(f"{SCHEMAS}/config.schema.yaml"), "config")
OWN_CONFIG = of_workflow("../config/config.yaml")
HOME = os.path.dirname(os.path.dirname(OWN_CONFIG))
SETTINGS = changed_settings(config, OWN_CONFIG)
config.update(found_beside(config, HOME))
PLAN = or_stop(load_plan, config, SCHEMAS, os.environ)
if workflow.is_main_process:
    for notice in PLAN.notices:
        logger.warning(notice)
    if RESTORED_FROM:
        from privclust_papers.report.restoration import restore

        taken = or_stop(restore, str(RESTORED_FROM), PLAN.effort, config["seed"])
        words = ", ".join(f"{n} {what}" for what, n in taken.items())
        logger.info(f"{RESTORED_FROM}: results of jobs: {words}")
# What the rules below ask; its methods take the wildcards of a job.
JOBS = Jobs(PLAN, SETTINGS, os.path.join(HOME, "CITATION.cff"))
