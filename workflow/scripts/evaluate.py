"""Compute the metrics of all methods of one experiment from their fits."""

import json

import job

from privclust import artefacts
from privclust.experiments.plan import block_spec
from privclust.experiments.runner import evaluate_fits

job.start(snakemake)
spec = json.loads(snakemake.params.spec)
dataset, inputs = job.prepared(snakemake)


def read_block(number):
    """Read one block of all methods."""
    methods = sorted(spec["methods"])
    paths = snakemake.input.blocks[number * len(methods) : (number + 1) * len(methods)]
    return {
        method: artefacts.read(path, "fit", block_spec(spec, method, number)).arrays
        for method, path in zip(methods, paths, strict=True)
    }


metrics = evaluate_fits(spec, read_block, dataset)
# How trials are cut into blocks decides no number, so it stands in no later artefact.
parameters = {key: value for key, value in spec.items() if key != "blocks"}
parameters["instances"] = [instance for block in spec["blocks"] for instance in block]
artefacts.write(snakemake.output.metrics, "metrics", metrics, parameters, inputs)
