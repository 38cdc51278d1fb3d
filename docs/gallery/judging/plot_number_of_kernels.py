"""
Error against the number of kernels
===================================

Do more candidate kernels help, or do they only invite overfitting?  A list in ``n_kernels`` makes
banks of several sizes, each within the next one.  We follow the error of three methods, and the
number of kernels that they use.
"""

# %%
# Gaussian kernels on random subsets of features, one sweep in a temporary folder.
import tempfile

import matplotlib.pyplot as plt

import mkldist
from mkldist import plot

plt.style.use("tableau-colorblind10")

spec = {
    "name": "kernels",
    "datasets": [{"name": "wdbc", "n_points": 200}],
    "splits": {"train_fraction": 0.8, "repeats": 6},
    "banks": [
        {
            "name": "random",
            "n_kernels": [3, 10, 30, 100, 300],
            "kernels": [
                {
                    "function": "gaussian",
                    "relative_widths": [0.5, 1, 2],
                    "features": [{"count": 100, "size": 2}],
                }
            ],
        }
    ],
    "methods": [
        {"name": "level", "C": 1},
        {"name": "uniform", "C": 1},
        {"name": "best_single", "C": 1},
    ],
}
temporary = tempfile.TemporaryDirectory()  # removed at the end
folder = f"{temporary.name}/kernels"
tree = mkldist.sweep(spec, output=folder, workers=0, progress=False)
joined = mkldist.concat(tree, "n_kernels")

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.9), layout="constrained")
plot.loss(tree, "n_kernels", ax=left)
left.set(xlabel="candidate kernels", ylim=(0, None))
left.legend()
methods = ["best_single", "level", "uniform"]
looks = plot.looks_of(methods)
for method in methods:
    active = joined[f"wdbc/{method}"].active_kernels.squeeze().mean("split")
    look = {"color": looks[method].colour, "marker": looks[method].marker}
    right.loglog(active.n_kernels, active, **look, label=method)
right.set(xlabel="candidate kernels", ylabel="active kernels (mean of the splits)")
right.legend()
plt.show()

# %%
# The bands are 95 % intervals by Nadeau and Bengio, for splits that share rows.
#
# **Take away.**  Many candidates do no harm here: the error of learnt weights falls, and then
# stays where it is.  The mean of all kernels has about the same error, but it needs all of them
# for every new row; the number of kernels with learnt weights grows far more slowly than that of
# candidates.
#
# Read on: :doc:`/tutorials/scaling_study`.
