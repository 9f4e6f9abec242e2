"""False alarms of the privacy audit, and its power.

    OMP_NUM_THREADS=1 python benchmarks/audit.py

False alarms: how many audits of mechanisms that are exactly as private as claimed convict them, by
mechanism, statistic and number of runs on each data set, with 95 % Clopper-Pearson intervals.
Power: the lower bound on epsilon for Laplace noise that is exactly 1-private, by the number of
runs, and by the number of coordinates that share the loss at 100,000 runs; and CPU seconds.
"""

import time

import numpy as np
from scipy import stats

from privclust.privacy.measurements import analytic_gaussian_sigma
from privclust.privacy.sensitivity import Sensitivity
from privclust_audit.black_box import audit_mechanism, likelihood_ratio

DELTA = 0.01  # of normal noise; the other mechanisms have none
SIGMA = analytic_gaussian_sigma(Sensitivity(1.0, "l2", "add-remove", "by hand"), 1.0, DELTA)
TRUTH = np.e / (1 + np.e)  # randomised response's probability of a true answer
SELECTION = np.exp([[0.0, 0.0, 0.0, 0.0], [0.5, -0.5, -0.5, -0.5]])  # scores of sensitivity 1
SELECTION /= SELECTION.sum(axis=1, keepdims=True)
SELECTION_LOSS = float(np.abs(np.log(SELECTION[0] / SELECTION[1])).max())  # 0.645: less than 1
TIGHT = {  # draws, log-density, epsilon, delta
    "Laplace": (
        lambda x, rng, n: x + rng.laplace(size=n),
        lambda y, x: -np.abs(y - x),
        1.0,
        0.0,
    ),
    "normal": (
        lambda x, rng, n: x + rng.normal(scale=SIGMA, size=n),
        lambda y, x: -(((y - x) / SIGMA) ** 2) / 2,
        1.0,
        DELTA,
    ),
    "randomised response": (
        lambda x, rng, n: np.where(rng.random(n) < TRUTH, x, 1 - x),
        lambda y, x: np.where(y == x, 1.0, 0.0),
        1.0,
        0.0,
    ),
    "exponential": (
        lambda x, rng, n: rng.choice(4, p=SELECTION[x], size=n),
        lambda y, x: np.log(SELECTION[x])[y],
        SELECTION_LOSS,
        0.0,
    ),
}
AUDITS = {  # statistic, runs: how many audits of each mechanism
    ("ratio", 100): 2000,
    ("ratio", 1_000): 2000,
    ("ratio", 10_000): 1000,
    ("learned", 1_000): 100,
    ("learned", 10_000): 50,
}


def attacked(draws, log_density, data=0, neighbour=1):
    """Return a mechanism from its draws, and the likelihood ratio of two data sets."""

    def mechanism(x, rng):
        return draws(x, rng, 1)[0]

    mechanism.many = draws
    return mechanism, likelihood_ratio(log_density, data, neighbour)


def laplace(n_coordinates):
    """Return noise of scale 1 on each coordinate, and the likelihood ratio."""
    return attacked(
        lambda x, rng, n: x + rng.laplace(size=(n, n_coordinates)),
        lambda y, x: -np.abs(y - x).sum(axis=-1),
        0.0,
        1.0 / n_coordinates,
    )


def false_alarms(which, n_runs, n_audits):
    """Print a row of the table: convictions of each mechanism, and of all, with intervals."""
    start = time.process_time()
    rng = np.random.default_rng([n_runs, n_audits])
    counts = []
    for draws, log_density, epsilon, delta in TIGHT.values():
        mechanism, ratio = attacked(draws, log_density)
        statistic = ratio if which == "ratio" else None
        audits = (
            audit_mechanism(mechanism, 0, 1, epsilon, delta, n_runs, statistic, rng)
            for _ in range(n_audits)
        )
        counts.append(sum(audit.verdict == "violated" for audit in audits))
    total = n_audits * len(TIGHT)
    low, high = stats.binomtest(sum(counts), total).proportion_ci(0.95, "exact")
    print(
        f"{which:>7}, {n_runs:>6,} runs, {n_audits:>5,} audits each: "
        + ", ".join(f"{name} {count}" for name, count in zip(TIGHT, counts, strict=True))
        + f"; {sum(counts)} of {total:,}, {100 * low:.2f} to {100 * high:.2f} %, "
        f"{time.process_time() - start:.0f} CPU-s",
        flush=True,
    )


def audited(n_coordinates, n_runs):
    """Print what an audit finds with either statistic."""
    mechanism, ratio = laplace(n_coordinates)
    pair = np.zeros(n_coordinates), np.full(n_coordinates, 1.0 / n_coordinates)
    for name, statistic in (("ratio", ratio), ("learned", None)):
        audit = audit_mechanism(mechanism, *pair, 1.0, 0.0, n_runs, statistic, 0)
        print(
            f"{n_runs:>9,} runs, {n_coordinates:>2} coordinates, {name}: epsilon at least "
            f"{audit.epsilon_lower_bound:.2f}, {audit.cpu_seconds:.1f} CPU-s",
            flush=True,
        )


def main():
    for (which, n_runs), n_audits in AUDITS.items():
        false_alarms(which, n_runs, n_audits)
    for n_runs in (1_000, 10_000, 100_000, 1_000_000):
        audited(1, n_runs)
    for n_coordinates in (2, 4, 10, 50):
        audited(n_coordinates, 100_000)


if __name__ == "__main__":
    main()
