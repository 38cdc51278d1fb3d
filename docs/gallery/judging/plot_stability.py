"""
How stable is the selection of kernels?
=======================================

Another split of the same rows may select other kernels.  Before you tell a story about *the*
selected features, look at how often each is selected, and at one number for all: the stability of
Nogueira, Sechidis and Brown, which is 1 for equal selections and 0 for random ones.
"""

# %%
# Twenty splits, with a Gaussian kernel on each feature.  Three values of C select few, more and
# many.
import tempfile

import matplotlib.pyplot as plt
import numpy as np

import mkldist
from mkldist import analysis

plt.style.use("tableau-colorblind10")

spec = {
    "name": "stability",
    "datasets": [{"name": "wdbc", "n_points": 300}],
    "splits": {"train_fraction": 0.5, "repeats": 20},
    "banks": [
        {
            "name": "features",
            "kernels": [{"function": "gaussian", "relative_widths": [1], "features": "each"}],
        }
    ],
    "methods": [{"name": "level", "C": [0.03, 0.3, 3]}],
}
temporary = tempfile.TemporaryDirectory()  # removed at the end
folder = f"{temporary.name}/stability"
node = mkldist.sweep(spec, output=folder, workers=0, progress=False)["wdbc/level"]

# %%
# A kernel is selected if it has more than a thousandth of the largest weight.
weights = node.kernel_weights.load()
selected = weights > 0.001 * weights.max("kernel")
fig, axes = plt.subplots(
    1, 3, figsize=(10, 5.6), sharey=True, width_ratios=[1, 1, 1], layout="constrained"
)
order = np.argsort(-selected.mean(["split", "C"]).to_numpy(), kind="stable")
for ax, C in zip(axes, node.C.to_numpy(), strict=True):
    chosen = selected.sel(C=C).transpose("split", "kernel").to_numpy()
    ax.imshow(chosen[:, order].T, cmap="Blues", vmin=0, vmax=1.4, aspect="auto")
    found = analysis.selection_stability(chosen)
    interval = f"[{found.low:.2f}, {found.high:.2f}]"
    ax.set(title=f"C = {C:g}\nstability {found.mean:.2f} {interval}", xlabel="split")
axes[0].set_yticks(range(30), node.features.to_numpy()[order], fontsize="x-small")
plt.show()

# %%
# Blue: the split selects the kernel.  In brackets, the 95 % interval of the stability.
#
# **Take away.**  A feature that every split selects is worth a story; one that every third split
# selects may stand for a group of features that say the same.  Report the stability beside the
# list of selected kernels, and beside the error, at the same C.
#
# Read on: :doc:`/explanation/sources`.
