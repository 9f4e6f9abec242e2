"""Compute the metrics of one method of one experiment from its fits."""

import json

import job

from privclust import artefacts
from privclust.experiments.runner import evaluate_method

job.start(snakemake)
spec = json.loads(snakemake.params.spec)
dataset, inputs = job.prepared(snakemake)


def blocks():
    """Read the blocks one by one and note their digests."""
    for number, (path, fit_spec) in enumerate(
        zip(snakemake.input.blocks, spec["fits"], strict=True)
    ):
        block = artefacts.read(path, "fit", fit_spec)
        inputs[f"block_{number:04d}"] = block.digest
        yield block.arrays


metrics = evaluate_method(spec, blocks(), dataset)
# How trials are cut into blocks decides no number, so it stands in no later artefact.
tasks = [task for fit in spec["fits"] for task in fit.pop("tasks")]
parameters = {"evaluate": spec["evaluate"], **spec["fits"][0], "tasks": tasks}
kept = {role: digest for role, digest in inputs.items() if role == "dataset"}
artefacts.write(snakemake.output.metrics, "metrics", metrics, parameters, kept)
