"""
Rates that papers prove, and rates that are met
===============================================

Two of the papers prove how fast their algorithm converges.  Xu et al. (2008, Theorem 3) bound the
iterations of the level method; Suzuki and Tomioka (2011, Theorem 1) show that SpicyMKL converges
faster than linearly.  Here both algorithms run as they were printed, beside what is proven.
"""

# %%
# 120 Gaussian kernels of single features, of trace 1 as in both papers.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import mkldist

plt.style.use("tableau-colorblind10")

x, y = load_breast_cancer(return_X_y=True)
x, y = StandardScaler().fit_transform(x)[::4], np.where(y[::4] == 0, 1.0, -1.0)
squared = (x.T[:, :, None] - x.T[:, None, :]) ** 2
grams = np.concatenate([np.exp(-squared / (2 * width**2)) for width in (0.5, 1, 2, 4)]) / len(y)

# %%
# **Level.**  The theorem says that the distance to the optimum is at most ε after
#
# .. math::
#
#    N \le \frac{2 c(\lambda) L^2}{\varepsilon^2}, \qquad
#    c(\lambda) = \frac{1}{(1-\lambda)^2 \lambda (2-\lambda)}, \qquad
#    L = \frac12 \sqrt{m n}\, C^2 \max_m \Lambda_{\max}(K_m)
#
# iterations, with m kernels, n points and the largest eigenvalue Λ.  ``near`` keeps λ at 0.9.
C, level = 100.0, 0.9
printed = mkldist.solve(
    "level", grams, y, C=C, tol=1e-4, acceleration="none", near=level, trace=True
)
distance = printed.trace["objective"] - printed.dual_objective
m, n = len(grams), len(y)
lipschitz = 0.5 * np.sqrt(m * n) * C**2 * np.linalg.eigvalsh(grams)[:, -1].max()
c = 1 / ((1 - level) ** 2 * level * (2 - level))
epsilon = np.geomspace(distance.max(), 1e-4 * printed.objective, 50)
iterations = [1 + int(np.argmax(distance <= one)) for one in epsilon]
print(f"to within 1 %: {iterations[np.argmax(epsilon <= 0.01 * printed.objective)]} iterations")
print(f"proven:        {2 * c * (lipschitz / (0.01 * printed.objective)) ** 2:.1e}")

# %%
# **SpicyMKL.**  γ doubles in every iteration.  Near the optimum the theorem has what is left shrink
# by a factor in proportion to 1/γ, so that each iteration does better than the one before.
spicy = mkldist.solve(
    "spicymkl", grams, y, C=2.0, tol=1e-10, acceleration="printed", gamma=1.0, trace=True
)
gap = spicy.trace["gap"]
ratio, number = gap[1:] / gap[:-1], np.arange(2, len(gap) + 1)

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.loglog(epsilon / printed.objective, iterations, label="iterations that it took")
left.loglog(
    epsilon / printed.objective, 2 * c * (lipschitz / epsilon) ** 2, "--", label="Theorem 3"
)
left.invert_xaxis()
left.set(title="level", xlabel="ε over the optimum", ylabel="iterations")
left.legend()
right.semilogy(number, ratio, "o-", label="gap over the last gap")
right.semilogy(
    number, ratio[-1] * 2.0 ** (number[-1] - number), "--", label=r"in proportion to 1/$\gamma$"
)
right.set(title="SpicyMKL", xlabel="outer iteration", ylabel="ratio", ylim=(0.5 * ratio[-1], 2))
right.legend()
plt.show()

# %%
# **Take away.**  The bound of the level method holds for any functions as steep as these, and is
# thousands of millions of times what one problem needs.  SpicyMKL's rate is seen once the active
# kernels have settled: from there each ratio is half of the one before.
#
# Read on: :doc:`/reference/methods/level`, :doc:`/reference/methods/spicymkl`,
# :doc:`/explanation/papers`.
