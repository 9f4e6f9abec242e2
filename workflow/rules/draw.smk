rule draw:
    input:
        trials=target_trials,
        summaries=target_summaries,
        metrics=target_metrics,
        costs=target_costs,
        printed=printed_values,
        code=target_code,
    output:
        svg=report(
            "results/{effort}/targets/{target}/{target}.svg",
            caption="../report/target.rst",
            category="Targets",
            labels={"target": "{target}"},
        ),
        png="results/{effort}/targets/{target}/{target}.png",
        table="results/{effort}/targets/{target}/{target}.csv",
        digest="results/{effort}/targets/{target}/{target}.csv.sha256",
    log:
        "logs/{effort}/draw/{target}.log",
    benchmark:
        "benchmarks/out/{effort}/draw/{target}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory,
        runtime=runtime,
    params:
        spec=target_spec,
        definition=target_definition,
    message:
        "Drawing {wildcards.target}"
    script:
        "../scripts/draw.py"


for item in TARGETS:

    rule:
        name:
            item
        input:
            target_files(item, "svg", "png", "csv"),
            gaps_behind(PLAN.targets[item].experiments, [item]),
        localrule: True


for item in PAPERS:

    rule:
        name:
            item
        input:
            paper_files(item),
            gaps_behind(experiments_of_paper(item), targets_of_paper(item)),
        localrule: True
