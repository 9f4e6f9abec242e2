import warnings

import numpy as np

from privclust.mixtures import GaussianMixtureEM, PrivateGaussianMixture
from privclust.privacy import NoiseWarning
from privclust.synthetic.planar import three_gaussians

warnings.simplefilter("ignore", NoiseWarning)  # small epsilons are here to be seen to fail

rng = np.random.default_rng(0)
X, _ = three_gaussians(20_000, rng)
held_out, _ = three_gaussians(20_000, rng)

start = [[-0.4, -0.4], [0.4, -0.4], [0.0, 0.4]]
best = GaussianMixtureEM(3, covariance_type="spherical", random_state=0).fit(X).score(held_out)
epsilons, scores = [0.1, 0.3, 1.0, 3.0, 10.0], []
for epsilon in epsilons:
    model = PrivateGaussianMixture(
        3,
        covariance_type="spherical",
        epsilon=epsilon,
        delta=1e-6,
        norm_bound=1.0,
        means_init=start,
        random_state=0,  # repeats this page; leave it out for a release
    ).fit(X)
    scores.append(model.score(held_out))
    print(f"epsilon {epsilon}: {best - scores[-1]:.3f} nats a row below EM")

printed = PrivateGaussianMixture(
    3, variant="paper", mean_noise="laplace", norm_bound=1.0, random_state=0
).fit(X)
print("as printed:", printed.guarantee_.definition)

# %% picture
import matplotlib.pyplot as plt

figure, axis = plt.subplots()
axis.axhline(best, color="black", linestyle="--", label="EM, not private")
axis.semilogx(epsilons, scores, "o-", color="#b5361c", label="joint noise, delta = 1e-6")
axis.set(xlabel="epsilon", ylabel="test log-likelihood a row")
axis.legend()
