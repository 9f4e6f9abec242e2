import numpy as np

from privclust.mixtures import GaussianMixtureEM

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(-1.0, 1.0, (600, 1)), rng.normal(1.8, 0.7, (400, 1))])

model = GaussianMixtureEM(2, tol=1e-6, reg_covar=0.0, max_iter=200, random_state=0).fit(X)
print("weights", model.weights_.round(3), "means", model.means_.ravel().round(2))
print(f"{model.n_iter_} iterations; the smallest gain of one is", end=" ")
print(f"{np.diff(model.lower_bounds_).min():.1e}")

# %% picture
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2)
grid = np.linspace(-5.0, 5.0, 300)
left.hist(X.ravel(), bins=50, density=True, color="#cbd2d9")
left.plot(grid, np.exp(model.score_samples(grid[:, None])), color="#0b5394")
left.set(title="rows and density")
right.plot(model.lower_bounds_, ".-", color="#0b5394")
right.set(title="log-likelihood a row", xlabel="iteration")
