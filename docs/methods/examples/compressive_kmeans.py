import numpy as np

from privclust.kmeans import CompressiveKMeans

rng = np.random.default_rng(0)
towns = np.array([[-4.0, 0.0], [0.0, 3.0], [4.0, -2.0]])
X = np.concatenate([rng.normal(town, 0.7, (4_000, 2)) for town in towns])

# random_state=0 repeats this page; leave it out for a release, so that noise has no seed
model = CompressiveKMeans(3, epsilon=0.5, delta=1e-6, bounds=(-10, 10), random_state=0).fit(X)
print(model.cluster_centers_.round(2))
print(model.guarantee_)

# %% picture
import matplotlib.pyplot as plt

figure, axis = plt.subplots()
axis.scatter(*X[::10].T, s=4, c="#9aa5b1", label="every tenth row")
axis.scatter(*model.cluster_centers_.T, marker="x", s=80, c="#b5361c", label="private centers")
axis.set_aspect("equal")
axis.legend()
