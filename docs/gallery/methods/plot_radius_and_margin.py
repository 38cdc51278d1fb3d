"""
Radius and margin beside test errors
====================================

The error of an SVM is bounded by R²/γ²: the squared radius of the ball around the points over the
squared margin.  R-MKL (Do et al. 2009) minimises this ratio over kernel weights, where other
methods minimise the margin's part alone.  How well does the ratio tell which kernel errs least?
"""

# %%
# One Gaussian kernel at a time.  With a single kernel all methods solve the same SVM, and
# ``radius_margin`` is the cost (11) of the paper: R² times half of the squared norm, plus slacks.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import mkldist
from mkldist.kernels import Gaussian

plt.style.use("tableau-colorblind10")

x, y = load_breast_cancer(return_X_y=True)
y = np.where(y == 0, 1.0, -1.0)
widths = np.geomspace(0.5, 64, 15)


def judged(kernels, train, test):
    """Return the cost (11) of R-MKL on some kernels, and its test error."""
    scaler = StandardScaler().fit(x[train])
    bank = mkldist.KernelBank(scaler.transform(x[train]), kernels, normalisation="none")
    found = mkldist.solve("rmkl", bank, y[train], C=1.0)
    values = found.decision_function(bank.on(scaler.transform(x[test])))
    return found.extra["radius_margin"], np.mean(np.sign(values) != y[test])


# %%
# Five halves of the data, every width by itself, and R-MKL on all of them.
alone, together = np.empty((5, len(widths), 2)), np.empty((5, 2))
for seed in range(5):
    train, test = train_test_split(np.arange(len(y)), train_size=0.5, stratify=y, random_state=seed)
    for i, width in enumerate(widths):
        alone[seed, i] = judged([Gaussian(width)], train, test)
    together[seed] = judged([Gaussian(widths.tolist())], train, test)
costs, errors = alone.mean(axis=0).T
print(f"least cost at width {widths[np.argmin(costs)]:.1f}, error {errors[np.argmin(costs)]:.2%}")
print(f"least error at width {widths[np.argmin(errors)]:.1f}, error {errors.min():.2%}")
print(f"R-MKL on all widths: error {together[:, 1].mean():.2%}")

# %%
fig, (left, right) = plt.subplots(2, 1, figsize=(7, 5), sharex=True, layout="constrained")
left.loglog(widths, costs, "o-", label="one width")
left.axhline(together[:, 0].mean(), color="0.4", ls=":", label="R-MKL on all")
left.set(ylabel="cost (11)", title="radius and margin")
left.legend()
right.errorbar(widths, 100 * errors, 100 * alone[..., 1].std(axis=0, ddof=1), fmt="o-", capsize=3)
right.axhline(100 * together[:, 1].mean(), color="0.4", ls=":")
right.set(xlabel="width", ylabel="test error %", xscale="log")
plt.show()

# %%
# **Take away.**  The ratio finds the region of good widths without held-out data.  Its least value
# lies next to the least error, not at it: where there are rows for inner folds, choose by these.
#
# Read on: :doc:`/howto/choose_c_and_widths` and :doc:`/explanation/choosing_a_method`.
