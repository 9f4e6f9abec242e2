"""What post-processing of noisy second moments buys: tables for PrivatePCA and SuLQKPlanes.

    OMP_NUM_THREADS=1 python benchmarks/nuclear_norm.py

All columns of a row spend the same privacy: delta = 1e-6, rows replaced. 24 seeds, on none of which
anything was chosen.

*Principal components* of 5,000 rows of the unit ball: near three random planes (mixture), or normal
along random axes of deviations that fall as 1/i (falling). Root mean squared errors, in thousandths
of n: of the squares that the first three components capture, and of the second moments in Frobenius
norm. "projected": onto the positive semidefinite matrices with a nuclear norm of at most the noisy
trace. "low rank": eigenvalue y becomes sqrt(y^2 - 2 sigma^2 d), which is best for few large ones
among many zeros as d grows. "Stein": its unbiased estimate in the order of the eigenvalues.
"estimated": that, projected; what PrivatePCA has.

*SuLQ*: mean (median) Wasserstein distances to the true subspaces. One run of 10 rounds: the last.
One of 30: the last; the last with all directions whose eigenvalues the joint projection of the k
matrices cuts to zero taken from the round before; the mean of 15 rounds; the mean of 15 that are
projected first. And 5 runs of 10 rounds, of which one is taken by the sum of its leading
eigenvalues: noisy, jointly projected, without their bias (Stein), or by the truth, which is not
private; then the mean of the last 5 rounds, and the run taken by the mean's eigenvalues.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import math

import numpy as np
from scipy.optimize import isotonic_regression

from privclust.core.grassmann import principal_bases, random_bases
from privclust.core.second_moments import in_units, second_moments, unit
from privclust.metrics import wasserstein_distance
from privclust.privacy.measurements import second_moment_noise
from privclust.privacy.spectra import estimated_moments, onto_nuclear_ball
from privclust.subspaces._exact_moments import moments_by_subspace
from privclust.synthetic.subspaces import subspace_mixture

SEEDS = range(1000, 1024)
DELTA = 1e-6
N_ROWS, FEATURES, N_COMPONENTS = 5000, (6, 20, 100), 3
MIXTURES = ((5000, 3, 6, 2, 0.02), (3000, 3, 8, 4, 0.05), (5000, 4, 20, 3, 0.05))
"""Of n, k, d, q and the deviation of noise."""
EPSILONS = (0.3, 1.0, 3.0, 10.0)
_SLIGHTLY = 1e-9  # what lets directions of eigenvalue zero be told apart, and no others


def in_ball(X):
    """Return rows, longer ones drawn in."""
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)


def rows_of(kind, d, rng):
    """Return rows of the unit ball."""
    if kind == "mixture":
        return in_ball(subspace_mixture(N_ROWS, 3, d, 2, rng, 0.05)[0])
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return in_ball(rng.standard_normal((N_ROWS, d)) * 0.6 / np.arange(1, d + 1) @ turn)


def eigenvalue_rules(values, noise):
    """Return estimates of eigenvalues from those of a noisy matrix, by name."""
    gaps = values[:, None] - values
    np.fill_diagonal(gaps, math.inf)
    unbiased = values - noise.sigma**2 * (1.0 / gaps).sum(axis=1)
    squares = values**2 - 2.0 * noise.sigma**2 * len(values)
    return {
        "noisy": values,
        "projected": onto_nuclear_ball(values, values.sum()),
        "low rank": np.sqrt(np.maximum(squares, 0.0)) * (values > 0),
        "Stein": isotonic_regression(unbiased).x,
    }


def errors_of_estimates(kind, d, epsilon):
    """Return root mean squared errors of (captured squares, second moments), by rule."""
    noise = second_moment_noise(d, "replace_one", epsilon, DELTA)
    squared = {}
    for seed in SEEDS:
        rng = np.random.default_rng([seed, d])
        exact = second_moments(rows_of(kind, d, rng), unit(1.0, d))
        noisy = noise.release(exact[None], rng)[0]
        M = np.asarray(exact)
        values, vectors = np.linalg.eigh(noisy)
        rules = eigenvalue_rules(values, noise)
        estimates = {name: vectors * rule @ vectors.T for name, rule in rules.items()}
        estimates["estimated"] = estimated_moments(noisy, noise)
        top = vectors[:, -N_COMPONENTS:]
        for name, estimate in estimates.items():
            off = estimate - M
            captured = np.einsum("ij,ij->j", top, off @ top)
            squared.setdefault(name, []).append(((captured**2).mean(), (off**2).sum()))
    return {name: np.sqrt(np.mean(each, axis=0)) / N_ROWS for name, each in squared.items()}


def print_table(title, names, rows):
    """Print rows of labels and of cells by name, in Markdown."""
    print(f"\n{title}\n")
    columns = [*names, *rows[0][1]]
    print("| " + " | ".join(columns) + " |\n" + "| --- " * len(columns) + "|")
    for labels, cells in rows:
        print("| " + " | ".join((*map(str, labels), *cells.values())) + " |")


def principal_components():
    """Print errors of captured squares and of second moments."""
    errors = {
        (kind, d, epsilon): errors_of_estimates(kind, d, epsilon)
        for kind in ("mixture", "falling")
        for d in FEATURES
        for epsilon in (0.1, 1.0, 10.0)
    }
    for i, what in enumerate(("captured squares", "second moments")):
        rows = [
            (labels, {name: f"{1e3 * each[i]:.3g}" for name, each in by_rule.items()})
            for labels, by_rule in errors.items()
        ]
        print_table(f"PrivatePCA, {what}, in thousandths of n", ("rows", "d", "epsilon"), rows)


def projected_jointly(matrices, radius=math.inf):
    """Return k matrices projected as one of k blocks, of at most the noisy trace in all."""
    values, vectors = np.linalg.eigh(matrices)
    kept = onto_nuclear_ball(values.ravel(), min(values.sum(), radius)).reshape(values.shape)
    return vectors * kept[:, None] @ vectors.transpose(0, 2, 1)


def rounds(rows, bases, noise, n_rounds, rng, fill=False):
    """Return the matrices that a run releases, and the subspaces of the last."""
    released, q = [], bases.shape[2]
    for _ in range(n_rounds):
        noisy = noise.release(moments_by_subspace(rows, bases), rng)
        released.append(noisy)
        if fill:
            before = _SLIGHTLY * len(rows) * bases @ bases.transpose(0, 2, 1)
            noisy = projected_jointly(noisy, len(rows)) + before
        bases = principal_bases(noisy, q)
    return np.array(released), bases


def leading(matrices, q):
    """Return the sum of the q largest eigenvalues of each matrix, over all."""
    return np.linalg.eigvalsh(matrices)[:, -q:].sum()


def leading_unbiased(matrices, q, sigma):
    """Return the same without its expected excess over what is captured."""
    values = np.linalg.eigvalsh(matrices)
    gaps = values[:, -q:, None] - values[:, None, :-q]
    return values[:, -q:].sum() - sigma**2 * (1.0 / gaps).sum()


def one_run(rows, bases, noise, truth, seed):
    """Return distances of what one run of 30 rounds may release, by name."""
    q = bases.shape[2]
    released, last = rounds(rows, bases, noise, 30, np.random.default_rng(seed))
    filled = rounds(rows, bases, noise, 30, np.random.default_rng(seed), fill=True)[1]
    half = released[15:]
    projected = np.array([projected_jointly(each) for each in half])
    results = {
        "30 rounds: last": last,
        "ties filled": filled,
        "mean of 15": principal_bases(half.mean(axis=0), q),
        "of projected": principal_bases(projected.mean(axis=0), q),
    }
    return {name: wasserstein_distance(each, truth) for name, each in results.items()}


def five_runs(rows, starts, noise, truth, rng):
    """Return distances of the run that each criterion takes out of five, by name."""
    q = starts[0].shape[2]
    scores, last, means = [], [], []
    for start in starts:
        released, bases = rounds(rows, start, noise, 10, rng)
        mean = released[5:].mean(axis=0)
        last.append(wasserstein_distance(bases, truth))
        means.append(wasserstein_distance(principal_bases(mean, q), truth))
        scores.append(
            (
                leading(released[-1], q),
                leading(projected_jointly(released[-1], len(rows)), q),
                leading_unbiased(released[-1], q, noise.sigma),
                leading(mean, q),
            )
        )
    noisy, projected, unbiased, of_mean = np.argmax(scores, axis=0)
    return {
        "5 runs of 10: noisy": last[noisy],
        "projected": last[projected],
        "Stein": last[unbiased],
        "best": min(last),
        "mean of 5": means[of_mean],
    }


def distances_of_sulq(n, k, d, q, deviation, epsilon):
    """Return name -> distances, of each seed."""
    distances = {}
    for seed in SEEDS:
        rng = np.random.default_rng([seed, d])
        X, _, truth = subspace_mixture(n, k, d, q, rng, deviation)
        rows = in_units(in_ball(X), unit(1.0, d))
        starts = [random_bases(k, d, q, rng) for _ in range(5)]
        ten, thirty, fifty = (
            second_moment_noise(d, "replace_one", epsilon, DELTA, n_rounds)
            for n_rounds in (10, 30, 50)
        )
        last = rounds(rows, starts[0], ten, 10, np.random.default_rng(seed))[1]
        results = {"10 rounds: last": wasserstein_distance(last, truth)}
        results |= one_run(rows, starts[0], thirty, truth, seed)
        results |= five_runs(rows, starts, fifty, truth, rng)
        for name, distance in results.items():
            distances.setdefault(name, []).append(distance)
    return distances


def sulq():
    """Print distances by mixture and epsilon."""
    rows = []
    for mixture in MIXTURES:
        for epsilon in EPSILONS:
            distances = distances_of_sulq(*mixture, epsilon)
            cells = {
                name: f"{np.mean(each):.3f} ({np.median(each):.3f})"
                for name, each in distances.items()
            }
            rows.append(((mixture[2], epsilon), cells))
    print_table("SuLQ, mean (median) distances", ("d", "epsilon"), rows)


if __name__ == "__main__":
    principal_components()
    sulq()
