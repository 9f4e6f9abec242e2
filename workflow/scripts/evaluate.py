"""Compute the metrics of all methods of one experiment from their fits."""

import json

import job

from privclust import artefacts
from privclust.experiments.runner import evaluate_method

job.start(snakemake)
spec = json.loads(snakemake.params.spec)
dataset, inputs = job.prepared(snakemake)
paths = iter(snakemake.input.blocks)


def blocks(fits):
    """Read the blocks of one method one by one."""
    for fit_spec in fits:
        yield artefacts.read(next(paths), "fit", fit_spec).arrays


metrics, methods = {}, {}
for method, fits in spec["methods"].items():
    found = evaluate_method({"evaluate": spec["evaluate"], "fits": fits}, blocks(fits), dataset)
    metrics.update({f"{method}/{name}": values for name, values in found.items()})
    # How trials are cut into blocks decides no number, so it stands in no later artefact.
    tasks = [task for fit in fits for task in fit["tasks"]]
    methods[method] = {**fits[0], "tasks": tasks}
parameters = {key: spec[key] for key in ("experiment", "evaluate")} | {"methods": methods}
artefacts.write(snakemake.output.metrics, "metrics", metrics, parameters, inputs)
