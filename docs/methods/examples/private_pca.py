import warnings

import numpy as np

from privclust.embedding import PrivatePCA
from privclust.privacy import NoiseWarning

warnings.simplefilter("ignore", NoiseWarning)  # small epsilons are here to be seen to fail

rng = np.random.default_rng(0)
X = rng.normal(0.0, [0.5, 0.3, 0.05, 0.05, 0.05], (3_000, 5))
X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
exact = np.linalg.eigh(X.T @ X)[1][:, -2:]

epsilons = [0.01, 0.03, 0.1, 0.3, 1.0]
captured = {"gaussian": [], "exponential": [], "mod_sulq": []}
for mechanism, shares in captured.items():
    for epsilon in epsilons:
        model = PrivatePCA(
            2,
            epsilon=epsilon,
            delta=1e-6,
            mechanism=mechanism,
            norm_bound=1.0,
            random_state=1,  # repeats this page; leave it out for a release
        ).fit(X)
        shares.append(((X @ model.components_.T) ** 2).sum() / ((X @ exact) ** 2).sum())
    print(f"{mechanism:12}", np.round(shares, 2), model.guarantee_.definition)

# %% picture
import matplotlib.pyplot as plt

figure, axis = plt.subplots()
for mechanism, shares in captured.items():
    axis.semilogx(epsilons, shares, "o-", label=mechanism)
axis.set(xlabel="epsilon", ylabel="squares captured, in parts of PCA's", ylim=(0.0, 1.05))
axis.legend()
