"""Laplacian regularised least squares, with the mean of all kernels.

Minimises over coefficients alpha, on all n points, and bias b

    F = 1/2 { gamma_a alpha'K alpha + gamma_i alpha'K L K alpha
              + sum over labelled i of (y_i - (K alpha)_i - b)^2 },

K = 1/M sum_m K_m, in closed form (Belkin, Niyogi & Sindhwani 2006, section 4.2): that of
:mod:`.rls` with the deformed kernel of :mod:`.deformed`.  Without bias it is the paper's
``alpha = (J K + gamma_a I + gamma_i L K)^-1 y``, J the diagonal matrix of ones at labelled points.
The lower bound is that of :mod:`.rls` with the deformed kernel, too.

The paper has ``1/l sum (y - f)^2 + gamma_A ||f||^2 + gamma_I / n^2 f'L f`` and no bias:
``gamma_a = l gamma_A`` and ``gamma_i = l gamma_I / n^2`` here.  Neither norm penalises the bias;
where ``L 1 = 0`` the intrinsic norm could not.
"""

from __future__ import annotations

import numpy as np

from mkldist.methods.manifold.deformed import Deformation, ManifoldParams, memory_on_graph
from mkldist.methods.manifold.rls import RLSParams, least_squares
from mkldist.solvers.base import Method, Problem, Steps


class LapRLSParams(RLSParams, ManifoldParams):
    """Parameters of Laplacian regularised least squares."""


def solve(problem: Problem, params: LapRLSParams) -> Steps:
    """Fit the labelled points by a function that is smooth on the graph.

    Parameters
    ----------
    problem : Problem
        Labels, 0 for none, number of kernels, and graph Laplacian.
    params : LapRLSParams
        Weights of the two norms and whether there is a bias.

    Yields
    ------
    Combine

    Returns
    -------
    Solution
        ``dual_variables`` is ``r * y`` on the labelled points.
    """
    labelled = np.flatnonzero(problem.y)
    deformation = Deformation(
        problem.laplacian, params.gamma_a, params.gamma_i, labelled, problem.kept
    )
    return (yield from least_squares(problem, params, deformation))


METHOD = Method(
    name="laprls",
    solve=solve,
    params=LapRLSParams,
    title="Laplacian regularised least squares",
    problem="semi-supervised least squares on the mean kernel",
    loss="squared",
    regularizer="gamma_a/2 ||f||^2 + gamma_i/2 f'L f",
    reference="Belkin, Niyogi & Sindhwani 2006, section 4.2",
    hyperparameters=("gamma_a", "gamma_i"),
    needs_laplacian=True,
    weighs_points=True,
    typical_passes=lambda n_kernels: 1,
    memory=memory_on_graph,
)
