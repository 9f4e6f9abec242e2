"""Compute the metrics of all methods of one experiment, and sum them up as tables."""

import json

import pandas as pd

from privclust_papers.pipeline import artefacts, job
from privclust_papers.pipeline.experiment import block_spec
from privclust_papers.pipeline.runner import evaluate_fits, run_short
from privclust_papers.pipeline.tables import columns_of, tables_of

# What one job does together decides no number, so it stands in no later artefact.
LEFT_OUT = ("blocks", "batches", "labels")

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


def fit_here():
    """Fit a short experiment; return what reads its only block, and what the fits cost."""
    arrays, cpu_seconds = run_short(spec, dataset)
    block = {method: columns_of(method, arrays) for method in spec["methods"]}
    costs = pd.DataFrame(cpu_seconds.items(), columns=["method", "cpu_seconds"]).round(3)
    return lambda number: block, costs


if snakemake.input.blocks:
    costs = pd.concat(
        pd.read_csv(artefacts.read_table(path), sep="\t") for path in snakemake.input.costs
    )
else:
    read_block, costs = fit_here()
metrics = evaluate_fits(spec, read_block, dataset)
parameters = {key: value for key, value in spec.items() if key not in LEFT_OUT}
parameters["instances"] = [instance for block in spec["blocks"] for instance in block]
artefacts.write(snakemake.output.metrics, "metrics", metrics, parameters, inputs)
totals = costs.groupby("method", as_index=False).sum()
artefacts.write_table(snakemake.output.costs, totals.to_csv(sep="\t", index=False))
trials, summary = tables_of(metrics, spec["labels"])
artefacts.write_table(snakemake.output.trials, trials.to_csv(index=False))
artefacts.write_table(snakemake.output.summary, summary.to_csv(index=False))
