import warnings

import numpy as np

from privclust.embedding import PrivateRandomProjection
from privclust.privacy import WeakGuaranteeWarning

warnings.simplefilter("ignore", WeakGuaranteeWarning)  # large epsilons promise little: to compare

rng = np.random.default_rng(0)
X = np.repeat(rng.normal(size=(3, 50)), 40, axis=0) + 0.3 * rng.normal(size=(120, 50))
X /= np.linalg.norm(X, axis=1, keepdims=True)

models = {}
for epsilon in (10.0, 100.0, 1000.0):
    # random_state=0 repeats this page; leave it out for a release, so that noise has no seed
    models[epsilon] = PrivateRandomProjection(2, epsilon=epsilon, norm_bound=1.0, random_state=0)
    models[epsilon].fit(X)
    print(f"epsilon {epsilon}: noise of deviation {models[epsilon].sigma_:.2f}")

attribute = PrivateRandomProjection(
    2, epsilon=1.0, neighbours="attribute", norm_bound=1.0, random_state=0
).fit(X)
print(f"for one attribute at epsilon 1: {attribute.sigma_:.2f},", end=" ")
print(f"which is epsilon {attribute.guarantee_.epsilon:.1f} for a row")

# %% picture
import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 3)
for axis, (epsilon, model) in zip(axes, models.items(), strict=True):
    axis.scatter(*model.transform(X).T, s=8, c=np.repeat([0, 1, 2], 40), cmap="Dark2")
    axis.set(title=f"epsilon = {epsilon}")
