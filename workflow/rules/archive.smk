# Snakemake's records of the jobs lie where Snakemake runs, so the job stays there.
rule archive:
    input:
        page=JOBS.page,
        tables=JOBS.of_experiments(
            layout.METRICS, layout.COSTS, layout.TRIALS, layout.SUMMARY
        ),
        script="workflow/scripts/archive.py",
    output:
        crate=f"{JOBS.results}/privclust-{PLAN.effort}.crate.zip",
    log:
        f"logs/{PLAN.effort}/archive.log",
    benchmark:
        f"benchmarks/out/{PLAN.effort}/archive.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        spec=JOBS.archive_spec,
    message:
        "Packing the run"
    script:
        "../scripts/archive.py"
