"""Extract one set of features from a prepared set of images, or take a user's own."""

import json
from pathlib import Path

from privclust_papers.datasets.fetch import read_receipt
from privclust_papers.pipeline import artefacts, job
from privclust_papers.pipeline.feature_extraction import extract_set, take_given
from privclust_papers.pipeline.feature_sets import FeatureEntry, GivenFeatures

log = job.start(snakemake)
spec = json.loads(snakemake.params.spec)
if "file" in spec:
    features, source = take_given(GivenFeatures(**spec), snakemake.output.features), spec["file"]
else:
    entry = FeatureEntry.from_spec(spec)
    images = artefacts.read(snakemake.input.images, "dataset", {"dataset": entry.dataset})
    source = images.parameters["source"]
    folder = snakemake.input.get("weights")
    weights = Path(folder, read_receipt(folder).file) if folder else None
    features = extract_set(
        entry,
        images.arrays,
        snakemake.output.features,
        source=source,
        inputs={"dataset": images.digest},
        threads=snakemake.threads,
        weights=weights,
    )
log.info("%s: features of %d images from %s", spec["name"], len(features.y), source)
