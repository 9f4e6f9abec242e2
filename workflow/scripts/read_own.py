"""Read one data set of a user's own into an artefact."""

import json

from privclust_papers.pipeline import artefacts, job
from privclust_papers.pipeline.user_table import SOURCE, prepared

log = job.start(snakemake)
spec = json.loads(snakemake.params.spec)
name, source = spec["name"], SOURCE.format(spec["name"])
arrays = prepared(name, spec["file"], spec["columns"], spec["low"], spec["high"])
artefacts.write(snakemake.output.dataset, "dataset", arrays, {"dataset": name, "source": source})
log.info("%s: %d rows of %d numbers from %s", name, *arrays["X"].shape, spec["file"])
