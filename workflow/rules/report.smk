rule verdicts:
    input:
        trials=JOBS.of_experiments(layout.TRIALS),
        claims=list(PLAN.beside(CLAIMS).values()),
        printed=list(PLAN.beside(PRINTED).values()),
        schema=of_workflow("schemas/claims.schema.yaml"),
        code=source_files(["privclust_papers.report.verdicts"]),
        script=of_workflow("scripts/verdicts.py"),
    output:
        verdicts=report(
            JOBS.verdicts,
            caption="../report/verdicts.rst",
            category="Scorecard",
        ),
        digest=f"{JOBS.verdicts}.sha256",
    log:
        f"logs/{PLAN.effort}/verdicts.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=JOBS.memory,
        runtime=JOBS.runtime,
    params:
        spec=JOBS.verdicts_spec,
    message:
        "Judging the claims"
    script:
        "../scripts/verdicts.py"


rule index:
    input:
        verdicts=JOBS.verdicts,
        figures=JOBS.of_targets(layout.FIGURE),
        pictures=JOBS.of_targets(layout.PICTURE),
        tables=JOBS.of_targets(layout.TABLE),
        trials=JOBS.of_experiments(layout.TRIALS),
        costs=JOBS.of_experiments(layout.COSTS),
        published=JOBS.published,
        code=JOBS.page_code,
        script=of_workflow("scripts/index.py"),
    output:
        page=JOBS.page,
        costs=f"{JOBS.results}/costs.js",
    log:
        f"logs/{PLAN.effort}/index.log",
    conda:
        "../envs/report.yaml"
    resources:
        mem_mb=JOBS.memory,
        runtime=JOBS.runtime,
    params:
        spec=JOBS.page_spec,
    message:
        "Writing the page"
    script:
        "../scripts/index.py"
