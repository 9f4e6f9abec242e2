"""Write the page with the scorecard and every target, and beside it what the fits cost."""

import json
from pathlib import Path

import pandas as pd

from privclust.core.files import write_text
from privclust_papers.pipeline import artefacts, job
from privclust_papers.pipeline.project_files import commit_of
from privclust_papers.report.page import costs_script, render, svg_size

job.start(snakemake)
spec = json.loads(snakemake.params.spec)
files = snakemake.input
page = render(
    spec,
    pd.read_csv(artefacts.read_table(files.verdicts), keep_default_na=False),
    tables={
        Path(path).stem: pd.read_csv(artefacts.read_table(path), dtype=str, keep_default_na=False)
        for path in files.tables
    },
    sizes={
        Path(path).stem: svg_size(Path(path).read_text(encoding="utf-8")[:2000])
        for path in files.figures
    },
    sources={
        Path(path).parent.name: sorted(
            set(pd.read_csv(artefacts.read_table(path), usecols=["source"]).source)
        )
        for path in files.trials
    },
    published={
        row.id: row.verdict
        for path in files.published
        for row in pd.read_csv(path).itertuples(index=False)
    },
)
write_text(snakemake.output.page, page)
costs = {
    Path(path).parent.name: pd.read_csv(artefacts.read_table(path), sep="\t")
    for path in files.costs
}
write_text(snakemake.output.costs, costs_script(spec, costs, commit_of(config=snakemake.config)))
