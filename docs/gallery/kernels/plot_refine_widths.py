"""
Widths refined where weights stand
==================================

Argyriou, Hauser, Micchelli and Pontil (2006) learn the width of a Gaussian kernel as a continuous
number: among all widths they add the one that improves the combination most.  A bank that is
refined around the kernels with weight comes as near as one likes, by certified solutions alone.
"""

# %%
# The boundary is coarse along one feature and fine along another.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import mkldist
from mkldist.kernels import Gaussian

plt.style.use("tableau-colorblind10")

rng = np.random.default_rng(0)
x = pd.DataFrame(rng.uniform(-1, 1, size=(300, 2)), columns=["coarse", "fine"])
y = np.where(np.sin(2 * x.coarse) + 0.7 * np.sin(12 * x.fine) > 0, 1.0, -1.0)


def solved(widths):
    """Return the solution on one kernel for each feature and width, and its (feature, width)."""
    kernels = [Gaussian(own.tolist(), features=[name]) for name, own in widths.items()]
    bank = mkldist.KernelBank(x, kernels, normalisation="none")
    places = [(name, width) for name, own in widths.items() for width in own]
    return mkldist.solve("level", bank, y, C=10.0, tol=1e-4), places


# %%
# It starts from four widths for each feature.  In each round widths with weight get two neighbours,
# halfway to the next ones in logarithms; the others stay, as they cost little.  The optimum can
# only fall, for every bank holds the one before.
widths = {name: np.geomspace(0.02, 20, 4) for name in x}
rounds = []
while True:
    solution, places = solved(widths)
    rounds.append((len(places), solution.objective, places, solution.kernel_weights))
    if len(rounds) > 1 and rounds[-2][1] - rounds[-1][1] < 1e-3 * solution.objective:
        break
    for (name, width), weight in zip(places, solution.kernel_weights, strict=True):
        if weight > 1e-3:
            i = np.searchsorted(widths[name], width)
            near = widths[name][max(i - 1, 0) : i + 2]
            widths[name] = np.union1d(widths[name], np.sqrt(near[1:] * near[:-1]))

# %%
# A grid of a hundred widths for each feature is the yardstick.
dense, _ = solved({name: np.geomspace(0.02, 20, 100) for name in x})
for number, (size, objective, *_) in enumerate(rounds, 1):
    print(f"round {number}: {size:3} kernels, objective {objective:.3f}")
print(f"dense:   200 kernels, objective {dense.objective:.3f}, at least {dense.dual_objective:.3f}")

# %%
# Weight at the smallest width is no scale of the data: a kernel that is nearly the identity lets
# single points be wrong at less cost, as a ridge does.
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.plot([size for size, *_ in rounds], [one[1] for one in rounds], "o-", label="refined")
left.axhline(dense.objective, color="0.5", ls=":", label="200 kernels")
left.set(xlabel="kernels", ylabel="objective", title="objective at C = 10")
left.legend()
_, _, places, weights = rounds[-1]
for name, mark in zip(x, "os", strict=True):
    own = [(width, d) for (at, width), d in zip(places, weights, strict=True) if at == name]
    right.semilogx(*zip(*own, strict=True), mark, ls="-", label=f"{name} feature")
right.set(xlabel="width", ylabel="kernel weight", title="weights in the last round")
right.legend()
plt.show()

# %%
# **Take away.**  Thirty kernels that stand where weights are do what a grid of two hundred does.
# Where weight gathers at an end of the range, a wider one may do better.
#
# Read on: :doc:`/howto/choose_c_and_widths`.
