"""Paths of all files of a run: patterns with wildcards in braces.

Patterns are outputs of the workflow's rules, and inputs of other rules.
"""

RAW = "data/raw/{dataset}"
PREPARED = "data/prepared/{dataset}.h5"
FEATURES = "data/features/{features}.h5"

RESULTS = "results/{effort}"
VERDICTS = f"{RESULTS}/verdicts.csv"
PAGE = f"{RESULTS}/index.html"

EXPERIMENT = f"{RESULTS}/{{paper}}/{{experiment}}"
SHARD = f"{EXPERIMENT}/shared/block_{{block}}/shard_{{shard}}.h5"
FIT = f"{EXPERIMENT}/fit/{{batch}}/block_{{block}}.h5"
FIT_COST = f"{EXPERIMENT}/fit/{{batch}}/block_{{block}}.tsv"
METRICS = f"{EXPERIMENT}/metrics.h5"
COSTS = f"{EXPERIMENT}/costs.tsv"
TRIALS = f"{EXPERIMENT}/trials.csv"
SUMMARY = f"{EXPERIMENT}/summary.csv"
EVALUATED = (METRICS, COSTS, TRIALS, SUMMARY)

TARGET = f"{RESULTS}/targets/{{target}}/{{target}}"
FIGURE = f"{TARGET}.svg"
PICTURE = f"{TARGET}.png"
TABLE = f"{TARGET}.csv"
DRAWING = (FIGURE, PICTURE, TABLE)
