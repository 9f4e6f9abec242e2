import numpy as np

from privclust.subspaces import GibbsSubspaceClustering

rng = np.random.default_rng(0)
angles = np.radians([10.0, 75.0, 130.0])[rng.integers(3, size=600)]
X = rng.uniform(-1.0, 1.0, (600, 1)) * np.stack([np.cos(angles), np.sin(angles)], axis=1)

models = {}
for epsilon in (1.0, 10.0, 100.0):
    models[epsilon] = GibbsSubspaceClustering(
        3,
        1,
        epsilon=epsilon,
        n_sweeps=300,
        record_every=1,
        norm_bound=1.0,
        random_state=0,  # repeats this page; leave it out for a release
    ).fit(X)
    cost = models[epsilon].diagnostics_["cost"][-1]
    print(f"epsilon {epsilon}: mean squared distance {cost:.4f}")
print(models[10.0].guarantee_)

# %% picture
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2)
for epsilon, model in models.items():
    left.semilogy(model.diagnostics_["cost"], label=f"epsilon = {epsilon}")
left.set(xlabel="sweep", ylabel="cost", ylim=(1e-9, 1.0))
left.legend(loc="lower right")
right.scatter(*X.T, s=3, c="#9aa5b1")
for line in models[100.0].subspaces_[:, :, 0]:
    right.plot(*np.outer(line, [-1.0, 1.0]), color="#b5361c")
right.set(title="epsilon = 100", aspect="equal")
