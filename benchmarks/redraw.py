"""Draw pictures of docs/results again from the published tables, with today's code and names.

python benchmarks/redraw.py [target ...]

The tables hold statistics, no trials. A drawing gets trials with the published number, mean and
standard deviation; where it shows medians or ranges, it gets the published statistics themselves.
If its table has numbers of trials and means, they have to agree with the published ones to 1e-4, or
nothing is written. Pictures that show single trials (maps, chains) come from a run only.
"""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import yaml
from scratch import ROOT

import privclust_papers.ckm.figures
import privclust_papers.mtsc.figures
import privclust_papers.privatemail.figures
from privclust.report.figures import save_figure
from privclust_papers.pipeline.plan import load_plan
from privclust_papers.report.drawing.style import Results, styles_of
from privclust_papers.settings.dotted import load_object

STATISTICS = ["n", "mean", "std", "se", "median", "q25", "q75", "min", "max"]
SAME_TABLE = {"dpsc_beyond": "dpsc_fig2"}
RETRIEVAL = ("privatemail_cifar100", 100), ("privatemail_cub200", 5), ("privatemail_cars196", 8)
CLASSES = {**dict(RETRIEVAL), "privatemail_control": 100}
WITHOUT_GUARANTEE = ["pca", "pca_gaussian"]  # of the query; an infinite epsilon has no mean
BY_STATISTICS = ("ckm_fig2", "ckm_fig3", "ckm_tab_snr")
SCORES = ("frontier_tab1", "frontier_public", "frontier_archives")
BY_MEANS = (
    *("dpsc_fig2", "dpsc_beyond", "dpsc_starts", "dpsc_frontier", "dpsc_faces"),
    *("privatemail_fig6", "privatemail_leak", "frontier_errors", "frontier_auto", *SCORES),
)
ITERATES = ("privatemail_fig2", "privatemail_fig3")
SETTINGS = {"n_components": "k", "alpha": "α", "sigma": "σ"}
BIRDS = {"n_classes": 5, "n_images": 261}  # of the published run
PRINTED = ("mtsc_tab1", "mtsc_tab2", "mtsc_tab3")
OF_REPORT = ["ours_report_split", "n_report_split"]
OTHERS = ("dpem_fig4", "dpem_accuracy", "privatemail_fig5", *ITERATES, *PRINTED)


def published(target):
    """Return a target's published table."""
    paper, name = target.split("_")[0], SAME_TABLE.get(target, target)
    return pd.read_csv(ROOT / f"docs/results/{paper}/{name}.csv")


def sources(paper):
    """Return what each experiment's data were, as the published verdicts say."""
    claims = yaml.safe_load((ROOT / f"config/papers/{paper}/claims.yaml").read_text())
    verdicts = pd.read_csv(ROOT / f"docs/results/{paper}/verdicts.csv").set_index("id")["data"]
    return {
        claim["check"]["experiment"]: verdicts[claim["id"]]
        for claim in claims
        if "check" in claim and claim["id"] in verdicts
    }


def spread_out(mean, std, n):
    """Return n values with a mean and a standard deviation."""
    if n < 2 or not std > 0:
        return np.full(n, mean)
    steps = np.arange(n) - (n - 1) / 2
    return mean + std * steps / steps.std(ddof=1)


def trials_of(table, experiment, source):
    """Return trials of one experiment with the statistics of a table."""
    keys = [c for c in table if c not in {*STATISTICS, "metric", "experiment"}]
    parts = []
    for values, group in table.groupby(keys, sort=False, dropna=False):
        n = int(group["n"].max())
        part = pd.DataFrame({"trial": range(n), **dict(zip(keys, values, strict=True))})
        for row in group.itertuples():
            short = np.full(n - row.n, np.nan)
            part[row.metric] = np.append(spread_out(row.mean, row.std, row.n), short)
        parts.append(part)
    trials = pd.concat(parts, ignore_index=True).assign(source=source)
    points = pd.DataFrame(experiment.points).drop_duplicates()
    shared = [name for name in points if name in trials]
    points = points.drop(columns=[c for c in points if points[c].map(type).eq(dict).any()])
    if shared:
        facts = points.drop_duplicates(shared)
        return trials.merge(facts, "left", shared)
    return trials.assign(**points.iloc[0].to_dict())


def results_of(plan, target, table):
    """Return a drawing's input: trials of each experiment with today's labels."""
    entry, paper = plan.targets[target], target.split("_")[0]
    data = sources(paper)
    if target in SCORES:
        known = ["method", "label", "set", "n", "mean", "std", "se"]
        table = table[known].assign(
            metric="score", experiment=table["set"].map(holders(plan, entry))
        )
    trials, own = {}, {}
    for name in entry.experiments:
        part = table[table["experiment"] == name] if "experiment" in table else table
        if part.empty:
            continue
        part = part.dropna(axis=1, how="all").drop(columns="experiment", errors="ignore")
        methods = plan.experiments[name].methods
        labels = {method: methods[method].label for method in methods}
        part = part.assign(label=part["method"].map(labels).fillna(part["label"]))
        source = data.get(name.removesuffix("_public"), "generated")
        trials[name] = trials_of(part, plan.experiments[name], source)
        own[name] = part
    styles = styles_of(entry.styles)
    return Results(target, trials, {}, {}, pd.DataFrame(), styles=styles, kinds=entry.kinds), own


def holders(plan, entry):
    """Return which experiment of a target has each data set; Letter Recognition has no name."""
    points = (
        (name, point) for name in entry.experiments for point in plan.experiments[name].points
    )
    return {point.get("set", "letter"): name for name, point in points}


def repeated(plan, target, table):
    """Return equal trials with the published values, and EM's where distances to it stand."""
    (name,) = plan.targets[target].experiments
    experiment = plan.experiments[name]
    table = table.assign(label=[experiment.methods[m].label for m in table["method"]])
    if "below_em" in table:
        em = table.drop_duplicates("epsilon").assign(method="em", label="EM", below_em=0.0)
        table = pd.concat([table, em], ignore_index=True).rename(columns={"below_em": "loss"})
    source = sources(experiment.paper)[name]
    trials = [table.assign(trial=trial, source=source) for trial in experiment.trials]
    return {name: pd.concat(trials, ignore_index=True)}


def along_settings(plan, table):
    """Return trials of Figure 5: each published point, with Table 2's other settings."""
    usual, data = published("privatemail_tab2"), sources("privatemail")
    usual = usual[usual["settings"] == "here"].set_index("data set")
    names = {"cifar100": "CIFAR-100", "cub200": "CUB-200-2011", "cars196": "Cars196"}
    chance = published("privatemail_fig6").query("metric == 'chance_8'")
    chance = chance.groupby("experiment")["mean"].mean()
    trials = {}
    for name, part in table.groupby("experiment", sort=False):
        kind, rows = name.rsplit("_", 1)[-1], []
        settings = {a: float(usual.loc[names[kind], s]) for a, s in SETTINGS.items()}
        for row in part.itertuples():
            facts = {"method": row.method, **settings, row.axis: row.value}
            facts["label"] = plan.experiments[name].methods[row.method].label
            values = enumerate(spread_out(row.mean, row.std, row.n))
            rows += [{**facts, "trial": trial, "recall_8": value} for trial, value in values]
        point = {"epsilon": 0.1, "chance_8": chance[f"privatemail_{kind}"]}
        unique = pd.DataFrame(rows).drop_duplicates(["method", "trial", *SETTINGS])
        trials[name] = unique.assign(**point, source=data[f"privatemail_{kind}"])
    return trials


def iterates(plan, target, table):
    """Return trials of Figures 2 and 3, and let their drawing read the published points."""
    module, data = privclust_papers.privatemail.figures, sources("privatemail")
    entry = plan.targets[target]
    if target == "privatemail_fig3":
        methods = plan.experiments[entry.experiments[0]].methods
        own = table.assign(label=[methods[method].label for method in table["method"]])
        module.along_iterates = lambda _: own
        counts = table.groupby("experiment", sort=False)["n"].max()
        return {
            name: pd.DataFrame({"trial": range(n), "source": data[name]})
            for name, n in counts.items()
        }

    def rows_of(_, experiment, method):
        own = [part for _, part in table[table["method"] == method].groupby("iterate")]
        recalls = {f"recall_8_{p['iterate'].iloc[0]}": p["recall_8"].iloc[0] for p in own}
        shown = [part[["x", "y"]].to_numpy() for part in own]
        labels = own[0]["class"].to_numpy(int)
        yield {**BIRDS, **recalls}, {"shown_labels": labels, "shown": shown}

    module.rows_of = rows_of
    (name,) = entry.experiments
    return {name: pd.DataFrame({"trial": [0], "source": data[name]})}


def compared(plan, target, table):
    """Return trials of a table of printed numbers, and let its drawing read the published ones."""
    module = privclust_papers.mtsc.figures
    margins = {said: name for name, said in module._MARGINS.items()}
    ours = table.drop(columns=[*OF_REPORT, *margins])
    of_report = table[OF_REPORT].set_axis(["ours", "n"], axis=1)
    answers = iter([ours, ours.assign(**of_report)])
    module.compare = lambda *_, **__: next(answers).copy()
    module.compare_margins = lambda *_: table[list(margins)].rename(columns=margins)
    data = table["source"].iloc[0]
    trials = ours[["method", "label"]].assign(split="report", source=data)
    return dict.fromkeys(plan.targets[target].experiments, trials), ours


def prepared(plan, target):
    """Return a target's input and its published table."""
    table = published(target)
    printed = pd.DataFrame()
    if target in OTHERS:
        if target in PRINTED:
            trials, printed = compared(plan, target, table)
        elif target in ITERATES:
            trials = iterates(plan, target, table)
        elif target == "privatemail_fig5":
            trials = along_settings(plan, table)
        else:
            trials = repeated(plan, target, table)
        entry = plan.targets[target]
        looks = {"styles": styles_of(entry.styles), "kinds": entry.kinds}
        return Results(target, trials, {}, {}, printed, **looks), table
    results, own = results_of(plan, target, table)
    if target == "dpsc_frontier":  # the two methods as printed come from the trials of Figure 2
        figure2, _ = results_of(plan, "dpsc_fig2", published("dpsc_fig2"))
        results = replace(results, trials={**figure2.trials, **results.trials})
    if target in BY_STATISTICS:
        names = {id(trials): name for name, trials in results.trials.items()}
        module = privclust_papers.ckm.figures
        module.statistics = lambda trials, *_: own[names[id(trials)]].copy()
        summaries = {name: t.drop(columns=["q25", "q75"]) for name, t in own.items()}
        results = replace(results, summaries=summaries)
    for name, trials in results.trials.items():
        if name in CLASSES:
            trials["n_classes"] = CLASSES[name]
            if "guaranteed_epsilon" in trials:
                is_none = trials["method"].isin(WITHOUT_GUARANTEE)
                trials.loc[is_none, "guaranteed_epsilon"] = np.inf
    return results, table


def check_same(target, drawn, table):
    """Exit if a drawing's table is not the published one."""
    keys = [c for c in table if c in drawn and c not in {*STATISTICS, "label"}]
    numbers = [c for c in STATISTICS[:4] if c in table and c in drawn]
    if "n" not in table or "n" not in drawn or "mean" not in table:
        return
    one, other = (t[t["n"] > 0].sort_values(keys)[numbers] for t in (drawn, table))
    if len(one) != len(other) or not np.allclose(one, other, 1e-4, 1e-9, equal_nan=True):
        sys.exit(f"{target}: another table than the published one")


if __name__ == "__main__":
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text()) | {"effort": "paper"}
    plan = load_plan(config, str(ROOT / "workflow/schemas"), {})
    for target in sys.argv[1:] or [*BY_MEANS, *BY_STATISTICS, *OTHERS]:
        results, table = prepared(plan, target)
        drawing = load_object(plan.targets[target].draw)(results)
        check_same(target, drawing.table, table)
        save_figure(drawing.figure, ROOT / f"docs/results/{target}.png", "png")
        print(target)
