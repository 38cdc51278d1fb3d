"""
Decision boundaries of three methods
====================================

Three ways to use the same eight kernels: the best one alone, the mean of all, and weights that are
learnt.  On two features the difference can be seen.
"""

# %%
# The label depends on a wave along the first feature, and on a slope along the second.
import matplotlib.pyplot as plt
import numpy as np

import mkldist
from mkldist.kernels import Gaussian

plt.style.use("tableau-colorblind10")

rng = np.random.default_rng(1)
x = rng.uniform(-3, 3, size=(1600, 2))
y = np.where(x[:, 1] > 1.3 * np.sin(2.5 * x[:, 0]), 1, -1)
y[rng.random(1600) < 0.05] *= -1  # five in a hundred labels are wrong
train, check, test = slice(0, 300), slice(300, 600), slice(600, 1600)
bank = mkldist.KernelBank(x[train], [Gaussian(relative_widths=[0.1, 0.3, 1, 3], features="each")])


def error(solution, rows):
    """Return the share of rows that are decided wrongly."""
    return np.mean(np.sign(solution.decision_function(bank.on(x[rows]))) != y[rows])


# %%
# ``best_single`` chooses its kernel by cross-validation.  Every method has the C that is best on
# 300 rows set aside: one and the same C would favour one of them.
methods = {
    "best_single": "best single kernel",
    "uniform": "mean of all kernels",
    "level": "learnt weights",
}
edge = np.linspace(-3, 3, 80)
grid = np.stack(np.meshgrid(edge, edge), axis=-1).reshape(-1, 2)
fig, axes = plt.subplots(1, 3, figsize=(10, 4.1), sharey=True, layout="constrained")
for ax, (method, title) in zip(axes, methods.items(), strict=True):
    solutions = {C: mkldist.solve(method, bank, y[train], C=C) for C in (0.3, 1.0, 3.0, 10.0)}
    C = min(solutions, key=lambda C: error(solutions[C], check))
    solution = solutions[C]
    values = solution.decision_function(bank.on(grid)).reshape(80, 80)
    levels = np.linspace(-2, 2, 17)
    image = ax.contourf(edge, edge, values, levels=levels, cmap="PuOr_r", extend="both")
    ax.contour(edge, edge, values, levels=[0], colors="k")
    ax.plot(edge, 1.3 * np.sin(2.5 * edge), "k:", linewidth=1)
    for label, marker in ((1, "^"), (-1, "o")):
        chosen = y[train] == label
        ax.plot(*x[train][chosen].T, marker, color="w", markeredgecolor="k", markersize=3)
    found = (
        f"{len(solution.active())} of 8 kernels, C = {C:g}\ntest error {error(solution, test):.1%}"
    )
    ax.set(title=f"{title}\n{found}", xlabel="first feature")
axes[0].set_ylabel("second feature")
fig.colorbar(image, ax=axes, label="decision value", ticks=[-2, -1, 0, 1, 2])
plt.show()

# %%
# The solid line is the boundary that was learnt, the dotted one the truth; triangles are class +1.
#
# **Take away.**  One kernel on one feature cannot see both features.  The mean of all kernels can,
# and so can learnt weights.  With a ``C`` of its own, the mean is a strong rival wherever most
# kernels help; what the weights add here is that fewer kernels are needed.
#
# Read on: :doc:`/explanation/choosing_a_method`.
