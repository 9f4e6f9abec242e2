"""Power of the privacy audit on Laplace noise that is exactly 1-private.

    OMP_NUM_THREADS=1 python benchmarks/audit.py

The lower bound on epsilon by the number of runs, and by the number of coordinates that share the
loss at 100,000 runs, with the likelihood ratio and with learned statistics; and CPU seconds.
"""

import numpy as np

from privclust.privacy.audit import audit_mechanism, likelihood_ratio


def laplace(n_coordinates):
    """Return a mechanism with noise of scale 1 on each coordinate, and its density's logarithm."""

    def mechanism(x, rng):
        return mechanism.many(x, rng, 1)[0]

    def log_density(outputs, x):
        return -np.abs(outputs - x).sum(axis=-1)

    mechanism.many = lambda x, rng, n: x + rng.laplace(size=(n, n_coordinates))
    log_density.many = log_density
    return mechanism, log_density


def audited(n_coordinates, n_runs):
    """Print what an audit finds with either statistic."""
    mechanism, log_density = laplace(n_coordinates)
    pair = np.zeros(n_coordinates), np.full(n_coordinates, 1.0 / n_coordinates)
    for name, statistic in (("ratio", likelihood_ratio(log_density)), ("learned", None)):
        found = audit_mechanism(mechanism, *pair, 1.0, 0.0, n_runs, statistic, 0)
        print(
            f"{n_runs:>9,} runs, {n_coordinates:>2} coordinates, {name}: epsilon at least "
            f"{found.epsilon_lower_bound:.2f}, {found.cpu_seconds:.1f} CPU-s"
        )


def main():
    for n_runs in (1_000, 10_000, 100_000, 1_000_000):
        audited(1, n_runs)
    for n_coordinates in (2, 4, 10, 50):
        audited(n_coordinates, 100_000)


if __name__ == "__main__":
    main()
