import numpy as np

from privclust.metrics import l2_error, segmentation_error
from privclust.segmentation import MTSC, SBL
from privclust.synthetic.subspaces import random_subspaces

X, y = random_subspaces(16, 11, 4, 26, np.random.default_rng(3))
models = {
    "SBL": SBL(n_clusters=4, random_state=0).fit(X),
    "MTSC": MTSC(n_clusters=4, random_state=0).fit(X),
}
for name, model in models.items():
    errors = l2_error(model.coefficients_, y), segmentation_error(y, model.labels_)
    print("{}: l2 error {:.3f}, segmentation error {:.3f}".format(name, *errors))
print(f"a task shares its prior with {models['MTSC'].effective_tasks_:.1f} others")

# %% picture
import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2)
for axis, (name, model) in zip(axes, models.items(), strict=True):
    affinity = model.affinity_matrix_
    axis.imshow(affinity, cmap="Greys", vmax=np.quantile(affinity, 0.98))
    axis.set(title=f"{name}: affinity", xlabel="sample, by subspace")
