"""Draw one target from its tables."""

import json

import pandas as pd

from privclust_papers.pipeline import artefacts, job
from privclust_papers.pipeline.tables import columns_of
from privclust_papers.report.drawing.style import Results, save, styles_of
from privclust_papers.settings.dotted import load_object

job.start(snakemake)
spec = json.loads(snakemake.params.spec)
arrays = {}
for path in snakemake.input.metrics:
    artefact = artefacts.read(path, "metrics")
    for method in artefact.parameters["methods"]:
        columns = columns_of(method, artefact.arrays)
        of_tasks = {k: v for k, v in columns.items() if k.startswith("array/")}
        arrays[artefact.parameters["experiment"], method] = of_tasks


def tables(paths, separator=","):
    """Read one table of each experiment."""
    read = (pd.read_csv(artefacts.read_table(path), sep=separator) for path in paths)
    return dict(zip(spec["experiments"], read, strict=True))


results = Results(
    target=spec["target"],
    trials=tables(snakemake.input.trials),
    summaries=tables(snakemake.input.summaries),
    arrays=arrays,
    printed=pd.concat(
        [pd.read_csv(path, dtype={"value": str}) for path in snakemake.input.printed]
        or [pd.DataFrame()]
    ),
    costs=tables(snakemake.input.costs, "\t"),
    own=tuple(spec["own"]),
    styles=styles_of(spec["styles"], spec["own"]),
    kinds=spec["kinds"],
)
drawing = load_object(spec["draw"])(results)
save(drawing, snakemake.output.svg, snakemake.output.png, snakemake.output.table)
