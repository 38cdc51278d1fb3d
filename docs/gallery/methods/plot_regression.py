"""
Regression, with its uncertainty over splits
============================================

A sum of kernels on single features is a sum of functions, and each can be drawn.  We learn them
from twelve random halves of the rows.  The bands show how much each function changes from half to
half, beside the truth.
"""

# %%
# The value is a wave of the first feature, a square of the second and a slope of the third.  Three
# more features play no part.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import ShuffleSplit

import mkldist
from mkldist import analysis
from mkldist.kernels import Gaussian

plt.style.use("tableau-colorblind10")

rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, size=(400, 6))
truth = [lambda t: 2 * np.sin(4 * t), lambda t: 3 * t**2, lambda t: 2 * t] + [np.zeros_like] * 3
y = sum(f(x[:, j]) for j, f in enumerate(truth)) + rng.normal(size=400)

# %%
# ``contributions`` divides the prediction into the parts of the features.  Each is drawn with mean
# zero, because a constant could be in any of them.
splits = list(ShuffleSplit(12, test_size=0.5, random_state=0).split(x))
edge = np.linspace(-1, 1, 61)
parts, rmse = np.empty((12, 61, 6)), {}
choices = {
    "each feature": [Gaussian(relative_widths=[0.5, 1, 2], features="each")],
    "all together": [Gaussian(relative_widths=[0.5, 1, 2], features="all")],
}
for name, kernels in choices.items():
    rmse[name] = np.empty(12)
    for s, (train, test) in enumerate(splits):
        model = mkldist.MKLRegressor(kernels=kernels).fit(x[train], y[train])
        rmse[name][s] = np.sqrt(np.mean((model.predict(x[test]) - y[test]) ** 2))
        if name == "each feature":
            found = model.contributions(np.repeat(edge[:, None], 6, axis=1))
            parts[s] = found[[f"x{j}" for j in range(6)]]
parts -= parts.mean(axis=1, keepdims=True)

# %%
fig, axes = plt.subplots(2, 3, figsize=(9, 5), sharex=True, sharey=True, layout="constrained")
for j, ax in enumerate(axes.flat):
    low, high = parts[:, :, j].min(axis=0), parts[:, :, j].max(axis=0)
    ax.fill_between(edge, low, high, color="C0", alpha=0.3, label="least to greatest of 12 splits")
    ax.plot(edge, parts[:, :, j].mean(axis=0), color="C0", label="mean of 12 splits")
    centred = truth[j](edge) - truth[j](edge).mean()
    ax.plot(edge, centred, "--", color="C1", label="truth")
    ax.set(title=f"feature x{j}")
axes[1, 1].set_xlabel("value of the feature")
fig.supylabel("part of the prediction", fontsize="medium")
fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %%
# The splits overlap, so the interval of the mean error has to be wider than that of twelve
# independent values.  ``corrected_interval`` does this.  The noise has standard deviation 1, so no
# method can be below 1 for long.
overlap = analysis.Overlap(200, 200)
fig, ax = plt.subplots(figsize=(6, 2), layout="constrained")
for number, (name, values) in enumerate(rmse.items()):
    interval = analysis.corrected_interval(values, overlap)
    print(name, interval)
    ax.plot(values, np.full(12, number), "o", color="0.7", markersize=4)
    reach = [[interval.mean - interval.low], [interval.high - interval.mean]]
    ax.errorbar(interval.mean, number, xerr=reach, fmt="ko", capsize=4)
ax.axvline(1, color="C1", linestyle="--")
ax.annotate("noise", (1, 0.5), (4, -4), textcoords="offset points", color="C5")
ax.set_yticks(range(2), rmse)
ax.set(xlabel="root mean square error (units of y)", ylim=(-0.5, 1.5))
plt.show()

# %%
# **Take away.**  Kernels on single features give a model that can be read, and here one with less
# error, because the truth is a sum of such functions.  Draw several splits: where the band is
# wide, do not explain the shape.
#
# Read on: :doc:`/howto/regression`.
