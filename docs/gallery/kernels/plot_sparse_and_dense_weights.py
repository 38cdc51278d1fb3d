"""
Sparse and dense weights
========================

Methods differ in how they bound the kernel weights.  With weights in the simplex (:math:`p = 1`)
few kernels have a weight; with a norm of larger ``p`` more of them do, and at last all have the
same.  Which is better depends on the truth: we draw data where two of sixteen features matter, and
data where all sixteen do.
"""

# %%
# Each feature has one Gaussian kernel.  In both worlds the classes overlap about as much.
import matplotlib.pyplot as plt
import numpy as np

import mkldist
from mkldist.kernels import Gaussian

plt.style.use("tableau-colorblind10")


def draw(informative, rng, n=500, features=16, distance=2.4):
    """Return rows and labels: the class means differ in the informative features alone."""
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    shift = np.zeros(features)
    shift[:informative] = distance / np.sqrt(informative) / 2
    return rng.normal(size=(n, features)) + np.outer(y, shift), y


# %%
# Weights of norm 1 have the sum 1 for :math:`p = 1`, and a larger sum for larger ``p``: 16 equal
# weights have the sum :math:`16^{1 - 1/p}`.  A larger sum acts like a larger ``C``, so we divide
# ``C`` by it.  Otherwise we would compare strengths of regularisation, and not norms.
def settings(p, C=1.0):
    """Return C and p of lp_mkl, of which equal weights act as those of sum 1 do."""
    return {"C": C / 16 ** (1 - 1 / p), "p": p}


methods = {
    "p = 1": ("level", {"C": 1.0}),
    "1.1": ("lp_mkl", settings(1.1)),
    "1.5": ("lp_mkl", settings(1.5)),
    "2": ("lp_mkl", settings(2)),
    "4": ("lp_mkl", settings(4)),
    "uniform": ("uniform", {"C": 1.0}),
}

# %%
# Twelve draws of each world: 100 training rows and 400 test rows.
n_draws, worlds = 12, {"2 of 16 features matter": 2, "all 16 features matter": 16}
errors = np.empty((len(worlds), len(methods), n_draws))
weights = np.empty((len(worlds), len(methods), n_draws, 16))
for w, informative in enumerate(worlds.values()):
    for r in range(n_draws):
        x, y = draw(informative, np.random.default_rng(r))
        bank = mkldist.KernelBank(x[:100], [Gaussian(relative_widths=1, features="each")])
        new = bank.on(x[100:])
        for m, (method, params) in enumerate(methods.values()):
            solution = mkldist.solve(method, bank, y[:100], **params)
            decided = np.sign(solution.decision_function(new))
            errors[w, m, r] = np.mean(decided != y[100:])
            share = solution.kernel_weights / solution.kernel_weights.sum()
            weights[w, m, r] = np.sort(share)[::-1]

# %%
fig, axes = plt.subplots(2, 2, figsize=(8, 6), layout="constrained")
for w, title in enumerate(worlds):
    for m, name in enumerate(methods):
        axes[0, w].plot(range(1, 17), weights[w, m].mean(axis=0), marker="osD^vX"[m], label=name)
    axes[0, w].set(title=title, xlabel="kernel, by rank", ylabel="share of the weights (mean)")
    mean = 100 * errors[w].mean(axis=1)
    half = 100 * 1.96 * errors[w].std(axis=1, ddof=1) / np.sqrt(n_draws)
    axes[1, w].errorbar(range(len(methods)), mean, yerr=half, fmt="ko", capsize=3)
    axes[1, w].set_xticks(range(len(methods)), methods)
    axes[0, w].set_xticks(range(1, 17, 3))
    axes[1, w].set(ylabel="test error (%)", ylim=(8, 26), xlabel="norm p of the weights")
axes[0, 0].legend()
plt.show()

# %%
# The bars are 95 % intervals over independent draws.
#
# **Take away.**  Sparse weights are better where few kernels matter, dense ones where most do.
# The middle, ``p`` between 1.1 and 2, is never far from the best.  If you do not know, let ``p``
# be a hyperparameter beside ``C``, and always run ``uniform``: it costs little, and says whether
# learning the weights gained anything.
#
# Read on: :doc:`/explanation/choosing_a_method`.
