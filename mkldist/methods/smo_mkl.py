"""SMO-MKL and the support kernel machine: sequential minimal optimisation on smooth duals of MKL.

Pair updates bring the gap below one per cent; Newton steps on the free variables reach tighter
tolerances (:mod:`.smooth_dual`).

``smo_mkl`` penalises the squared p-norm (Vishwanathan, Sun, Theera-Ampornpunt & Varma 2010).

Minimises over components f_m, bias b and kernel weights ``d >= 0``, with p > 1,

    1/2 sum_m ||f_m||^2 / d_m + C sum_i hinge(y_i (sum_m f_m(x_i) + b)) + lam/2 ||d||_p^2.

With ``q_m = (alpha*y)' K_m (alpha*y)`` and ``p* = p/(p-1)`` its dual is smooth,

    max_alpha 1'alpha - (1/(8 lam)) ||q||_{p*}^2   s.t.  0 <= alpha <= C,  y'alpha = 0,

because the weights are eliminated in closed form: ``||d||_p = ||q||_{p*} / (2 lam)`` and d_m is
proportional to ``q_m^(p*-1)``.  Sequential minimal optimisation can therefore climb it.  It
chooses a pair of variables by the second-order gain and moves it to the maximum on its line,
which Newton's method finds, because the objective on the line is not quadratic.  The lower bound is
the dual value at the alpha that the solution holds as ``dual_variables``.

The weight is penalised here where :mod:`.lp_mkl` bounds it.  If d is optimal here
and ``theta = ||d||_p``, then ``d / theta`` is optimal there for ``theta C`` in place of C.

The paper's second regulariser is a Bregman divergence ``lam B_F(d, d0)`` from reference weights d0,
which makes the dual ``1'alpha - lam (F*(grad F(d0) + q / (2 lam)) - F*(grad F(d0)))``.  With d0 = 0
the squared p-norm is one.  ``penalty="kl"`` has its other example, the divergence of Kullback and
Leibler ``sum_m d_m log(d_m / d0_m) - d_m + d0_m``, here from uniform weights ``d0_m = 1/M``.  Then
``d_m = d0_m exp(q_m / (2 lam))``: no weight is zero, and none of `lp_mkl` replaces them.

``skm`` is the support kernel machine (Bach, Lanckriet & Jordan 2004).

Minimises over components f_m and bias b

    C sum_i hinge(y_i (sum_m f_m(x_i) + b)) + 1/2 (sum_m ||f_m||)^2,

which is the value of the support vector machine at the best kernel weights of the simplex.  With
``q_m = (alpha*y)' K_m (alpha*y)`` its dual is not differentiable,

    max_alpha 1'alpha - 1/2 max_m q_m   s.t.  0 <= alpha <= C,  y'alpha = 0,

and pair updates would get stuck on its kinks.  The paper adds ``1/2 sum_m a_m^2 ||f_m||^2`` to the
primal, which makes the dual smooth (Moreau-Yosida regularisation), so that sequential minimal
optimisation can climb it.  Here all a_m equal one a, as fits kernels of a common normalisation.
The regularised optimum is within about a^2, relatively, of the true one.  So ``a^2`` falls by a
factor of ten each time the regularised problem is solved to a share of it: one *stage*.

The norms ``t_m = ||f_m||`` of the regularised problem satisfy ``a^2 t_m = (sqrt(q_m) - T)_+`` with
``T = sum_m t_m``, and its components are ``f_m = e_m K_m (alpha*y)``, ``e_m = t_m / sqrt(q_m)``.
Their sum is the predictor of weights ``d = e / sum(e)`` in the simplex and of coefficients
``sum(e) alpha*y``.  Both bounds are those of the problem without a: the machine's primal value of
that predictor, and the dual above, at the alpha that the solution holds as ``dual_variables``.

Newton steps finish each stage.  Where rounding ends a stage early, one support vector machine at
its weights gives the bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from mkldist.bank.requests import Combine, Diagonal, Quadratic
from mkldist.methods.smooth_dual import (
    DIVERGENCE,
    MOREAU_YOSIDA,
    P_NORM,
    DualSearch,
    MklDual,
    Penalty,
    Predictor,
    memory_of_rows,
)
from mkldist.optim.accuracy import relative_gap
from mkldist.solvers.base import Method, Problem, Steps
from mkldist.solvers.solver_params import HingeParams
from mkldist.solvers.svm import InnerSvm

ROUNDS = 25  # rounds without a better bound after which only rounding is left
FIRST_A_SQUARED = 0.1
SHRINKAGE = 0.1  # of a^2 from stage to stage
STAGE_SHARE = 0.2  # of a^2, the regularised gap at which a stage ends
STAGE_PATIENCE = 8  # Newton rounds in which its gap does not halve, after which a stage ends
LEAST_SHARE = 0.1  # of the tolerance, below which a^2 does not go
PATIENCE = 4 * STAGE_PATIENCE  # rounds without a better bound after which only rounding is left


class SkmParams(HingeParams):
    """Parameters of the support kernel machine."""

    steers: ClassVar[tuple[str, ...]] = ("cache_mib",)

    cache_mib: float = Field(256.0, gt=0, description="memory for rows of the kernels, MiB")


class SmoMklParams(SkmParams):
    """Parameters of SMO-MKL."""

    penalty: Literal["p-norm", "kl"] = Field(
        "p-norm", description="of weights: squared p-norm, or divergence from uniform ones"
    )
    p: float = Field(2.0, gt=1, description="norm of the kernel weights")
    lam: float = Field(1.0, gt=0, description="price of the penalty")


def smo_mkl(problem: Problem, params: SmoMklParams) -> Steps:
    """Climb the dual by pair updates, then by Newton steps.

    ``objective`` is the least primal value met at the weights that q implies, ``dual_objective``
    the greatest dual value.
    """
    n_kernels, power = problem.n_kernels, params.p / (params.p - 1.0)
    penalty = Penalty(P_NORM, power, params.lam)
    if params.penalty == "kl":
        penalty = Penalty(DIVERGENCE, 1.0 / n_kernels, params.lam)
    bounds = DualSearch(problem, params, penalty.weights(np.zeros(n_kernels)))
    counters = bounds.counters
    traces = yield Diagonal(np.ones((problem.n_points, 1)))
    dual = MklDual(problem, params.C, params.cache_mib, counters, traces[:, 0])
    gap = 1.0  # of the point reached
    for _ in range(params.max_iter):
        # Climb 1'alpha - Psi(q), Psi = ||q||_{p*}^2 / (8 lam), or that of the divergence.
        # SMO: the rows of the points that violate optimality most; then pair after pair, by the
        # second-order gain, to the maximum on its line.  Beyond the paper, near the optimum: the
        # second-order model over the box.
        yield from dual.climb(penalty, gap)
        q = dual.q
        d, psi = penalty.weights(q), penalty.value(q)
        # At the weights d that q implies, 1/2 sum_m d_m q_m less Psi is their penalty.
        energy = 0.5 * float(d @ q)
        predictor = dual.predictor(d, energy)
        upper = predictor.loss + energy * predictor.scale**2 + (energy - psi)
        lower = dual.height(predictor.bias) - penalty.value(dual.largest_q)
        bounds.take(predictor, upper, lower, dual.alpha)
        gap = relative_gap(upper, lower)
        bounds.record(d)
        stop = bounds.reason_to_stop(stalled=bounds.idle >= ROUNDS)
        if stop is not None:
            break
    return bounds.solution(stop)


def skm(problem: Problem, params: SkmParams) -> Steps:
    """Climb one regularised dual after the other.

    ``objective`` is the least primal value met at weights of the simplex, ``dual_objective`` the
    greatest value met of ``1'alpha - 1/2 max_m q_m``.
    """
    bounds = DualSearch(problem, params, np.full(problem.n_kernels, 1.0 / problem.n_kernels))
    counters = bounds.counters
    traces = yield Diagonal(np.ones((problem.n_points, 1)))
    dual = MklDual(problem, params.C, params.cache_mib, counters, traces[:, 0])
    svm_at = InnerSvm(problem.y, params.C, params.tol, counters)
    stage = _Stage(FIRST_A_SQUARED)
    for _ in range(params.max_iter):
        # Climb the regularised dual 1'alpha - Psi(q).
        penalty = Penalty(MOREAU_YOSIDA, stage.a_squared)
        # SMO: the rows of the points that violate optimality most; then pair after pair, by the
        # second-order gain, to the maximum on its line.  Beyond the paper, near the optimum: the
        # second-order model over the box.
        yield from dual.climb(penalty, stage.gap)
        q = dual.q
        # f_m = e_m K_m (alpha*y) has the energy 1/2 (sum_m ||f_m||)^2 at weights e / sum(e).
        e, psi = penalty.weights(q), penalty.value(q)
        energy = 0.5 * float(e.sum()) * float(e @ q)
        predictor = dual.predictor(e, energy)
        loss, square = predictor.loss, predictor.scale**2
        # The gap of the regularised problem, and both bounds of the problem without a.
        height = float(dual.alpha.sum())
        stage.judge(relative_gap(loss + square * psi, height - psi), newton=dual.newton)
        lower = dual.height(predictor.bias) - 0.5 * float(dual.largest_q.max())
        predictor = predictor.on_simplex()
        bounds.take(predictor, loss + square * energy, lower, dual.alpha)
        if stage.stuck:  # the weights are good, but e magnifies errors of q by 1/a^2
            svm = svm_at((yield Combine(predictor.d)))
            lower = svm.dual_value(float((yield Quadratic(svm.signed)).max()))
            found = Predictor(predictor.d, svm.coefficients, float(svm.bias))
            bounds.take(found, svm.objective, lower, svm.alpha)
        bounds.record(predictor.d)
        stop = bounds.reason_to_stop(stalled=bounds.idle >= PATIENCE)
        if stop is not None:
            break
        if stage.stuck or stage.gap <= STAGE_SHARE * stage.a_squared:
            stage = _Stage(max(SHRINKAGE * stage.a_squared, LEAST_SHARE * params.tol))
    return bounds.solution(stop)


@dataclass
class _Stage:
    """One value of a^2, and the relative duality gap of its regularised problem so far."""

    a_squared: float
    gap: float = 1.0
    _least_gap: float = np.inf
    _idle: int = 0  # Newton rounds in a row that did not halve the least gap

    def judge(self, gap: float, *, newton: bool) -> None:
        """Take the gap after a round, which was of Newton's method or not."""
        self.gap = gap
        self._idle += newton
        if gap < 0.5 * self._least_gap:
            self._least_gap, self._idle = gap, 0

    @property
    def stuck(self) -> bool:
        """True if rounding has kept the gap from falling for `STAGE_PATIENCE` Newton rounds."""
        return self._idle >= STAGE_PATIENCE


SMO_MKL = Method(
    name="smo_mkl",
    solve=smo_mkl,
    params=SmoMklParams,
    title="SMO-MKL, squared p-norm",
    problem="MKL with a norm or a divergence of the weights penalised",
    loss="hinge",
    regularizer="1/2 sum_m ||f_m||^2 / d_m + lam/2 ||d||_p^2, or lam times a divergence",
    reference="Vishwanathan, Sun, Theera-Ampornpunt & Varma 2010, SMO on the p-norm dual",
    hyperparameters=("C", "p", "lam"),
    memory=lambda size, params: memory_of_rows(size, params.cache_mib),
)

SKM = Method(
    name="skm",
    solve=skm,
    params=SkmParams,
    title="Support kernel machine, SMO on the Moreau-Yosida regularised dual",
    problem="simplex-weighted MKL",
    loss="hinge",
    regularizer="1/2 (sum_m ||f_m||)^2",
    reference="Bach, Lanckriet & Jordan 2004, SMO on the Moreau-Yosida regularised dual",
    memory=lambda size, params: memory_of_rows(size, params.cache_mib),
)
