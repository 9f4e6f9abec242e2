import numpy as np

from privclust.metrics import segmentation_error
from privclust.segmentation import LRR, LSR
from privclust.synthetic.subspaces import random_subspaces

X, y = random_subspaces(25, 4, 3, 20, np.random.default_rng(0))
closed = LSR(n_clusters=3, lam=None, zero_diagonal=False, random_state=0).fit(X)
gap = np.abs(closed.coefficients_ - LRR(n_clusters=3).fit(X).coefficients_).max()
print(f"without noise LSR and LRR agree to {gap:.0e}")

noisy, y = random_subspaces(25, 4, 3, 10, np.random.default_rng(0), noise=0.1)
weights = [1e-4, 1e-2, 1.0, 100.0]
models = [LSR(n_clusters=3, lam=lam, random_state=0).fit(noisy) for lam in weights]
for lam, model in zip(weights, models, strict=True):
    print(f"lam {lam:g}: segmentation error {segmentation_error(y, model.labels_):.3f}")

# %% picture
import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 4)
for axis, lam, model in zip(axes, weights, models, strict=True):
    affinity = model.affinity_matrix_
    axis.imshow(affinity, cmap="Greys", vmax=np.quantile(affinity, 0.99))
    axis.set(title=f"lam = {lam:g}", xticks=[], yticks=[])
