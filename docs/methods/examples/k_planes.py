import numpy as np

from privclust.subspaces import KPlanes

rng = np.random.default_rng(0)
angles = np.radians([5.0, 30.0, 60.0, 95.0, 140.0])[rng.integers(5, size=900)]
X = rng.uniform(-1.0, 1.0, (900, 1)) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
X += rng.normal(0.0, 0.03, X.shape)

for n_init in (1, 10):
    model = KPlanes(5, 1, n_init=n_init, random_state=0).fit(X)
    print(f"{n_init} starts: squared distances {model.inertia_:.2f} in {model.n_iter_} turns")
print(np.sort(np.degrees(np.arctan2(*model.subspaces_[:, ::-1, 0].T)) % 180).round(1))

# %% picture
import matplotlib.pyplot as plt

figure, axis = plt.subplots()
axis.scatter(*X.T, s=4, c=model.labels_, cmap="Dark2")
for line in model.subspaces_[:, :, 0]:
    axis.plot(*np.outer(line, [-1.0, 1.0]), color="black", linewidth=1)
axis.set_aspect("equal")
