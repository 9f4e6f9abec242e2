# Snakemake looks here first; the workflow lies in its folder.
include: "workflow/Snakefile"


workflow.default_target = "all"  # a file that is included sets none
