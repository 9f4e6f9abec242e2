"""Fetch one data set, or leave a receipt that a substitute takes its place."""

import os

from privclust_papers.datasets.fetch import fetch, resolve_mirror
from privclust_papers.datasets.registry import load_datasets
from privclust_papers.pipeline import job
from privclust_papers.pipeline.plan import DEFAULT_MIRROR

job.start(snakemake)
config = snakemake.config
datasets = load_datasets(config["datasets"], f"{snakemake.params.schemas}/datasets.schema.yaml")
fetch(
    datasets[snakemake.wildcards.dataset],
    snakemake.output.folder,
    mirror=resolve_mirror(config["mirror"], os.environ, DEFAULT_MIRROR),
    allow_substitutes=config["substitutes"],
)
