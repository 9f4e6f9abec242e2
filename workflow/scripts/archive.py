"""Pack the run as a Process Run Crate."""

import os

from privclust_papers.pipeline import job
from privclust_papers.pipeline.plan import load_plan
from privclust_papers.report.archive import write_archive
from privclust_papers.report.run_records import read_jobs

log = job.start(snakemake)
plan = load_plan(snakemake.config, snakemake.params.schemas, os.environ)
jobs = read_jobs(".snakemake/metadata", snakemake.input.page)
write_archive(snakemake.output.crate, plan, snakemake.config, jobs)
log.info("%s: %d jobs", snakemake.output.crate, len(jobs))
