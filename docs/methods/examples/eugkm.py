import numpy as np

from privclust.kmeans import EUGkM

rng = np.random.default_rng(0)
towns = np.array([[-0.6, 0.0], [0.0, 0.5], [0.6, -0.3]])
X = rng.normal(np.repeat(towns, 4_000, axis=0), 0.1).clip(-1, 1)

# random_state=0 repeats this page; leave it out for a release, so that noise has no seed
model = EUGkM(3, epsilon=0.3, bounds=(-1.0, 1.0), random_state=0).fit(X)
print(model.cluster_centers_.round(2))
print(f"{model.n_cells_} cells, {(model.noisy_counts_ < 0).sum()} counts below zero")
print(model.guarantee_)

# %% picture
import matplotlib.pyplot as plt

figure, axis = plt.subplots()
counts = model.noisy_counts_.reshape(model.grid_shape_)
edges = [np.linspace(-1.0, 1.0, size + 1) for size in model.grid_shape_]
colors = axis.pcolormesh(*edges, counts.T, cmap="cividis")
axis.scatter(*model.cluster_centers_.T, marker="x", s=80, c="#ff5a36", label="centers")
axis.set_aspect("equal")
figure.colorbar(colors, label="noisy count")
axis.legend(labelcolor="white")
