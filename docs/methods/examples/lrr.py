import numpy as np

from privclust.metrics import segmentation_error
from privclust.segmentation import LRR
from privclust.synthetic.subspaces import random_subspaces

X, y = random_subspaces(25, 4, 3, 20, np.random.default_rng(0))

exact = LRR(n_clusters=3, random_state=0).fit(X)
directions = np.linalg.svd(X.T, full_matrices=False)[2][:12]
print("without noise Z is V V':", np.allclose(exact.coefficients_, directions.T @ directions))

broken = X.copy()
broken[::15] += np.random.default_rng(1).normal(0.0, 0.5, (5, 20))  # five samples are wrong
for lam in (None, 0.3):
    model = LRR(n_clusters=3, lam=lam, random_state=0).fit(broken)
    rank = np.linalg.matrix_rank(model.coefficients_, tol=1e-3)
    error = segmentation_error(y, model.labels_)
    print(f"lam={lam}: rank {rank}, segmentation error {error:.3f}")

# %% picture
import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2)
shown = {"no error": exact, "five wrong samples, lam = 0.3": model}
for axis, (title, fitted) in zip(axes, shown.items(), strict=True):
    axis.imshow(np.abs(fitted.coefficients_), cmap="Greys", vmax=0.2)
    axis.set(title=title, xlabel="sample")
