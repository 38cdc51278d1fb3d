"""
ROC and calibration curves
==========================

An ROC curve shows which trades between hits and false alarms a model offers.  A calibration curve
shows whether its probabilities hold: of the rows with 30 %, three in ten should be *yes*.  Both
are made from the decisions that a sweep has recorded on the test rows of its splits.
"""

# %%
# Three of the thirty features of the breast cancer table, which do not suffice to tell all cases.
import tempfile

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_breast_cancer

import mkldist
from mkldist import analysis, plot

plt.style.use("tableau-colorblind10")

data = load_breast_cancer(as_frame=True)
x = data.data[["mean texture", "mean symmetry", "mean fractal dimension"]]
y = data.target.map({0: "malignant", 1: "benign"})

# %%
# The sweep runs in a temporary folder.  ``workers=0`` lets this process do the work.
spec = {
    "name": "curves",
    "datasets": [{"name": "tumours", "classes": ["benign", "malignant"]}],
    "splits": {"train_fraction": 0.5, "repeats": 10},
    "banks": [{"family": "default"}],
    "methods": [{"name": "level", "C": 1}, {"name": "best_single", "C": 1}],
    "outputs": {"predictions": True},
}
temporary = tempfile.TemporaryDirectory()  # removed at the end
folder = f"{temporary.name}/curves"
tree = mkldist.sweep(spec, data={"tumours": (x, y)}, output=folder, workers=0, progress=False)
auc = {method: tree[f"tumours/{method}"].auc.mean().item() for method in ("level", "best_single")}
print(auc)

# %%
# ``prediction_curves`` returns tables; ``mkldist.plot`` draws them.
methods = ("level", "best_single")
found = {method: analysis.prediction_curves(folder, "tumours", method) for method in methods}


def table(curve):
    """Return the table of a curve of all methods."""
    return pd.concat(found[method][curve].assign(method=method) for method in methods)


fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4.3), layout="constrained")
plot.roc(table("roc"), ax=left)
plot.calibration(table("calibration"), ax=right)
left.set(xlabel="false alarms: share of the benign", ylabel="hits: share of the malignant")
right.set(xlabel="probability of malignant", ylabel="share that was malignant")
left.legend(loc="lower right")
plt.show()

# %%
# Bands are one standard deviation over ten splits.  The probabilities of a split come from a
# sigmoid that is fitted to the decisions on the others.
#
# **Take away.**  The ROC curve judges the order of the decision values, the calibration curve the
# numbers.  A model may be good at one and bad at the other.  For probabilities of new rows give an
# estimator ``calibration="sigmoid"``, or ``mkldist fit`` the option ``--calibrate``.
#
# Read on: :doc:`/explanation/probabilities`.
