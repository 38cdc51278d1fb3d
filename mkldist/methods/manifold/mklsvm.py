"""MK-LSVM, Laplacian support vector machines with many kernels (Guo & Jin 2011).

Minimises over kernel weights d, coefficients alpha on all n points and bias b, the paper's (5),

    F = 1/l sum over labelled i of max(0, 1 - y_i ((K alpha)_i + b))
        + gamma_a alpha'K alpha + gamma_i / n^2 alpha'K L K alpha + gamma_sigma ||d||^2,

``K = sum_m d_m K_m``, l the number of labelled points.  With several columns of labels it is the
sum over the columns of all but the last term: the classes share their weights.  At fixed d it is
:mod:`.manifold_svm`, the paper's (9) to (11), whose value V is convex in d, so
that ``J(d) = V(d) + gamma_sigma ||d||^2`` is strongly convex.  With ``q_m = alpha'K_m alpha``,
summed over the classes,

    dJ/dd_m = -gamma_a q_m + 2 gamma_sigma d_m,

and the minimiser satisfies ``d_m = t_m = gamma_a q_m / (2 gamma_sigma) >= 0``: weights are not
negative though nothing demands it, and a kernel has weight zero only if its q_m is zero.  By the
strong convexity ``J(d) - min J <= gamma_sigma ||d - t||^2``.

The components ``d_m K_m alpha`` at the minimum depend on gamma_a and gamma_sigma by
``gamma_a^2 gamma_sigma`` alone: t gamma_a and gamma_sigma / t^2 only multiply d by t and divide
alpha by it.  A search need vary but one of the two.

Bounds: the lower bound of the machines is linear in K, so that its minimum over d is known,

    min J >= 1'beta - gamma_i / n^2 z'L z - gamma_sigma ||t||^2      (t at the bound's a),

which at exact machines is J less the gap above, and beyond that holds at inexact ones.  Multiplied
by s, beta and z give ``s 1'beta - s^2 gamma_i / n^2 z'L z - s^4 gamma_sigma ||t||^2``; the best
feasible s is taken.

Weight step: at fixed components, of norms ``||f_m||^2 = d_m^2 q_m``, the best weights are
``d_m = (d_m^2 t_m)^(1/3)``, which never raise J.  The logarithms of this update are mixed with the
last ones by Anderson's method, in which the update's scale sorts itself out; a mixed point of
greater J than the best is thrown away, and the plain update of the best point taken.  The first
weights are those of dual variables that are equal within a class, which need no machine.

Errata.  The printed P has ``(DK)'L`` where (8) gives ``L DK``.  The printed derivative (13) has the
sign and the factor of its first term wrong, and ``J K J' P^-2`` for ``J P^-T K P^-1 J'``.  The step
(14) divides the objective by its derivative, entry by entry, which finds roots of the objective
and may ascend.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field
from scipy.optimize import brentq

from mkldist.arrays import Floats
from mkldist.counters import Counters
from mkldist.gram.requests import Combine, Quadratic
from mkldist.methods.manifold.deformed import LARGEST, LEAST
from mkldist.methods.manifold.lsvm import LSVMParams
from mkldist.methods.manifold.manifold_svm import Machines, ManifoldSvm
from mkldist.optim.duality_gap import relative_gap
from mkldist.solvers.base import Method, Problem, Solution, Steps, StopReason, reason_to_stop
from mkldist.solvers.log_weights import ASCENT, LogWeights
from mkldist.solvers.trace import Trace

PATIENCE = 15  # iterations without a better bound after which rounding is what is left
REACH = 5.0  # by which the logarithm of a mixed weight may differ from the plain update's
FLOOR = 1e-3  # of the first weights' mean: what first looks useless may yet turn out well


class MKLSVMParams(LSVMParams):
    """Parameters of MK-LSVM."""

    gamma_sigma: float = Field(
        1.0, ge=LEAST, le=LARGEST, description="weight of the squared norm of the kernel weights"
    )


def solve(problem: Problem, params: MKLSVMParams) -> Steps:
    """Alternate between the machines and the weights.

    Parameters
    ----------
    problem : Problem
        Labels (n,), or (n, k) for classes that share their weights, 0 for none; number of kernels,
        and graph Laplacian.
    params : MKLSVMParams
        Weights of the norms and stopping rule.

    Yields
    ------
    Combine, Quadratic

    Returns
    -------
    Solution
        ``objective`` is the least F met, ``dual_objective`` the greatest lower bound met;
        ``dual_variables`` is beta; ``extra`` holds ``factorisations``, the number of matrices P
        factorised, whatever the number of classes.
    """
    state = _State(problem, params)
    guess = state.machines.first_guess()
    state.start(guess, (yield Quadratic(guess.a)))
    for _ in range(params.max_iter):
        K = yield Combine(state.d)
        found = state.machines(K)
        t = state.take(found, (yield Quadratic(found.a)))
        gap = relative_gap(state.upper, state.lower)
        stop = reason_to_stop(problem, params, gap, stalled=state.idle >= PATIENCE)
        if stop is not None:
            break
        state.move(t)
    return state.solution(stop or StopReason.MAX_ITER)


class _State:
    """The weights, by their logarithms, the bounds and the best point met."""

    def __init__(self, problem: Problem, params: MKLSVMParams) -> None:
        self._params, self._single = params, problem.y.ndim == 1
        self._counters = Counters()
        self.machines = ManifoldSvm(
            problem, params.gamma_a, params.gamma_i, params.tol, self._counters
        )
        self._trace = Trace(params.trace, problem.clock)
        self.upper, self.lower, self.idle = np.inf, 0.0, 0

    @property
    def d(self) -> Floats:
        """Kernel weights of the iterate."""
        return self._weights.d

    def start(self, guess: Machines, q: Floats) -> None:
        """Take the weights that belong to dual variables without a machine."""
        t = self._targets(q)
        value, scale = self._on_ray(guess, t)
        self.lower = max(self.lower, value)
        d = scale**2 * t
        first = _log(np.maximum(d, FLOOR * d.mean()))
        self._weights = LogWeights(first, _within_reach)
        self._counters.passes += 1

    def take(self, found: Machines, q: Floats) -> Floats:
        """Take the bounds that the machines give, and return t."""
        t, d = self._targets(q), self.d
        self.idle += 1
        lower, _ = self._on_ray(found, t)
        if lower > self.lower:
            self.lower, self.idle = lower, 0
        self._value = found.value + self._params.gamma_sigma * float(d @ d)
        if self._value < self.upper:
            self.upper, self._best, self._best_d, self.idle = self._value, found, d, 0
        self._counters.outer_iterations += 1
        self._counters.combines += 1
        self._counters.passes += 1
        self._trace.record(self.upper, self.lower, d)
        return t

    def move(self, t: Floats) -> None:
        """Take the update, mixed with the last ones where that has not led uphill."""
        weights = self._weights
        if self._value > self.upper * (1.0 + ASCENT):
            # The plain update descends but for rounding, which half of it may be free of.
            halved = 0.5 * (weights.plain + _log(self._best_d))
            weights.replace(weights.plain if weights.mixed else halved)
            return
        log_t = _log(t)
        # The update would not let a weight of zero return.
        returning = np.isneginf(weights.log)
        weights.update(np.where(returning, log_t, (2.0 * weights.log + log_t) / 3.0), t)

    def _targets(self, q: Floats) -> Floats:
        """Return t (M,) of the quadratic forms (M, k)."""
        share = self._params.gamma_a / (2.0 * self._params.gamma_sigma)
        targets: Floats = share * np.maximum(q, 0.0).sum(axis=1)
        return targets

    def _on_ray(self, found: Machines, t: Floats) -> tuple[float, float]:
        """Return the best lower bound on a ray of dual variables, and the factor s there."""
        quartic = self._params.gamma_sigma * float(t @ t)
        s = _best_factor(found.gain, found.roughness, quartic, found.reach)
        return s * found.gain - s**2 * found.roughness - s**4 * quartic, s

    def solution(self, stop: StopReason) -> Solution:
        """Return the best point met and its certificate."""
        coefficients, bias, beta = self._best.by_class(single=self._single)
        return Solution(
            kernel_weights=self._best_d,
            coefficients=coefficients,
            bias=bias,
            dual_variables=beta,
            objective=self.upper,
            dual_objective=self.lower,
            stop_reason=stop,
            counters=self._counters,
            trace=self._trace.arrays(),
            extra={"factorisations": float(self.machines.factorisations)},
        )


def _log(x: Floats) -> Floats:
    """Return the logarithms of non-negative numbers, -inf for 0."""
    with np.errstate(divide="ignore"):
        logarithms: Floats = np.log(x)
    return logarithms


def _within_reach(mixed: Floats, plain: Floats) -> Floats:
    """Return mixed logarithms, each cut to the reach of the plain update's."""
    cut: Floats = np.clip(mixed, plain - REACH, plain + REACH)
    return cut


def _best_factor(gain: float, square: float, quartic: float, reach: float) -> float:
    """Return the maximiser of ``gain s - square s^2 - quartic s^4`` over [0, reach]."""

    def slope(s: float) -> float:
        return gain - 2.0 * square * s - 4.0 * quartic * s**3

    if gain == 0.0:
        return 0.0
    end = reach
    with np.errstate(divide="ignore", over="ignore"):
        end = min(end, float(np.divide(gain, 2.0 * square)))
        end = min(end, float(np.cbrt(np.divide(gain, 4.0 * quartic))))
    if slope(end) >= 0.0:
        return end
    return float(brentq(slope, 0.0, end, xtol=1e-15 * end))


METHOD = Method(
    name="mklsvm",
    solve=solve,
    params=MKLSVMParams,
    title="MK-LSVM, Laplacian SVM with many kernels",
    problem="semi-supervised MKL, penalised weights",
    loss="hinge",
    regularizer="gamma_a ||f||^2 + gamma_i/n^2 f'L f + gamma_sigma ||d||^2",
    reference="Guo & Jin 2011, (5) to (11)",
    hyperparameters=("gamma_a", "gamma_i", "gamma_sigma"),
    needs_laplacian=True,
    joint_classes=True,
    typical_passes=lambda n_kernels: 10,
)
