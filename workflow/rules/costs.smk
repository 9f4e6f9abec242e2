include: "clock.smk"


rule costs:
    input:
        page=JOBS.page,
        code=source_files(["privclust_papers.report.costs"]),
        script=of_workflow("scripts/costs.py"),
    output:
        table=f"{JOBS.results}/costs.csv",
        runs=f"{JOBS.results}/costs_runs.csv",
        digests=multiext(
            f"{JOBS.results}/",
            "costs.csv.sha256",
            "costs_runs.csv.sha256",
        ),
    log:
        f"logs/{PLAN.effort}/costs.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=JOBS.memory,
        runtime=JOBS.runtime,
    params:
        effort=PLAN.effort,
    message:
        "Adding up the costs of the run"
    script:
        "../scripts/costs.py"
