import numpy as np

from privclust.metrics import l2_error, segmentation_error
from privclust.segmentation import SBL, SSC
from privclust.synthetic.subspaces import random_subspaces

X, y = random_subspaces(16, 9, 4, 26, np.random.default_rng(0))
model = SBL(n_clusters=4, random_state=0).fit(X)
print(f"SBL: l2 error {l2_error(model.coefficients_, y):.4f}", end=", ")
print(f"segmentation error {segmentation_error(y, model.labels_):.3f}")

# samples of other lengths, as points of affine subspaces have once a one is appended
scales = np.random.default_rng(1).uniform(0.1, 10.0, (len(X), 1))
for fitted in (SBL(n_clusters=4).fit(X * scales), SSC(n_clusters=4, alpha=None).fit(X * scales)):
    error = l2_error(fitted.coefficients_, y)
    print(f"{type(fitted).__name__} on rescaled samples: l2 error {error:.4f}")

# %% picture
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2)
left.imshow(np.abs(model.coefficients_), cmap="Greys", vmax=0.5)
left.set(title="coefficients", xlabel="sample")
right.plot(model.objective_history_, color="#0b5394")
right.set(title="objective while the noise falls", xlabel="iteration")
