import numpy as np

from privclust.embedding import SMLQ

rng = np.random.default_rng(0)
y = np.repeat(np.arange(100), 6)
X = rng.normal(size=(600, 20))
X /= np.linalg.norm(X, axis=1, keepdims=True)  # features that know nothing of the class

models = {
    "as printed": SMLQ(n_iter=10, random_state=0).fit(X, y),
    "as released": SMLQ(n_iter=10, variant="code", random_state=0).fit(X, y),
}
for name, model in models.items():
    last = model.objectives_[-1] / model.objectives_[0]
    print(f"{name}: the objective changes {last:.3g}-fold in ten iterates")

# %% picture
import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2)
for axis, (name, model) in zip(axes, models.items(), strict=True):
    axis.scatter(*model.embedding_.T, s=8, c=y, cmap="viridis")
    axis.set(title=f"{name}, by class", xticks=[], yticks=[])
