"""
DNA by the spectrum kernel, beside numbers
==========================================

The spectrum kernel counts the substrings that two texts share.  Kernels of texts stand beside
kernels of numbers in one bank.  We plant a motif in random DNA, and see which length of substrings
finds it.
"""

# %%
# Sequences of 60 letters.  Those of class +1 hold ``TATAAT`` at a random place, often with one
# letter changed.  A measurement beside the sequence tells a little too; another tells nothing.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import mkldist
from mkldist.kernels import Gaussian, Spectrum

plt.style.use("tableau-colorblind10")


def draw(n, rng):
    """Return a table with a column of texts and two of numbers, and the classes."""
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    dna = []
    for label in y:
        letters = rng.choice(list("ACGT"), size=60)
        if label == 1:
            place, motif = rng.integers(54), np.array(list("TATAAT"))
            if rng.random() < 0.3:
                motif[rng.integers(6)] = rng.choice(list("ACGT"))
            letters[place : place + 6] = motif
        dna.append("".join(letters))
    numbers = rng.normal(size=(n, 2)) + np.outer(y, [0.4, 0.0])
    return pd.DataFrame({"dna": dna, "expression": numbers[:, 0], "noise": numbers[:, 1]}), y


# %%
# One kernel for each length from 1 to 7, and one for each number.  With ``"cosine"`` all texts
# have the same norm.
kernels = [
    Gaussian(relative_widths=1, features=["expression", "noise"]),
    Spectrum(length=[1, 2, 3, 4, 5, 6, 7], features="dna"),
]
names = ["expression", "noise", *(f"DNA, {k}" for k in range(1, 8))]  # numbers come first in a bank
errors, weights = np.empty((5, 10)), np.empty((5, 9))
for r in range(5):
    rng = np.random.default_rng(r)
    (table, y), (new, y_new) = draw(160, rng), draw(200, rng)
    bank = mkldist.KernelBank(table, kernels, texts=["dna"], normalisation=["cosine", "variance"])
    for m, chosen in enumerate([*[[m] for m in range(9)], list(range(9))]):
        part = bank[chosen]
        solution = mkldist.solve("level", part, y, C=1.0)
        errors[r, m] = np.mean(np.sign(solution.decision_function(part.on(new))) != y_new)
    weights[r] = solution.kernel_weights

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
left.barh(names, weights.mean(axis=0), xerr=weights.std(axis=0, ddof=1), color="C0", alpha=0.7)
left.set(xlabel="kernel weight (mean and standard deviation)")
mean, deviation = 100 * errors.mean(axis=0), 100 * errors.std(axis=0, ddof=1)
right.errorbar(mean[:9], range(9), xerr=deviation[:9], fmt="o", capsize=3, label="alone")
right.errorbar(mean[9], 9, xerr=deviation[9], fmt="s", color="C1", capsize=3, label="all, learnt")
right.axvline(50, color="0.6", linestyle=":")
right.set_yticks(range(10), [*names, "all"])
right.set(xlabel="test error (%)", xlim=(0, 60))
right.legend(loc="lower right")
for ax in (left, right):
    ax.invert_yaxis()
plt.show()

# %%
# Five independent draws of 160 training and 200 test sequences.
#
# **Take away.**  Substrings about as long as the motif are best: shorter ones occur in every
# sequence.  With all lengths in the bank you need not know the length.  Kernels of numbers stand
# beside them, and take weight where they add something.
#
# Read on: :doc:`/howto/texts_and_dna`.
