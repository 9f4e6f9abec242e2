# Snakemake's records of the jobs lie where Snakemake runs, so the job stays there.
rule archive:
    input:
        page=JOBS.page,
        tables=JOBS.of_experiments(
            layout.METRICS, layout.COSTS, layout.TRIALS, layout.SUMMARY
        ),
        project=lambda wildcards: project_files(config=config),
        script=of_workflow("scripts/archive.py"),
    output:
        crate=f"{JOBS.results}/privclust-{PLAN.effort}.crate.zip",
    log:
        f"logs/{PLAN.effort}/archive.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        artefacts=bool(config.get("artefacts")),
        schemas=SCHEMAS,
    message:
        "Packing the run"
    script:
        "../scripts/archive.py"
