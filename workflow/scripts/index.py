"""Write the page with the scorecard and every target."""

import json

import job
import pandas as pd

from privclust import artefacts
from privclust.page import render

job.start(snakemake)
spec = json.loads(snakemake.params.spec)
verdicts = pd.read_csv(snakemake.input.verdicts, keep_default_na=False)
tables = dict(zip(sorted(spec["targets"]), map(pd.read_csv, snakemake.input.tables), strict=True))
artefacts.write_text(snakemake.output.page, render(spec, verdicts, tables))
