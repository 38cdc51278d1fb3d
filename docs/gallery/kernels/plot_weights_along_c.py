"""
Kernel weights along C
======================

``C`` weighs the training errors.  A larger ``C`` fits the training rows more closely, and it
changes which kernels have a weight.  One call of ``mkldist.solve_path`` solves for all values of
``C``, each from the last solution, and says how near each solution is to the optimum.
"""

# %%
# The data are the breast cancer table of scikit-learn.  The bank has one Gaussian kernel for every
# feature, so that a kernel weight is the weight of a feature.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import mkldist
from mkldist.kernels import Gaussian

plt.style.use("tableau-colorblind10")

data = load_breast_cancer()
train, test = np.arange(0, 569, 2), np.arange(1, 569, 2)
scaler = StandardScaler().fit(data.data[train])
x, x_test = scaler.transform(data.data[train]), scaler.transform(data.data[test])
y = np.where(data.target == 0, 1, -1)  # malignant is +1
bank = mkldist.KernelBank(x, [Gaussian(relative_widths=1, features="each")])

# %%
# Seventeen values of C, from weak to strong.
values_of_c = np.logspace(-2, 2, 17)
solutions = mkldist.solve_path("level", bank, y[train], C=values_of_c, tol=1e-3)
weights = np.array([solution.kernel_weights for solution in solutions])
print("largest relative gap:", max(solution.gap for solution in solutions))

# %%
# The seven kernels that are ever largest have names; the others are grey.
largest = np.argsort(weights.max(axis=0))[::-1][:7]
errors = [
    np.mean(np.sign(solution.decision_function(bank.on(x_test))) != y[test])
    for solution in solutions
]
fig, (top, middle, bottom) = plt.subplots(
    3, 1, figsize=(7, 7), sharex=True, height_ratios=[3, 1, 1], layout="constrained"
)
top.semilogx(values_of_c, np.delete(weights, largest, axis=1), color="0.8", linewidth=1)
markers = "osD^v<>"
for number, kernel in enumerate(largest):
    name = data.feature_names[kernel]
    top.semilogx(values_of_c, weights[:, kernel], marker=markers[number], markersize=4, label=name)
top.set(ylabel="kernel weight (sum is 1)")
top.legend(ncols=2, fontsize="small")
middle.semilogx(values_of_c, [len(solution.active()) for solution in solutions], "k.-")
middle.set(ylabel="active kernels\nof 30", ylim=(0, 30))
bottom.semilogx(values_of_c, 100 * np.array(errors), "k.-")
bottom.set(xlabel="C", ylabel="test error (%)", ylim=(0, None))
plt.show()

# %%
# **Take away.**  Kernel weights belong to a value of ``C``: report both.  Features that say the
# same, such as radius, perimeter and area here, take weight from each other, so a weight of zero
# does not mean that a feature is useless.  The test error changes little over a wide range of
# ``C``; it comes from one split, and differences of one per cent on 284 rows are within chance.
#
# Read on: :doc:`/howto/choose_c_and_widths`.
