"""
Time against the number of kernels
==================================

How long will ten times as many kernels take?  A list in ``n_kernels`` and ``execution =
"isolated"`` measure it: one run after the other, alone on one processor.  A line through the
logarithms says how the time grows.
"""

# %%
# Four sizes of one bank, each within the next one, and three methods.
import tempfile

import matplotlib.pyplot as plt

import mkldist
from mkldist import analysis, plot

plt.style.use("tableau-colorblind10")

spec = {
    "name": "times",
    "execution": "isolated",
    "datasets": [{"name": "wdbc", "n_points": 200}],
    "splits": {"train_fraction": 0.5, "repeats": 3},
    "banks": [
        {
            "name": "random",
            "n_kernels": [30, 100, 300, 1000],
            "kernels": [
                {
                    "function": "gaussian",
                    "relative_widths": [0.25, 0.5, 1, 2],
                    "features": [{"count": 250}],
                }
            ],
        }
    ],
    "methods": [{"name": name, "C": 1} for name in ("level", "simplemkl", "uniform")],
}
temporary = tempfile.TemporaryDirectory()  # removed at the end
folder = f"{temporary.name}/times"
tree = mkldist.sweep(spec, output=folder, workers=0, progress=False)
fits = analysis.scaling_fits(tree).query("part == 'run'")
print(fits[["method", "exponent", "low", "high", "smallest", "largest"]].round(2))

# %%
fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
plot.scaling(tree, ax=ax)
plt.show()

# %%
# A mark is one split.  The exponent ``k`` in the legend belongs to ``seconds = a size^k``.
# Seconds are those of the solver and its passes; the kernels were computed before.
#
# **Take away.**  The time of ``level`` and ``simplemkl`` grows less than the number of kernels,
# because they work on few and read all only to certify.  The time of ``uniform``, which reads each
# kernel once, grows much faster.  Measure a short list of sizes on your own data before you ask
# for a million kernels; ``mkldist scale`` prints the fits and their intervals.
#
# Read on: :doc:`/tutorials/scaling_study`, :doc:`/explanation/size_and_time`.
