"""
Normalisations compared
=======================

Kernels have different units.  A polynomial kernel may have values of a thousand where a Gaussian
has values of one, and a method that adds them up sees mostly the former.  A normalisation brings
them to one scale before the weights are learnt.  The figure shows how much of the decision each
kernel takes under five of them.
"""

# %%
# Four kernels on the breast cancer table of scikit-learn.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

import mkldist
from mkldist.kernels import Gaussian, Linear, Polynomial

plt.style.use("tableau-colorblind10")

x, y = load_breast_cancer(return_X_y=True)
y = np.where(y == 0, 1, -1)
kernels = [Linear(), Polynomial(degrees=3), Gaussian(relative_widths=[0.25, 1])]
names = ["linear", "polynomial, degree 3", "Gaussian, narrow", "Gaussian, wide"]
normalisations = {
    "none": "none",
    "cosine": "cosine",
    "trace": "trace",
    "variance": "variance",
    "cosine, then variance": ["cosine", "variance"],
}
train, test = next(StratifiedShuffleSplit(1, test_size=0.5, random_state=0).split(x, y))
scaler = StandardScaler().fit(x[train])
x_train, x_test = scaler.transform(x[train]), scaler.transform(x[test])

# %%
# ``uniform`` gives every kernel the same weight.  So the spread of a kernel's part of the decision
# values shows what the normalisation alone does.  For each normalisation we draw the shares at the
# C of least test error, so that none suffers from a C that suits another.
values_of_c = np.logspace(-4, 5, 10)
shares = np.empty((len(normalisations), len(names)))
errors = np.empty((len(normalisations), len(values_of_c)))
for number, normalisation in enumerate(normalisations.values()):
    bank = mkldist.KernelBank(x_train, kernels, normalisation=normalisation)
    new = bank.on(x_test)
    solutions = [mkldist.solve("uniform", bank, y[train], C=C) for C in values_of_c]
    errors[number] = [
        np.mean(np.sign(solution.decision_function(new)) != y[test]) for solution in solutions
    ]
    solution = solutions[int(errors[number].argmin())]
    for kernel in range(len(names)):
        alone = np.zeros(len(names))
        alone[kernel] = solution.kernel_weights[kernel]
        shares[number, kernel] = new.decision_values(alone, solution.coefficients, 0.0).std()
shares /= shares.sum(axis=1, keepdims=True)

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
colours = plt.get_cmap("cividis")(np.linspace(0.05, 0.95, len(names)))
start = np.zeros(len(normalisations))
for kernel, name in enumerate(names):
    left.barh(
        list(normalisations), shares[:, kernel], left=start, color=colours[kernel], label=name
    )
    start += shares[:, kernel]
left.invert_yaxis()
left.set(xlabel="share of the spread of the decision values", xlim=(0, 1))
left.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.45, 1.0), fontsize="small")
for number, name in enumerate(normalisations):
    style = ["-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1))][number]
    right.semilogx(values_of_c, 100 * errors[number], linestyle=style, label=name)
right.set(xlabel="C", ylabel="test error (%)", ylim=(0, 40))
right.legend(fontsize="small")
plt.show()

# %%
# The errors are those of one split.
#
# **Take away.**  Without a normalisation the polynomial kernel decides alone.  It happens to do
# well on this table, but a bank of four kernels has become a single one.  With ``"variance"``, the
# default, each kernel has its say, and a good ``C`` lies near 1.  With ``"trace"``, as in most
# papers, a good ``C`` is some hundred times larger: it grows with the number of training rows.
#
# Read on: :doc:`/explanation/normalisation_and_c`.
