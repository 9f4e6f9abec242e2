"""Parse one fetched data set, or generate its substitute, into one artefact."""

from privclust_papers.datasets.fetch import load, source_of
from privclust_papers.datasets.registry import load_datasets
from privclust_papers.pipeline import artefacts, job

log = job.start(snakemake)
name = snakemake.wildcards.dataset
datasets = load_datasets(
    snakemake.config["datasets"], f"{snakemake.params.schemas}/datasets.schema.yaml"
)
arrays, receipt = load(datasets[name], snakemake.input.folder)
source = source_of(datasets[name], receipt)
artefacts.write(
    snakemake.output.dataset,
    "dataset",
    arrays,
    {"dataset": name, "source": source},
)
log.info("%s: prepared from %s", name, source)
