"""The d-step of LapMKL with shared coefficients: new kernel weights at the minimum over z.

With ``v_m = K_m alpha`` and ``t_m = gamma_a alpha'v_m + gamma_i v_m'L v_m``, F at fixed z is
``1/2 t'd`` plus the loss of ``sum_m d_m v_m + b``: the d-step of PrimalMKL with t for q.  As there,
the paper's alternation takes short steps.  By default the step therefore minimises a second-order
model of ``J(d) = min_z F``,

    d2J/dd2 = B'B - W'R^+ W,   w_m = K_m (gamma_a alpha + gamma_i L v_m - S'r),

where ``R = gamma_a K + gamma_i N``, S selects the labelled points, ``K_l = S K``, r is the residual
of the loss, and B is that of PrimalMKL's model for the columns ``S v_m - K_l R^+ w_m``.  The second
term makes J non-convex; without it the model is convex.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.bank.requests import Matvec, Request
from mkldist.core.arrays import Floats, Ints
from mkldist.methods.manifold.deformed import Deformation
from mkldist.methods.manifold.lapmkl_machine import SharedMachine, SharedMinimum, SharedPoint
from mkldist.methods.primal.value_model import ValueModel
from mkldist.methods.primal.weight_step import CHI_1, alternating_objective, nesterov
from mkldist.optim.weight_sets import WeightSet
from mkldist.solvers.primal_newton import SupportSystem

SIMPLEX = WeightSet(1.0)
MODEL_SHARE = 1e-4  # of the gap, left by the minimum of the model
COLUMNS = 1000  # kernels asked for in one Matvec
SECOND_COLUMNS = 8  # kernels and vectors asked for in one Matvec when each has its own vector
ZERO_WEIGHT = 1e-15


@dataclass(frozen=True, eq=False)
class SharedColumns:
    """Products of the kernels whose weights a step changes.

    Parameters
    ----------
    kernels : (k,) intp
        These kernels: all in use, and those whose weight would grow.
    v, Kr : (k, n) float64
        ``K_m alpha`` and ``K_m S'r``.
    t, gradient : (k,) float64
        ``gamma_a alpha'v_m + gamma_i v_m'L v_m``, and dF/dd_m.
    """

    kernels: Ints
    v: Floats
    Kr: Floats
    t: Floats
    gradient: Floats


@dataclass(frozen=True, eq=False)
class KernelForms:
    """Results of a pass over all kernels at a point.

    Parameters
    ----------
    gradient : (M,) float64
        dF/dd.
    largest : float
        ``max_m r'K_m r`` at the feasible residual.
    columns : SharedColumns
        Products of the kernels whose weights the next step changes.
    """

    gradient: Floats
    largest: float
    columns: SharedColumns


def kernel_forms(
    at: SharedPoint, r: Floats, norms: Deformation
) -> Generator[Request, Any, KernelForms]:
    """Ask for ``K_m alpha`` and ``K_m S'r`` of all kernels, some at a time.

    Parameters
    ----------
    at : SharedPoint
        The current point.
    r : (l,) float64
        Its residual, made feasible for the dual.
    norms : Deformation
        The two norms, the graph and the labelled points.
    """
    n, M, labelled = len(at.f), len(at.d), norms.labelled
    vectors = np.column_stack([at.alpha, norms.spread(r, n)])
    products = np.empty((0, n, 2))
    t, gradient, q = np.empty(M), np.empty(M), np.empty(M)
    for start in range(0, M, COLUMNS):
        kernels = np.arange(start, min(start + COLUMNS, M))
        products = yield Matvec(kernels, vectors)
        v = products[:, :, 0]
        smooth = np.einsum("mi,im->m", v, norms.smoothed(v.T))
        t[kernels] = np.maximum(norms.gamma_a * (v @ at.alpha) + smooth, 0.0)
        gradient[kernels] = 0.5 * t[kernels] - v[:, labelled] @ at.r
        q[kernels] = products[:, labelled, 1] @ r
    chosen = _chosen(at.d, gradient)
    kept = products[chosen] if M <= COLUMNS else (yield Matvec(chosen, vectors))
    columns = SharedColumns(chosen, kept[:, :, 0], kept[:, :, 1], t[chosen], gradient[chosen])
    return KernelForms(gradient, max(float(q.max()), 0.0), columns)


def _chosen(d: Floats, gradient: Floats) -> Ints:
    """Return the kernels in use and those that would grow; the steepest ones if there are many."""
    chosen = np.flatnonzero((d > 0.0) | (gradient < float(gradient @ d)))
    room = max(COLUMNS - int((d > 0.0).sum()), 1)
    others = chosen[d[chosen] == 0.0]
    if len(others) <= room:
        return chosen
    best = others[np.argsort(gradient[others], kind="stable")[:room]]
    return np.sort(np.concatenate([chosen[d[chosen] > 0.0], best]))


def coupled_step(
    at: SharedMinimum, columns: SharedColumns, machine: SharedMachine
) -> Generator[Request, Any, Floats]:
    """Return new weights (M,), the minimum of the model of J.

    Parameters
    ----------
    at : SharedMinimum
        The current point.
    columns : SharedColumns
        Products of the kernels whose weights change.
    machine : SharedMachine
        The machine, with its norms and loss.
    """
    x = at.d[columns.kernels]
    model = yield from value_model(at, columns, machine)
    return _weights(at, columns, x if model is None else model.minimum(SIMPLEX, x, MODEL_SHARE))


def alternating_step(
    at: SharedPoint, columns: SharedColumns, machine: SharedMachine, tol: float
) -> Floats:
    """Return new weights (M,) by the paper's step, the minimum of F at fixed z.

    Parameters
    ----------
    at, columns, machine
        As for :func:`coupled_step`.
    tol : float
        Tolerance of the run; the step is at least as exact.
    """
    G = columns.v[:, machine.norms.labelled].T
    F = alternating_objective(G, columns.t, 1.0, machine.loss, at.b)
    x = nesterov(F, SIMPLEX, at.d[columns.kernels], chi=min(CHI_1, tol))
    return _weights(at, columns, x)


def _weights(at: SharedPoint, columns: SharedColumns, x: Floats) -> Floats:
    """Return feasible weights (M,), those of the kernels that a step changed being `x`."""
    d = np.zeros_like(at.d)
    d[columns.kernels] = np.where(x > ZERO_WEIGHT, x, 0.0)
    feasible: Floats = d / d.sum()
    return feasible


def value_model(
    at: SharedMinimum, columns: SharedColumns, machine: SharedMachine
) -> Generator[Request, Any, ValueModel | None]:
    """Return the convex part of the second-order model of J; None without support vectors."""
    norms = machine.norms
    sv = machine.loss.active(at.z.r)
    if not sv.any():
        return None
    W = norms.gamma_a * columns.v - columns.Kr
    if norms.gamma_i > 0.0:
        smooth = norms.smoothed(columns.v.T)
        for start in range(0, len(W), SECOND_COLUMNS):
            part = slice(start, start + SECOND_COLUMNS)
            products = yield Matvec(columns.kernels[part], smooth[:, part])
            W[part] += np.einsum("mim->mi", products)
    moved = (columns.v[:, norms.labelled].T - at.back.T @ W.T)[sv]
    ridge = machine.loss.ridge(1.0, sv)
    B = SupportSystem(at.H[np.ix_(sv, sv)], ridge).projected(moved)
    return ValueModel(columns.gradient, B, B @ at.d[columns.kernels])
