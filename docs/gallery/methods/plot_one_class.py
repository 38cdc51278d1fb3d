"""
One class
=========

All training rows are normal, and new rows are to be judged: normal or not.  ``OneClassMKL`` learns
a region that holds most training rows.  ``C`` says how many may lie outside, and the widths of the
kernels say how closely the region follows the rows.
"""

# %%
# Normal rows form two clusters.  Test rows are normal ones, and outliers all over the square.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

import mkldist
from mkldist.kernels import Gaussian

plt.style.use("tableau-colorblind10")

rng = np.random.default_rng(0)


def normal(n):
    """Return n normal rows."""
    middle = np.where(np.arange(n)[:, None] % 2 == 0, [-1.5, -1.0], [1.5, 1.0])
    return middle + rng.normal(size=(n, 2)) * [0.5, 0.8]


x, inner, outer = normal(200), normal(200), rng.uniform(-4, 4, size=(200, 2))

# %%
# The default kernels, and narrower ones.  The titles say which share of the training rows lies
# outside.
choices = {
    "default kernels, C = 100": mkldist.OneClassMKL(C=100),
    "narrower kernels, C = 100": mkldist.OneClassMKL(C=100, kernels=[Gaussian([0.7, 1])]),
    "narrower kernels, C = 1000": mkldist.OneClassMKL(C=1000, kernels=[Gaussian([0.7, 1])]),
}
first, second = np.meshgrid(np.linspace(-4, 4, 100), np.linspace(-4, 4, 100))
grid = np.column_stack([first.ravel(), second.ravel()])
fig, axes = plt.subplots(1, 3, figsize=(10, 4), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, choices.items(), strict=True):
    values = model.fit(x).decision_function(grid).reshape(first.shape)
    ax.contourf(first, second, values, levels=[0, np.inf], colors=["#cfe3f1"])
    ax.contour(first, second, values, levels=[0], colors="C0")
    ax.plot(*x.T, "k.", markersize=3, label="training rows")
    ax.plot(*outer.T, "x", color="C1", markersize=4, label="outliers (test)")
    values = model.decision_function(np.vstack([inner, outer]))
    auc = roc_auc_score(np.repeat([1, 0], 200), values)
    share = np.mean(model.predict(x) == -1)
    ax.set(title=f"{name}\n{share:.0%} outside, AUC {auc:.3f}", xlabel="first feature")
    print(model.kernel_weights_.query("weight > 0")[["name", "weight"]])
axes[0].set_ylabel("second feature")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()

# %%
# The AUC is that of 200 normal rows and 200 outliers, none of which was trained on.
#
# **Take away.**  Choose ``C`` by the share of normal rows that you may reject, which needs no
# outlier.  Choose the widths with care: without outliers nothing tells the method that a region is
# too wide, and it gives the weight to the widest kernel.  Offer only widths that you would accept.
#
# Read on: :doc:`/howto/one_class`.
