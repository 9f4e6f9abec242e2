"""Sum up the trials of all methods of one experiment."""

import json
from pathlib import Path

import job
import pandas as pd

from privclust import artefacts
from privclust.experiments import runner

job.start(snakemake)
spec = json.loads(snakemake.params.spec)
tables, names, axes = [], [], []
for path in snakemake.input.metrics:
    method = Path(path).stem
    columns = artefacts.read(path, "metrics", {"experiment": spec["experiment"]}).arrays
    tables.append(runner.trials_table(spec["labels"][method], method, columns))
    names += [name for name in runner.metric_names(columns) if name not in names]
    axes += [key[6:] for key in columns if key.startswith("point/") and key[6:] not in axes]
trials = pd.concat(tables, ignore_index=True)
summary = runner.summary_table(trials, names, axes, spec["groups"])
artefacts.write_text(snakemake.output.trials, trials.to_csv(index=False))
artefacts.write_text(snakemake.output.summary, summary.to_csv(index=False))
