"""
Few labels on a graph
=====================

Labels are dear and rows are cheap: of 200 rows, ten have a label.  Semi-supervised methods join
neighbouring rows in a graph, and ask for a function that changes little along its edges.  So rows
without labels say where the boundary may not go.
"""

# %%
# Two half moons, with five labels in each.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import mkldist

plt.style.use("tableau-colorblind10")


def draw(n_labels, seed):
    """Return rows, all labels, and labels with -1 where none is given."""
    x, y = make_moons(200, noise=0.12, random_state=seed)
    rng = np.random.default_rng(seed)
    known = np.concatenate(
        [rng.permutation(np.flatnonzero(y == c))[: n_labels // 2] for c in (0, 1)]
    )
    few = np.full(200, -1)
    few[known] = y[known]
    return x, y, few


models = {
    "labelled rows alone (rls)": mkldist.SemiSupervisedMKLClassifier("rls", gamma_a=0.01),
    "with the graph (lapmkl)": mkldist.SemiSupervisedMKLClassifier(
        "lapmkl", gamma_a=0.01, gamma_i=0.1, graph={"neighbours": 10}
    ),
}

# %%
# The boundary of each on one of the ten draws below, with errors near their means.
x, y, few = draw(10, seed=3)
first, second = np.meshgrid(np.linspace(-1.6, 2.6, 100), np.linspace(-1.1, 1.6, 100))
grid = np.column_stack([first.ravel(), second.ravel()])
fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    values = model.fit(x, few).decision_function(grid).reshape(first.shape)
    ax.contourf(first, second, values > 0, levels=[-0.5, 0.5, 1.5], colors=["#cfe3f1", "#ffe3c6"])
    ax.contour(first, second, values, levels=[0], colors="k")
    for label, marker, colour in ((0, "o", "C0"), (1, "^", "C1")):
        ax.plot(*x[y == label].T, marker, color="0.6", markersize=3)
        chosen = few == label
        ax.plot(*x[chosen].T, marker, color=colour, markeredgecolor="k", markersize=9)
    wrong = np.mean(model.predict(x[few == -1]) != y[few == -1])
    ax.set(title=f"{name}\nerror on rows without a label {wrong:.1%}", xlabel="first feature")
axes[0].set_ylabel("second feature")
plt.show()

# %%
# Ten draws for each number of labels.
numbers = [4, 10, 20, 40]
errors = np.empty((len(models), len(numbers), 10))
for c, n_labels in enumerate(numbers):
    for seed in range(10):
        x, y, few = draw(n_labels, seed)
        hidden = few == -1
        for m, model in enumerate(models.values()):
            errors[m, c, seed] = np.mean(model.fit(x, few).predict(x[hidden]) != y[hidden])
fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for m, name in enumerate(models):
    mean = 100 * errors[m].mean(axis=1)
    half = 100 * 1.96 * errors[m].std(axis=1, ddof=1) / np.sqrt(10)
    ax.errorbar(numbers, mean, yerr=half, marker="o^"[m], capsize=3, label=name)
ax.set(xlabel="labelled rows of 200", ylabel="error on rows\nwithout a label (%)", ylim=(0, None))
ax.legend()
plt.show()

# %%
# The bars are 95 % intervals over independent draws.
#
# **Take away.**  With few labels the graph saves many errors here, because the classes are two
# connected shapes.  It can harm where neighbours often are of different classes.  Compare with
# ``rls``, which sees the labelled rows alone, before you trust the graph.
#
# Read on: :doc:`/tutorials/few_labels`.
