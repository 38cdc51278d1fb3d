"""
Selecting groups of kernels
===========================

Often kernels come in groups: several widths of a Gaussian on the same columns.  ``level`` selects
single kernels, and so takes one width here and another there.  ``group_mkl`` selects whole groups.
The figure shows the weights of both, kernel by kernel.
"""

# %%
# Eight groups of three features each.  The label depends on the first two groups.
import matplotlib.pyplot as plt
import numpy as np

import mkldist
from mkldist.kernels import Gaussian

plt.style.use("tableau-colorblind10")

rng = np.random.default_rng(1)
x = rng.normal(size=(240, 24))
score = np.linalg.norm(x[:, :3], axis=1) - 1.6 + 0.8 * x[:, 3:6].sum(axis=1)
y = np.where(score + 0.3 * rng.normal(size=240) > 0, 1, -1)
groups = {f"group {g + 1}": list(range(3 * g, 3 * g + 3)) for g in range(8)}
widths = [0.25, 0.5, 1, 2, 4]
bank = mkldist.KernelBank(
    x, [Gaussian(relative_widths=widths, features=[name]) for name in groups], groups=groups
)

# %%
# Kernels on the same features form a group.  ``groups=`` of ``mkldist.solve`` would name other
# groups.
solutions = {
    "level: single kernels": mkldist.solve("level", bank, y, C=0.3),
    "group_mkl: whole groups": mkldist.solve("group_mkl", bank, y, C=0.3),
}
fig, axes = plt.subplots(1, 2, figsize=(8, 4), sharey=True, layout="constrained")
for ax, (title, solution) in zip(axes, solutions.items(), strict=True):
    weights = (solution.kernel_weights / solution.kernel_weights.sum()).reshape(8, 5)
    image = ax.imshow(weights, cmap="cividis", vmin=0, vmax=0.4, aspect="auto")
    ax.set_xticks(range(5), widths)
    ax.set_yticks(range(8), groups)
    ax.set(title=title, xlabel="width (spreads of the features)")
    for (row, column), value in np.ndenumerate(weights):
        if value > 0.005:
            colour = "w" if value < 0.25 else "k"
            ax.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour)
fig.colorbar(image, ax=axes, label="share of the weights")
plt.show()

# %%
# **Take away.**  Use ``group_mkl`` when the question is *which table, pathway or column*: all
# kernels of a group come in or stay out together.  Use ``level`` when the width itself is to be
# selected.  Both come with a certificate of their own problem.
#
# Read on: :doc:`/howto/kernels_on_groups_of_features`.
