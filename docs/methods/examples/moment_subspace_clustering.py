import warnings

import numpy as np

from privclust.metrics import wasserstein_distance
from privclust.privacy import NoiseWarning
from privclust.subspaces import MomentSubspaceClustering, SuLQKPlanes
from privclust.synthetic.subspaces import subspace_mixture

warnings.simplefilter("ignore", NoiseWarning)  # small epsilons are here to be seen to fail

epsilons = [0.1, 0.3, 1.0, 3.0]
distances = {"moment sketch": [], "SuLQ, 10 rounds": []}
for epsilon in epsilons:
    of_moments, of_sulq = [], []
    for seed in range(4):  # repeats this page; leave random_state out for a release
        X, _, truth = subspace_mixture(5_000, 3, 5, 3, np.random.default_rng(seed), noise=0.01)
        budget = {"epsilon": epsilon, "delta": 1e-5, "random_state": seed}
        model = MomentSubspaceClustering(3, 3, **budget).fit(X)
        of_moments.append(wasserstein_distance(model.subspaces_, truth))
        rounds = SuLQKPlanes(3, 3, norm_bound=1.1, **budget).fit(X)
        of_sulq.append(wasserstein_distance(rounds.subspaces_, truth))
    distances["moment sketch"].append(np.mean(of_moments))
    distances["SuLQ, 10 rounds"].append(np.mean(of_sulq))
for name, means in distances.items():
    print(f"{name}: mean distances", np.round(means, 3))
print("expected by the last fit itself:", np.round(np.sqrt((model.errors_**2).sum()), 3))
print(model.guarantee_)

# %% picture
import matplotlib.pyplot as plt

figure, axis = plt.subplots()
for name, means in distances.items():
    axis.loglog(epsilons, means, "o-", label=name)
axis.set(xlabel="epsilon", ylabel="distance to the true subspaces")
axis.legend()
