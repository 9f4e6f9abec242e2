import numpy as np

from privclust.datasets.synthetic import subspace_mixture
from privclust.metrics import wasserstein_distance
from privclust.subspaces import SuLQKPlanes

rng = np.random.default_rng(0)
X, _, truth = subspace_mixture(5_000, 3, 5, 3, rng, noise=0.01)

epsilons = [0.3, 1.0, 3.0, 10.0]
distances = {1: [], 5: []}
for n_init, means in distances.items():
    for epsilon in epsilons:
        found = []
        for seed in range(5):  # repeats this page; leave random_state out for a release
            model = SuLQKPlanes(
                3, 3, epsilon=epsilon, delta=1e-5, n_init=n_init, norm_bound=1.1, random_state=seed
            ).fit(X)
            found.append(wasserstein_distance(model.subspaces_, truth))
        means.append(np.mean(found))
    print(f"starts: {n_init}, mean distances of five fits:", np.round(means, 2))
print(model.guarantee_)

# %% picture
import matplotlib.pyplot as plt

figure, axis = plt.subplots()
for n_init, means in distances.items():
    axis.loglog(epsilons, means, "o-", label=f"{n_init} starts, all paid for")
axis.set(xlabel="epsilon", ylabel="distance to the true subspaces")
axis.legend()
