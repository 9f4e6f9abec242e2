rule evaluate:
    input:
        dataset=JOBS.dataset,
        blocks=JOBS.fits,
        costs=JOBS.fit_costs,
        code=JOBS.evaluate_code,
        script=of_workflow("scripts/evaluate.py"),
    output:
        metrics=layout.METRICS,
        costs=layout.COSTS,
        trials=layout.TRIALS,
        summary=layout.SUMMARY,
        digests=[f"{table}.sha256" for table in layout.EVALUATED[1:]],
    log:
        "logs/{effort}/{paper}/{experiment}/evaluate.log",
    conda:
        "../envs/fit.yaml"
    resources:
        mem_mb=JOBS.memory,
        runtime=JOBS.runtime,
    params:
        spec=JOBS.evaluate_spec,
    message:
        "Evaluating {wildcards.experiment}"
    script:
        "../scripts/evaluate.py"
