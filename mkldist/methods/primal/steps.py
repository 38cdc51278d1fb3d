"""PrimalMKL's two steps in turn: the machine at fixed weights, and the weights (lines 4 to 12).

Both work on the kernels of a working set, of which a weight step takes those in use and those that
descend.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.counters import Counters
from mkldist.gram.requests import Request
from mkldist.machines.primal_newton import PrimalMachine, PrimalPoint, SupportSystem
from mkldist.methods.primal.kernel_products import Forms, KernelCache, kernel_cache
from mkldist.methods.primal.weight_step import SecondOrderModel, alternating_objective, nesterov
from mkldist.optim.line_search import root_of_slope
from mkldist.optim.lp_ball import WeightSet
from mkldist.solvers.screening import Candidates
from mkldist.solvers.working_set import WorkingSet

CHI_1 = 1e-5  # the paper's tolerance of the weight step
LARGEST_SHARE, LEAST_SHARE = 1e-3, 1e-7  # of the gap, left by the minimum of the model
SLOPE_SHARE = 0.5  # of the first slope's size, beyond which the end of a step is too far


@dataclass(frozen=True, eq=False)
class Iterate:
    """Weights, their kernel and the machine's minimum for it.

    Parameters
    ----------
    d : (S,) float64
        Weights of the working set.
    K : (n, n) float64
        ``sum_m d_m K_m``.
    z : PrimalPoint
        The machine.
    """

    d: Floats
    K: Floats
    z: PrimalPoint


@dataclass(frozen=True, eq=False)
class PrimalState:
    """Where the next point of a path may start.

    Parameters
    ----------
    d : (M,) float64
        Kernel weights.
    kernels : (S,) intp
        The working set.
    alpha : (n,) float64
        Coefficients.
    b : float
        Bias.
    candidates : Candidates
        What is known of dual norms at the r of the last pass.
    """

    d: Floats
    kernels: Ints
    alpha: Floats
    b: float
    candidates: Candidates


@dataclass(frozen=True, eq=False)
class WeightDescent:
    """Steps of the weights.

    Parameters
    ----------
    machine : PrimalMachine
        With its loss and regularisation.
    weights : WeightSet
        Simplex or ball.
    kernels : WorkingSet
        The kernels at work.
    coupled : bool
        Whether the coefficients follow in the step.
    tol : float
        Relative gap asked for.
    counters : Counters
        Work done.
    """

    machine: PrimalMachine
    weights: WeightSet
    kernels: WorkingSet
    coupled: bool
    tol: float
    counters: Counters

    def at(self, d: Floats, alpha: Floats) -> Generator[Request, Any, Iterate]:
        """Return the machine's minimum at weights `d` (S,), sought from `alpha` (n,)."""
        K = yield from self._combine(d)
        return Iterate(d, K, self.machine(K, alpha))

    def step(self, now: Iterate, forms: Forms, gap: float) -> Generator[Request, Any, Iterate]:
        """Return the next weights with their machine.

        Parameters
        ----------
        now : Iterate
            Where to step from.
        forms : Forms
            Of the working set's kernels at ``r / lam`` there.
        gap : float
            Relative gap of the bounds.
        """
        cache = yield from kernel_cache(now.K, now.d, forms, self.weights, self.counters)  # line 11
        if not self.coupled:
            F = alternating_objective(
                cache.G, cache.q, self.machine.lam, self.machine.loss, now.z.b
            )
            chi = min(CHI_1, self.tol)
            d = self._feasible(cache.weights(nesterov(F, self.weights, cache.x, chi=chi)))
            return (yield from self.at(d, now.z.alpha))
        d = self._feasible(cache.weights(self._model_minimum(now, cache, gap)))
        K = yield from self._combine(d)
        return self._descent(now, d, K)

    def _combine(self, d: Floats) -> Generator[Request, Any, Floats]:
        self.counters.combines += 1
        self.counters.passes += self.kernels.everything and bool((d > 0.0).all())
        K: Floats = yield self.kernels.combination(d)
        return K

    def _model_minimum(self, now: Iterate, cache: KernelCache, gap: float) -> Floats:
        """Return the weights of the columns that minimise the second-order model of J."""
        sv = self.machine.loss.active(now.z.r)
        if not sv.any():
            return cache.x
        lam = self.machine.lam
        f = (now.K @ now.z.r / lam)[sv]
        system = SupportSystem(now.K, sv, lam)
        model = SecondOrderModel.of(system, lam, cache.G[sv], cache.q, f)
        share = min(max(gap, LEAST_SHARE), LARGEST_SHARE)  # quadratic convergence needs it
        return model.minimum(self.weights, cache.x, share)

    def _feasible(self, d: Floats) -> Floats:
        """Return `d` without what rounding left of it outside the set."""
        length = self.weights.length(d)
        feasible: Floats = d / length if self.weights.is_simplex or length > 1.0 else d
        return feasible

    def _descent(self, now: Iterate, d: Floats, K: Floats) -> Iterate:
        """Return the end of the step, or where the slope of J on the way there vanishes."""
        change = K - now.K
        end = self.machine(K, now.z.alpha)
        slope, end_slope = self._slope(now.z, change), self._slope(end, change)
        if slope >= 0.0 or end_slope <= SLOPE_SHARE * -slope:
            return Iterate(d, K, end)
        at = now.z, 0.0

        def slope_at(step: float) -> float:
            nonlocal at
            at = self.machine(now.K + step * change, at[0].alpha), step
            return self._slope(at[0], change)

        root_of_slope(slope_at, slope, 1.0, end_slope=end_slope, share=SLOPE_SHARE)
        z, step = at
        return Iterate(now.d + step * (d - now.d), now.K + step * change, z)

    def _slope(self, z: PrimalPoint, change: Floats) -> float:
        """Return dJ along a change of the kernel, ``-lam/2 a'(change)a`` at ``a = r / lam``."""
        return -0.5 / self.machine.lam * float(np.dot(z.r, change @ z.r))
