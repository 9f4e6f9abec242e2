"""CPU time, likelihood and memory of EM for Gaussian mixtures against scikit-learn's.

Run: ``OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 python benchmarks/mixtures.py``. Both fit the same data
from the same start for 10 iterations, in turns in one process, after one fit each that compiles or
warms up; the table has the median CPU times and ratio of the pairs, the time of ours for a point
and an iteration, and the largest difference of the mean log-likelihoods of the two. The second
table has the peak resident memory of a process less what is resident before the fit (the data are
in it), divided by the size of the data: an upper bound of what the fit needs. Linux only.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from privclust.mixtures import GaussianMixtureEM, MixtureParameters, sample

N_ITER = 10
PAIRS = 5
# samples, features, components, covariances
PROBLEMS = (
    (256_000, 2, 3, "full"),
    (256_000, 2, 3, "diag"),
    (256_000, 2, 3, "spherical"),
    (24_000, 10, 3, "full"),
)
MEMORY_SAMPLES = 4_000_000


def problem(n, d, k, covariance_type, seed=0):
    """Return samples of overlapping Gaussians and the parameters of a start."""
    rng = np.random.default_rng(seed)
    unit = np.eye(d) if covariance_type == "full" else np.ones(d)
    covariances = np.repeat(unit[None], k, axis=0)
    if covariance_type == "spherical":
        covariances = np.ones(k)
    weights = np.full(k, 1.0 / k)
    truth = MixtureParameters(
        weights, 1.5 * rng.standard_normal((k, d)), covariances, covariance_type
    )
    X, _ = sample(truth, n, rng)
    return X, MixtureParameters(weights, X[:k], covariances, covariance_type)


def models(start, n_iter=N_ITER):
    """Return our estimator and scikit-learn's with the same start."""
    common = {
        "n_components": start.n_components,
        "covariance_type": start.covariance_type,
        "weights_init": start.weights,
        "means_init": start.means,
        "max_iter": n_iter,
        "tol": 0.0,
        "reg_covar": 1e-6,
    }
    # every covariance of the start is the identity, and so is its inverse
    theirs = GaussianMixture(
        precisions_init=start.covariances, init_params="random_from_data", **common
    )
    return GaussianMixtureEM(covariances_init=start.covariances, **common), theirs


def cpu_time(model, X):
    """Return the CPU time of a fit."""
    begin = time.process_time()
    model.fit(X)
    return time.process_time() - begin


def compare(n, d, k, covariance_type):
    """Return median CPU times, median ratio and the largest difference of log-likelihoods."""
    X, start = problem(n, d, k, covariance_type)
    ours, theirs = models(start)
    cpu_time(ours, X)
    cpu_time(theirs, X[:1000])
    times = np.array([(cpu_time(ours, X), cpu_time(theirs, X)) for _ in range(PAIRS)])
    difference = max(
        abs(ours.lower_bound_ - theirs.lower_bound_), abs(ours.score(X) - theirs.score(X))
    )
    return *np.median(times, axis=0), np.median(times[:, 1] / times[:, 0]), difference


def resident_memory():
    """Return the resident memory now, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def peak_memory():
    """Return the largest resident memory so far, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def memory_growth(name, d, k, covariance_type):
    """Return peak memory less that before the fit, over the size of the data."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    small, start = problem(1000, d, k, covariance_type)
    model = models(start, n_iter=2)[("ours", "scikit-learn").index(name)]
    model.fit(small)  # compiles
    X = np.random.default_rng(1).standard_normal((MEMORY_SAMPLES * 2 // d, d))
    before = resident_memory()
    model.fit(X)
    return (peak_memory() - before) / X.nbytes


def main():
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"{'':34s} {'ours':>8s} {'sklearn':>8s} {'ratio':>6s} {'ns/pt':>6s} {'log-lik.':>8s}")
    for n, d, k, covariance_type in PROBLEMS:
        ours, theirs, ratio, difference = compare(n, d, k, covariance_type)
        nanoseconds = 1e9 * ours / n / N_ITER
        print(
            f"{covariance_type:9s} N={n:<7d} d={d:<2d} K={k:<3d}     {ours:7.3f}s {theirs:7.3f}s "
            f"{ratio:6.1f} {nanoseconds:6.1f} {difference:8.1e}"
        )
    print(f"\n{'peak memory / data':34s} {'ours':>8s} {'sklearn':>8s}")
    context = multiprocessing.get_context("spawn")
    for _, d, k, covariance_type in PROBLEMS:
        growth = []
        for name in ("ours", "scikit-learn"):
            with context.Pool(1) as pool:
                growth.append(pool.apply(memory_growth, (name, d, k, covariance_type)))
        print(f"{covariance_type:9s} d={d:<2d} K={k:<15d}   {growth[0]:8.3f} {growth[1]:8.3f}")


if __name__ == "__main__":
    main()
