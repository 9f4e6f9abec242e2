import numpy as np

from privclust.metrics import segmentation_error
from privclust.segmentation import SSC
from privclust.synthetic.subspaces import random_subspaces

X, y = random_subspaces(25, 4, 3, 10, np.random.default_rng(0), noise=0.02)

model = SSC(n_clusters=3, random_state=0).fit(X)
used = (model.coefficients_ != 0).sum(axis=0)
print(f"segmentation error {segmentation_error(y, model.labels_):.3f}")
print(f"a sample is a combination of {used.mean():.1f} others on average")

# an offset makes the subspaces affine; then coefficients shall sum to one
offsets = np.random.default_rng(1).normal(size=(3, 10))
for affine in (False, True):
    labels = SSC(n_clusters=3, affine=affine, random_state=0).fit_predict(X + offsets[y])
    print(f"off the origin, affine={affine}: error {segmentation_error(y, labels):.3f}")

# %% picture
import matplotlib.pyplot as plt

figure, axis = plt.subplots()
image = axis.imshow(np.abs(model.coefficients_), cmap="Greys", vmax=0.5)
axis.set(xlabel="sample", ylabel="is used by", title="coefficients, sorted by subspace")
figure.colorbar(image)
