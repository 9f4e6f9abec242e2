"""Sum up the trials of all methods of one experiment."""

import json

import job
import pandas as pd

from privclust_papers.pipeline import artefacts
from privclust_papers.pipeline.tables import (
    columns_of,
    metric_names,
    summary_table,
    trials_table,
)

job.start(snakemake)
spec = json.loads(snakemake.params.spec)
metrics = artefacts.read(snakemake.input.metrics, "metrics", {"experiment": spec["experiment"]})
tables, names, axes = [], [], []
for method, label in spec["labels"].items():
    columns = columns_of(method, metrics.arrays)
    tables.append(trials_table(label, method, columns))
    names += [name for name in metric_names(columns) if name not in names]
    axes += [key[6:] for key in columns if key.startswith("point/") and key[6:] not in axes]
trials = pd.concat(tables, ignore_index=True)
summary = summary_table(trials, names, axes, spec["groups"])
artefacts.write_table(snakemake.output.trials, trials.to_csv(index=False))
artefacts.write_table(snakemake.output.summary, summary.to_csv(index=False))
