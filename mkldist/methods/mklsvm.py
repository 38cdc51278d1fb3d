"""MK-LSVM, Laplacian support vector machines with many kernels (Guo & Jin 2011).

Minimises over kernel weights d, coefficients alpha on all n points and bias b, the paper's (5),

    F = 1/l sum over labelled i of max(0, 1 - y_i ((K alpha)_i + b))
        + gamma_a alpha'K alpha + gamma_i / n^2 alpha'K L K alpha + gamma_sigma ||d||^2,

where ``K = sum_m d_m K_m`` and l is the number of labelled points.  With several columns of labels
F is the sum over the columns of all but the last term: the classes share their weights.

At fixed d, F less its last term is the problem of :mod:`.lsvm`, the paper's (9) to (11).
Its optimal value V is convex in d, so that ``J(d) = V(d) + gamma_sigma ||d||^2`` is strongly
convex.  With ``q_m = alpha'K_m alpha``, summed over the classes,

    dJ/dd_m = -gamma_a q_m + 2 gamma_sigma d_m,

and the minimiser satisfies ``d_m = t_m = gamma_a q_m / (2 gamma_sigma) >= 0``.  Its weights are
therefore non-negative though no constraint demands it, and a kernel has weight zero only if its q_m
is zero.  By the strong convexity ``J(d) - min J <= gamma_sigma ||d - t||^2``.

The components ``d_m K_m alpha`` at the minimum depend on gamma_a and gamma_sigma only through
``gamma_a^2 gamma_sigma``: replacing gamma_a by t gamma_a and gamma_sigma by gamma_sigma / t^2
multiplies d by t and divides alpha by t.  A search needs to vary only one of the two.

Bounds.  The lower bound of the machines is linear in K.  Its minimum over d is therefore known,

    min J >= 1'beta - gamma_i / n^2 z'L z - gamma_sigma ||t||^2      (t at the bound's a).

At exact machines this is J less the gap above; it holds at inexact machines too.  Multiplied by a
factor s, beta and z give ``s 1'beta - s^2 gamma_i / n^2 z'L z - s^4 gamma_sigma ||t||^2``, and the
best feasible s is taken.  The solution holds ``s beta`` of the greatest bound as
``dual_variables``.  With ``z = K a, a = 1/2 P^-1 J'(beta*y)`` at any weights d, it gives a lower
bound, ``1'beta - gamma_i / n^2 z'L z - gamma_sigma ||t||^2``.  The greatest one, where d = t, is no
less than the bound reported; updates ``d = (d^2 t)^(1/3)`` lead there from any positive weights.

Weight step.  At fixed components, of norms ``||f_m||^2 = d_m^2 q_m``, the best weights are
``d_m = (d_m^2 t_m)^(1/3)``, which never raise J.  Anderson's method mixes the logarithms of this
update with those of the last ones, which also corrects the update's scale.  If J rises at a mixed
point, the plain update replaces the point.  The first weights belong to dual variables that are
equal within a class, which need no machine.

Errata.  The printed P has ``(DK)'L`` where (8) gives ``L DK``.  The printed derivative (13) has the
sign and the factor of its first term wrong, and ``J K J' P^-2`` for ``J P^-T K P^-1 J'``.  The step
(14) divides the objective by its derivative, entry by entry, which finds roots of the objective
and may ascend.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
from pydantic import Field

from mkldist.bank.requests import Combine, Quadratic
from mkldist.core.arrays import Floats
from mkldist.methods.deformed import LARGEST, LEAST, memory_on_graph
from mkldist.methods.lp_mkl import ASCENT, LogWeights
from mkldist.methods.lsvm import LSVMParams, Machines, ManifoldSvm
from mkldist.solvers.base import Counters, Method, Problem, Search, Steps
from mkldist.solvers.progress import Bounds

TINY = float(np.finfo(np.float64).tiny)
RESOLUTION = 1e-15  # of a factor, relative to the interval in which it is sought
PATIENCE = 15  # iterations without a better bound after which only rounding is left
REACH = 5.0  # by which the logarithm of a mixed weight may differ from the plain update's
FLOOR = 1e-3  # of the first weights' mean: a kernel that looks useless at first may become useful


class MKLSVMParams(LSVMParams):
    """Parameters of MK-LSVM."""

    gamma_sigma: float = Field(
        1.0, ge=LEAST, le=LARGEST, description="weight of the squared norm of the kernel weights"
    )


class _Point(NamedTuple):
    """The machines at kernel weights d (M,)."""

    machines: Machines
    d: Floats


def solve(problem: Problem, params: MKLSVMParams) -> Steps:
    """Alternate between the machines and the weights (the paper's Table 1).

    ``objective`` is the least F met, ``dual_objective`` the greatest lower bound met;
    ``dual_variables`` is beta times s; ``extra`` holds ``factorisations``, the number of matrices P
    factorised, whatever the number of classes.
    """
    counters = Counters()
    svm = ManifoldSvm(problem, params.gamma_a, params.gamma_i, params.tol, counters)
    # Step 1: weights and a lower bound from dual variables that need no machine.
    guess = svm.first_guess()
    t = _targets((yield Quadratic(guess.a)), params)
    ray = _best_on_ray(guess, t, params.gamma_sigma)
    d = ray.s**2 * t
    # A mixed logarithm stays within REACH of the plain update's.
    weights = LogWeights(
        _log(np.maximum(d, FLOOR * d.mean())),
        lambda mixed, plain: np.clip(mixed, plain - REACH, plain + REACH),
    )
    dual_point = ray.s * guess.dual_variables
    bounds = Search(
        problem, params, _Point(guess, d), max(ray.value, 0.0), dual_point=dual_point,
        counters=counters,
    )  # fmt: skip
    for _ in range(params.max_iter):
        d = weights.d
        K = yield Combine(d)  # step 2
        machines = svm(K)  # step 4: beta by (11), alpha by (9)
        t = _targets((yield Quadratic(machines.a)), params)  # a pass: q_m, and so dJ/dd
        J = machines.value + params.gamma_sigma * float(d @ d)
        ray = _best_on_ray(machines, t, params.gamma_sigma)
        bounds.take(_Point(machines, d), J, ray.value, ray.s * machines.dual_variables)
        bounds.record(d)
        stop = bounds.reason_to_stop(stalled=bounds.idle >= PATIENCE)
        if stop is not None:
            break
        _weight_step(weights, t, J, bounds)  # step 5, in place of (14)
    best, best_d = bounds.best
    coefficients, bias, _ = best.by_class(single=problem.y.ndim == 1)
    return bounds.finish(
        stop,
        kernel_weights=best_d,
        coefficients=coefficients,
        bias=bias,
        dual_variables=bounds.dual_point.reshape(problem.y.shape),
        extra={"factorisations": float(svm.factorisations)},
    )


def _targets(q: Floats, params: MKLSVMParams) -> Floats:
    """Return ``t_m = gamma_a q_m / (2 gamma_sigma)`` (M,) of quadratic forms (M, k)."""
    share = params.gamma_a / (2.0 * params.gamma_sigma)
    targets: Floats = share * np.maximum(q, 0.0).sum(axis=1)
    return targets


def _weight_step(weights: LogWeights, t: Floats, J: float, bounds: Bounds[_Point]) -> None:
    """Move to ``d = (d^2 t)^(1/3)``, mixed with the last updates unless J has risen."""
    if bounds.upper * (1.0 + ASCENT) < J:
        # Only a mixed point can raise J, but for rounding.  Half of a plain update, by its
        # logarithm, may be free of that.
        halved = 0.5 * (weights.plain + _log(bounds.best.d))
        weights.replace(weights.plain if weights.mixed else halved)
        return
    log_t = _log(t)
    # The update keeps a weight of zero at zero; log_t lets it return.
    returning = np.isneginf(weights.log)
    weights.update(np.where(returning, log_t, (2.0 * weights.log + log_t) / 3.0), t)


def _log(x: Floats) -> Floats:
    """Return the logarithms of non-negative numbers, -inf for 0."""
    with np.errstate(divide="ignore"):
        logarithms: Floats = np.log(x)
    return logarithms


class _OnRay(NamedTuple):
    """The best lower bound on a ray of dual variables, and the factor s of its point."""

    value: float
    s: float


def _best_on_ray(machines: Machines, t: Floats, gamma_sigma: float) -> _OnRay:
    """Return the best lower bound among the feasible multiples of beta and z."""
    with np.errstate(over="ignore"):
        quartic = gamma_sigma * float(t @ t)
    gain, square = machines.gain, machines.roughness
    s = _best_factor(gain, square, quartic, machines.reach)
    if s == 0.0:
        return _OnRay(0.0, 0.0)
    return _OnRay(s * gain - s**2 * square - s**4 * quartic, s)


def _best_factor(gain: float, square: float, quartic: float, reach: float) -> float:
    """Return the maximiser of ``gain s - square s^2 - quartic s^4`` over [0, reach].

    It is 0, which is feasible too, where the maximiser is too small for a float64.
    """

    def slope(s: float) -> float:
        return gain - 2.0 * square * s - 4.0 * quartic * s**3

    if gain == 0.0:
        return 0.0
    end = reach
    with np.errstate(divide="ignore", over="ignore"):
        end = min(end, float(np.divide(gain, 2.0 * square)))
        end = min(end, float(np.cbrt(np.divide(gain, 4.0 * quartic))))
    if not RESOLUTION * end > TINY:
        return 0.0
    if slope(end) >= 0.0:
        return end
    return float(scipy.optimize.brentq(slope, 0.0, end, xtol=RESOLUTION * end))


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
    memory=memory_on_graph,
)
