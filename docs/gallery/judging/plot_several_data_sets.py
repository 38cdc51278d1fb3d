"""
Ranks over several data sets
============================

One data set cannot say which method to prefer in general.  Over several, each method has a rank on
each, and Nemenyi's critical difference says how far mean ranks must lie apart.
"""

# %%
# Six small data sets of different kinds, and five methods, in one sweep.
import tempfile

import matplotlib.pyplot as plt

import mkldist
from mkldist import analysis, plot

plt.style.use("tableau-colorblind10")

names = ["wdbc", "wine", "iris", "two_moons", "ringnorm", "twonorm"]
spec = {
    "name": "ranks",
    "datasets": [{"name": name} for name in names],
    "splits": {"train_fraction": 0.7, "repeats": 4, "n_train": 60},
    "banks": [{"family": "default"}],
    "methods": [
        {"name": "level", "C": 1},
        {"name": "uniform", "C": 1},
        {"name": "align", "C": 1},
        {"name": "best_single", "C": 1},
        {"name": "majority"},
    ],
}
temporary = tempfile.TemporaryDirectory()  # removed at the end
folder = f"{temporary.name}/ranks"
tree = mkldist.sweep(spec, output=folder, workers=0, progress=False)

# %%
# The mean error of each method on each data set, and Friedman's test that all ranks are equal.
found = analysis.compare_over_data_sets(tree)
print((100 * found.losses).round(1))
print(found.ranks)

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(10.5, 3.6), layout="constrained")
looks = plot.looks_of(found.losses.columns)
for method, errors in found.losses.items():
    look = looks[method]
    left.plot(100 * errors, errors.index, look.marker, color=look.colour, label=method)
left.set(xscale="log", xlabel="test error (%)")
left.set_xticks([1, 2, 5, 10, 20, 50], [1, 2, 5, 10, 20, 50])
left.minorticks_off()
left.grid(axis="y", color="0.9")
plot.comparison(tree, looks=looks, ax=right)
plt.show()

# %%
# Bars of methods that do not overlap differ, at the level of 5 %.
#
# **Take away.**  With six data sets the critical difference is two and a half ranks: even *always
# the larger class*, last on each of them, is hardly told from the others.  Choose a method by what
# you need (few kernels, many kernels, time), and let your own data decide between two of them.
#
# Read on: :doc:`/howto/several_data_sets`, :doc:`/explanation/statistics`.
