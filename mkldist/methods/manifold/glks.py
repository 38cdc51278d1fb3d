"""GLKS, least squares with convex combinations of graph kernels (Argyriou, Herbster & Pontil 2005).

Minimises over kernel weights d in the simplex, components g_m on all n points, and bias b

    F = 1/2 { sum_m g_m'G_m^-1 g_m / d_m + sum over labelled i of (y_i - sum_m g_m(x_i) - b)^2 },

where ``g'G^-1 g`` is infinite outside the range of G.  For fixed d this is least squares with the
kernel ``sum_m d_m G_m``, and F at its minimum is convex in d.

The paper's candidates G_m are kernels of graphs: the pseudo-inverses of their Laplacians, which
exist only on the given points.  Here they are the kernels of the bank, deformed by the data set's
graph (:mod:`.deformed`), which predict off the points as well,

    G_m = (gamma_a K_m^-1 + gamma_i L)^-1.

With ``gamma_i = 0`` they are the kernels of the bank themselves, ``K_m / gamma_a``.  On a bank of
pseudo-inverses of Laplacians, given as precomputed Gram matrices, F is then the paper's problem, up
to the bias, which the paper does not have.

The problem is that of ``lapmkl``, form ``deformed``, with the squared loss in place of the squared
hinge, and :mod:`.lapmkl_deformed` solves both.  The paper's own algorithm adds one kernel at a
time.  With one kernel the problem is that of :mod:`.laprls`.
"""

from __future__ import annotations

from mkldist.methods.manifold.deformed import ManifoldParams
from mkldist.methods.manifold.lapmkl_deformed import memory_of_deformed_kernels, solve_deformed
from mkldist.solvers.base import Method, Problem, Steps


def solve(problem: Problem, params: ManifoldParams) -> Steps:
    """Fit the labelled points by functions of the graph kernels.

    Parameters
    ----------
    problem : Problem
        Labels, 0 for none, number of kernels, and graph Laplacian.
    params : ManifoldParams
        Weights of the two norms and stopping rule.

    Yields
    ------
    Combine

    Returns
    -------
    Solution
        ``kernel_coefficients`` are on all points; ``coefficients`` and ``dual_variables`` are the
        residuals of the labelled points, 0 elsewhere.
    """
    return (yield from solve_deformed(problem, params, "squared"))


METHOD = Method(
    name="glks",
    solve=solve,
    params=ManifoldParams,
    title="GLKS, convex combinations of graph kernels",
    problem="semi-supervised least squares, weights in the simplex",
    loss="squared",
    regularizer="gamma_a and gamma_i norms of the components",
    reference="Argyriou, Herbster & Pontil 2005",
    hyperparameters=("gamma_a", "gamma_i"),
    needs_laplacian=True,
    typical_passes=lambda n_kernels: 2,
    memory=memory_of_deformed_kernels,
)
