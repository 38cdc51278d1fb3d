"""
Comparing two methods honestly
==============================

Two methods on twenty random splits give twenty differences.  The splits share rows, so the
differences are alike, and a usual t-test is far too sure.  The corrected test widens the
distribution of the mean difference.  Its Bayesian form answers what one wants to know: how
probable is it that one method is better by more than one per cent?
"""

# %%
# A sweep of two methods on twenty splits, in a temporary folder.
import tempfile

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import mkldist
from mkldist import analysis

plt.style.use("tableau-colorblind10")

spec = {
    "name": "pair",
    "datasets": [{"name": "wdbc", "n_points": 300}],
    "splits": {"train_fraction": 0.7, "repeats": 20},
    "banks": [
        {
            "name": "gaussians",
            "kernels": [
                {"function": "gaussian", "relative_widths": [0.5, 1], "features": ["all", "each"]}
            ],
        }
    ],
    "methods": [{"name": "level", "C": 1}, {"name": "best_single", "C": 1}],
}
temporary = tempfile.TemporaryDirectory()  # removed at the end
folder = f"{temporary.name}/pair"
tree = mkldist.sweep(spec, output=folder, workers=0, progress=False)
differences = (
    (tree["wdbc/level"].test_error - tree["wdbc/best_single"].test_error).to_numpy().ravel()
)
overlap = analysis.Overlap(210, 90)
test = analysis.corrected_t_test(differences, overlap)
posterior = analysis.correlated_posterior(differences, overlap, rope=0.01)
print(test)
print(posterior)

# %%
# The distribution of the mean difference, by the corrected test and by the usual one.
n = len(differences)
mean, deviation = differences.mean(), differences.std(ddof=1)
wide = deviation * np.sqrt(overlap.variance_factor(n))
narrow = deviation / np.sqrt(n)
place = np.linspace(mean - 4 * wide, mean + 4 * wide, 600)
fig, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
density = stats.t.pdf((place - mean) / wide, n - 1) / wide
for part, colour, words, share in (
    (place < -0.01, "C0", "level is better", posterior.below),
    (abs(place) <= 0.01, "0.7", "about equal", posterior.equivalent),
    (place > 0.01, "C1", "best_single is better", posterior.above),
):
    label = f"{words}: {share:.2f}"
    ax.fill_between(100 * place, density, where=part, color=colour, alpha=0.7, label=label)
ax.plot(100 * place, density, "k", label="corrected for shared rows")
usual = stats.t.pdf((place - mean) / narrow, n - 1) / narrow
ax.plot(100 * place, usual, "k:", label="as if splits were independent")
ax.plot(100 * differences, np.full(n, -2.0), "k|", markersize=9, label="the twenty splits")
ax.set(
    xlabel="test error of level minus that of best_single (percentage points)",
    ylabel="posterior density",
    yticks=[],
    xlim=(100 * place[0], 100 * place[-1]),
)
ax.legend(fontsize="small")
plt.show()

# %%
# ``analysis.compare_methods(tree)`` and ``mkldist compare`` do this for every two methods, and
# correct for their number.
#
# **Take away.**  More splits of the same rows make the dotted curve as narrow as you like; they do
# not make new rows.  Fix the difference that matters before you look (here one percentage point),
# and report all three probabilities.
#
# Read on: :doc:`/explanation/statistics`, :doc:`/howto/compare_two_methods`.
