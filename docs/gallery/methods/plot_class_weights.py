"""
Class weights
=============

Where one row in ten is *yes*, a method that minimises the sum of the losses may say *no* to nearly
all.  Class weights multiply ``C`` row by row.  They move the boundary, and trade missed cases
against false alarms.
"""

# %%
# Two overlapping classes; 40 of 400 training rows are of the rare one.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import balanced_accuracy_score, recall_score

import mkldist

plt.style.use("tableau-colorblind10")


def draw(n, rng):
    """Return rows and labels; one row in ten is of class 1."""
    y = (np.arange(n) % 10 == 0).astype(int)
    return rng.normal(size=(n, 2)) * [1.2, 1.0] + np.outer(y, [1.5, 1.0]), y


rng = np.random.default_rng(0)
(x, y), (x_test, y_test) = draw(400, rng), draw(4000, rng)

# %%
# ``class_weight={1: 3}`` lets each row of class 1 weigh three times; ``"balanced"`` is nine here.
choices = [1, 2, 3, 5, 9, 15, 30]
models = {w: mkldist.MKLClassifier(C=0.3, class_weight={1: w}).fit(x, y) for w in choices}
balanced = mkldist.MKLClassifier(C=0.3, class_weight="balanced").fit(x, y)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
first, second = np.meshgrid(np.linspace(-4, 5, 120), np.linspace(-3.2, 4, 120))
grid = np.column_stack([first.ravel(), second.ravel()])
for label, marker, colour in ((0, "o", "0.8"), (1, "^", "k")):
    left.plot(*x[y == label].T, marker, color=colour, markersize=4, label=f"class {label}")
for w, style, colour in ((1, "-", "C0"), (3, "--", "C1"), (9, "-.", "C5")):
    values = models[w].decision_function(grid).reshape(first.shape)
    left.contour(first, second, values, levels=[0], colors=colour, linestyles=style)
    left.plot([], [], color=colour, linestyle=style, label=f"boundary, weight {w}")
left.set(xlabel="first feature", ylabel="second feature")
left.legend(fontsize="small")

predicted = {w: model.predict(x_test) for w, model in models.items()}
for name, score, marker in (
    ("found of class 1 (sensitivity)", lambda p: recall_score(y_test, p), "^-"),
    ("left alone of class 0 (specificity)", lambda p: recall_score(y_test, p, pos_label=0), "o-"),
    ("balanced accuracy", lambda p: balanced_accuracy_score(y_test, p), "ks--"),
    ("accuracy", lambda p: np.mean(p == y_test), "d:"),
):
    right.semilogx(choices, [100 * score(predicted[w]) for w in choices], marker, label=name)
right.set_xticks(choices, choices)
right.minorticks_off()
right.set(xlabel="weight of class 1", ylabel="share of 4,000 test rows (%)", ylim=(0, 101))
right.legend(fontsize="small", loc="lower right")
plt.show()
found = balanced_accuracy_score(y_test, balanced.predict(x_test))
print(f'class_weight="balanced": balanced accuracy {found:.3f}')

# %%
# **Take away.**  Accuracy is highest where the rare class is nearly ignored, so do not judge by
# it.  Balanced weights are near the best balanced accuracy.  If a missed case costs five times a
# false alarm, a weight of five says just that.
#
# Read on: :doc:`/explanation/unequal_classes`, :doc:`/howto/unbalanced_classes`.
