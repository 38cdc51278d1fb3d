"""
A sweep, drawn by xarray
========================

Results of a sweep are an ``xarray.DataTree`` with named dimensions: splits, hyperparameters,
kernels.  So most questions are one line: select, average over the splits, plot.
"""

# %%
# A sweep over C and over the norm p of the weights, in a temporary folder.
import tempfile

import matplotlib.pyplot as plt

import mkldist

plt.style.use("tableau-colorblind10")

spec = {
    "name": "grid",
    "datasets": [{"name": "wdbc", "n_points": 250}],
    "splits": {"train_fraction": 0.6, "repeats": 5},
    "banks": [
        {
            "name": "gaussians",
            "kernels": [
                {
                    "function": "gaussian",
                    "relative_widths": [0.5, 1, 2],
                    "features": ["all", "each"],
                }
            ],
        }
    ],
    "methods": [{"name": "lp_mkl", "C": [0.001, 0.01, 0.1, 1, 10], "p": [1.1, 1.5, 2, 4]}],
}
temporary = tempfile.TemporaryDirectory()  # removed at the end
folder = f"{temporary.name}/grid"
tree = mkldist.sweep(spec, output=folder, workers=0, progress=False)
node = tree["wdbc/lp_mkl"].to_dataset()
print(dict(node.test_error.sizes))

# %%
# A map of the error, and its lines.  Labels and units come from the results.
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
mean = node.balanced_error.mean("split", keep_attrs=True)
mean.plot.pcolormesh(ax=left, x="C", xscale="log", yscale="log", cmap="cividis", vmin=0, vmax=0.3)
mean.plot.line(ax=right, x="C", hue="p", xscale="log", marker="o")
left.set(title="balanced error, mean of 5 splits")
right.set(title="the same as lines", ylim=(0, None))
plt.show()

# %%
# Coordinates of the kernels are names to group by.  Here are the weights of p = 1.1, added up by
# width.
weights = node.kernel_weights.sel(p=1.1)
share = (weights / weights.sum("kernel")).mean("split")
by_width = share.groupby("relative_width").sum().load()
active = node.active_kernels.mean("split", keep_attrs=True)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
by_width.plot.line(ax=left, x="C", hue="relative_width", xscale="log", marker="o")
left.set(title="p = 1.1", ylabel="share of the weights [1]", ylim=(0, 1.4))
active.plot.line(ax=right, x="C", hue="p", xscale="log", marker="o")
right.set(title="of 93 kernels", ylim=(0, None))
plt.show()

# %%
# **Take away.**  ``tree["DATA/METHOD"].variable`` is an array with names.  ``sel`` and ``isel``
# select, ``mean("split")`` averages, ``groupby`` groups kernels, ``plot`` draws.  The errors are
# means of five splits of the same rows: small differences between settings mean nothing.
#
# Read on: :doc:`/explanation/results_tree`.
