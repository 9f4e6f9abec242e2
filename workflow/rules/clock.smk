import json
import resource
import sys
import time

import psutil
from snakemake.script import PythonScript

# What Snakemake's own process costs; jobs that it starts on a cluster are processes of their own.
PLANNED = {}
STOPPED = []


def note_planned():
    """Note what planning took, when the first job can start."""
    elapsed = time.time() - psutil.Process().create_time()
    PLANNED.update(planning_s=elapsed, planning_cpu_s=time.process_time())


def note_run():
    """Append what a run of Snakemake took to the runs of its effort."""
    for stop in STOPPED:
        stop()  # so that what it took is counted
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = {
        "started": psutil.Process().create_time(),
        "ended": time.time(),
        "cores": workflow.resource_settings.cores,  # None on a cluster
        **PLANNED,
        "cpu_s": time.process_time(),
        "children_cpu_s": children.ru_utime + children.ru_stime,
    }
    os.makedirs(f"logs/{PLAN.effort}", exist_ok=True)
    with open(f"logs/{PLAN.effort}/snakemake.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(run) + "\n")


def lift_job_rate():
    """Start jobs on this machine as soon as there is a core, not at most 100 in a second.

    To keep to a rate, Snakemake 9 looks at all ready jobs again a second after each look, and so
    looks once a second for each job that has ended, with the state of all inputs of all ready jobs:
    with hundreds of jobs, that takes a core.
    """
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


def warm_up():
    """Import packages once for all jobs that this process starts itself."""
    elsewhere = (
        not workflow.local_exec or workflow.deployment_settings.deployment_method
    )
    if sys.platform == "linux" and not elsewhere:
        sys.path.append(os.path.abspath("workflow/scripts"))
        import warm

        STOPPED.append(warm.start())
        put_before_preambles(warm.BEGINNING)


def put_before_preambles(beginning):
    """Begin each script's file with a line, before what Snakemake writes into it.

    That unpickles the job's settings, for which half of Snakemake is imported.
    """
    preamble = PythonScript.generate_preamble
    PythonScript.generate_preamble = staticmethod(
        lambda *job, **more: beginning + preamble(*job, **more)
    )


onstart:
    or_stop(check_writable, "benchmarks/out", "data", "logs", "results")
    lift_job_rate()
    note_planned()
    warm_up()


onsuccess:
    note_run()


onerror:
    note_run()
