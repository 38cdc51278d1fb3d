"""
Many random kernels, few of them read
=====================================

Most of many candidate kernels do not belong to the solution.  mkldist works on a small *working
set*, and reads all kernels only to check that none is missing.  Near the optimum it can also
*screen* kernels: it proves that their weight is zero.  The figure shows both along ``C``.
"""

# %%
# Each kernel is a Gaussian on a random subset of the 13 features of the wine data, of which we
# tell one class from the others.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

import mkldist
from mkldist.kernels import Gaussian

plt.style.use("tableau-colorblind10")

x, y = load_wine(return_X_y=True)
x = StandardScaler().fit_transform(x)
y = np.where(y == 1, 1, -1)
bank = mkldist.KernelBank(
    x, [Gaussian(relative_widths=[0.5, 1], features=[{"count": 300, "size": 4}])], seed=1
)
print(bank)

# %%
# SpicyMKL with the working set, and as its paper prints it: every iteration reads all kernels.  A
# small tolerance gives the proofs a chance.
values_of_c = np.logspace(-1, 1, 7)
ours = [mkldist.solve("spicymkl", bank, y, C=C, tol=1e-5) for C in values_of_c]
printed = [
    mkldist.solve("spicymkl", bank, y, C=C, tol=1e-5, acceleration="none") for C in values_of_c
]

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.semilogx(values_of_c, [len(one.active()) for one in ours], "s--", label="active")
screened = [one.extra["screened"] for one in ours]
left.semilogx(values_of_c, screened, "o-", label="proven to have weight 0")
left.axhline(len(bank), color="0.5", linewidth=1)
left.annotate("all kernels", (values_of_c[-1], len(bank)), (-60, -12), textcoords="offset points")
left.set(xlabel="C", ylabel="kernels")
left.legend(loc="upper right", bbox_to_anchor=(1, 0.9))
passes = [one.counters.passes for one in printed]
right.loglog(values_of_c, passes, "^-", color="C3", label="as printed")
passes = [one.counters.passes for one in ours]
right.loglog(values_of_c, passes, "o-", color="C0", label="with a working set")
right.set(xlabel="C", ylabel="passes over all kernels", ylim=(1, 100))
right.legend()
plt.show()

# %%
# **Take away.**  You may offer many more kernels than you believe in: time follows the few that a
# solution needs.  The working set saves most of the passes at every ``C``.  Screening excludes
# nearly all kernels where ``C`` is small, and none where it is large.  Both lose nothing: the gap
# is that of the problem with all kernels.
#
# Read on: :doc:`/explanation/certificates`.
