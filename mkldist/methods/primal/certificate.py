"""Dual values of PrimalMKL, the best point met, and the solution there."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, NamedTuple

import numpy as np

from mkldist.bank.requests import Request
from mkldist.core.arrays import Floats
from mkldist.methods.primal.params import PrimalMKLParams, signed_by_class, squared_loss
from mkldist.optim.accuracy import form_rounding
from mkldist.optim.factored_matrix import Gram, diagonal_of
from mkldist.optim.weight_sets import WeightSet
from mkldist.solvers.base import Problem, Solution
from mkldist.solvers.primal_newton import PrimalMachine, PrimalPoint
from mkldist.solvers.progress import Bounds, DualBound, StopReason, Trace
from mkldist.solvers.queries import largest_forms

PATIENCE = 8  # iterations without a better bound after which only rounding is left
UNSCREENED = {"screened": 0.0, "partial_passes": 0.0}
PROGRESS = 1e-13  # relative change of a bound that counts as better


class Best(NamedTuple):
    """Kernel weights (M,) of the least F, and the machine for them."""

    d: Floats
    z: PrimalPoint


def primal_value(machine: PrimalMachine, K: Gram, z: PrimalPoint) -> float:
    """Return F at a point, and the most that rounding may have taken from it.

    Parameters
    ----------
    machine : PrimalMachine
        The machine's regularisation.
    K : (n, n) float64 or FactoredMatrix
        Combined kernel of the point.
    z : PrimalPoint
        The point.
    """
    form = form_rounding(float(z.alpha @ z.f), energy(K, z.alpha), len(z.alpha))
    return z.value + 0.5 * machine.lam * form


def energy(K: Gram, v: Floats) -> float:
    """Return ``sum_i K_ii v_i^2``, with which the rounding of ``v'K v`` grows."""
    return float(diagonal_of(K) @ v**2)


def dual_value(
    machine: PrimalMachine,
    weights: WeightSet,
    r: Floats,
    b: float,
    q: Floats,
    energy_of_a: float = 0.0,
) -> float:
    """Return the dual value of a feasible residual: a lower bound of J for all weights.

    Parameters
    ----------
    machine : PrimalMachine
        The machine's loss and regularisation.
    weights : WeightSet
        The feasible set.
    r : (n,) float64
        Residual that sums to the slope of the loss.
    b : float
        A bias near the optimal one; it only saves digits.
    q : (M,) float64
        ``a'K_m a`` at ``a = r / lam``.
    energy_of_a : float
        The :func:`energy` of a with the combined kernel, for the rounding of the forms.
    """
    largest = q + form_rounding(q, np.full_like(q, energy_of_a), len(r))
    return machine.loss.dual_value(r, b) - 0.5 * machine.lam * weights.largest(largest)


def best_solution(
    problem: Problem,
    params: PrimalMKLParams,
    machine: PrimalMachine,
    bounds: Bounds[Best],
    stop: StopReason | None,
    trace: Trace,
    *,
    certificate: DualBound | None = None,
    extra: Mapping[str, float] = UNSCREENED,
    state: object = None,
) -> Solution:
    """Return the solution at the best point met.

    Parameters
    ----------
    problem, params
        The problem, and the method's parameters.
    machine : PrimalMachine
        The machine, whose counters are the solution's.
    bounds : Bounds
        Bounds of F, and the best point.
    stop : StopReason or None
        Why the run ended; None after the last iteration that is allowed.
    trace : Trace
        The trace.
    certificate : DualBound, optional
        Lower bound of the optimum over all kernels, and its feasible residual; by default those of
        `bounds`.
    extra : mapping of str to float
        Number of screened kernels, and of passes over the others alone.
    state : object
        State for the next point of a path.
    """
    d, z = bounds.best
    lower, r = (bounds.lower, bounds.dual_point) if certificate is None else certificate
    return Solution(
        kernel_weights=d,
        coefficients=z.alpha,
        bias=z.b,
        dual_variables=signed_by_class(params, r, problem.y),
        objective=bounds.upper,
        dual_objective=lower,
        stop_reason=stop or StopReason.MAX_ITER,
        counters=machine.counters,
        trace=trace.arrays(),
        extra=dict(extra),
        state=state,
    )


def exact_bound(
    problem: Problem, params: PrimalMKLParams, solution: Solution
) -> Generator[Request, Any, DualBound]:
    """Ask the kernels themselves for their forms at the residual of a solution on factors of them.

    The dual value is a parabola in multiples of the residual.  Any multiple is feasible where the
    loss has no slope, and then the best one counts.

    Parameters, requests and result are those of every bound of :mod:`mkldist.solvers.queries`.
    """
    loss, lam = squared_loss(params, problem.y, problem.weights), params.lam
    r = signed_by_class(params, solution.dual_variables, problem.y)
    q = (yield from largest_forms(r[:, None] / lam))[:, 0]
    squares = loss.squares(r) + lam * WeightSet(params.norm).largest(q)
    linear = loss.dual_value(r, float(solution.bias)) + 0.5 * loss.squares(r)
    multiple = linear / squares if loss.slope == 0.0 and squares > 0.0 else 1.0
    value = multiple * linear - 0.5 * multiple**2 * squares
    return DualBound(value, multiple * solution.dual_variables)
