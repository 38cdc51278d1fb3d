"""
Choosing C without fooling oneself
==================================

Whoever tries five values of ``C`` and reports the best test error reports luck as well.  With
``[selection]`` a sweep chooses on inner folds of each training part, and the test part judges that
choice alone.  The figure shows the errors along ``C``, and both numbers of each split's own choice.
"""

# %%
# Few rows, so that luck plays a part: 60 training rows in each of six splits.
import tempfile

import matplotlib.pyplot as plt

import mkldist
from mkldist import plot

plt.style.use("tableau-colorblind10")

spec = {
    "name": "selection",
    "datasets": [{"name": "twonorm", "options": {"n": 100}}],
    "splits": {"train_fraction": 0.6, "repeats": 6},
    "selection": {"folds": 3},
    "banks": [
        {
            "name": "gaussians",
            "kernels": [{"function": "gaussian", "relative_widths": [0.5, 1], "features": "each"}],
        }
    ],
    "methods": [
        {"name": name, "C": [0.03, 0.1, 0.3, 1, 3]} for name in ("level", "uniform", "align")
    ],
}
temporary = tempfile.TemporaryDirectory()  # removed at the end
folder = f"{temporary.name}/selection"
tree = mkldist.sweep(spec, output=folder, workers=0, progress=False)
chosen = mkldist.to_frame(mkldist.selected(tree)).groupby("method")
errors = chosen[["validation_error", "test_error"]].mean()
print(errors.round(3))

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
plot.path(tree, ax=left)
left.set(title="mean error of 6 splits along C")
errors.plot.barh(ax=right)
right.set(title="the C that was chosen in each split")
plt.show()

# %%
# **Take away.**  The least test error along ``C`` is better than any honest choice reaches.  The
# error on inner folds is another number again: ``C`` was chosen by it, and inner folds train on
# fewer rows.  Report the test error of the chosen setting, and let the sweep choose in each split
# anew.
#
# Read on: :doc:`/howto/select_hyperparameters`.
