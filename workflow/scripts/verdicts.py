"""Judge every claim by the trials of this run."""

import json

import pandas as pd

from privclust_papers.pipeline import artefacts, job
from privclust_papers.report.comparison import PRINTED_COLUMNS
from privclust_papers.report.verdicts import judge
from privclust_papers.settings.config import load_validated

job.start(snakemake)
spec = json.loads(snakemake.params.spec)
claims = [
    {**claim, "paper": paper}
    for paper, path in zip(spec["papers"], snakemake.input.claims, strict=True)
    for claim in load_validated(path, snakemake.input.schema)
]
read = (pd.read_csv(artefacts.read_table(path)) for path in snakemake.input.trials)
trials = dict(zip(spec["experiments"], read, strict=True))
# a paper may print no numbers: then only the columns are there
empty = pd.DataFrame(columns=list(PRINTED_COLUMNS))
tables = [pd.read_csv(path, dtype={"value": str}) for path in snakemake.input.printed]
printed = pd.concat(tables or [empty])
printed["select"] = printed["select"].fillna("")
words = spec["own_targets"], spec["quantities"], spec["kinds"]
verdicts = judge(claims, trials, printed, *words)
artefacts.write_table(snakemake.output.verdicts, verdicts.to_csv(index=False))
