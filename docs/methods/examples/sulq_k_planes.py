import warnings

import numpy as np

from privclust.metrics import wasserstein_distance
from privclust.privacy import NoiseWarning
from privclust.subspaces import SuLQKPlanes
from privclust.synthetic.subspaces import subspace_mixture

warnings.simplefilter("ignore", NoiseWarning)  # small epsilons are here to be seen to fail

epsilons = [0.3, 1.0, 3.0, 10.0]
distances = {"zcdp": [], "classical": [], "mod_sulq": []}
for calibration, means in distances.items():
    for epsilon in epsilons:
        distances_of_runs = []
        for seed in range(4):  # repeats this page; leave random_state out for a release
            rng = np.random.default_rng(seed)
            X, _, truth = subspace_mixture(5_000, 3, 5, 3, rng, noise=0.01)
            model = SuLQKPlanes(
                3,
                3,
                epsilon=epsilon,
                delta=1e-5,
                calibration=calibration,
                norm_bound=1.1,
                random_state=seed,
            ).fit(X)
            distances_of_runs.append(wasserstein_distance(model.subspaces_, truth))
        means.append(np.mean(distances_of_runs))
    print(f"{calibration}: mean distances", np.round(means, 2))
    print(f"  asked for epsilon 10, spent {model.guarantee_.epsilon:.2f}")

# %% picture
import matplotlib.pyplot as plt

figure, axis = plt.subplots()
for calibration, means in distances.items():
    axis.loglog(epsilons, means, "o-", label=calibration)
axis.set(xlabel="epsilon", ylabel="distance to the true subspaces")
axis.legend()
