"""Compute one shard of what all methods share of one block's data."""

import json

from privclust_papers.pipeline import artefacts, job
from privclust_papers.pipeline.runner import run_shard

job.start(snakemake)
spec = json.loads(snakemake.params.spec)
dataset, inputs = job.prepared(snakemake)
artefacts.write(snakemake.output.shard, "shared", run_shard(spec, dataset), spec, inputs)
