rule share:
    input:
        dataset=dataset_of,
        code=share_code,
    output:
        shard="results/{effort}/{paper}/{experiment}/shared/block_{block}/shard_{shard}.h5",
    log:
        "logs/{effort}/{paper}/{experiment}/shared/{block}_{shard}.log",
    benchmark:
        "benchmarks/out/{effort}/{paper}/{experiment}/shared/{block}_{shard}.tsv"
    wildcard_constraints:
        shard=r"\d{4}",
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=memory,
        runtime=runtime,
    params:
        spec=share_spec,
    message:
        "Summing up data for {wildcards.experiment}, block {wildcards.block}, shard {wildcards.shard}"
    script:
        "../scripts/share.py"


rule fit:
    input:
        dataset=dataset_of,
        shards=shards_of,
        code=fit_code,
    output:
        block="results/{effort}/{paper}/{experiment}/fit/{batch}/block_{block}.h5",
        cost="results/{effort}/{paper}/{experiment}/fit/{batch}/block_{block}.tsv",
        digest="results/{effort}/{paper}/{experiment}/fit/{batch}/block_{block}.tsv.sha256",
    log:
        "logs/{effort}/{paper}/{experiment}/fit/{batch}_{block}.log",
    benchmark:
        "benchmarks/out/{effort}/{paper}/{experiment}/fit/{batch}_{block}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=memory,
        runtime=runtime,
    params:
        spec=fit_spec,
        methods=fit_methods,
    message:
        "Fitting {params.methods} in {wildcards.experiment}, block {wildcards.block}"
    script:
        "../scripts/fit.py"
