"""What a moment sketch finds, what it misses, and what it takes: tables for its page.

    OMP_NUM_THREADS=1 python benchmarks/moments.py [times rows sizes wide_sizes evidence errors
        components shares]

All columns of a row spend the same privacy: delta = 1e-6, rows replaced. Nothing was chosen on
these seeds.

*times*: CPU seconds of a fit, compiled before, the least of three; and those that noise of the
operating system takes on top (`random_state=None`, OpenDP), for one sketch: a fit without a last
round has two.
*rows*: mean (median) Wasserstein distances on 10,000 rows near three planes in eight dimensions,
sigma = 0.05, each time with one thing that may trouble a decoder; how often it says that rows lie
otherwise, and how often it is beyond 0.5 and says nothing. "SuLQ": 10 rounds, one start.
"SuLQ, 5": five starts, the mean of five rounds. They draw rows in to the unit ball.
*sizes*: how often "auto" is right, by the penalty for a parameter, in parts of log(2 d^2); 2 is
what the estimator has. Mixtures of 1 to 4 subspaces of dimension 1 to 3 in 5 to 10 dimensions.
*wide_sizes*: the same of 1 to 6 subspaces of dimension 1 to 5 in 8 to 12 dimensions.
*evidence*: nats for each number of a subspace, of which `is_detected_` asks 2.5: smallest and
largest of rows of any direction, and of two or three planes in 4 to 10 dimensions, which are within
0.5 of the true ones or farther off.
*errors*: root mean squares of distances of subspaces that are called clear, and of the errors that
are stated of them; how many lie within 1.5 and 2 times the stated error; by whether there was a
last round. Rows of half of the data sets are spread unevenly, with deviations 1 and 0.4.
*components*: one subspace, k = 1, against PrivatePCA on the same directions: squared parts of the
rows that the subspace captures, in parts of what the best captures.
*shares*: mean distance by the part of the budget that the last round gets; 1/3 is the estimator's.
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import math
import time
import warnings

import numpy as np

from privclust.core.grassmann import random_bases
from privclust.embedding import PrivatePCA
from privclust.metrics import wasserstein_distance
from privclust.privacy import Neighbours, SystemEntropy
from privclust.privacy.bounds import directions
from privclust.sketches import MomentSketch
from privclust.sketches.moment_release import measurement
from privclust.subspaces import MomentSubspaceClustering, SuLQKPlanes
from privclust.subspaces.moments import _decoding, _estimator, _selection
from privclust.synthetic.subspaces import subspace_mixture

SEEDS = range(5000, 5010)
DELTA = 1e-6
N, K, D, Q, SIGMA = 10_000, 3, 8, 2, 0.05
SHARES = {"0": 0.0, "1/6": 1 / 6, "1/3": 1 / 3, "1/2": 1 / 2}
N_MIXTURES = 40


def noisy(exact, epsilon, source):
    """Return a sketch with the noise of a budget."""
    size = exact.n_features, exact.degree
    noise = measurement(*size, Neighbours.REPLACE_ONE, epsilon, DELTA)
    return exact.with_noise(noise, source)


def mixture(rng, *, bases=None, weights=None, spreads=None, n=N, sigma=SIGMA):
    """Return rows near planes, and the planes; rows lie evenly, or with deviations of `spreads`."""
    bases = random_bases(K, D, Q, rng) if bases is None else bases
    labels = rng.choice(K, size=n, p=weights)
    within = rng.standard_normal((n, Q)) * (1.0 if spreads is None else np.asarray(spreads))
    within /= np.linalg.norm(within, axis=1, keepdims=True)
    rows = np.einsum("ndq,nq->nd", bases[labels], within)
    return rows + sigma * rng.standard_normal(rows.shape), bases


def close_planes(rng, angle):
    """Return planes of which two are this angle apart, in degrees, in both directions."""
    bases = random_bases(K, D, Q, rng)
    other = np.linalg.qr(np.hstack([bases[0], rng.standard_normal((D, Q))]))[0][:, Q:]
    turn = math.radians(angle)
    bases[1] = math.cos(turn) * bases[0] + math.sin(turn) * other
    return bases


def some_replaced(rows, share, values, rng):
    """Return rows of which a share is replaced."""
    chosen = rng.random(len(rows)) < share
    return np.where(chosen[:, None], values, rows)


def troubles():
    """Yield names of troubles and functions that return rows and planes."""
    yield "none", mixture
    for angle in (60, 30, 15):
        yield (
            f"two planes {angle} degrees apart",
            lambda rng, angle=angle: mixture(rng, bases=close_planes(rng, angle)),
        )
    for least in (0.05, 0.02):
        weights = (0.6, 0.4 - least, least)
        yield (
            f"weights {weights[0]:g}, {weights[1]:g}, {least:g}",
            (lambda rng, weights=weights: mixture(rng, weights=weights)),
        )
    for spreads in ((1.0, 0.5), (1.0, 0.25)):
        yield (
            f"deviations {spreads[0]:g}, {spreads[1]:g} within",
            (lambda rng, spreads=spreads: mixture(rng, spreads=spreads)),
        )

    def heavy(rng):
        rows, bases = mixture(rng)
        return rows + SIGMA * rng.standard_t(2.5, size=rows.shape), bases

    yield "noise with heavy tails (t, 2.5)", heavy

    def lengths(rng):
        rows, bases = mixture(rng)
        return rows * rng.lognormal(sigma=1.0, size=(len(rows), 1)), bases

    yield "lengths lognormal, sigma = 1", lengths
    for share in (0.2, 0.5):

        def outliers(rng, share=share):
            rows, bases = mixture(rng)
            return some_replaced(
                rows, share, directions(rng.standard_normal(rows.shape)), rng
            ), bases

        yield f"{share:.0%} rows of any direction", outliers

        def short(rng, share=share):
            rows, bases = mixture(rng)
            return some_replaced(rows, share, SIGMA * rng.standard_normal(rows.shape), rng), bases

        yield f"{share:.0%} rows of noise alone, short", short

    def tight(rng):
        rows, bases = mixture(rng)
        line = random_bases(1, D, 1, rng)[0, :, 0]
        return some_replaced(rows, 0.1, line, rng), bases

    yield "10 % rows on one line elsewhere", tight

    def shifted(rng):
        rows, bases = mixture(rng)
        return rows + 0.3 * random_bases(1, D, 1, rng)[0, :, 0], bases

    yield "an offset of 0.3", shifted


def methods(epsilon, seed):
    """Return what is compared, by name."""
    sulq = {"epsilon": epsilon, "delta": DELTA, "norm_bound": 1.0, "random_state": seed}
    return {
        "moment sketch": MomentSubspaceClustering(
            K, Q, epsilon=epsilon, delta=DELTA, random_state=seed
        ),
        "SuLQ": SuLQKPlanes(K, Q, **sulq),
        "SuLQ, 5": SuLQKPlanes(K, Q, n_init=5, n_averaged=5, **sulq),
    }


def print_table(title, columns, rows):
    """Print a table in Markdown."""
    print(f"\n{title}\n\n| " + " | ".join(columns) + " |\n" + "| --- " * len(columns) + "|")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


def times():
    """Print CPU seconds of fits."""

    def rows():
        for n, d in ((5000, 5), (1000, 10), (5000, 20), (5000, 50), (100_000, 20), (100_000, 50)):
            X, _, _ = subspace_mixture(n, 3, d, 3, np.random.default_rng(0), 0.01)
            model = MomentSubspaceClustering(3, 3, epsilon=1.0, delta=DELTA, random_state=0).fit(X)
            seconds = []
            for _ in range(3):
                start = time.process_time()
                model.fit(X)
                seconds.append(time.process_time() - start)
            sketch = MomentSketch.of(X[:100])
            noisy(sketch, 1.0, SystemEntropy())  # the first call loads OpenDP
            start = time.process_time()
            noisy(sketch, 1.0, SystemEntropy())
            of_noise = time.process_time() - start
            yield f"{n:,}", d, f"{min(seconds):.2f}", f"{of_noise:.2f}"

    columns = ["rows", "d", "seconds", "noise of the system"]
    print_table("CPU seconds of a fit (k = 3, q = 3)", columns, rows())


def by_rows():
    """Print distances on rows that may trouble a decoder."""

    def rows():
        for name, draw in troubles():
            for epsilon in (1.0, 3.0):
                distances, n_misfits, n_wrong = {}, 0, 0
                for seed in SEEDS:
                    X, bases = draw(np.random.default_rng(seed))
                    for method, model in methods(epsilon, seed).items():
                        model.fit(X)
                        distance = wasserstein_distance(model.subspaces_, bases)
                        distances.setdefault(method, []).append(distance)
                        if method == "moment sketch":
                            is_misfit = bool(_decoding.misfit_message(model.decoded_))
                            n_misfits += is_misfit
                            n_wrong += distance > 0.5 and model.is_detected_.all() and not is_misfit
                cells = [f"{np.mean(d):.2g} ({np.median(d):.2g})" for d in distances.values()]
                yield name, f"{epsilon:g}", *cells, n_misfits, n_wrong

    title = f"n = {N:,}, k = {K}, d = {D}, q = {Q}; {len(SEEDS)} seeds"
    columns = ["rows", "epsilon", *methods(1.0, 0), "misfit", "silently wrong"]
    print_table(title, columns, rows())


def sizes():
    """Print how often the sizes are found, by the penalty."""
    sizes_found(d=(5, 10), k=4, q=3)


def wide_sizes():
    """Print the same for more subspaces, of more dimensions."""
    sizes_found(d=(8, 12), k=6, q=5)


def sizes_found(d, k, q):
    """Print how often up to k subspaces of dimension up to q are found in so many features."""
    most_clusters, most_dimensions, n_features, found = k, q, d, {}
    for seed in range(11_000, 11_000 + N_MIXTURES):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(n_features[0], n_features[1] + 1))
        k, q = int(rng.integers(1, most_clusters + 1)), int(rng.integers(1, most_dimensions + 1))
        X, _, _ = subspace_mixture(20_000, k, d, q, rng, 0.05)
        exact = MomentSketch.of(X)
        for epsilon in (0.3, 1.0, 10.0):
            sketch = noisy(exact, epsilon, np.random.default_rng(seed))
            costs = dict(_selection._costs(sketch, None, None, np.random.default_rng(seed)))
            for strictness in (1.0, 2.0, 3.0):
                more = (strictness / _selection._STRICTNESS) - 1.0
                raised = {
                    (a, b): cost + more * _selection.penalty(d, a, b)
                    for (a, b), cost in costs.items()
                }
                right = min(raised, key=raised.get) == (k, q)
                found.setdefault((epsilon, strictness), []).append(right)
    rows = (
        (f"{epsilon:g}", f"{strictness:g}", f"{sum(right)} of {len(right)}")
        for (epsilon, strictness), right in found.items()
    )
    title = f"auto: to {most_clusters} subspaces, {most_dimensions} dimensions (n = 20,000)"
    print_table(title, ["epsilon", "penalty", "right"], rows)


def evidence():
    """Print nats for each number of subspaces: rows of any direction, and unions that are found."""

    def rows():
        for n in (1_000, 5_000, 20_000):
            for epsilon in (0.3, 1.0, 3.0):
                nulls, unions, lost = [], [], []
                for seed in range(12_000, 12_000 + N_MIXTURES // 2):
                    rng = np.random.default_rng(seed)
                    d, k, q = int(rng.integers(4, 11)), int(rng.integers(2, 4)), 2
                    X = directions(rng.standard_normal((n, d)))
                    budget = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
                    null = MomentSubspaceClustering(k, q, **budget).fit(X)
                    nulls.extend(null.decoded_.evidence)
                    X, _, truth = subspace_mixture(n, k, d, q, rng, 0.05)
                    union = MomentSubspaceClustering(k, q, **budget).fit(X)
                    for basis, nats in zip(union.subspaces_, union.decoded_.evidence, strict=True):
                        off = min(wasserstein_distance(basis[None], one[None]) for one in truth)
                        (unions if off < 0.5 else lost).append(nats)
                cells = [
                    f"{min(nats):.2g} to {max(nats):.3g} ({len(nats)})" if nats else "none"
                    for nats in (nulls, unions, lost)
                ]
                yield f"{n:,}", f"{epsilon:g}", *cells

    columns = ["rows", "epsilon", "any direction", "unions, within 0.5", "unions, farther off"]
    print_table("Nats for each number of a subspace (smallest to largest)", columns, rows())


def errors():
    """Print how errors that are stated agree with those that are made."""
    squares = {}
    for seed in range(8000, 8120):
        rng = np.random.default_rng(seed)
        n, k, d, q = int(rng.integers(1000, 20_000)), 3, int(rng.integers(4, 12)), 2
        sigma, spreads = float(rng.choice([0.01, 0.1])), (1.0, float(rng.choice([1.0, 0.4])))
        X, truth = mixture(rng, bases=random_bases(k, d, q, rng), spreads=spreads, n=n, sigma=sigma)
        epsilon = float(rng.choice([0.5, 1.0, 3.0, 10.0]))
        model = MomentSubspaceClustering(k, q, epsilon=epsilon, delta=DELTA, random_state=seed)
        model.fit(X)
        for basis, error, clear in zip(
            model.subspaces_, model.errors_, model.is_detected_, strict=True
        ):
            if clear:
                distance = min(wasserstein_distance(basis[None], one[None]) for one in truth)
                key = model.has_last_round_, spreads[1] == 1.0
                squares.setdefault(key, []).append((distance, error))
    rows = []
    for (has_round, is_even), pairs in sorted(squares.items()):
        distance, error = np.array(pairs).T
        within = [f"{np.mean(distance <= times * error):.0%}" for times in (1.5, 2.0)]
        root = [f"{np.sqrt(np.mean(each**2)):.3g}" for each in (distance, error)]
        ratio = f"{np.sqrt(np.mean((distance / error) ** 2)):.2f}"
        words = ["yes" if each else "no" for each in (has_round, is_even)]
        rows.append((*words, len(pairs), *root, ratio, *within))
    columns = [
        "last round",
        "even",
        "subspaces",
        "distance",
        "stated",
        "ratio",
        "within 1.5",
        "within 2",
    ]
    print_table("Errors of clear subspaces", columns, rows)


def components():
    """Print what one subspace captures, against PrivatePCA."""

    def rows():
        for d, q, n in ((6, 2, 5000), (10, 3, 5000), (30, 3, 20_000)):
            for epsilon in (0.1, 1.0, 10.0):
                parts = {}
                for seed in SEEDS:
                    rng = np.random.default_rng(seed)
                    X = directions(rng.standard_normal((n, d)) / np.sqrt(np.arange(1, d + 1)))
                    best = np.linalg.eigvalsh(X.T @ X)[-q:].sum()
                    budget = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
                    sketch = MomentSubspaceClustering(1, q, **budget).fit(X)
                    pca = PrivatePCA(q, norm_bound=1.0, **budget).fit(X)
                    for name, basis in (
                        ("moment sketch", sketch.subspaces_[0]),
                        ("PrivatePCA", np.asarray(pca.components_).T),
                    ):
                        captured = np.sum((X @ basis) ** 2) / best
                        parts.setdefault(name, []).append(captured)
                yield f"{n:,}", d, q, f"{epsilon:g}", *(f"{np.mean(p):.3f}" for p in parts.values())

    columns = ["rows", "d", "q", "epsilon", "moment sketch", "PrivatePCA"]
    print_table("One subspace of normal rows with variances 1/i", columns, rows())


def shares():
    """Print distances by the last round's share."""

    def rows():
        for n, d, q, sigma in ((5000, 5, 3, 0.01), (1000, 10, 3, 0.1), (5000, 20, 3, 0.01)):
            for epsilon in (1.0, 3.0):
                cells = []
                for share in SHARES.values():
                    _estimator.ROUND_SHARE = share
                    distances = []
                    for seed in SEEDS:
                        rng = np.random.default_rng(seed)
                        X, _, truth = subspace_mixture(n, 3, d, q, rng, sigma)
                        model = MomentSubspaceClustering(
                            3, q, epsilon=epsilon, delta=DELTA, random_state=seed,
                            last_round="auto" if share else False,
                        ).fit(X)  # fmt: skip
                        distances.append(wasserstein_distance(model.subspaces_, truth))
                    cells.append(f"{np.mean(distances):.3g}")
                yield f"{n:,}", d, sigma, f"{epsilon:g}", *cells

    columns = ["rows", "d", "sigma", "epsilon", *SHARES]
    print_table("Distance by the last round's share (k = 3, q = 3)", columns, rows())


TABLES = {
    "times": times,
    "rows": by_rows,
    "sizes": sizes,
    "wide_sizes": wide_sizes,
    "evidence": evidence,
    "errors": errors,
    "components": components,
    "shares": shares,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)  # of noise, and of rows outside the ball
    unknown = set(sys.argv[1:]) - set(TABLES)
    if unknown:
        raise SystemExit(f"{', '.join(sorted(unknown))}: tables are {', '.join(TABLES)}")
    for name in sys.argv[1:] or TABLES:
        TABLES[name]()
