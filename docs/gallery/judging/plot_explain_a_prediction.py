"""
Explaining one prediction
=========================

The decision function is a sum over kernels, so a single prediction can be taken apart.  If every
kernel is on one feature, each feature has a part of its own, and the parts add up to the decision
value exactly.
"""

# %%
# A classifier with two widths for each feature of the breast cancer table.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import mkldist
from mkldist.kernels import Gaussian

plt.style.use("tableau-colorblind10")

data = load_breast_cancer(as_frame=True)
y = data.target.map({0: "malignant", 1: "benign"})
x_train, x_test, y_train, y_test = train_test_split(data.data, y, random_state=0, stratify=y)
model = mkldist.MKLClassifier(kernels=[Gaussian(relative_widths=[1, 2], features="each")], C=0.3)
model.fit(x_train, y_train)
print(f"test error {1 - model.score(x_test, y_test):.1%}, gap {model.gap_:.1e}")

# %%
# Two tumours: the one that is most clearly malignant, and the one that is nearest to the boundary.
values = model.decision_function(x_test)  # above zero: malignant, the second of classes_
rows = {"clearest case": values.argmax(), "nearest to the boundary": np.abs(values).argmin()}
parts = model.contributions(x_test)
assert np.allclose(parts.sum(axis=1), values)

# %%
fig, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for ax, (title, row) in zip(axes, rows.items(), strict=True):
    own = parts.iloc[row]
    features = own.drop("intercept")
    largest = features.abs().nlargest(9).index
    shown = own[largest]
    shown["21 other features"] = features.drop(largest).sum()
    shown["intercept"] = own["intercept"]
    ends = shown.cumsum()
    colours = ["C1" if part > 0 else "C0" for part in shown]
    ax.barh(shown.index, shown, left=ends - shown, color=colours)
    for place, part in enumerate(shown):
        at = ax.get_yaxis_transform()
        ax.text(
            0.99, place, f"{part:+.2f}", transform=at, ha="right", va="center", fontsize="small"
        )
    ax.axvline(0, color="k", linewidth=0.8)
    ax.axvline(values[row], color="k", linestyle="--", linewidth=0.8)
    ax.invert_yaxis()
    ax.use_sticky_edges = False
    ax.margins(x=0.2)
    truth = y_test.iloc[row]
    ax.set(title=f"{title} (truly {truth})\ndecision value {values[row]:+.2f}")
    ax.set_xlabel("decision value, added up from the top")
plt.show()

# %%
# Orange parts speak for malignant, blue ones for benign.
#
# **Take away.**  The parts are exact, not an estimate.  They explain the model, and not the
# disease: of two features that say the same, either may have the part of both.  ``mkldist predict
# --explain`` adds such parts to a table of predictions.
#
# Read on: :doc:`/howto/explain_a_prediction`.
