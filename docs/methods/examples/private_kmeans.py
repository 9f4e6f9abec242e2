import numpy as np

from privclust.kmeans import PrivateKMeans

rng = np.random.default_rng(0)
centers = np.array([[-0.6, -0.4], [0.5, -0.5], [0.1, 0.6]])
X = rng.normal(np.repeat(centers, 2000, axis=0), 0.1)

# random_state=0 repeats this page; leave it out for a release, so that noise has no seed
model = PrivateKMeans(3, epsilon=1.0, bounds=(-1.0, 1.0), random_state=0).fit(X)
order = np.argsort(model.cluster_centers_[:, 0])
print(model.method_, model.cluster_centers_[order].round(2).tolist())
print("weights", model.weights_[order].round(2).tolist())

# %% picture
import matplotlib.pyplot as plt

figure, axis = plt.subplots(layout="constrained")
axis.scatter(*X.T, s=1, alpha=0.3, c="#4477aa", label="rows")
axis.scatter(*model.cluster_centers_.T, marker="x", s=60, c="#d1495b", label="private centers")
axis.set_aspect("equal")
figure.legend(loc="outside lower center", ncols=2, markerscale=2)
