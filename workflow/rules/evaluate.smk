rule evaluate:
    input:
        dataset=dataset_of,
        blocks=blocks_of,
        costs=costs_of,
        code=evaluate_code,
    output:
        metrics="results/{effort}/{paper}/{experiment}/metrics.h5",
        costs="results/{effort}/{paper}/{experiment}/costs.tsv",
        digest="results/{effort}/{paper}/{experiment}/costs.tsv.sha256",
    log:
        "logs/{effort}/{paper}/{experiment}/evaluate.log",
    benchmark:
        "benchmarks/out/{effort}/{paper}/{experiment}/evaluate.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory,
        runtime=runtime,
    params:
        spec=evaluate_spec,
    message:
        "Evaluating {wildcards.experiment}"
    script:
        "../scripts/evaluate.py"


rule summarise:
    input:
        metrics="results/{effort}/{paper}/{experiment}/metrics.h5",
        code=code_of("privclust.experiments.tables"),
    output:
        trials="results/{effort}/{paper}/{experiment}/trials.csv",
        summary="results/{effort}/{paper}/{experiment}/summary.csv",
        digests=multiext(
            "results/{effort}/{paper}/{experiment}/",
            "trials.csv.sha256",
            "summary.csv.sha256",
        ),
    log:
        "logs/{effort}/{paper}/{experiment}/summarise.log",
    benchmark:
        "benchmarks/out/{effort}/{paper}/{experiment}/summarise.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory,
        runtime=runtime,
    params:
        spec=summary_spec,
    message:
        "Summing up {wildcards.experiment}"
    script:
        "../scripts/summarise.py"
