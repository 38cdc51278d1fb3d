"""
C here and C of scikit-learn
============================

``C`` of mkldist is ``C`` of ``sklearn.svm.SVC``, but on kernels that were normalised.  So the same
number may mean something else.  We convert between them, and show that the decision values are
then equal.
"""

# %%
# One Gaussian kernel, for which scikit-learn solves the same problem.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import mkldist
from mkldist.kernels import Gaussian

plt.style.use("tableau-colorblind10")

x, y = load_breast_cancer(return_X_y=True)
x, y = StandardScaler().fit_transform(x), np.where(y == 0, 1, -1)
x_train, y_train, x_test = x[::2], y[::2], x[1::2]
width, C = 5.0, 1.0
svc = SVC(gamma=1 / (2 * width**2), C=C, tol=1e-6).fit(x_train, y_train)
expected = svc.decision_function(x_test)

# %%
# A normalisation divides the Gram matrix K by a number s, so C has to be multiplied by it.  For
# ``"trace"`` this is the trace, n for a Gaussian.  For ``"variance"`` it is the variance in
# feature space: the mean of the diagonal minus the mean of the matrix.
squares = ((x_train[:, None] - x_train[None]) ** 2).sum(axis=2)
K = np.exp(-squares / (2 * width**2))
factors = {"none": 1.0, "variance": K.diagonal().mean() - K.mean(), "trace": np.trace(K)}
print(factors)


def values(normalisation, C):
    """Return decision values of mkldist on the test rows."""
    bank = mkldist.KernelBank(x_train, [Gaussian(width)], normalisation=normalisation)
    solution = mkldist.solve("uniform", bank, y_train, C=C, tol=1e-6)
    return solution.decision_function(bank.on(x_test))


# %%
fig, axes = plt.subplots(1, 2, figsize=(8.5, 4.2), sharey=True, layout="constrained")
titles = "the same number, C = 1", "C = 1, multiplied by s"
for ax, title, converted in zip(axes, titles, (False, True), strict=True):
    for (name, s), marker in zip(factors.items(), "o^s", strict=True):
        found = values(name, C * s if converted else C)
        size = {"none": 9, "variance": 6, "trace": 3}[name]
        ax.plot(
            expected, found, marker, fillstyle="none", markersize=size, label=f"{name}, s = {s:.3g}"
        )
        if converted:
            print(f"{name}: largest difference {np.abs(found - expected).max():.1e}")
    ax.axline((0, 0), slope=1, color="0.6", zorder=0)
    ax.set(title=title, xlabel="decision value of SVC(C=1)")
axes[0].set_ylabel("decision value of mkldist")
axes[0].legend(title="normalisation")
plt.show()

# %%
# **Take away.**  With ``normalisation="none"`` a ``C`` of scikit-learn may be kept.  With the
# default, ``"variance"``, it changes by a small factor.  With ``"trace"`` it has to be multiplied
# by about the number of training rows; whoever keeps ``C = 1`` there gets a function that hardly
# fits the data.
#
# Read on: :doc:`/explanation/normalisation_and_c`.
