"""Time and memory of supervised manifold learning at the size of CIFAR-100, and of a private query.

    OMP_NUM_THREADS=1 python benchmarks/embedding.py

Made-up features of 1,280 numbers in 100 classes: 10,000 gallery and 1,000 public images. CPU
seconds of an embedding of all (5 iterates), of one query's release by each variant, and of the
look-up of all queries in a gallery in two dimensions. Peak memory is that of the whole process.
"""

import resource
import time

import numpy as np

from privclust.embedding import SMLQ, PrivateMail
from privclust.metrics.retrieval import hit_ranks

N_GALLERY, N_PUBLIC, N_FEATURES, N_CLASSES = 10_000, 1_000, 1_280, 100
N_QUERIES = 256


def made_up(n, seed):
    """Return features that are not negative, as those of the network, and labels."""
    directions = np.random.default_rng(0).normal(size=(N_CLASSES, N_FEATURES))
    y = np.arange(n) % N_CLASSES
    noise = np.random.default_rng([1, seed]).normal(size=(n, N_FEATURES))
    return np.abs(directions[y] + noise).astype(np.float32), y


def seconds(work, *arguments):
    """Return the CPU seconds that a call takes."""
    start = time.process_time()
    work(*arguments)
    return time.process_time() - start


def main():
    X, y = made_up(N_GALLERY, 0)
    public, labels = made_up(N_PUBLIC, 1)
    everything, all_labels = np.vstack([X, public]), np.append(y, labels)
    for name, variant in (("as printed", "paper"), ("as released", "code")):
        model = SMLQ(variant=variant, random_state=0).fit(X[:200], y[:200])  # compiles
        taken = seconds(model.fit, everything, all_labels)
        print(f"SMLQ {name}, {N_GALLERY + N_PUBLIC:,} images: {taken:.1f} CPU-s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"peak memory: {peak:.0f} MB")
    for variant in ("paper", "code", "corrected"):
        model = PrivateMail(variant=variant, random_state=0).fit(public, labels)
        model.release(X[:2], y[:2])
        taken = seconds(model.release, X[:N_QUERIES], y[:N_QUERIES])
        print(f"PrivateMail {variant}: {1e3 * taken / N_QUERIES:.2f} CPU-ms a query")
    rows = np.random.default_rng(2).normal(size=(N_GALLERY, 2))
    hit_ranks(rows[:2], rows, y[:2], y)
    taken = seconds(hit_ranks, rows, rows, y, y)
    print(f"look-up of {N_GALLERY:,} queries among as many: {taken:.1f} CPU-s")


if __name__ == "__main__":
    main()
