"""Extract one set of features from a prepared set of images."""

import json
from pathlib import Path

from privclust_papers.datasets.fetch import read_receipt
from privclust_papers.pipeline import artefacts, job
from privclust_papers.pipeline.feature_extraction import extract_set
from privclust_papers.pipeline.feature_sets import FeatureEntry

log = job.start(snakemake)
entry = FeatureEntry.from_spec(json.loads(snakemake.params.spec))
images = artefacts.read(snakemake.input.images, "dataset", {"dataset": entry.dataset})
source = images.parameters["source"]
folder = snakemake.input.get("weights")
extract_set(
    entry,
    images.arrays,
    snakemake.output.features,
    source=source,
    inputs={"dataset": images.digest},
    threads=snakemake.threads,
    weights=Path(folder, read_receipt(folder).file) if folder else None,
)
log.info("%s: features of images from %s", entry.name, source)
