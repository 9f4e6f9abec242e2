"""``privclust plan``: expected error and intervals of a budget, before it is spent."""

from __future__ import annotations

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
        choices=tuple(_METHODS),
        help="default: TreeKMeans with one or two features and a positive --delta, otherwise "
        "CompressiveKMeans, as privclust cluster --clusters",
    )
    add(
        "--separation",
        type=positive_number,
        default=1.5,
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
    n_simulated = 0
    say(f"simulating fits of {args.n:,} rows")
    with progress(args.trials * len(args.epsilon) * len(_SHAPES), "fits done") as advance:
        for epsilon in args.epsilon:
            for shape in _SHAPES:
                outcome = _planned(args, epsilon, shape, advance)
                n_simulated = outcome.n_simulated
                print_result(f"epsilon {epsilon:g}, {shape} clusters: {outcome}\n")
            print_result(f"epsilon {epsilon:g}, budget: {outcome.budget()}\n")
    rows = f"{n_simulated:,} rows each" + (", noise as of all" if n_simulated < args.n else "")
    fits = f"{args.trials} simulated fits of {args.method} for each shape"
    say(f"{fits}, {rows}; your data may be harder")


def _planned(args, epsilon, shape, advance):
    """Return the errors of simulated fits, with the method's best noise."""
    import privclust.kmeans
    from privclust.kmeans import plan

    settings, delta = dict(_METHODS[args.method]), args.delta
    if args.method == "DPLloyd" and delta:
        settings["accounting"] = "pld"
    if args.method == "EUGkM":
        delta = 0.0  # a row is in one cell: Laplace noise is the smaller one
    return plan(
        args.n,
        args.features,
        args.clusters,
        epsilon,
        delta,
        neighbours=args.neighbours,
        separation=args.separation,
        smallest=args.smallest,
        shape=shape,
        estimator=getattr(privclust.kmeans, args.method)(**settings),
        n_trials=args.trials,
        random_state=args.seed,
        progress=advance,
    )
