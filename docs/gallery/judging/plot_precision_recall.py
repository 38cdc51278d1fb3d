"""
Precision and recall on unequal classes
=======================================

Of 100 rows, four are *yes*.  Two models have nearly the same AUC, and yet an alarm of the one is
worth more than an alarm of the other.  The precision–recall curve shows it.
"""

# %%
# The ROC curve divides false alarms by the many *no*, precision divides hits by all alarms.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)
from sklearn.model_selection import train_test_split

import mkldist
from mkldist.kernels import Gaussian, Linear

plt.style.use("tableau-colorblind10")

x, y = make_classification(
    4000,
    12,
    n_informative=4,
    n_redundant=0,
    weights=[0.96],
    flip_y=0,
    class_sep=0.7,
    random_state=3,
)
x_train, x_test, y_train, y_test = train_test_split(
    x, y, train_size=500, stratify=y, random_state=0
)
print(f"{y_train.sum()} of 500 training rows and {y_test.sum()} of 3,500 test rows are yes")

# %%
choices = {
    "linear": [Linear()],
    "Gaussians, learnt weights": [Gaussian(relative_widths=[0.5, 1, 2], features=["all", "each"])],
}
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for (name, kernels), style in zip(choices.items(), ("--", "-"), strict=True):
    model = mkldist.MKLClassifier(kernels=kernels, class_weight="balanced").fit(x_train, y_train)
    values = model.decision_function(x_test)
    alarms, hits, _ = roc_curve(y_test, values)
    left.plot(alarms, hits, style, label=f"{name}\nAUC {roc_auc_score(y_test, values):.2f}")
    precision, recall, _ = precision_recall_curve(y_test, values)
    mean = average_precision_score(y_test, values)
    right.plot(recall, precision, style, label=f"{name}\naverage precision {mean:.2f}")
left.axline((0, 0), slope=1, color="0.6", linestyle=":")
right.axhline(np.mean(y_test), color="0.6", linestyle=":", label="guessing")
left.set(xlabel="false positive rate", ylabel="true positive rate (recall)", title="ROC")
right.set(xlabel="recall", ylabel="precision", ylim=(0, 1.02), title="precision and recall")
left.legend(loc="lower right")
right.legend(loc="upper right", fontsize="small")
plt.show()

# %%
# **Take away.**  Where *yes* is rare, report average precision beside AUC, and the share of *yes*,
# which is the precision of guessing.  In a sweep, ``metric = "average_precision"`` selects by it.
# The curves are those of one split.
#
# Read on: :doc:`/explanation/unequal_classes`.
