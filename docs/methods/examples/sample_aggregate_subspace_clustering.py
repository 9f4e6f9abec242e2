import numpy as np

from privclust.subspaces import KPlanes, SampleAggregateSubspaceClustering

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, (6_000, 1)) * np.eye(2)[rng.integers(2, size=6_000)]
X += rng.normal(0.0, 0.02, X.shape)

models = {}
for epsilon in (0.5, 2.0, 8.0):
    models[epsilon] = SampleAggregateSubspaceClustering(
        KPlanes(2, n_init=3),
        1,
        epsilon=epsilon,
        delta=1e-5,
        n_subsets=300,
        random_state=3,  # repeats this page; leave it out for a release
    ).fit(X)
    print(f"epsilon {epsilon}: noise of deviation {models[epsilon].noise_scale_:.3f}")
print(models[8.0].guarantee_)

# %% picture
import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 3, sharey=True)
for axis, (epsilon, model) in zip(axes, models.items(), strict=True):
    axis.scatter(*X[::10].T, s=3, c="#9aa5b1")
    for line in model.subspaces_[:, :, 0]:
        axis.plot(*np.outer(line, [-1.0, 1.0]), color="#b5361c")
    axis.set(title=f"epsilon = {epsilon}", aspect="equal")
