"""``privclust plan``: expected error and intervals of a budget, before it is spent."""

from __future__ import annotations

from privclust.command._declared_columns import MISSING_SHARE, part_of_budget
from privclust.command.arguments import (
    add_command,
    add_neighbours,
    positive_integer,
    positive_number,
    probability,
    seed,
)
from privclust.command.output import print_result, progress, say

_METHODS = {  # parameters of each method, in addition to the budget
    "CompressiveKMeans": {},
    "TreeKMeans": {},
    "DPLloyd": {"init": "separated"},
    "EUGkM": {},
}
_SHAPES = ("round", "skewed")
_ALL = "all"


def add_to(commands) -> None:
    parser = add_command(
        commands,
        "plan",
        _run,
        summary="predict error and intervals of private k-means, without data",
        description="Predict the error of private k-means, the width of its 95 % intervals and "
        "the share of clusters whose intervals are marked as unreliable, by fits to simulated "
        "round and skewed clusters. No data are read, and no budget is spent.",
    )
    add = parser.add_argument
    add("--n", type=positive_integer, required=True, metavar="N", help="number of rows")
    add("--features", type=positive_integer, required=True, metavar="D", help="number of features")
    add("--clusters", type=positive_integer, required=True, metavar="K")
    add("--epsilon", type=positive_number, required=True, nargs="+", metavar="E")
    add("--delta", type=probability, default=0.0, metavar="P", help="default: 0")
    add_neighbours(add)
    add(
        "--method",
        choices=(*_METHODS, _ALL),
        help="default: TreeKMeans with one or two features and a positive --delta, otherwise "
        f"CompressiveKMeans, as privclust cluster --clusters; {_ALL}: try each, and name the one "
        "with the least error",
    )
    add(
        "--separation",
        type=positive_number,
        metavar="S",
        help="distance between clusters; default: 1.5; below 1 they overlap",
    )
    add(
        "--smallest",
        type=positive_number,
        metavar="W",
        help="share of the rows in the smallest cluster; the others are equal; default: one over K",
    )
    add(
        "--columns",
        type=positive_integer,
        metavar="C",
        help="number of columns of a table for privclust cluster: reserves its budget for counts "
        "of missing entries, and prints their error",
    )
    add(
        "--trials",
        type=positive_integer,
        default=10,
        metavar="T",
        help="number; default: 10",
    )
    add("--seed", type=seed, metavar="S", help="seed, for repeatable results")


def _run(args) -> None:
    if args.clusters >= args.n:
        args.usage_error("--clusters must be less than --n")
    if args.smallest is not None and args.smallest * args.clusters > 1.0:
        args.usage_error("--smallest must be at most one over --clusters")
    if args.method is None:
        from privclust.kmeans._private import method_for

        is_tree = method_for(args.features, args.delta) == "tree"
        args.method = "TreeKMeans" if is_tree else "CompressiveKMeans"
    methods = tuple(_METHODS) if args.method == _ALL else (args.method,)
    n_simulated, n_fits = 0, args.trials * len(args.epsilon) * len(methods) * len(_SHAPES)
    say(f"simulating fits of {args.n:,} rows")
    with progress(n_fits, "fits done") as advance:
        for epsilon in args.epsilon:
            spent = {}
            for shape in _SHAPES:
                outcomes = {}
                for method in methods:
                    outcome = _printed(args, method, epsilon, shape, len(methods), advance)
                    if outcome is not None:
                        outcomes[method], n_simulated = outcome, outcome.n_simulated
                if len(outcomes) > 1:
                    least = _least(outcomes)
                    print_result(
                        f"epsilon {epsilon:g}, {shape} clusters, the least error: {least}\n"
                    )
                spent |= {method: outcome.budget() for method, outcome in outcomes.items()}
            for method, budget in spent.items():
                name = f", {method}" if len(methods) > 1 else ""
                print_result(f"epsilon {epsilon:g}{name}, budget: {budget}\n")
            if args.columns is not None:
                print_result(f"epsilon {epsilon:g}, {_counts(args, epsilon)}\n")
    rows = f"{n_simulated:,} rows each" + (", noise as of all" if n_simulated < args.n else "")
    of = "each method" if args.method == _ALL else args.method
    say(f"{args.trials} simulated fits of {of} for each shape, {rows}; your data may be harder")


def _printed(args, method: str, epsilon: float, shape: str, n_methods: int, advance):
    """Print and return the outcome of a method; None if it is impossible and others remain."""
    where = f"epsilon {epsilon:g}{f', {method}' if n_methods > 1 else ''}, {shape} clusters"
    try:
        outcome = _planned(args, method, epsilon, shape, advance)
    except ValueError as error:
        if n_methods == 1:
            raise
        print_result(f"{where}: not possible: {error}\n")
        return None
    print_result(f"{where}: {outcome}\n")
    return outcome


def _counts(args, epsilon: float) -> str:
    """Return the budget share of counts of missing entries, and their error."""
    from privclust.preprocessing import CountsByColumn

    share = part_of_budget(epsilon, args.delta, MISSING_SHARE)
    noise = CountsByColumn.of(args.columns, *share, args.neighbours).noise
    return (
        f"{100 * MISSING_SHARE:.0f} % of the whole budget for counts of missing entries, the rest "
        f"as above: epsilon {share[0]:.3g} on its own, with noise of {noise.deviation:,.0f} rows "
        "(standard deviation) on each count"
    )


def _planned(args, method, epsilon, shape, advance):
    """Return the errors of simulated fits of a method, with its best noise."""
    import privclust.kmeans
    from privclust.kmeans import plan

    settings, delta = dict(_METHODS[method]), args.delta
    if args.columns is not None:
        epsilon, _ = part_of_budget(epsilon, delta, 1.0 - MISSING_SHARE)
    if method == "DPLloyd" and delta:
        settings["accounting"] = "pld"
    if method == "EUGkM":
        delta = 0.0  # a row is in one cell: Laplace noise is the smaller one
    optional = {name: getattr(args, name) for name in ("separation", "smallest")}
    return plan(
        args.n,
        args.features,
        args.clusters,
        epsilon,
        delta,
        neighbours=args.neighbours,
        shape=shape,
        estimator=getattr(privclust.kmeans, method)(**settings),
        n_trials=args.trials,
        random_state=args.seed,
        progress=advance,
        **{name: value for name, value in optional.items() if value is not None},
    )


def _least(outcomes) -> str:
    """Return the method with the least error, for a median fit and a bad fit."""
    middle = min(outcomes, key=lambda method: outcomes[method].median)
    bad = min(outcomes, key=lambda method: outcomes[method].interval[1])
    return middle if middle == bad else f"{middle}, and in a bad fit {bad}"
