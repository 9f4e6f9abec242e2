"""What each stage and constant of an estimator brings: loss and time without, or changed.

``OMP_NUM_THREADS=1 PYTHONPATH=benchmarks python benchmarks/ablation.py --log FILE`` leaves out one
stage of `CompressiveKMeans` at a time, then halves and doubles the numbers of one module at a time.
``--each`` goes on with single constants, of the modules whose numbers together change the mean loss
by more than 1.5 standard errors, in this log or in that of ``--screened``. What is done stands in
the log and is not done again. ``--table`` prints the table of a log, ``--into
docs/results/ablation.md`` writes it there.

A change is measured on the half "choose" of `collection`, with the same seeds as without the
change. The effect on a data set is the mean of 100 log(loss with the change / loss without), over
epsilons and seeds. The table has the mean effect over data sets with its standard error, and the
data set with the largest effect. A number between 0 and 1 stays between: where twice x is 1 or
more, it is replaced by (1 + x) / 2.

``--sketch-only`` measures the stages in fits without rounds, whose centers are those that `decode`
finds in a sketch. ``--epsilons`` and ``--only`` choose other budgets and some stages.

``--subject`` measures subspaces or mixtures, of `ablation_subjects`, in place of
`CompressiveKMeans`.

``--uneven`` measures instead the stages that are for a small cluster far from all others, which no
data set of that half has: squared error over that of the true centers, on the rows of `frontier`.

Sizes of tiles, which compiled loops read, are not among the constants. Modules that do not exist
are passed over, so that the script also measures older versions, by ``PYTHONPATH=OLD/src``.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import collection
import frontier
import numpy as np
import pandas as pd
from ablation_subjects import SUBJECTS, Cell, Subject
from scratch import markdown, write_into

from privclust.core.lloyd import nearest_center_statistics
from privclust.decoding import (
    _mixture_decoder,
    _mixture_fit,
    _moments,
    _sizes,
    _sketch_decoding,
)
from privclust.decoding._elimination import eliminated
from privclust.decoding._gaussians import boxed_points, paired_points
from privclust.decoding._mixture_fit import MixtureFit
from privclust.kmeans import CompressiveKMeans, _compressive, _rounds

MODULES = (
    *("kmeans._compressive", "kmeans.last_rounds", "kmeans._rounds", "kmeans._noise_check"),
    *("decoding._sizes", "decoding._moments", "decoding._posterior", "decoding._elimination"),
    *("decoding._ellipsoids", "decoding._gaussians", "decoding._mixture_fit"),
    *("decoding._mixture_decoder", "decoding._sketch_decoding", "sketches._frequencies"),
)
EPSILONS = (1.0, 4.0)
FACTORS = (0.5, 2.0)
SEEDS, N_UNEVEN = 2, 3
LEAST = 1.5  # standard errors of a module's effect, for which its single constants are measured


def constants(module: str) -> dict[str, object]:
    """Return the numbers and tuples of numbers that a module defines, loops' numbers left out."""
    loaded = importlib.import_module(f"privclust.{module}")
    tree = ast.parse(Path(loaded.__file__).read_text(encoding="utf-8"))
    compiled = {
        name.id
        for part in tree.body
        if isinstance(part, ast.FunctionDef) and part.decorator_list
        for name in ast.walk(part)
        if isinstance(name, ast.Name)
    }
    names = [
        name.id
        for part in tree.body
        if isinstance(part, ast.Assign)
        for name in ast.walk(part.targets[0])
        if isinstance(name, ast.Name) and name.id.upper() == name.id and name.id not in compiled
    ]
    values = {name: getattr(loaded, name) for name in names}
    return {name: value for name, value in values.items() if _are_numbers(value)}


def _are_numbers(value: object) -> bool:
    """Return whether a value is a number, or a tuple of numbers."""
    if isinstance(value, tuple):
        return bool(value) and all(map(_are_numbers, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def changed(value, factor):
    """Return a number, or each of a tuple, times a factor."""
    if isinstance(value, tuple):
        return tuple(changed(one, factor) for one in value)
    if isinstance(value, int):
        return max(round(value * factor), 1)
    if 0.0 < value < 1.0 and value * factor >= 1.0:
        return (1.0 + value) / 2.0
    return value * factor


@contextmanager
def with_changes(module: str, names: list[str], factor: float) -> Iterator[None]:
    """Change constants of a module, there and where they were imported from it."""
    if not names:
        yield
        return
    source = sys.modules[f"privclust.{module}"]
    values = {name: getattr(source, name) for name in names}
    places = [
        (other, name)
        for key, other in list(sys.modules.items())
        if key.startswith("privclust.")
        for name, value in values.items()
        if (other is source or not name.startswith("_")) and vars(other).get(name) is value
    ]
    try:
        for place, name in places:
            setattr(place, name, changed(values[name], factor))
        yield
    finally:
        for place, name in places:
            setattr(place, name, values[name])


def of_start(weights, centers, spreads, start, rng, tolerance=0.0, box=None):
    """Return the atoms' own centers, in place of `kmeans_of_mixture`."""
    n_points = _mixture_decoder.POINTS_PER_CLUSTER * len(start)
    law = weights / weights.sum(), centers, spreads, n_points
    points = boxed_points(*law, box, rng) if box else paired_points(*law, rng)
    counts, _, inertia = nearest_center_statistics(points, start)
    return start, counts / len(points), inertia / len(points)


def search_alone(problem, n_clusters, penalty, rng, search=MixtureFit.search):
    """Return what `MixtureFit.search` does, without a density of more atoms than clusters."""
    mixture, residual, _, _ = search(problem, n_clusters, penalty, rng)
    return mixture, residual, mixture, np.inf


def by_least_squares(features, frequencies, noise, box, rng, of_count=0.0):
    """Return what `estimate_moments` does, from a least-squares fit in place of a posterior."""
    moments = _moments._of_each_feature(None, features, frequencies, noise, box, rng)
    return _moments._with_far_rows(moments, features, frequencies, noise, box)


def common_variance(power, frequencies, variance, noise):
    """Return the common variance of the features, in place of one for each."""
    return np.full(len(frequencies), variance)


def largest_atoms(products, correlations, n_left, least):
    """Return what `eliminated` does, by deleting all atoms but those of the largest weights."""
    if not n_left:  # the number of clusters is counted
        return eliminated(products, correlations, n_left, least)
    weights, _ = eliminated(products, correlations, 0, -np.inf)
    kept = np.sort(np.argsort(-weights, kind="stable")[:n_left])
    return eliminated(products[np.ix_(kept, kept)], correlations[kept], 0, -np.inf)[0], kept


def as_counted(clusters, released, counted=_rounds._Clusters._counted):
    """Return what `_counted` does, without shrinking the averages towards equal numbers."""
    noise = counted(clusters, released)
    least = max(_rounds._LEAST_PART * clusters._equal, 1.0)
    clusters.rows = np.maximum(clusters._means, least)
    return noise


# name -> what is set in place of an attribute; or parameters of the estimator
STAGES = {
    "a last round": {"last_round": False},
    "the projection": {"n_directions": "all"},
    "a variance of each cluster": (
        _compressive,
        "decode",
        partial(_sketch_decoding.decode, spread="shared"),
    ),
    "covariances": (CompressiveKMeans, "_has_covariances", lambda model, d: False),
    "several starts": (_sketch_decoding, "_starts_of_gaussians", lambda k: 1),
    "a second search": (_sketch_decoding, "_is_poor", lambda decoded, sketch: False),
    "repairs of atoms": (MixtureFit, "repaired", lambda fit, mix, residual, *how: (mix, residual)),
    "more atoms than clusters": (MixtureFit, "search", search_alone),
    "drawing back to the whole": (MixtureFit, "shrunk", lambda fit, density, *how: density),
    "the posterior of the moments": (_sketch_decoding, "estimate_moments", by_least_squares),
    "variances of single features": (_moments, "_variances", common_variance),
    "k-means of the density": (_mixture_decoder, "kmeans_of_mixture", of_start),
    "far rows": (_moments, "_with_far_rows", lambda moments, *how: moments),
    "frequencies of all scales": (_sizes, "_FEW_FEATURES", 0),
    "elimination one by one": (_mixture_fit, "eliminated", largest_atoms),
    "the pilot": {"variance": 0.02},
    "splits in rounds": (_rounds, "_SPLITTING", ()),
    "growth of the radius": (_rounds, "_WIDEST", 1.0),
    "shrunk counts": (_rounds._Clusters, "_counted", as_counted),
}
OF_ROUNDS = ("a last round", "the projection")


def kmeans_cell(table: collection.Table) -> Cell:
    """Return a data set of the collection."""
    X = table.scaled()

    def fit(epsilon, seed, parameters):
        how = {"epsilon": epsilon, "delta": collection.DELTA, "bounds": (-1.0, 1.0)}
        how |= {"random_state": seed, **parameters}
        if how.get("n_directions") == "all":
            how["n_directions"] = X.shape[1]
        return CompressiveKMeans(table.k, **how).fit(X)

    return Cell(table.name, fit, lambda model: collection.loss(X, model.cluster_centers_))


def kmeans_cells() -> list[Cell]:
    """Return the half "choose" of the collection."""
    return [kmeans_cell(table) for table in collection.tables("choose")]


KMEANS = Subject(MODULES, STAGES, kmeans_cells)


@contextmanager
def without(change: dict[str, object] | tuple[object, str, object]) -> Iterator[dict[str, object]]:
    """Leave out a stage; gives parameters of the estimator."""
    if isinstance(change, dict):
        yield change
        return
    place, name, value = change
    before = getattr(place, name)
    setattr(place, name, value)
    try:
        yield {}
    finally:
        setattr(place, name, before)


def losses(
    cells: list[Cell], epsilons: list[float], seeds: int, parameters: dict[str, object]
) -> tuple[np.ndarray, float]:
    """Return losses (seeds, data sets and epsilons) and the CPU seconds of all fits."""
    found, cpu = np.empty((seeds, len(cells) * len(epsilons))), 0.0
    for seed in range(seeds):
        of_seed = ((cell, epsilon) for cell in cells for epsilon in epsilons)
        for place, (cell, epsilon) in enumerate(of_seed):
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = cell.fit(epsilon, seed, parameters)
            cpu += time.process_time() - start
            found[seed, place] = cell.loss(model)
    return found, cpu


def uneven() -> str:
    """Return how well small clusters far from a large one are found without a stage, as text."""
    table = []
    for left_out in ((), ("far rows",), ("a second search",), ("far rows", "a second search")):
        cells = [" and ".join(left_out) or "nothing"]
        for d, k in frontier.UNEVEN:
            for part, epsilon in frontier.UNEVEN_PARTS:
                ratios = []
                for seed in range(N_UNEVEN):
                    X, places = frontier.uneven_rows(d, k, part, seed)
                    how = {"epsilon": epsilon, "delta": collection.DELTA, "bounds": (-1.0, 1.0)}
                    with ExitStack() as stages:
                        for stage in left_out:
                            stages.enter_context(without(STAGES[stage]))
                        model = CompressiveKMeans(k, **how, random_state=seed).fit(X)
                    found = collection.loss(X, model.cluster_centers_)
                    ratios.append(found / collection.loss(X, places))
                cells.append(f"{np.median(ratios):.2f} / {max(ratios):.2f}")
        table.append(cells)
        print(*cells, flush=True)
    heads = [
        f"d = {d}, k = {k}, {part:.0%}, epsilon = {epsilon:g}"
        for d, k in frontier.UNEVEN
        for part, epsilon in frontier.UNEVEN_PARTS
    ]
    columns = ["left out", *heads]
    # a data set a line: twelve columns would be too wide
    turned = pd.DataFrame(table, columns=columns).set_index("left out").T.reset_index(names="data")
    return markdown(turned)


def plan(
    subject: Subject, log: pd.DataFrame, how: argparse.Namespace
) -> Iterator[tuple[str, list[str], float]]:
    """Return the changes to measure: module, constants and factor, which is 0 for a stage."""
    if not how.each:
        of_rounds = OF_ROUNDS if how.sketch_only else ()
        names = how.only or [name for name in subject.stages if name not in of_rounds]
        yield from (("stage", [name], 0.0) for name in names)
    if how.sketch_only or how.only:
        return
    for module in subject.modules:
        if importlib.util.find_spec(f"privclust.{module}") is None:
            continue
        names = list(constants(module))
        if not names:
            continue
        if not how.each:
            yield from ((module, names, factor) for factor in FACTORS)
        elif log[log.module.eq(module)].moved.any():
            yield from ((module, [name], factor) for name in names for factor in FACTORS)


def read(file: Path, names: list[str]) -> pd.DataFrame:
    """Return the changes of a log: effect and standard error in per cent, and CPU time.

    `names` are those of the data sets.
    """
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []
    base = next((row for row in rows if not row["names"]), None)
    columns = ["module", "names", "factor", "effect", "error", "most", "time", "moved"]
    effects = []
    for row in rows:
        if row is base:
            continue
        if "failed" in row:
            told = row["module"], row["names"], row["factor"], np.nan, np.nan, "", np.nan, True
            effects.append(told)
            continue
        ratios = 100.0 * np.log(np.array(row["losses"]) / np.array(base["losses"])).mean(axis=0)
        of_sets = ratios.reshape(len(names), -1).mean(axis=1)
        error = of_sets.std(ddof=1) / np.sqrt(len(of_sets))
        effect, of_time = of_sets.mean(), 100.0 * (row["cpu_s"] / base["cpu_s"] - 1.0)
        place = int(np.abs(of_sets).argmax())
        most = f"{names[place]} {of_sets[place]:+.1f}" if of_sets[place] else ""
        moved = bool(abs(effect) > LEAST * error)
        told = row["module"], row["names"], row["factor"], effect, error, most, of_time, moved
        effects.append(told)
    return pd.DataFrame(effects, columns=columns)


def shown(effects: pd.DataFrame) -> str:
    """Return the table of effects as text."""
    table = effects.assign(
        names=[
            name if stage or " " not in name else "all"
            for name, stage in zip(effects.names, effects.module.eq("stage"), strict=True)
        ],
        effect=[
            "an error" if np.isnan(e) else f"{e:+.2f} ± {s:.2f}"
            for e, s in zip(effects.effect, effects.error, strict=True)
        ],
        time=["" if np.isnan(t) else f"{t:+.0f}" for t in effects.time],
        factor=["left out" if factor == 0.0 else factor for factor in effects.factor],
    )
    header = ["module", "constant", "times", "loss, %", "largest, %", "time, %"]
    return markdown(table.drop(columns=["error", "moved"]).set_axis(header, axis=1))


def measure(file: Path, subject: Subject, how: argparse.Namespace) -> None:
    """Measure what the log does not have yet, and write it there, change by change."""
    always = STAGES["a last round"] if how.sketch_only else {}
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []
    settings = {"epsilons": [*how.epsilons], "seeds": how.seeds, "sketch_only": how.sketch_only}
    if rows and (of_log := {name: rows[0].get(name) for name in settings}) != settings:
        sys.exit(f"{file}: has losses of {of_log}, not of {settings}; name another log")
    cells = subject.cells()
    done = {(row["module"], row["names"], row["factor"]) for row in rows}
    screened = read(how.screened or file, [cell.name for cell in cells])
    changes = [("", [], 1.0), *plan(subject, screened, how)]
    if not done:
        losses(cells[:1], how.epsilons, 1, {})  # compiles loops
    for module, names, factor in changes:
        key = module, " ".join(names), factor
        if key in done:
            continue
        row = dict(zip(("module", "names", "factor"), key, strict=True)) | settings
        try:
            left_out = subject.stages[names[0]] if module == "stage" else None
            with (
                without(left_out) if left_out else with_changes(module, names, factor) as parameters
            ):
                parameters = always | (parameters or {})
                found, cpu = losses(cells, how.epsilons, how.seeds, parameters)
            row |= {"losses": found.tolist(), "cpu_s": cpu}
        except Exception as error:  # a constant beyond what its formula takes
            row["failed"] = type(error).__name__
        with file.open("a", encoding="utf-8") as log:
            log.write(json.dumps(row) + "\n")
        print(*key, row.get("failed", f"{row.get('cpu_s', 0.0):.0f} s"), flush=True)


def main() -> None:
    """Measure, or show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--subject", choices=["kmeans", *SUBJECTS], default="kmeans")
    parser.add_argument("--uneven", action="store_true", help="small clusters far from a large one")
    parser.add_argument("--sketch-only", action="store_true", help="stages, without rounds")
    parser.add_argument("--each", action="store_true", help="single constants, not modules")
    parser.add_argument("--screened", type=Path, help="log that says which modules move losses")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--only", nargs="+", help="these stages")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--into", type=Path)
    parser.add_argument("--mark", default="after", help="of the table in the document")
    arguments = parser.parse_args()
    if arguments.log is None and not arguments.uneven:
        parser.error("--log: name a file")
    if arguments.uneven:
        warnings.simplefilter("ignore")
        text = uneven()
    else:
        subject = {"kmeans": KMEANS, **SUBJECTS}[arguments.subject]
        if unknown := set(arguments.only or ()) - set(subject.stages):
            parser.error(
                f"--only: no stage {min(unknown)!r}; there are {', '.join(subject.stages)}"
            )
        if not (arguments.table or arguments.into):
            measure(arguments.log, subject, arguments)
        text = shown(read(arguments.log, [cell.name for cell in subject.cells()]))
    print(text)
    if arguments.into:
        write_into(arguments.into, arguments.mark, text)


if __name__ == "__main__":
    main()
