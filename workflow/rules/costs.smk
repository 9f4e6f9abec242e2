include: "clock.smk"


rule costs:
    input:
        page=f"{RESULTS}/index.html",
        code=code_of("privclust.costs", "privclust.figures.costs"),
    output:
        table=f"{RESULTS}/costs.csv",
        runs=f"{RESULTS}/costs_runs.csv",
        svg=f"{RESULTS}/costs.svg",
        png=f"{RESULTS}/costs.png",
        model=f"{RESULTS}/costs_model.csv",
        digests=multiext(
            f"{RESULTS}/",
            "costs.csv.sha256",
            "costs_runs.csv.sha256",
            "costs_model.csv.sha256",
        ),
    log:
        f"logs/{PLAN.effort}/costs.log",
    benchmark:
        f"benchmarks/out/{PLAN.effort}/costs.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory,
        runtime=runtime,
    params:
        effort=PLAN.effort,
    message:
        "Adding up what the run cost"
    script:
        "../scripts/costs.py"
