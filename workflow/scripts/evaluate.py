"""Compute the metrics of all methods of one experiment from their fits."""

import json

import job
import pandas as pd

from privclust_papers.pipeline import artefacts
from privclust_papers.pipeline.experiment import block_spec
from privclust_papers.pipeline.runner import evaluate_fits
from privclust_papers.pipeline.tables import columns_of

job.start(snakemake)
spec = json.loads(snakemake.params.spec)
dataset, inputs = job.prepared(snakemake)


def read_block(number):
    """Read one block of all methods."""
    batches = sorted(spec["batches"])
    paths = snakemake.input.blocks[number * len(batches) : (number + 1) * len(batches)]
    fits = {}
    for batch, path in zip(batches, paths, strict=True):
        arrays = artefacts.read(path, "fit", block_spec(spec, batch, number)).arrays
        fits |= {method: columns_of(method, arrays) for method in spec["batches"][batch]}
    return fits


costs = pd.concat(
    pd.read_csv(artefacts.read_table(path), sep="\t") for path in snakemake.input.costs
)
metrics = evaluate_fits(spec, read_block, dataset)
# What one job does together decides no number, so it stands in no later artefact.
parameters = {key: value for key, value in spec.items() if key not in ("blocks", "batches")}
parameters["instances"] = [instance for block in spec["blocks"] for instance in block]
artefacts.write(snakemake.output.metrics, "metrics", metrics, parameters, inputs)
totals = costs.groupby("method", as_index=False).sum()
artefacts.write_table(snakemake.output.costs, totals.to_csv(sep="\t", index=False))
