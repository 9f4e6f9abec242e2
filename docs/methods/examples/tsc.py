import numpy as np

from privclust.metrics import segmentation_error
from privclust.segmentation import TSC
from privclust.synthetic.subspaces import random_subspaces

X, y = random_subspaces(60, 2, 3, 6, np.random.default_rng(0), noise=0.05)
X /= np.linalg.norm(X, axis=1, keepdims=True)

for n_neighbors in (1, 8, 40):
    model = TSC(n_neighbors=n_neighbors, random_state=0).fit(X)
    between = model.graph_.toarray()[y[:, None] != y].astype(bool).mean()
    print(f"neighbours {n_neighbors}: {model.n_components_} components, ", end="")
    print(f"{between:.1%} of pairs joined across subspaces")
labels = TSC(3, n_neighbors=40, random_state=0).fit_predict(X)
print(f"40 neighbours, cut into 3: error {segmentation_error(y, labels):.3f}")

# %% picture
import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 3)
for axis, n_neighbors in zip(axes, (1, 8, 40), strict=True):
    graph = TSC(n_neighbors=n_neighbors).fit(X).graph_
    axis.spy(graph, markersize=1, color="#0b5394")
    axis.set(title=f"neighbours: {n_neighbors}", xticks=[], yticks=[])
