"""Audits that stop when they have seen enough: false alarms, and what they save.

    OMP_NUM_THREADS=1 python benchmarks/anytime.py alarms [--audits N]
    OMP_NUM_THREADS=1 python benchmarks/anytime.py savings [CASE ...]

`alarms` audits mechanisms that are exactly as private as claimed, by their likelihood ratio and up
to 2,000 runs on each data set, N times in all, and counts convictions, with a 95 % Clopper-Pearson
interval of their rate. No audit stops because it is close to the claim. `savings` attacks cases of
the audit of all mechanisms with a fixed number of runs and until enough is seen, and prints bounds,
runs and CPU seconds of both.
"""

import argparse
import time

import numpy as np
from audit import TIGHT, attacked
from scipy import stats

from privclust_audit.black_box import audit_mechanism
from privclust_papers.settings.config import load_yaml
from privclust_papers.settings.dotted import load_object

MECHANISMS = ("Laplace", "normal", "randomised response")
N_RUNS = 2_000
CASES = ("control_response", "dpem_joint", "dpsc_gibbs_data", "dpsc_gibbs", "privatemail_code")


def alarms(n_audits):
    """Print convictions of each mechanism, and of all."""
    counts, numbers = [], []
    for seed, name in enumerate(MECHANISMS):
        start = time.process_time()
        draws, log_density, epsilon, delta = TIGHT[name]
        mechanism, ratio = attacked(draws, log_density)
        rng = np.random.default_rng([seed, n_audits])
        numbers.append(n_audits // len(MECHANISMS) + (seed < n_audits % len(MECHANISMS)))
        audits = (
            audit_mechanism(
                mechanism, 0, 1, epsilon, delta, N_RUNS, ratio, rng,
                stopping="anytime", closeness=1.0,
            )
            for _ in range(numbers[-1])
        )  # fmt: skip
        counts.append(sum(audit.verdict == "violated" for audit in audits))
        seconds = time.process_time() - start
        print(f"{name}: {counts[-1]} of {numbers[-1]:,}, {seconds:.0f} CPU-s", flush=True)
    low, high = stats.binomtest(sum(counts), sum(numbers)).proportion_ci(0.95, "exact")
    print(f"all: {sum(counts)} of {sum(numbers):,}: {100 * low:.2f} to {100 * high:.2f} %")


def savings(names):
    """Print what a case costs with either way of stopping."""
    config = load_yaml("config/papers/audit/paper.yaml")
    methods = config["experiments"]["audit_mechanisms"]["methods"]
    for name in names:
        case = load_object(config["methods"][name]["class"])(**methods[name].get("params", {}))
        pair, claim = (case.data, case.neighbour), (case.epsilon, case.delta)
        for stopping in ("fixed", "anytime"):
            result = audit_mechanism(
                case, *pair, *claim, case.n_trials(1.0), case.statistic, 0, stopping=stopping
            )
            print(
                f"{name}, {stopping}: {result.verdict} {result.stopped}, epsilon at least "
                f"{result.epsilon_lower_bound:.3f} of {case.epsilon:g}, {result.n_trials:,} runs, "
                f"{result.cpu_seconds:.1f} CPU-s",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("alarms", "savings"))
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--audits", type=int, default=10_000)
    args = parser.parse_args()
    if args.what == "alarms":
        alarms(args.audits)
    else:
        savings(args.cases)


if __name__ == "__main__":
    main()
