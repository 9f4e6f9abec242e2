import numpy as np

from privclust.kmeans import LloydKMeans

rng = np.random.default_rng(0)
centers = rng.uniform(-10.0, 10.0, (10, 2))
X = rng.normal(np.repeat(centers, 500, axis=0), 0.7)

for n_init in (1, 3, 30):
    model = LloydKMeans(10, n_init=n_init, random_state=2).fit(X)
    print(f"{n_init} starts: inertia {model.inertia_:.0f} after {model.n_iter_} updates")

# %% picture
import matplotlib.pyplot as plt

figure, axis = plt.subplots()
axis.scatter(*X.T, s=3, c=model.labels_, cmap="tab10")
axis.scatter(*model.cluster_centers_.T, marker="x", s=60, c="black")
axis.set_aspect("equal")
