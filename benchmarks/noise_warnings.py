"""What docs/methods say of results that noise hides: the tables and counts, printed again.

    OMP_NUM_THREADS=1 python benchmarks/noise_warnings.py

Three parts: two clusters of 1,000 rows in a tight and in a generous box, with and without a delta
(compressive_kmeans.md); how often a center passes as clear where there are no rows at all, and
where there are 100,000 (the same page, and `privclust.decoding._sketch_check`); and how much larger
Laplace noise is than normal noise in DPLloyd (dplloyd.md).
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from scipy.spatial.distance import cdist

from privclust.kmeans import CompressiveKMeans
from privclust.privacy import Sensitivity
from privclust.privacy.measurements import Gaussian, Laplace, gaussian_share

CENTERS = np.array([[0.3, 0.3], [0.7, 0.7]])


def boxes():
    """Print how far centers are off in 8 fits each."""
    rng = np.random.default_rng(0)
    X = rng.choice([0.3, 0.7], (1000, 1)) + 0.03 * rng.standard_normal((1000, 2))
    print("| bounds | delta | m | deviation of a sum's noise | centers off by |")
    print("| --- | --- | --- | --- | --- |")
    for bounds, delta in (((0, 1), 0), ((-10, 10), 0), ((-10, 10), 1e-6)):
        errors = []
        for seed in range(8):
            model = CompressiveKMeans(2, bounds=bounds, delta=delta, random_state=seed).fit(X)
            errors.append(cdist(CENTERS, model.cluster_centers_).min(axis=1).max())
            errors[-1] = max(errors[-1], cdist(model.cluster_centers_, CENTERS).min(axis=1).max())
        sketch = model.sketch_
        deviation = math.sqrt(sketch.noise.variance)
        print(
            f"| {bounds} | {delta:g} | {sketch.n_frequencies} | {deviation:.0f} | "
            f"{min(errors):.2g} to {max(errors):.2g} |"
        )


def alarms():
    """Print how many fits to no rows have a clear center, and how many good ones have all."""
    clear = [
        CompressiveKMeans(
            k, delta=delta, neighbours="add_remove", bounds=(-1, 1), random_state=seed
        )
        .fit(np.empty((0, d)))
        .is_detected_.any()
        for d, k in ((1, 2), (2, 3), (5, 5), (10, 2), (2, 8))
        for delta in (0, 1e-6)
        for seed in range(40)
    ]
    print(f"no rows: {sum(clear)} of {len(clear)} fits have a clear center")
    clear = []
    for k, d in ((3, 2), (5, 10)):
        for delta in (0, 1e-6):
            for seed in range(10):
                rng = np.random.default_rng(seed)
                means = rng.uniform(-0.7, 0.7, (k, d))
                X = means[rng.integers(k, size=100_000)]
                X = (X + 0.05 * rng.standard_normal(X.shape)).astype(np.float32)
                model = CompressiveKMeans(k, delta=delta, bounds=(-1, 1), random_state=seed)
                clear.append(model.fit(X).is_detected_.all())
    print(f"100,000 rows: in {sum(clear)} of {len(clear)} fits all centers are clear")


def lloyd():
    """Print the ratio of deviations of Laplace and normal noise in the ball, rows replaced."""
    n_iter, epsilon, delta = 5, 1.0, 1e-6
    normal = Gaussian.of_share(
        Sensitivity(2.0, "l2", "replace-one", "2"), gaussian_share(epsilon, delta, n_iter)
    )
    for d in (2, 10):
        l1 = Sensitivity(2.0 * (1.0 + math.sqrt(d)), "l1", "replace-one", "2 (1 + sqrt d)")
        ratio = Laplace(l1, epsilon / n_iter).deviation / normal.deviation
        print(f"DPLloyd, {d} features: Laplace noise is {ratio:.1f} times as large")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    boxes()
    alarms()
    lloyd()
