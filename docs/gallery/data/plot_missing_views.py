"""
When some rows lack a table
===========================

Not every patient has had every examination.  A row may lack a whole view: its kernels are then
zero between this row and all others, and the other views decide.  We compare this with filling by
medians, and with leaving such rows out of the training.
"""

# %%
# Two tables, each of which tells half of the truth.  Some rows lack the second.
import matplotlib.pyplot as plt
import numpy as np

import mkldist
from mkldist.kernels import Gaussian

plt.style.use("tableau-colorblind10")

views = {"clinical": slice(0, 3), "genes": slice(3, 15)}


def draw(n, share, rng):
    """Return rows and classes; a share of the rows lacks the genes."""
    causes = rng.normal(size=(n, 2))
    y = np.where(causes.sum(axis=1) > 0, "ill", "well")
    clinical = causes[:, :1] + 0.6 * rng.normal(size=(n, 3))
    genes = rng.normal(size=(n, 12))
    genes[:, :3] += causes[:, 1:]
    x = np.hstack([clinical, genes])
    x[rng.random(n) < share, 3:] = np.nan
    return x, y


kernels = [Gaussian(relative_widths=[0.5, 1, 2], features="views")]
zero = mkldist.MKLClassifier(views=views, kernels=kernels, missing_views="zero")
filled = mkldist.MKLClassifier(views=views, kernels=kernels, missing_views="impute")

# %%
# Eight draws for each share of rows without genes.  Test rows lack genes as often as training
# rows.
shares = [0.0, 0.25, 0.5, 0.75]
errors = np.empty((3, len(shares), 8))
for c, share in enumerate(shares):
    for r in range(8):
        rng = np.random.default_rng(r)
        (x, y), (x_test, y_test) = draw(160, share, rng), draw(500, share, rng)
        whole = ~np.isnan(x).any(axis=1)
        fits = zero.fit(x, y), filled.fit(x, y)
        errors[:2, c, r] = [1 - model.score(x_test, y_test) for model in fits]
        errors[2, c, r] = 1 - zero.fit(x[whole], y[whole]).score(x_test, y_test)

# %%
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for m, name in enumerate(("zero kernels", "filled by medians", "whole rows alone")):
    mean = 100 * errors[m].mean(axis=1)
    half = 100 * 1.96 * errors[m].std(axis=1, ddof=1) / np.sqrt(8)
    place = 100 * np.array(shares) + m - 1
    ax.errorbar(place, mean, yerr=half, marker="osD"[m], capsize=3, label=name)
ax.set(xlabel="rows without genes (%)", ylabel="test error (%)", ylim=(0, None))
ax.set_xticks([100 * share for share in shares])
ax.legend()
plt.show()

# %%
# The bars are 95 % intervals over independent draws.
#
# **Take away.**  Keep rows that lack a view: where many do, leaving them out wastes what they
# tell.  Zero kernels and filling are equal here.  Which is better depends on the data, so try
# both; zeros invent nothing.
#
# Read on: :doc:`/howto/views`, :doc:`/howto/missing_values`.
