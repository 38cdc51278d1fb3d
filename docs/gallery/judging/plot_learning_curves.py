"""
Learning curves
===============

Would more rows help?  A list of sizes in ``n_train`` makes a study: each size lies within the next
one, and all have the same test rows.  The curves also show which method needs fewer rows.
"""

# %%
# One sweep in a temporary folder: four sizes, ten splits, three methods.
import tempfile

import matplotlib.pyplot as plt

import mkldist
from mkldist import analysis, plot

plt.style.use("tableau-colorblind10")

spec = {
    "name": "learning",
    "datasets": [{"name": "ringnorm", "options": {"n": 420}}],
    "splits": {"train_fraction": 0.8, "repeats": 10, "n_train": [40, 80, 160, 320]},
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
    "methods": [
        {"name": "level", "C": 1},
        {"name": "uniform", "C": 1},
        {"name": "best_single", "C": 1},
    ],
}
temporary = tempfile.TemporaryDirectory()  # removed at the end
folder = f"{temporary.name}/learning"
tree = mkldist.sweep(spec, output=folder, workers=0, progress=False)
curves = analysis.learning_curve(tree)
print(curves.query("method == 'level'")[["n_train", "mean", "low", "high", "n_splits"]])

# %%
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
plot.loss(curves, "n_train", ax=ax)
ax.set(xlabel="training rows", ylim=(0, None))
ax.set_xticks(spec["splits"]["n_train"], spec["splits"]["n_train"])
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# The bands are 95 % intervals by Nadeau and Bengio, for splits that share rows.  All sizes have
# the same test rows, so the bands of two sizes do not test their difference.
#
# **Take away.**  A curve that still falls at its end asks for more rows; one that has become flat
# asks for other kernels or features.  In these data one kernel on all features is right, and
# ``best_single`` finds it with few rows.  Learnt weights need more rows to find it, and the mean
# of all kernels never does.
#
# Read on: :doc:`/tutorials/scaling_study`.
