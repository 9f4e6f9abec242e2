import numpy as np

from privclust.metrics import segmentation_error
from privclust.segmentation import CASS, SSC
from privclust.synthetic.subspaces import random_subspaces

X, y = random_subspaces(20, 3, 3, 8, np.random.default_rng(0), noise=0.05)
twins = np.concatenate([X, X + np.random.default_rng(1).normal(0.0, 1e-3, X.shape)])
y = np.concatenate([y, y])

models = {
    "CASS": CASS(n_clusters=3, lam=0.1, random_state=0).fit(twins),
    "SSC": SSC(n_clusters=3, random_state=0).fit(twins),
}
for name, model in models.items():
    shares = np.abs(model.coefficients_) > 0.01 * np.abs(model.coefficients_).max()
    error = segmentation_error(y, model.labels_)
    print(f"{name}: {shares.mean(axis=0).mean():.0%} of samples used, error {error:.3f}")
print(f"duality gap of CASS {models['CASS'].duality_gap_:.1e}")

# %% picture
import matplotlib.pyplot as plt

order = np.argsort(y, kind="stable")
figure, axes = plt.subplots(1, 2)
for axis, (name, model) in zip(axes, models.items(), strict=True):
    axis.imshow(np.abs(model.coefficients_)[np.ix_(order, order)], cmap="Greys", vmax=0.2)
    axis.set(title=f"{name}: coefficients", xlabel="sample, by subspace")
