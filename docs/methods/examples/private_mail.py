import warnings

import numpy as np

from privclust.embedding import PrivateMail
from privclust.privacy import WeakGuaranteeWarning

warnings.simplefilter("ignore", WeakGuaranteeWarning)  # large epsilons promise little: to compare

rng = np.random.default_rng(0)
y = np.repeat([0, 1, 2], 60)
X = np.eye(3)[y] + 0.25 * rng.normal(size=(180, 3))
X_public, y_public, query = X[1:], y[1:], X[:1]

models = {}
for epsilon in (1.0, 10.0, 100.0):
    # random_state=0 repeats this page; leave it out for a release, so that noise has no seed
    models[epsilon] = PrivateMail(epsilon=epsilon, delta=1e-5, random_state=0)
    models[epsilon].fit(X_public, y_public)
    noise = models[epsilon].noise_scale_
    print(f"epsilon {epsilon}: noise of deviation {noise:.2f} on a vector of norm 1")
print(models[10.0].guarantee_)

for obfuscate in (True, False):
    printed = PrivateMail(variant="paper", obfuscate=obfuscate, random_state=0)
    guarantee = printed.fit(X_public, y_public).guarantee_
    print(f"as printed, {'with' if obfuscate else 'without'} dummies:", guarantee.definition)

# %% picture
import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 3)
gallery = models[1.0].public_map(X_public)
for axis, (epsilon, model) in zip(axes, models.items(), strict=True):
    axis.scatter(*gallery.T, s=8, c=y_public, cmap="Dark2")
    released = np.concatenate([model.release(query) for _ in range(20)])
    axis.scatter(*released.T, marker="x", s=20, c="black")
    axis.set(title=f"epsilon = {epsilon}", aspect="equal")
