import numpy as np

from privclust.mixtures import AdaptiveGaussianMixture, GaussianMixtureEM

rng = np.random.default_rng(0)
X = np.concatenate(
    [
        rng.multivariate_normal([-3.0, 0.0], [[2.0, 1.2], [1.2, 1.0]], 3_000),
        rng.multivariate_normal([3.0, 1.0], [[0.02, 0.0], [0.0, 0.5]], 1_000),
        rng.multivariate_normal([0.0, -4.0], [[0.3, 0.0], [0.0, 0.3]], 2_000),
    ]
)

reference = GaussianMixtureEM(3, n_init=5, random_state=0).fit(X)
# random_state=0 repeats this page; leave it out for a release, so that noise has no seed
model = AdaptiveGaussianMixture(3, epsilon=1.0, delta=1e-6, norm_bound=30.0, random_state=0).fit(X)
print(f"log-likelihood per row: EM {reference.score(X):.3f}, private {model.score(X):.3f}")
print(model.means_.round(2))
print(model.guarantee_)

# %% picture
import matplotlib.pyplot as plt

figure, axis = plt.subplots()
axis.scatter(*X[::5].T, s=3, c="#9aa5b1", label="every fifth row")
angles = np.linspace(0.0, 2.0 * np.pi, 100)
circle = np.stack([np.cos(angles), np.sin(angles)])
for label, fitted, style in (("EM", reference, "k--"), ("private", model, "r-")):
    for mean, covariance in zip(fitted.means_, fitted.covariances_, strict=True):
        ellipse = mean[:, None] + 2.0 * np.linalg.cholesky(covariance) @ circle
        axis.plot(*ellipse, style, label=label)
        label = None
axis.set_aspect("equal")
axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
