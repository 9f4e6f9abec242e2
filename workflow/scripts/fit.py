"""Fit one method on one block of trials."""

import json

import job

from privclust import artefacts
from privclust.experiments.runner import run_block

job.start(snakemake)
spec = json.loads(snakemake.params.spec)
dataset, inputs = job.prepared(snakemake)
artefacts.write(snakemake.output.block, "fit", run_block(spec, dataset), spec, inputs)
