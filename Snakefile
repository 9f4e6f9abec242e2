from snakemake.utils import min_version

min_version("9.17")


configfile: "config/config.yaml"


include: "workflow/rules/common.smk"


wildcard_constraints:
    effort="|".join(EFFORTS),
    dataset="|".join(DATASETS) or "none",
    features="|".join(FEATURES) or "none",
    own="|".join(OWN) or "none",
    paper="|".join(PAPERS),
    experiment="|".join(EXPERIMENTS),
    batch="|".join(BATCHES),
    target="|".join(TARGETS),
    block=r"\d{4}",


rule all:
    default_target: True
    input:
        f"{RESULTS}/index.html",
        gaps_behind(
            EXPERIMENTS, TARGETS, f"{RESULTS}/verdicts.csv", f"{RESULTS}/index.html"
        ),
    localrule: True


include: "workflow/rules/data.smk"
include: "workflow/rules/fit.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/draw.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/costs.smk"
include: "workflow/rules/archive.smk"
