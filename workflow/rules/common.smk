import os

from privclust.canonical import canonical_json
from privclust.config import ConfigError
from privclust.experiments.plan import MEMORY_MB
from privclust.planning import changed_settings, load_plan, normalise
from privclust.sources import source_files, sources_of_function

# Numerical libraries use one thread in each job, whatever the shell says.
for variable in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
):
    os.environ[variable] = "1"


def check_writable(*folders):
    """Stop if a folder can be neither written nor made: Snakemake would end in a traceback."""
    closed = []
    for folder in folders:
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder) or "."
        if not os.access(folder, os.W_OK | os.X_OK):
            closed.append(folder)
    if closed:
        read_only = os.statvfs(closed[0]).f_flag & os.ST_RDONLY
        reason = "Read-only file system" if read_only else "Permission denied"
        names = ["the project's folder" if name == "." else name for name in closed]
        raise WorkflowError(
            f"{', '.join(dict.fromkeys(names))}: cannot be written ({reason}); "
            "make it writable and run again"
        )


def check_room(megabytes):
    """Stop if there is next to no room for Snakemake's records: it would end in a traceback."""
    disk = os.statvfs(".")
    left = disk.f_bavail * disk.f_frsize / 1e6
    says_its_size = disk.f_blocks > 0  # some network disks do not
    if says_its_size and left < megabytes:
        raise WorkflowError(
            f"the project's folder: {left:.1f} MB are left on its disk; make room there, "
            f"{megabytes} MB at least, and run again"
        )


# Written before any job starts, and by a dry run too.
check_writable(".snakemake")
check_room(megabytes=10)

config.update(normalise(config))
try:
    PLAN = load_plan(config, "workflow/schemas", os.environ)
except ConfigError as error:
    raise WorkflowError(str(error))

EFFORTS = ["quick", "paper"]
DATASETS = sorted(PLAN.datasets)
FEATURES = sorted(PLAN.features)
OWN = sorted(PLAN.own_data)
PAPERS = sorted(PLAN.papers)
EXPERIMENTS = sorted(PLAN.experiments)
BATCHES = sorted({b for e in PLAN.experiments.values() for b in e.batches})
TARGETS = sorted(PLAN.targets)
RESULTS = f"results/{PLAN.effort}"
EXPERIMENT = "results/{effort}/{paper}/{experiment}"


def code_of(*dotted_paths):
    """Return the source files behind the named objects: an edit of one reruns the job."""
    return source_files(dotted_paths)


def fetch_spec(wildcards):
    """Return the canonical description of where a data set comes from."""
    return canonical_json(PLAN.fetch_spec(wildcards.dataset))


def fetch_code(wildcards):
    """Return the sources that decide what is accepted as a data set."""
    return code_of(*PLAN.fetch_code(wildcards.dataset))


def prepare_spec(wildcards):
    """Return the canonical description of a prepared data set."""
    return canonical_json(PLAN.prepare_spec(wildcards.dataset))


def prepare_code(wildcards):
    """Return the sources that decide a prepared data set."""
    return code_of(*PLAN.prepare_code(wildcards.dataset))


def images_of(wildcards):
    """Return what features are taken from: a prepared set of images, or a user's own file."""
    entry = PLAN.features[wildcards.features]
    return f"data/prepared/{entry.dataset}.h5" if entry.dataset else entry.file


def features_spec(wildcards):
    """Return the canonical description of a feature set."""
    return canonical_json(PLAN.features[wildcards.features].spec())


def own_file(wildcards):
    """Return the file of a data set of the user's own."""
    return PLAN.own_data[wildcards.own].file


def own_spec(wildcards):
    """Return the canonical description of a data set of the user's own."""
    return canonical_json(PLAN.own_data[wildcards.own].spec())


def experiment_of(wildcards):
    """Return the plan of the experiment a job belongs to."""
    return PLAN.experiments[wildcards.experiment]


def dataset_of(wildcards):
    """Return the prepared data set or the features an experiment reads, if it reads any."""
    name = experiment_of(wildcards).dataset
    return PLAN.data_file(name) if name else []


def share_code(wildcards):
    """Return the sources that decide what methods share: the data and the sharing alone."""
    experiment = experiment_of(wildcards)
    return code_of(experiment.share, experiment.data)


def share_spec(wildcards):
    """Return the canonical description of one shard of what a block's methods share."""
    experiment = experiment_of(wildcards)
    block, shard = int(wildcards.block), int(wildcards.shard)
    return canonical_json(experiment.share_spec(block, shard))


def shards_of(wildcards):
    """Return the shards that a block's fits read, if its methods share anything."""
    experiment = experiment_of(wildcards)
    folder = f"{EXPERIMENT}/shared/block_{{block}}".format(**wildcards)
    n_shards = experiment.shards if experiment.share else 0
    return [f"{folder}/shard_{number:04d}.h5" for number in range(n_shards)]


def fit_code(wildcards):
    """Return the sources that decide a batch's fits: data, fitting and the methods themselves."""
    experiment = experiment_of(wildcards)
    methods = (experiment.methods[name] for name in experiment.batches[wildcards.batch])
    classes = (path for method in methods for path in method.dotted_paths())
    return code_of(experiment.data, experiment.fit, *classes)


def fit_spec(wildcards):
    """Return the canonical description of a block's content."""
    experiment = experiment_of(wildcards)
    return canonical_json(experiment.fit_spec(wildcards.batch, int(wildcards.block)))


def blocks_of(wildcards):
    """Return the fits of an experiment."""
    return fit_files(wildcards.experiment, EXPERIMENT.format(**wildcards), "h5")


def costs_of(wildcards):
    """Return what the fits of an experiment cost."""
    return fit_files(wildcards.experiment, EXPERIMENT.format(**wildcards), "tsv")


def fit_files(name, folder, suffix):
    """Return one file of each fit of an experiment: block by block, of each all batches by name."""
    experiment = PLAN.experiments[name]
    return [
        f"{folder}/fit/{batch}/block_{number:04d}.{suffix}"
        for number in range(experiment.n_blocks)
        for batch in sorted(experiment.batches)
    ]


def fit_methods(wildcards):
    """Return the names of a batch's methods, for messages."""
    return ", ".join(experiment_of(wildcards).batches[wildcards.batch])


def evaluate_code(wildcards):
    """Return the sources that decide metrics: data and evaluation, not the method."""
    experiment = experiment_of(wildcards)
    return code_of(experiment.data, experiment.evaluate)


def evaluate_spec(wildcards):
    """Return the canonical description of an experiment's metrics."""
    return canonical_json(experiment_of(wildcards).evaluate_spec())


def summary_spec(wildcards):
    """Return the canonical description of an experiment's summary."""
    return canonical_json(experiment_of(wildcards).summary_spec())


def experiments_of_target(target):
    """Return the folders of the experiments a target draws from."""
    entry = PLAN.targets[target]
    return [f"{RESULTS}/{entry.paper}/{name}" for name in entry.experiments]


def target_inputs(wildcards, file):
    """Return one file of each experiment of a target."""
    return [f"{folder}/{file}" for folder in experiments_of_target(wildcards.target)]


def target_trials(wildcards):
    """Return the trial tables a target draws from."""
    return target_inputs(wildcards, "trials.csv")


def target_summaries(wildcards):
    """Return the summaries a target draws from."""
    return target_inputs(wildcards, "summary.csv")


def target_metrics(wildcards):
    """Return the metrics a target draws from."""
    return target_inputs(wildcards, "metrics.h5")


def target_costs(wildcards):
    """Return what the fits that a target draws from cost."""
    return target_inputs(wildcards, "costs.tsv")


def target_code(wildcards):
    """Return the sources that decide a drawing, other than the module of its function."""
    return sources_of_function(PLAN.targets[wildcards.target].draw)[0]


def target_definition(wildcards):
    """Return a digest of what the drawing's function uses of its module, which has others too."""
    return sources_of_function(PLAN.targets[wildcards.target].draw)[1]


def target_spec(wildcards):
    """Return the canonical description of a target."""
    return canonical_json(PLAN.targets[wildcards.target].spec())


def printed_values(wildcards):
    """Return the table of printed numbers of a target's paper, where there is one."""
    return PLAN.paper_values(PLAN.targets[wildcards.target].paper)


def target_files(target, *suffixes):
    """Return the files that a target is made of."""
    return [f"{RESULTS}/targets/{target}/{target}.{suffix}" for suffix in suffixes]


def targets_of_paper(paper):
    """Return the names of a paper's targets."""
    return [name for name, target in PLAN.targets.items() if target.paper == paper]


def experiments_of_paper(paper):
    """Return the names of the experiments that a paper's targets draw from."""
    used = (PLAN.targets[name].experiments for name in targets_of_paper(paper))
    return sorted({name for names in used for name in names})


def paper_files(paper):
    """Return the files of all targets of a paper."""
    return [
        file
        for name in targets_of_paper(paper)
        for file in target_files(name, "svg", "png", "csv")
    ]


def stages_of(name):
    """Return the files of an experiment, stage by stage in the order in which they are made."""
    experiment = PLAN.experiments[name]
    folder = EXPERIMENT.format(
        effort=PLAN.effort, paper=experiment.paper, experiment=name
    )
    return [
        *(PLAN.data_stages(experiment.dataset) if experiment.dataset else []),
        [
            f"{folder}/shared/block_{block:04d}/shard_{shard:04d}.h5"
            for block in range(experiment.n_blocks)
            for shard in range(experiment.shards if experiment.share else 0)
        ],
        fit_files(name, folder, "h5") + fit_files(name, folder, "tsv"),
        [f"{folder}/metrics.h5", f"{folder}/costs.tsv"],
        [f"{folder}/trials.csv", f"{folder}/summary.csv"],
    ]


def gaps_behind(experiments, targets, *last):
    """Return an input function: files that are missing where one that comes after is there.

    Snakemake takes a last file for up to date when an earlier one is missing. So it would after a
    job that failed, with new settings, and whose old output it had removed: a rule that names what
    is asked for names the gaps too.
    """

    def gaps(wildcards):
        found = set()
        for name in experiments:
            drawn = [
                file
                for item in targets
                if name in PLAN.targets[item].experiments
                for file in target_files(item, "svg", "png", "csv")
            ]
            after = False
            for stage in reversed(
                [*stages_of(name), drawn, *([file] for file in last)]
            ):
                missing = [file for file in stage if not os.path.exists(file)]
                found.update(missing if after else [])
                after = after or len(missing) < len(stage)
        return sorted(found)

    return gaps


def all_trials():
    """Return the trial tables of all experiments."""
    return [
        f"{RESULTS}/{e.paper}/{name}/trials.csv" for name, e in PLAN.experiments.items()
    ]


def all_printed_values():
    """Return the tables of printed numbers of all papers."""
    return [file for paper in PAPERS for file in PLAN.paper_values(paper)]


def all_target_files(suffix):
    """Return one file of each target."""
    return [file for target in TARGETS for file in target_files(target, suffix)]


def tables_of_experiments():
    """Return what experiments end in: a job done again makes one of them anew."""
    return [
        f"{RESULTS}/{experiment.paper}/{name}/{file}"
        for name, experiment in PLAN.experiments.items()
        for file in ("metrics.h5", "costs.tsv", "trials.csv", "summary.csv")
    ]


def workflow_spec(wildcards):
    """Return what decides the workflow's own part of the archive."""
    from privclust.archive import project_digest

    return project_digest()


def verdicts_spec():
    """Return what decides verdicts besides tables."""
    return canonical_json(PLAN.verdicts_spec())


def page_spec():
    """Return what the page says besides tables and figures."""
    changed = changed_settings(config, "config/config.yaml")
    return canonical_json(PLAN.page_spec() | {"changed": changed})


def memory(wildcards, attempt):
    """Return the memory of a job in MB: twice as much at each new attempt."""
    experiment = PLAN.experiments.get(wildcards.get("experiment"))
    first = experiment.memory_mb if experiment else MEMORY_MB
    return first * 2 ** (attempt - 1)


def runtime(wildcards, attempt):
    """Return the time of a job in minutes: twice as much at each new attempt."""
    return 30 * 2 ** (attempt - 1)
