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
_ALL = "all"


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
    add(
        "--method",
        choices=(*_METHODS, _ALL),
        default=_METHODS[0],
        help=f"default: {_METHODS[0]}; {_ALL}: each in turn, and which had the least error",
    )
    add(
        "--separation",
        type=positive_number,
        metavar="S",
        help="how far clusters lie apart; default: 1.5, and below 1 they overlap",
    )
    add(
        "--smallest",
        type=positive_number,
        metavar="W",
        help="part of the rows in one cluster, all others being equal; default: one over K",
    )
    add("--trials", type=positive_integer, default=10, metavar="T", help="fits; default: 10")
    add("--seed", type=seed, metavar="S", help="to repeat the outcome")


def _run(args) -> None:
    """Simulate, and print a line for each epsilon and method."""
    if args.clusters >= args.n:
        args.usage_error("--clusters must be less than --n")
    if args.smallest is not None and args.smallest * args.clusters > 1.0:
        args.usage_error("--smallest must be at most one over --clusters")
    methods = _METHODS if args.method == _ALL else (args.method,)
    with progress(args.trials * len(args.epsilon) * len(methods), "fits done") as advance:
        for epsilon in args.epsilon:
            outcomes = {method: _planned(args, method, epsilon, advance) for method in methods}
            _print_outcomes(epsilon, outcomes)
    n_simulated = max(outcome.n_simulated for outcome in outcomes.values())
    rows = f"{n_simulated:,} rows each" + (", noise as of all" if n_simulated < args.n else "")
    of = "each method" if args.method == _ALL else args.method
    say(f"{args.trials} simulated fits of {of}, {rows}; your data may be harder")


def _planned(args, method, epsilon, advance):
    """Return how simulated fits of a method come out."""
    import privclust.kmeans
    from privclust.kmeans import plan

    optional = {name: getattr(args, name) for name in ("separation", "smallest")}
    return plan(
        args.n,
        args.features,
        args.clusters,
        epsilon,
        args.delta,
        neighbours=args.neighbours,
        estimator=getattr(privclust.kmeans, method)(),
        n_trials=args.trials,
        random_state=args.seed,
        progress=advance,
        **{name: value for name, value in optional.items() if value is not None},
    )


def _print_outcomes(epsilon, outcomes) -> None:
    """Print a line for each method, and which had the least error where there are several."""
    if len(outcomes) == 1:
        (outcome,) = outcomes.values()
        print_result(f"epsilon {epsilon:g}: {outcome}\n")
        return
    for method, outcome in outcomes.items():
        print_result(f"epsilon {epsilon:g}, {method}: {outcome}\n")
    middle = min(outcomes, key=lambda method: outcomes[method].median)
    bad = min(outcomes, key=lambda method: outcomes[method].interval[1])
    least = middle if middle == bad else f"{middle}, and the least of a bad fit: {bad}"
    print_result(f"epsilon {epsilon:g}, the least error: {least}\n")
