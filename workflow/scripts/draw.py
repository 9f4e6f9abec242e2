"""Draw one target from its tables."""

import json

import job
import pandas as pd

from privclust import artefacts
from privclust.dotted import load_object
from privclust.experiments.tables import columns_of
from privclust.figures.style import Results, save

job.start(snakemake)
spec = json.loads(snakemake.params.spec)
arrays = {}
for path in snakemake.input.metrics:
    artefact = artefacts.read(path, "metrics")
    for method in artefact.parameters["methods"]:
        columns = columns_of(method, artefact.arrays)
        found = {k: v for k, v in columns.items() if k.startswith("array/")}
        arrays[artefact.parameters["experiment"], method] = found
results = Results(
    target=spec["target"],
    trials=dict(zip(spec["experiments"], map(pd.read_csv, snakemake.input.trials), strict=True)),
    summaries=dict(
        zip(spec["experiments"], map(pd.read_csv, snakemake.input.summaries), strict=True)
    ),
    arrays=arrays,
    printed=pd.concat(
        [pd.read_csv(path, dtype={"value": str}) for path in snakemake.input.printed]
        or [pd.DataFrame()]
    ),
)
drawing = load_object(spec["draw"])(results)
save(drawing, snakemake.output.svg, snakemake.output.png, snakemake.output.table)
