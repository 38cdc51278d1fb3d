"""
Several classes
===============

More than two classes are learnt one against the rest.  Kernel weights are then either shared by
all classes, or learnt for each.  Weights of each class tell which features make out that class.
"""

# %%
# Three sorts of wine, and a Gaussian kernel on each of 13 measurements.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import mkldist
from mkldist.kernels import Gaussian

plt.style.use("tableau-colorblind10")

data = load_wine()
sorts = np.array(["sort A", "sort B", "sort C"])[data.target]
kernels = [Gaussian(relative_widths=1, features="each")]
shared = mkldist.MKLClassifier(kernels=kernels, C=0.3)
apart = mkldist.MKLClassifier(kernels=kernels, C=0.3, shared_weights=False)

# %%
# The weights of all rows.
rows = []
for model in (shared, apart):
    weights = model.fit(data.data, sorts).kernel_weights_
    per_class = weights.groupby("class") if "class" in weights else [("all classes", weights)]
    rows += [(name, part.weight.to_numpy() / part.weight.sum()) for name, part in per_class]

fig, ax = plt.subplots(figsize=(8.5, 4), layout="constrained")
image = ax.imshow([row for _, row in rows], cmap="cividis", vmin=0)
ax.set_xticks(range(13), [name.replace("_", " ") for name in data.feature_names], rotation=45)
plt.setp(ax.get_xticklabels(), ha="right", rotation_mode="anchor")
ax.set_yticks(range(len(rows)), ["shared", *(f"{name} alone" for name, _ in rows[1:])])
fig.colorbar(image, ax=ax, label="share of the weights", shrink=0.7)
plt.show()

# %%
# Out-of-fold predictions of both, as confusion matrices.
folds = StratifiedKFold(5, shuffle=True, random_state=0)
fig, axes = plt.subplots(1, 2, figsize=(7.5, 3.4), layout="constrained")
for ax, model, title in zip(axes, (shared, apart), ("shared", "of each class"), strict=True):
    predicted = cross_val_predict(model, data.data, sorts, cv=folds)
    ConfusionMatrixDisplay.from_predictions(
        sorts, predicted, ax=ax, cmap="cividis_r", colorbar=False
    )
    ax.set(title=f"weights {title}")
plt.show()

# %%
# **Take away.**  Weights of each class explain more: sort B is known by its colour, sort A by its
# proline.  Shared weights give one answer to *which kernels*, and take less time.  Their
# predictions differ little here.
#
# Read on: :doc:`/howto/more_than_two_classes`.
