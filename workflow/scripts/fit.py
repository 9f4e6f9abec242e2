"""Fit a batch of methods on one block of trials."""

import json

from privclust_papers.pipeline import artefacts, job
from privclust_papers.pipeline.experiment import shard_spec
from privclust_papers.pipeline.runner import merge_shards, run_block

job.start(snakemake)
spec = json.loads(snakemake.params.spec)
dataset, inputs = job.prepared(snakemake)


def shards(paths):
    """Read the shards one by one and note their digests."""
    for number, path in enumerate(paths):
        shard = artefacts.read(path, "shared", shard_spec(spec, number, len(paths)))
        inputs[f"shard_{number:04d}"] = shard.digest
        yield shard.arrays


shared = merge_shards(shards(snakemake.input.get("shards", [])))
arrays, cpu_seconds = run_block(spec, dataset, shared)
rows = "".join(f"{name}\t{seconds:.3f}\n" for name, seconds in cpu_seconds.items())
artefacts.write_table(snakemake.output.cost, f"method\tcpu_seconds\n{rows}")
artefacts.write(snakemake.output.block, "fit", arrays, spec, inputs)
