import warnings

import numpy as np

from privclust.embedding import DPdSNE
from privclust.privacy import WeakGuaranteeWarning

warnings.simplefilter("ignore", WeakGuaranteeWarning)  # large epsilons promise little: to compare

rng = np.random.default_rng(0)
centers = np.array([[4.0, 0.0], [-2.0, 3.4], [-2.0, -3.4]])
y = np.repeat([0, 1, 2], 60)
public = centers[y] + rng.normal(size=(180, 2))
positions = 2.0 * public  # of the anchors, by whatever method; a map of them here
private = centers[np.arange(30) % 3] + rng.normal(size=(30, 2))

maps = {}
for epsilon in (10.0, 100.0, 1000.0):
    # random_state=0 repeats this page; leave it out for a release, so that noise has no seed
    model = DPdSNE(epsilon=epsilon, perplexity=10.0, learning_rate=1.0, random_state=0)
    maps[epsilon] = model.fit(public, positions).transform(private)
    gaps = ((maps[epsilon][:, None] - 2.0 * centers) ** 2).sum(axis=2)
    share = (gaps.argmin(axis=1) == np.arange(30) % 3).mean()
    print(f"epsilon {epsilon} a row: {share:.0%} placed nearest to their own group")
print(model.guarantee_)

# %% picture
import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 3, sharex=True, sharey=True)
for axis, (epsilon, placed) in zip(axes, maps.items(), strict=True):
    axis.scatter(*positions.T, s=3, c=y, cmap="Pastel2")
    axis.scatter(*placed.T, s=12, c=np.arange(30) % 3, cmap="Dark2")
    axis.set(title=f"epsilon = {epsilon}")
