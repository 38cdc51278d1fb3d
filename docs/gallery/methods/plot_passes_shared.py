"""
Eight values of C in shared passes
==================================

A pass reads all kernels of a bank once.  In a sweep, runs on the same bank advance together, and
one pass answers all of them.  We count what is read in three sweeps: eight values of ``C`` one by
one, together, and together along a path, where each run starts from the solution of the last.
"""

# %%
# The same sweep three times; ``execution`` says how its runs are arranged.
import tempfile

import matplotlib.pyplot as plt
import numpy as np

import mkldist

plt.style.use("tableau-colorblind10")

spec = {
    "name": "passes",
    "datasets": [{"name": "wdbc", "n_points": 200}],
    "splits": {"train_fraction": 0.5},
    "banks": [
        {
            "name": "gaussians",
            "backend": "memory",
            "kernels": [
                {
                    "function": "gaussian",
                    "relative_widths": [0.25, 0.5, 1, 2],
                    "features": ["each", {"count": 90}],  # single ones, and 90 random subsets
                }
            ],
        }
    ],
    "methods": [
        {"name": method, "C": np.logspace(-1, 1, 8).tolist()} for method in ("level", "spicymkl")
    ],
}
ways = {"isolated": "one by one", "shared": "together", "path": "together, along a path"}
read, temporary = {}, tempfile.TemporaryDirectory()  # removed at the end
for way in ways:
    folder = f"{temporary.name}/{way}"
    tree = mkldist.sweep({**spec, "execution": way}, output=folder, workers=0, progress=False)
    for method in ("level", "spicymkl"):
        node = tree[f"wdbc/{method}"]
        read[method, way] = float((node.pass_bytes / node.bank_bytes).sum())
        assert (node.stop_reason == "converged").all()

# %%
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for number, method in enumerate(("level", "spicymkl")):
    place = np.arange(3) + 0.38 * (number - 0.5)
    height = [read[method, way] for way in ways]
    bars = ax.bar(place, height, 0.36, label=method, hatch=["", "//"][number], edgecolor="w")
    ax.bar_label(bars, fmt="%.1f")
ax.set_xticks(range(3), ways.values())
ax.set(ylabel="kernel values read for eight values\nof C, in units of all 480 kernels")
ax.legend()
plt.show()

# %%
# A pass that answers two runs counts half for each.  Requests for a few kernels count by their
# share.
#
# **Take away.**  Ask for all values of ``C``, methods and folds in one sweep: they share passes,
# and each solution has the certificate that it has alone.  This matters most where a pass is dear:
# kernels on disk, or computed anew in every pass.
#
# Read on: :doc:`/explanation/shared_passes`.
