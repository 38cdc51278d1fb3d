"""
Graphs, by kernels that another program computed
================================================

Points need not be rows of numbers.  Here each point is a graph with labelled nodes, such as a
molecule.  Kernels of graphs come as Gram matrices; mkldist learns their weights, and so also *how
far* around a node one has to look.
"""

# %%
# Every graph is a ring of twelve nodes with some chords.  In class +1 the labels A and B alternate
# along a stretch of the ring; in class -1 the same labels are shuffled.  Counts of labels tell
# nothing.
import matplotlib.pyplot as plt
import numpy as np
from grakel import Graph
from grakel.kernels import ShortestPath, VertexHistogram, WeisfeilerLehman
from sklearn.model_selection import StratifiedShuffleSplit

import mkldist

plt.style.use("tableau-colorblind10")


def draw_graph(label, rng, n=12):
    """Return a ring with two chords, whose nodes are labelled by the class."""
    adjacency = np.zeros((n, n), dtype=int)
    chords = rng.choice(n, size=(2, 2), replace=False)
    for first, second in [*((node, (node + 1) % n) for node in range(n)), *chords]:
        adjacency[first, second] = adjacency[second, first] = 1
    if label == 1:
        names = list("ABABAB") + list(rng.permutation(list("AABBCC")))
    else:
        names = list(rng.permutation(list("AAAAABBBBBCC")))
    return Graph(adjacency, node_labels=dict(enumerate(names)))


rng = np.random.default_rng(0)
y = np.where(np.arange(160) % 2 == 0, 1, -1)
graphs = [draw_graph(label, rng) for label in y]

# %%
# `GraKeL <https://ysig.github.io/GraKeL>`_ computes the kernels.  That of labels compares how often
# each occurs.  The Weisfeiler–Lehman kernel renames every node by its name and those of its
# neighbours, round by round, and counts equal names: with ``r`` rounds it sees what lies ``r``
# steps around a node.  That of shortest paths compares distances between labels.
kernels = {"labels": VertexHistogram(normalize=True)}
for rounds in (1, 2, 4):
    kernels[f"WL {rounds}"] = WeisfeilerLehman(n_iter=rounds, normalize=True)
kernels["paths"] = ShortestPath(normalize=True)
names = list(kernels)
grams = np.array([kernel.fit_transform(graphs) for kernel in kernels.values()])

# %%
# A bank takes the matrices of the training points; ``bank.on`` takes values between new points and
# these.
splits = list(StratifiedShuffleSplit(10, test_size=0.4, random_state=0).split(y, y))
errors, weights = np.empty((10, 6)), np.empty((10, 5))
for s, (train, test) in enumerate(splits):
    for m, of_bank in enumerate([*[[m] for m in range(5)], [0, 1, 2, 3, 4]]):
        chosen = grams[of_bank]
        bank = mkldist.KernelBank.from_grams(chosen[:, train][:, :, train])
        solution = mkldist.solve("level", bank, y[train], C=1.0)
        values = solution.decision_function(bank.on(chosen[:, test][:, :, train]))
        errors[s, m] = np.mean(np.where(values > 0, 1, -1) != y[test])
    weights[s] = solution.kernel_weights

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.bar(names, weights.mean(axis=0), color="C0", alpha=0.6)
for m in range(5):
    left.plot(m + np.linspace(-0.2, 0.2, 10), weights[:, m], "k.", markersize=4)
left.set(ylabel="kernel weight")
for m in range(6):
    right.plot(m + np.linspace(-0.2, 0.2, 10), 100 * errors[:, m], ".", color="0.5")
    right.plot(m, 100 * errors[:, m].mean(), "s", color="C1" if m == 5 else "C0")
right.axhline(50, color="0.6", linestyle=":")
right.set_xticks(range(6), [*names, "all"])
right.set(ylabel="test error (%)", ylim=(0, 60))
plt.show()

# %%
# Dots are splits of the same graphs.
#
# **Take away.**  Any kernel that a program computes can be weighed against others.  Counts of
# labels alone tell nothing, and get no weight.  With all kernels in the bank the error is near that
# of the best one, which you need not know.
#
# Read on: :doc:`/howto/precomputed_kernels`.
