"""Add up what a run cost, and draw it beside how long it would take on other machines."""

from privclust_papers.pipeline import job
from privclust_papers.pipeline.artefacts import write_table
from privclust_papers.report.costs import (
    CORES,
    CostError,
    compare_runs,
    cost_table,
    predict,
    read_costs,
    verdict_lines,
)
from privclust_papers.report.drawing.run_costs import draw_costs
from privclust_papers.report.drawing.style import save

log = job.start(snakemake)
try:
    costs = read_costs(snakemake.params.effort)
except CostError as error:
    log.error("%s", error)
    raise SystemExit(1) from None
if costs.unrecorded:
    first = ", ".join(costs.unrecorded[:3])
    log.warning("%d files have no record of their cost, such as %s", len(costs.unrecorded), first)
table, model, runs = cost_table(costs), predict(costs, CORES), compare_runs(costs)
for line in verdict_lines(table, snakemake.params.budgets, snakemake.params.effort):
    log.info("%s", line)
write_table(snakemake.output.table, table.to_csv(index=False, float_format="%.4g"))
write_table(snakemake.output.runs, runs.to_csv(index=False, float_format="%.6g"))
drawing = draw_costs(table, model, runs)
save(drawing, snakemake.output.svg, snakemake.output.png, snakemake.output.model)
