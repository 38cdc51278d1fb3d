"""Regularised least squares, and Laplacian ones, with the mean of all kernels.

Minimises over coefficients alpha and bias b (Belkin, Niyogi & Sindhwani 2006, section 4)

    F = 1/2 { gamma_a alpha'K alpha + gamma_i alpha'K L K alpha
              + sum over labelled i of w_i (y_i - (K alpha)_i - b)^2 },

K = 1/M sum_m K_m, in closed form: with the block Kd of the deformed kernel
``K (gamma_a I + gamma_i L K)^-1`` (:mod:`.deformed`) between the labelled points,

    (Kd + W^-1) c + b 1 = y,   1'c = 0,      alpha = (gamma_a I + gamma_i L K)^-1 J'c,

W the diagonal matrix of the weights w_i, 1 in the paper, and J the matrix that selects the labelled
points.  The bias is not penalised; where ``L 1 = 0`` the intrinsic norm could not.  ``bias=False``
sets b = 0 and drops the constraint, as the paper does: then
``alpha = (J'J K + gamma_a I + gamma_i L K)^-1 y``.  The dual,
``max_r y'r - 1/2 r'W^-1 r - 1/2 r'Kd r`` (s.t. 1'r = 0), certifies it: its value, or 0 if that is
more, at the r of the solution's ``dual_variables``, which are ``r * y``.

``rls`` (section 4.1) has no intrinsic norm: points without a label have no influence.  ``laprls``
(section 4.2) uses them.  The paper has
``1/l sum (y - f)^2 + gamma_A ||f||^2 + gamma_I / n^2 f'L f``
with l labelled points: ``gamma_a = l gamma_A`` and ``gamma_i = l gamma_I / n^2`` here.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from mkldist.bank.requests import Combine
from mkldist.core.arrays import Floats
from mkldist.methods.deformed import (
    AmbientParams,
    Deformation,
    ManifoldParams,
    inverse_root,
    memory_on_graph,
)
from mkldist.solvers.base import Counters, Method, Problem, Steps, direct_solution
from mkldist.solvers.squared_losses import squared

REFINEMENTS = 2


class RLSParams(AmbientParams):
    """Parameters of regularised least squares."""

    bias: bool = Field(True, description="fit a bias, which is not penalised; false: b = 0")


class LapRLSParams(RLSParams, ManifoldParams):
    """Parameters of Laplacian regularised least squares."""


def rls(problem: Problem, params: RLSParams) -> Steps:
    """Fit the labelled points.

    ``dual_variables`` is ``r * y`` on the labelled points.
    """
    deformation = Deformation(None, params.gamma_a, 0.0, np.flatnonzero(problem.y))
    return (yield from _least_squares(problem, params, deformation))


def laprls(problem: Problem, params: LapRLSParams) -> Steps:
    """Fit the labelled points by a function that is smooth on the graph.

    ``dual_variables`` is ``r * y`` on the labelled points.
    """
    return (yield from _least_squares(problem, params, Deformation.of(problem, params)))


def _least_squares(problem: Problem, params: RLSParams, deformation: Deformation) -> Steps:
    """Minimise squared losses of the labelled points plus the norms of a deformation."""
    weights = np.full(problem.n_kernels, 1.0 / problem.n_kernels)
    K = yield Combine(weights)
    labelled = deformation.labelled
    y = problem.y[labelled]
    loss = squared(y, None if problem.weights is None else problem.weights[labelled])
    kernel = deformation(K)
    c = closed_form(kernel.block(), y, params.bias, loss.weights)
    alpha = kernel.coefficients(c)
    f = K @ alpha
    b = loss.best_bias(f[labelled]) if params.bias else 0.0
    rest = loss.residual(f[labelled] + b)
    objective = 0.5 * deformation.penalty(alpha, f) + loss.value(rest, b)
    reach, slopes = np.sqrt(K.diagonal()), np.abs(rest)
    objective += deformation.rounding(reach, alpha, f, slopes, loss.weights)
    centre = loss.best_bias(np.zeros_like(y)) if params.bias else 0.0
    constant = loss.value(loss.residual(np.full(len(y), centre)), centre)
    if objective > constant:  # rounding left nothing better
        alpha, b, objective = np.zeros_like(alpha), centre, constant
    # The dual takes c, not the residuals, whose digits cancel where the labels are nearly met.
    r = c - c.mean() if params.bias else c
    dual = max(float(y @ r) - 0.5 * loss.squares(r) - 0.5 * kernel.norm(r), 0.0)
    return direct_solution(
        problem, params, objective, dual,
        kernel_weights=weights, coefficients=alpha, bias=b,
        dual_variables=deformation.spread(r * y, len(K)),
        counters=Counters(svm_solves=1, newton_steps=1),
    )  # fmt: skip


def closed_form(H: Floats, y: Floats, bias: bool, weights: Floats | None = None) -> Floats:
    """Return c (l,) with ``(H + W^-1) c + b 1 = y`` and ``1'c = 0``; without bias, b is 0.

    H (l, l) is the block Kd; `weights` (l,), by default 1, are the diagonal of W.
    """
    w = np.ones(len(y)) if weights is None else weights
    root = np.sqrt(w)
    R = root[:, None] * inverse_root(root[:, None] * H * root, 1.0)
    ones = R @ R.sum(axis=0)
    best, least = np.zeros(len(y)), np.inf
    c, b = best, 0.0
    for _ in range(2 + REFINEMENTS):
        rest = y - H @ c - c / w - b
        error = float(np.linalg.norm(rest))
        if not error < least:
            break
        best, least = c, error
        change = R @ (R.T @ rest)
        if bias:
            step = float((c + change).sum() / ones.sum())
            change, b = change - step * ones, b + step
        c = c + change
    return best


RLS = Method(
    name="rls",
    solve=rls,
    params=RLSParams,
    title="Regularised least squares",
    problem="least squares on the mean kernel, labelled points only",
    loss="squared",
    regularizer="gamma_a/2 ||f||^2",
    reference="Belkin, Niyogi & Sindhwani 2006, section 4.1",
    hyperparameters=("gamma_a",),
    weighs_points=True,
    typical_passes=lambda n_kernels: 1,
)

LAPRLS = Method(
    name="laprls",
    solve=laprls,
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
