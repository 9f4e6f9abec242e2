rule fit:
    input:
        dataset=dataset_of,
        code=fit_code,
    output:
        block="results/{effort}/{paper}/{experiment}/fit/{method}/block_{block}.h5",
    log:
        "logs/{effort}/{paper}/{experiment}/fit/{method}_{block}.log",
    benchmark:
        "benchmarks/out/{effort}/{paper}/{experiment}/fit/{method}_{block}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=memory,
        runtime=runtime,
    params:
        spec=fit_spec,
    message:
        "Fitting {wildcards.method} in {wildcards.experiment}, block {wildcards.block}"
    script:
        "../scripts/fit.py"
