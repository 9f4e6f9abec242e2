rule fetch:
    input:
        code=fetch_code,
    output:
        folder=directory("data/raw/{dataset}"),
    log:
        "logs/fetch/{dataset}.log",
    benchmark:
        "benchmarks/out/fetch/{dataset}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory,
        runtime=runtime,
    params:
        spec=fetch_spec,
    message:
        "Fetching {wildcards.dataset}"
    script:
        "../scripts/fetch.py"


rule prepare:
    input:
        folder="data/raw/{dataset}",
        code=prepare_code,
    output:
        dataset="data/prepared/{dataset}.h5",
    log:
        "logs/prepare/{dataset}.log",
    benchmark:
        "benchmarks/out/prepare/{dataset}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory,
        runtime=runtime,
    params:
        spec=prepare_spec,
    message:
        "Preparing {wildcards.dataset}"
    script:
        "../scripts/prepare.py"


rule features:
    input:
        images=images_of,
        code=code_of("privclust.feature_extraction.extract_set"),
    output:
        features="data/features/{features}.h5",
    log:
        "logs/features/{features}.log",
    benchmark:
        "benchmarks/out/features/{features}.tsv"
    conda:
        "../../environment.yml"
    threads: 2
    resources:
        mem_mb=memory,
        runtime=runtime,
    params:
        spec=features_spec,
    message:
        "Extracting the features {wildcards.features}"
    script:
        "../scripts/features.py"


rule read_own:
    input:
        file=own_file,
        code=code_of("privclust.datasets.own"),
    output:
        dataset="data/own/{own}.h5",
    log:
        "logs/own/{own}.log",
    benchmark:
        "benchmarks/out/own/{own}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory,
        runtime=runtime,
    params:
        spec=own_spec,
    message:
        "Reading {wildcards.own}, data of your own"
    script:
        "../scripts/read_own.py"
