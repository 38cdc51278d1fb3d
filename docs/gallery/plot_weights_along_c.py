"""
Kernel weights along C
======================

One call solves for all values of C.  Larger values fit the training rows more closely, and usually
take more kernels.
"""

# %%
# The breast cancer data of scikit-learn, and a Gaussian kernel on every single feature.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import mkldist
from mkldist.kernels import Gaussian

x, y = load_breast_cancer(return_X_y=True)
x = StandardScaler().fit_transform(x)[::2]
y = np.where(y[::2] == 0, 1, -1)  # malignant is +1
bank = mkldist.KernelBank(x, [Gaussian(relative_widths=1, features="each")])

# %%
# ``solve_path`` returns one solution for each value of C.
values_of_c = [0.01, 0.1, 1, 10]
solutions = mkldist.solve_path("spicymkl", bank, y, C=values_of_c)
fig, ax = plt.subplots()
ax.semilogx(values_of_c, [solution.kernel_weights for solution in solutions])
ax.set(xlabel="C", ylabel="kernel weight")
fig.show()
