rule evaluate:
    input:
        dataset=JOBS.dataset,
        blocks=JOBS.fits,
        costs=JOBS.fit_costs,
        code=JOBS.evaluate_code,
        script="workflow/scripts/evaluate.py",
    output:
        metrics=layout.METRICS,
        costs=layout.COSTS,
        digest=f"{layout.COSTS}.sha256",
    log:
        "logs/{effort}/{paper}/{experiment}/evaluate.log",
    benchmark:
        "benchmarks/out/{effort}/{paper}/{experiment}/evaluate.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=JOBS.memory,
        runtime=JOBS.runtime,
    params:
        spec=JOBS.evaluate_spec,
    message:
        "Evaluating {wildcards.experiment}"
    script:
        "../scripts/evaluate.py"


rule summarise:
    input:
        metrics=layout.METRICS,
        code=source_files(["privclust_papers.pipeline.tables"]),
        script="workflow/scripts/summarise.py",
    output:
        trials=layout.TRIALS,
        summary=layout.SUMMARY,
        digests=[f"{layout.TRIALS}.sha256", f"{layout.SUMMARY}.sha256"],
    log:
        "logs/{effort}/{paper}/{experiment}/summarise.log",
    benchmark:
        "benchmarks/out/{effort}/{paper}/{experiment}/summarise.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=JOBS.memory,
        runtime=JOBS.runtime,
    params:
        spec=JOBS.summary_spec,
    message:
        "Summing up {wildcards.experiment}"
    script:
        "../scripts/summarise.py"
