rule share:
    input:
        dataset=JOBS.dataset,
        code=JOBS.share_code,
        script=of_workflow("scripts/share.py"),
    output:
        shard=layout.SHARD,
    log:
        "logs/{effort}/{paper}/{experiment}/shared/{block}_{shard}.log",
    conda:
        "../envs/fit.yaml"
    threads: 1
    resources:
        mem_mb=JOBS.memory,
        runtime=JOBS.runtime,
    params:
        spec=JOBS.share_spec,
    message:
        "Summing up data for {wildcards.experiment}, block {wildcards.block}, shard {wildcards.shard}"
    script:
        "../scripts/share.py"


rule fit:
    input:
        dataset=JOBS.dataset,
        shards=JOBS.shards,
        code=JOBS.fit_code,
        script=of_workflow("scripts/fit.py"),
    output:
        block=layout.FIT,
        cost=layout.FIT_COST,
        digest=f"{layout.FIT_COST}.sha256",
    log:
        "logs/{effort}/{paper}/{experiment}/fit/{batch}_{block}.log",
    conda:
        "../envs/fit.yaml"
    threads: 1
    resources:
        mem_mb=JOBS.memory,
        runtime=JOBS.runtime,
    params:
        spec=JOBS.fit_spec,
        methods=JOBS.fit_methods,
    message:
        "Fitting {params.methods} in {wildcards.experiment}, block {wildcards.block}"
    script:
        "../scripts/fit.py"
