rule draw:
    input:
        trials=JOBS.drawn_from(layout.TRIALS),
        summaries=JOBS.drawn_from(layout.SUMMARY),
        metrics=JOBS.drawn_from(layout.METRICS),
        costs=JOBS.drawn_from(layout.COSTS),
        printed=JOBS.printed_values,
        code=JOBS.draw_code,
        script=of_workflow("scripts/draw.py"),
    output:
        svg=report(
            layout.FIGURE,
            caption="../report/target.rst",
            category="Targets",
            # Labels are no parameters: another title draws nothing again. The caption has them too.
            labels=JOBS.labels,
        ),
        png=layout.PICTURE,
        table=layout.TABLE,
        digest=f"{layout.TABLE}.sha256",
    log:
        "logs/{effort}/draw/{target}.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=JOBS.memory,
        runtime=JOBS.runtime,
    params:
        spec=JOBS.draw_spec,
    message:
        "Drawing {wildcards.target}"
    script:
        "../scripts/draw.py"


for item, targets in JOBS.named_rules().items():

    rule:
        name:
            item
        input:
            JOBS.drawings(targets),
            JOBS.gaps_behind(targets),
        localrule: True


# What this effort has not is known by name all the same, to say how it is made.
for item in PLAN.elsewhere:

    rule:
        name:
            item
        input:
            stops_with(only_at_paper_effort(item)),
        localrule: True
