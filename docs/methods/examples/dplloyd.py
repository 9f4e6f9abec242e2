import warnings

import numpy as np

from privclust.kmeans import DPLloyd, LloydKMeans
from privclust.privacy import NoiseWarning

rng = np.random.default_rng(0)
towns = np.array([[-0.6, 0.0], [0.0, 0.5], [0.6, -0.3]])
X = rng.normal(np.repeat(towns, 4_000, axis=0), 0.1).clip(-1, 1)

least = LloydKMeans(3, random_state=0).fit(X).inertia_
models = {}
warnings.simplefilter("ignore", NoiseWarning)  # is_detected_ says the same
for epsilon in (0.02, 0.1, 1.0):
    # random_state=1 repeats this page; leave it out for a release, so that noise has no seed
    models[epsilon] = DPLloyd(
        3,
        epsilon=epsilon,
        delta=1e-6,
        accounting="pld",
        init="separated",
        bounds=(-1.0, 1.0),
        random_state=1,
    ).fit(X)
    centers = models[epsilon].cluster_centers_
    error = ((X[:, None] - centers) ** 2).sum(axis=2).min(axis=1).sum()
    detected = models[epsilon].is_detected_.sum()
    print(f"epsilon {epsilon}: {error / least:.3f} times the least error, {detected} of 3 detected")
print(models[1.0].guarantee_)

# %% picture
import matplotlib.pyplot as plt

figure, axis = plt.subplots()
axis.scatter(*X[::10].T, s=3, c="#9aa5b1", label="every tenth row")
for (epsilon, model), marker in zip(models.items(), "v+x", strict=True):
    axis.scatter(*model.cluster_centers_.T, marker=marker, s=70, label=f"epsilon = {epsilon}")
axis.set_aspect("equal")
axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
