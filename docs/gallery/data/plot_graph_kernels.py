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
from sklearn.model_selection import StratifiedShuffleSplit

import mkldist

plt.style.use("tableau-colorblind10")


def draw_graph(label, rng, n=12):
    """Return the neighbours of each node, and the labels of the nodes."""
    neighbours = [{(node - 1) % n, (node + 1) % n} for node in range(n)]
    for first, second in rng.choice(n, size=(2, 2), replace=False):
        neighbours[first].add(int(second))
        neighbours[second].add(int(first))
    if label == 1:
        names = list("ABABAB") + list(rng.permutation(list("AABBCC")))
    else:
        names = list(rng.permutation(list("AAAAABBBBBCC")))
    return neighbours, names


rng = np.random.default_rng(0)
y = np.where(np.arange(160) % 2 == 0, 1, -1)
graphs = [draw_graph(label, rng) for label in y]


# %%
# The Weisfeiler–Lehman kernel renames every node by its name and those of its neighbours, round by
# round, and counts equal names.  The kernel of round ``r`` sees what lies ``r`` steps around a
# node.
def weisfeiler_lehman(graphs, rounds):
    """Return a Gram matrix for each round, (rounds + 1, n, n), with k(x, x) = 1."""
    names = [list(labels) for _, labels in graphs]
    grams = []
    for _ in range(rounds + 1):
        known = {name: column for column, name in enumerate({n for own in names for n in own})}
        counts = np.zeros((len(graphs), len(known)))
        for row, own in enumerate(names):
            for name in own:
                counts[row, known[name]] += 1
        counts /= np.linalg.norm(counts, axis=1, keepdims=True)
        grams.append(counts @ counts.T)
        names = [
            [(own[node], *sorted(own[other] for other in near)) for node, near in enumerate(edges)]
            for (edges, _), own in zip(graphs, names, strict=True)
        ]
        codes = {name: str(code) for code, name in enumerate(sorted({n for o in names for n in o}))}
        names = [[codes[name] for name in own] for own in names]
    return np.array(grams)


grams = weisfeiler_lehman(graphs, rounds=4)

# %%
# Kernels of GraKeL would be passed in the same way, as one array of Gram matrices::
#
#     from grakel.kernels import ShortestPath, WeisfeilerLehman
#
#     kernels = [WeisfeilerLehman(n_iter=3, normalize=True), ShortestPath(normalize=True)]
#     grams = np.array([kernel.fit_transform(graphs_of_grakel) for kernel in kernels])
#
# A bank takes the matrices of the training points; ``bank.on`` takes values between new points and
# these.
names = [f"round {r}" for r in range(5)]
splits = list(StratifiedShuffleSplit(10, test_size=0.4, random_state=0).split(y, y))
errors, weights = np.empty((10, 6)), np.empty((10, 5))
for s, (train, test) in enumerate(splits):
    for m, kernels in enumerate([*[[m] for m in range(5)], [0, 1, 2, 3, 4]]):
        chosen = grams[kernels]
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
right.set_xticks(range(6), [*(f"{r}" for r in range(5)), "all"])
right.set(xlabel="kernel of round", ylabel="test error (%)", ylim=(0, 60))
plt.show()

# %%
# Dots are splits of the same graphs.
#
# **Take away.**  Any kernel that a program computes can be weighed against others.  Too little
# context tells nothing; too much is nearly unique for every node, and so tells nothing either.
# With all rounds in the bank the error is near that of the best one, which you need not know.
#
# Read on: :doc:`/howto/precomputed_kernels`.
