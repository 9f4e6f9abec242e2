import json
import resource
import time

import psutil

# What Snakemake's own process costs; jobs that it starts on a cluster are processes of their own.
PLANNED = {}


def note_planned():
    """Note what planning took, when the first job can start."""
    elapsed = time.time() - psutil.Process().create_time()
    PLANNED.update(planning_s=elapsed)


def note_run():
    """Append what a run of Snakemake took to the runs of its effort."""
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


onstart:
    or_stop(check_writable, "data", "logs", "results")
    note_planned()


onsuccess:
    note_run()


onerror:
    note_run()
