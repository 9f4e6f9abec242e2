PAGE_FILES = [
    f"src/privclust/page/{name}"
    for name in ("index.html.j2", "target.html.j2", "style.css", "page.js")
]


rule verdicts:
    input:
        trials=all_trials(),
        claims=config["claims"],
        printed=all_printed_values(),
        code=code_of("privclust.verdicts"),
    output:
        verdicts=report(
            f"{RESULTS}/verdicts.csv",
            caption="../report/verdicts.rst",
            category="Scorecard",
        ),
        digest=f"{RESULTS}/verdicts.csv.sha256",
    log:
        f"logs/{PLAN.effort}/verdicts.log",
    benchmark:
        f"benchmarks/out/{PLAN.effort}/verdicts.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory,
        runtime=runtime,
    params:
        spec=verdicts_spec(),
    message:
        "Judging the claims"
    script:
        "../scripts/verdicts.py"


rule index:
    input:
        verdicts=f"{RESULTS}/verdicts.csv",
        figures=all_target_files("svg"),
        pictures=all_target_files("png"),
        tables=all_target_files("csv"),
        trials=all_trials(),
        costs=[path for path in tables_of_experiments() if path.endswith(".tsv")],
        code=code_of("privclust.page") + PAGE_FILES,
    output:
        page=f"{RESULTS}/index.html",
        costs=f"{RESULTS}/costs.js",
    log:
        f"logs/{PLAN.effort}/index.log",
    benchmark:
        f"benchmarks/out/{PLAN.effort}/index.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=memory,
        runtime=runtime,
    params:
        spec=page_spec(),
    message:
        "Writing the page"
    script:
        "../scripts/index.py"
