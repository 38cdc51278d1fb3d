"""
Weights of modalities
=====================

Patients have three tables: clinical values, genes and images.  Which table carries the decision?
The kernel weights, added up by table, give one answer; what is lost without a table gives another.
This script draws both, over ten splits, on data whose truth is known.
"""

# %%
# The clinical values and the genes tell about two different causes of the disease.  The images
# repeat what the clinical values say, with more noise.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

import mkldist

plt.style.use("tableau-colorblind10")

rng = np.random.default_rng(3)
n = 400
first, second = rng.normal(size=(2, n))
y = np.where(first + second + 0.5 * rng.normal(size=n) > 0, "ill", "well")
clinical = first[:, None] + 0.7 * rng.normal(size=(n, 4))
genes = rng.normal(size=(n, 30))
genes[:, :4] += second[:, None]  # four of thirty
images = first[:, None] + 1.5 * rng.normal(size=(n, 10))
x = np.hstack([clinical, genes, images])
views = {"clinical": slice(0, 4), "genes": slice(4, 34), "images": slice(34, 44)}

# %%
# ``views`` names the columns of each table, and ``features="views"`` makes kernels of each.
names = list(views)
splits = list(StratifiedShuffleSplit(10, test_size=0.5, random_state=0).split(x, y))
weight, lost, errors = np.zeros((10, 3)), np.zeros((10, 3)), np.zeros(10)


def fit(columns, train):
    """Return a model that sees the tables of some names."""
    chosen = {name: views[name] for name in columns}
    kernels = [{"function": "gaussian", "relative_widths": [1, 2, 4], "features": "views"}]
    return mkldist.MKLClassifier(views=chosen, kernels=kernels).fit(x[train], y[train])


for s, (train, test) in enumerate(splits):
    model = fit(names, train)
    errors[s] = 1 - model.score(x[test], y[test])
    table = model.kernel_weights_
    weight[s] = [table.weight[table.features == name].sum() / table.weight.sum() for name in names]
    for v, name in enumerate(names):
        others = [other for other in names if other != name]
        lost[s, v] = 1 - fit(others, train).score(x[test], y[test]) - errors[s]
print(f"test error with all tables: {errors.mean():.1%}")

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for axes, values, label in (
    (left, 100 * weight, "share of the kernel weights (%)"),
    (right, 100 * lost, "error gained without the table (% points)"),
):
    jitter = np.linspace(-0.12, 0.12, 10)
    axes.bar(names, values.mean(axis=0), color=["C0", "C1", "C4"], alpha=0.6)
    for v in range(3):
        axes.plot(v + jitter, values[:, v], "k.", markersize=4)
    axes.set(ylabel=label)
    axes.axhline(0, color="k", linewidth=0.8)
plt.show()

# %%
# A dot is one split.  The splits share rows, so their spread is no confidence interval.
#
# **Take away.**  Weights say what this model used; they do not say what cannot be spared.  The
# genes are needed, because nothing else knows the second cause.  Clinical values and images say
# the same, so the model does nearly as well without either.  The images have more weight, although
# each of their columns is noisier.  Look at both numbers before you drop a table.
#
# Read on: :doc:`/explanation/sources`.
