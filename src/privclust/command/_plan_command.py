"""``privclust plan``: what a budget buys, before it is spent."""

from __future__ import annotations

from privclust.command._arguments import (
    add_command,
    positive_integer,
    positive_number,
    probability,
    seed,
)
from privclust.command._output import print_result, progress, say

_METHODS = "CompressiveKMeans", "DPLloyd", "EUGkM"


def add_to(commands) -> None:
    """``privclust plan``."""
    parser = add_command(
        commands,
        "plan",
        _run,
        summary="predict the error of private k-means, without data",
        description="Predict the error of private k-means by fits to simulated clusters, as many "
        "rows, features and clusters as are told. No data are read, and nothing is spent.",
    )
    add = parser.add_argument
    add("--n", type=positive_integer, required=True, metavar="N", help="rows")
    add("--features", type=positive_integer, required=True, metavar="D")
    add("--clusters", type=positive_integer, required=True, metavar="K")
    add("--epsilon", type=positive_number, required=True, nargs="+", metavar="E")
    add("--delta", type=probability, default=0.0, metavar="P", help="default: 0")
    add(
        "--neighbours",
        choices=("replace_one", "add_remove"),
        default="replace_one",
        help="the change of rows that is hidden; default: one row replaced",
    )
    add("--method", choices=_METHODS, default=_METHODS[0], help=f"default: {_METHODS[0]}")
    add(
        "--separation",
        type=positive_number,
        metavar="S",
        help="how far clusters lie apart; default: 1.5, and below 1 they overlap",
    )
    add("--trials", type=positive_integer, default=10, metavar="T", help="fits; default: 10")
    add("--seed", type=seed, metavar="S", help="to repeat the outcome")


def _run(args) -> None:
    """Simulate, and print a line for each epsilon."""
    if args.clusters >= args.n:
        args.usage_error("--clusters must be less than --n")

    import privclust.kmeans
    from privclust.kmeans import plan

    settings = {} if args.separation is None else {"separation": args.separation}
    n_simulated = 0
    with progress(args.trials * len(args.epsilon), "fits done") as advance:
        for epsilon in args.epsilon:
            outcome = plan(
                args.n,
                args.features,
                args.clusters,
                epsilon,
                args.delta,
                neighbours=args.neighbours,
                estimator=getattr(privclust.kmeans, args.method)(),
                n_trials=args.trials,
                random_state=args.seed,
                progress=advance,
                **settings,
            )
            n_simulated = outcome.n_simulated
            print_result(f"epsilon {epsilon:g}: {outcome}\n")
    rows = f"{n_simulated:,} rows each" + (", noise as of all" if n_simulated < args.n else "")
    say(f"{args.trials} simulated fits of {args.method}, {rows}; your data may be harder")
