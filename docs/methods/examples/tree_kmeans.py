import numpy as np

from privclust.kmeans import TreeKMeans

rng = np.random.default_rng(0)
towns = rng.uniform(-0.9, 0.9, (40, 2))
sizes = 500 * (1 + np.arange(40) % 5)  # 500 to 2,500 rows each
X = rng.normal(np.repeat(towns, sizes, axis=0), 0.02)

# random_state=0 repeats this page; leave it out for a release, so that noise has no seed
model = TreeKMeans(40, epsilon=1.0, bounds=(-1.0, 1.0), random_state=0).fit(X)
nearest = np.linalg.norm(towns[:, None] - model.cluster_centers_, axis=2).min(axis=1)
print(f"{(nearest < 0.01).sum()} of 40 towns have a center within 0.01")
print(f"{model.n_cells_} cells on {model.n_levels_} levels")
print(f"sizes from {model.cluster_sizes_.min():.0f} to {model.cluster_sizes_.max():.0f}")

# %% picture
import matplotlib.pyplot as plt

figure, axis = plt.subplots(layout="constrained")
axis.scatter(*X.T, s=1, alpha=0.2, c="#4477aa", label="rows")
axis.scatter(*model.cluster_centers_.T, marker="x", s=30, c="#d1495b", label="centers")
axis.set_aspect("equal")
figure.legend(loc="outside lower center", ncols=2, markerscale=2)
