# Snakemake's records of the jobs lie where Snakemake runs, so the job stays there.
rule archive:
    input:
        page=f"{RESULTS}/index.html",
        tables=tables_of_experiments(),
    output:
        crate=f"{RESULTS}/privclust-{PLAN.effort}.crate.zip",
    log:
        f"logs/{PLAN.effort}/archive.log",
    benchmark:
        f"benchmarks/out/{PLAN.effort}/archive.tsv"
    localrule: True
    conda:
        "../../environment.yml"
    params:
        spec=workflow_spec,
    message:
        "Packing the run"
    script:
        "../scripts/archive.py"
