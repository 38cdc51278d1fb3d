"""
Thin factors in place of Gram matrices
======================================

A Gram matrix on ``n`` rows has ``n²`` values.  With ``backend="factors"`` the bank keeps a thin
factor of each kernel, some columns of ``n`` values.  ``exact_gap`` then bounds how far the
solution is from the optimum with the kernels *themselves*.  The figure shows how many columns are
enough.
"""

# %%
# Nine Gaussian kernels on 800 rows.
import warnings

import matplotlib.pyplot as plt
import numpy as np

import mkldist
from mkldist.errors import ConvergenceWarning
from mkldist.kernels import Gaussian

plt.style.use("tableau-colorblind10")

rng = np.random.default_rng(0)
x = rng.normal(size=(1000, 4))
y = np.where(np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * rng.normal(size=1000) > 0, 1, -1)
train, test = slice(0, 800), slice(800, 1000)
groups = {"wave": ["x0"], "product": ["x1", "x2"], "all four": ["x0", "x1", "x2", "x3"]}
kernels = [Gaussian(relative_widths=[0.5, 1, 2], features=list(groups))]

# %%
# First the Gram matrices, then factors of more and more columns.  ``rank`` limits the columns.
# Without this limit, those that lack too much grow until the exact gap is within ``tol``.
exact = mkldist.KernelBank(x[train], kernels, groups=groups)
reference = mkldist.solve("level", exact, y[train], C=1.0)
values = reference.decision_function(exact.on(x[test]))

ranks = [10, 20, 40, 80, 160]
gaps, agreement = [], []
for rank in ranks:
    bank = mkldist.KernelBank(x[train], kernels, groups=groups, backend="factors", rank=rank)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the rank limit keeps the gap large
        solution = mkldist.solve("level", bank, y[train], C=1.0)
    gaps.append(solution.exact_gap)
    found = solution.decision_function(bank.on(x[test]))
    agreement.append(np.mean(np.sign(found) == np.sign(values)))

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
left.loglog(ranks, gaps, "o-", label="exact gap on factors")
left.axhline(reference.gap, color="C1", linestyle="--", label="gap on Gram matrices")
left.axhline(0.01, color="0.5", linestyle=":", label="tolerance, 0.01")
left.set(ylabel="relative gap to the optimum\nwith the kernels themselves")
left.legend(loc="lower left", bbox_to_anchor=(0, 0.08))
right.semilogx(ranks, 100 * np.array(agreement), "s-", color="C0")
right.set(ylabel="equal decisions on 200 test rows (%)", ylim=(None, 100.5))
for axes in (left, right):
    axes.set_xticks(ranks, ranks)
    axes.minorticks_off()
    axes.set(xlabel="columns of a factor, of 800")
plt.show()

# %%
# **Take away.**  Factors are an approximation that says how good it is.  The exact gap is a bound,
# and a cautious one: decisions agree long before it is small.  On some hundred rows Gram matrices
# are the better choice; factors are for many thousands, where matrices do not fit in memory.
#
# Read on: :doc:`/tutorials/many_points`, :doc:`/howto/out_of_memory`.
