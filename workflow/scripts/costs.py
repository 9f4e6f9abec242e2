"""Add up what a run cost."""

from privclust_papers.pipeline import job
from privclust_papers.pipeline.artefacts import write_table
from privclust_papers.report.costs import CostError, cost_table, read_costs, run_table

log = job.start(snakemake)
try:
    costs = read_costs(snakemake.params.effort)
except CostError as error:
    log.error("%s", error)
    raise SystemExit(1) from None
if costs.unrecorded:
    first = ", ".join(costs.unrecorded[:3])
    log.warning("%d files have no record of their cost, such as %s", len(costs.unrecorded), first)
table, runs = cost_table(costs), run_table(costs)
write_table(snakemake.output.table, table.to_csv(index=False, float_format="%.4g"))
write_table(snakemake.output.runs, runs.to_csv(index=False, float_format="%.6g"))
