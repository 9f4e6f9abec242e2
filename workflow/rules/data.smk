rule fetch:
    input:
        code=JOBS.fetch_code,
        script=of_workflow("scripts/fetch.py"),
    output:
        folder=directory(layout.RAW),
    log:
        "logs/fetch/{dataset}.log",
    conda:
        "../envs/data.yaml"
    resources:
        mem_mb=JOBS.memory,
        runtime=JOBS.runtime,
    params:
        spec=JOBS.fetch_spec,
        schemas=SCHEMAS,
    message:
        "Fetching {wildcards.dataset}"
    script:
        "../scripts/fetch.py"


rule prepare:
    input:
        folder=layout.RAW,
        code=JOBS.prepare_code,
        script=of_workflow("scripts/prepare.py"),
    output:
        dataset=layout.PREPARED,
    log:
        "logs/prepare/{dataset}.log",
    conda:
        "../envs/data.yaml"
    resources:
        mem_mb=JOBS.memory,
        runtime=JOBS.runtime,
    params:
        spec=JOBS.prepare_spec,
        schemas=SCHEMAS,
    message:
        "Preparing {wildcards.dataset}"
    script:
        "../scripts/prepare.py"


rule features:
    input:
        images=JOBS.images,
        weights=JOBS.weights,
        code=source_files(["privclust_papers.pipeline.feature_extraction.extract_set"]),
        script=of_workflow("scripts/features.py"),
    output:
        features=layout.FEATURES,
    log:
        "logs/features/{features}.log",
    conda:
        "../envs/fit.yaml"
    threads: 2
    resources:
        mem_mb=JOBS.memory,
        runtime=JOBS.runtime,
    params:
        spec=JOBS.features_spec,
    message:
        "Extracting the features {wildcards.features}"
    script:
        "../scripts/features.py"
