"""
Convergence of five methods
===========================

Five methods solve the same problem: the hinge loss, and kernel weights in the simplex.  They reach
the same optimum by different ways.  With ``trace=True`` a solution records its bounds in every
iteration, and the relative gap between them shows the way.
"""

# %%
# 90 kernels on a third of the breast cancer table of scikit-learn.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import mkldist
from mkldist import plot
from mkldist.kernels import Gaussian

plt.style.use("tableau-colorblind10")

x, y = load_breast_cancer(return_X_y=True)
x, y = StandardScaler().fit_transform(x)[::3], np.where(y[::3] == 0, 1, -1)
bank = mkldist.KernelBank(x, [Gaussian(relative_widths=[0.5, 1, 2], features="each")])

# %%
# A small tolerance, so that the end of the way is seen too.
methods = ["level", "silp", "simplemkl", "hessianmkl", "skm"]
solutions = {
    method: mkldist.solve(method, bank, y, C=1.0, tol=1e-4, trace=True) for method in methods
}
for method, solution in solutions.items():
    print(f"{method:>11}: objective {solution.objective:.4f}, gap {solution.gap:.1e}")

# %%
# ``mkldist.plot.convergence`` draws a table of them, and the traces of a sweep too.
names = ["passes", "seconds", "gap"]
table = pd.concat(
    pd.DataFrame({name: solution.trace[name] for name in names}).assign(method=method)
    for method, solution in solutions.items()
)
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, against in ((left, "passes"), (right, "seconds")):
    plot.convergence(table, against, ax=ax)
    ax.set_xscale("log")
    ax.axhline(0.01, color="0.5", linestyle=":", zorder=0)
left.set(xlabel="passes over all 90 kernels")
left.annotate("default tolerance", (1, 0.01), (0, 3), textcoords="offset points", color="0.4")
right.set(xlabel="seconds on one processor (s)", ylabel="")
right.get_legend().remove()
plt.show()

# %%
# **Take away.**  Every method ends with the same objective, up to its gap, so the choice among
# them is one of time.  Passes count on every machine alike; they decide where the kernels do not
# fit in memory.  Seconds are those of one run, and of a small problem.
#
# Read on: :doc:`/explanation/certificates`, :doc:`/howto/look_at_convergence`.
