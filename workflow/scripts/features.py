"""Extract one set of features from a prepared set of images."""

import json

import job

from privclust import artefacts
from privclust.features import extract_set
from privclust.features.sets import FeatureEntry

log = job.start(snakemake)
spec = json.loads(snakemake.params.spec)
entry = FeatureEntry.from_spec(spec)
images = artefacts.read(snakemake.input.images, "dataset", {"dataset": entry.dataset})
source = images.parameters["source"]
features = extract_set(
    entry,
    images.arrays,
    snakemake.output.features,
    source=source,
    inputs={"dataset": images.digest},
    threads=snakemake.threads,
)
log.info("%s: features of %d images from %s", entry.name, len(features.y), source)
