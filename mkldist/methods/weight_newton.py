"""Damped Newton steps on kernel weights, and the search for the least objective along each.

A step goes towards the minimiser of the second-order model of the objective over the weights that
are allowed, and searches the segment in between: along ``d(step) = d + step (d_end - d)`` the
combined kernel is linear in the step and the value J of the support vector machine is convex, so
that every trial costs a machine but no kernel of the bank.  A proximal term damps the model: it
grows after a short step and shrinks after a full one.

Close to the optimum the slope of a segment drowns in the error of the inner machines.  Steps are
then full and untested, and machines are solved as exactly as rounding permits.

Hessian.  With ``J(d) = max_alpha { 1'alpha - 1/2 beta' K beta }``, ``beta = alpha*y``,
``K = sum_m d_m K_m``, the first derivative is ``-1/2 beta' K_m beta``.  Alpha is free where it is
strictly between 0 and C.  Let F be the free points and B the others.  As long as F stays the same,
the machine solves

    [[K_FF, 1], [1', 0]] [beta_F, b] = [y_F - K_FB beta_B, -1'beta_B].

With P the leading block of the inverse of that matrix and ``u_m = (K_m beta)_F``, its derivative
gives ``d beta_F / d d_m = -P u_m``, hence

    d2 J / dd_m dd_l = u_m' P u_l,    P = K_FF^-1 - K_FF^-1 1 1' K_FF^-1 / (1' K_FF^-1 1)

as Chapelle & Rakotomamonjy (2008) derive for the hinge loss with bias.

The model is a quadratic programme with a Hessian of low rank over the simplex or the non-negative
orthant.

    min_x 1/2 ||root x||^2 + 1/2 ridge ||x||^2 + linear'x   s.t.  x >= 0  (and 1'x = 1)

An active-set method solves the small system of the equality-constrained problem on a support,
drops the variables that stop it, or all that would turn negative, and adds those of the most
negative multipliers: one, and twice as many after each time that some of them stayed.
It only forms the block of the Hessian on the support, so that a step costs one product of the root
with all variables.  The ridge makes the minimiser unique where variables are alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy

from mkldist.core.arrays import Floats, Ints
from mkldist.optim.descent import root_of_slope
from mkldist.optim.factored_matrix import Gram, block_of, moved
from mkldist.solvers.svm import Bound, InnerSvm, SvmSolution

SvmAt = Callable[[Gram], SvmSolution]
SLOPE_LEFT = 0.5  # of the first slope's size, at which a trial is good enough
GOLDEN = 0.5 * (1.0 + math.sqrt(5.0))
COARSE, FINEST = 1e-1, 1e-8  # shares of the segment to which golden section narrows it


@dataclass(frozen=True, eq=False)
class Iterate:
    """Kernel weights with all that a method knows there."""

    d: Floats  # (M,) kernel weights
    K: Gram  # (n, n) their combined kernel, or its operator
    svm: SvmSolution  # the machine on it
    step: float = 1.0  # length of the step that led there along its segment, 1 for a full one

    @classmethod
    def solved(cls, d: Floats, K: Gram, svm_at: SvmAt) -> Iterate:
        """Return the iterate at weights `d` of combined kernel `K`, by solving its machine."""
        return cls(d, K, svm_at(K))


class Segment:
    """The segment from an iterate to weights `d_end` (M,) of combined kernel `K_end`.

    The objective is ``J(d) + multiplier sum_m d_m``.  The machine at the end, if it is not known,
    is solved when it is needed.
    """

    def __init__(
        self,
        svm_at: SvmAt,
        start: Iterate,
        d_end: Floats,
        K_end: Gram,
        multiplier: float = 0.0,
        end_svm: SvmSolution | None = None,
    ) -> None:
        self._svm_at, self._start, self._multiplier = svm_at, start, multiplier
        self._d_end, self._K_end, self._end_svm = d_end, K_end, end_svm
        self._K_change = moved(K_end, -1.0, start.K)
        self._tilt = multiplier * float((d_end - start.d).sum())
        # slope of the objective at the start; negative for a direction of descent
        self.slope = self.slope_at(start)

    def at(self, step: float) -> Iterate:
        """Return the weights at a step in [0, 1], with their combined kernel and its machine."""
        if step == 1.0:
            if self._end_svm is None:
                self._end_svm = self._svm_at(self._K_end)
            return Iterate(self._d_end, self._K_end, self._end_svm)
        d = (1.0 - step) * self._start.d + step * self._d_end
        K = moved(self._start.K, step, self._K_change)
        return Iterate(d, K, self._svm_at(K), step)

    def slope_at(self, trial: Iterate) -> float:
        """Return the slope, ``multiplier 1'(d_end - d) - 1/2 beta' (K_end - K) beta``."""
        beta = trial.svm.signed
        return self._tilt - 0.5 * float(np.vdot(beta, self._K_change @ beta))

    def objective(self, trial: Iterate) -> float:
        """Return the objective at a trial."""
        return trial.svm.objective + self._multiplier * float(trial.d.sum())

    def search(self) -> Iterate:
        """Return a trial at which the slope has shrunk; the full step is tried first."""
        trial = self._start

        def slope_at(step: float) -> float:
            nonlocal trial
            trial = self.at(step)
            return self.slope_at(trial)

        step = root_of_slope(slope_at, self.slope, 1.0, first=1.0, share=SLOPE_LEFT)
        return trial if trial.step == step else self.at(step)

    def golden_section(self) -> Iterate:
        """Return the trial of least objective that golden section finds; the start if none is less.

        This is the search in the toolbox of SimpleMKL's authors.  It takes values alone and no
        slopes: two machines narrow the segment by a step, until a tenth of it is left.  Where no
        trial is better than the start, the search goes on; the toolbox's next iteration does so.
        """
        low, high = replace(self._start, step=0.0), self.at(1.0)
        best = min(low, high, key=self.objective)
        while high.step - low.step > (COARSE if best.step > 0.0 else FINEST):
            right = self.at(low.step + (high.step - low.step) / GOLDEN)
            left = self.at(low.step + (right.step - low.step) / GOLDEN)
            trials = [low, left, right, high]
            best = min(trials, key=self.objective)
            place = trials.index(best)
            low, high = trials[max(place - 1, 0)], trials[min(place + 1, 3)]
        return best


_RIDGE_SHARE = 1e-12  # of the mean diagonal; a ridge keeps dependent columns apart


def hessian_root(K: Gram, alpha: Floats, C: Bound, products: Floats) -> Floats:
    """Return a root (f, S) of the Hessian: ``root' root`` is the second derivative of J.

    alpha (n,) are the dual variables of the machine on the combined kernel K, or (n, k) those of k
    classes, of whose J it is the sum; `products` (S, n) or (S, n, k) are ``K_m (alpha*y)`` of the S
    kernels whose weights vary.  The root has a row for each free variable.  It is empty where fewer
    than two are free, for J is linear there, and at ``K = 0``, where J has no second derivative.
    """
    if alpha.ndim == 2:
        machines = zip(alpha.T, np.moveaxis(products, 2, 0), strict=True)
        return np.concatenate([hessian_root(K, one, C, images) for one, images in machines])
    free = np.flatnonzero((alpha > 0.0) & (alpha < C))
    none = np.empty((0, len(products)))
    block = block_of(K, free)
    trace = float(np.trace(block))
    if len(free) < 2 or trace <= 0.0:
        return none
    ridge = _RIDGE_SHARE * trace / len(free)
    block[np.diag_indices_from(block)] += ridge
    try:
        factor = scipy.linalg.cholesky(block, lower=True, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return none
    rights = np.column_stack([np.ones(len(free)), products[:, free].T])
    solved = scipy.linalg.solve_triangular(factor, rights, lower=True, check_finite=False)
    normal = solved[:, 0] / np.linalg.norm(solved[:, 0])
    root: Floats = solved[:, 1:] - np.outer(normal, normal @ solved[:, 1:])
    return root


_RIDGE_SHARE = 1e-11  # of the objective's scale, below which systems are not solvable
_RIDGE_KNOWN = 1e-9  # of the squared root, above which rounding leaves the ridge its digits
_TOLERANCE = 1e-12  # share of the gradient by which a multiplier may be negative


@dataclass(frozen=True, eq=False)
class Model:
    """``1/2 ||root x||^2 + 1/2 ridge ||x||^2 + linear'x``."""

    root: Floats  # (k, S), root of the Hessian
    linear: Floats  # (S,), linear term
    ridge: float = 0.0  # addition to the Hessian's diagonal; raised to a share 1e-11 of the scale

    @classmethod
    def around(cls, point: Floats, gradient: Floats, root: Floats, ridge: float) -> Model:
        """Return the second-order model of a function that touches it at `point`, less a constant.

        `ridge` is the weight of the proximal term ``1/2 ||x - point||^2``, which leaves the
        gradient there.
        """
        curved = (root @ point) @ root + ridge * point
        return cls(root, gradient - curved, ridge)

    def gradient(self, x: Floats) -> Floats:
        """Return the gradient at `x`."""
        support = np.flatnonzero(x)
        curved: Floats = (self.root[:, support] @ x[support]) @ self.root
        return curved + self.ridge * x + self.linear

    def value(self, x: Floats) -> float:
        """Return the value at `x`."""
        image = self.root @ x
        return 0.5 * float(image @ image + self.ridge * (x @ x)) + float(self.linear @ x)


def minimise_over_simplex(objective: Model, support: Ints) -> Floats:
    """Minimise over ``{x >= 0, 1'x = 1}``; return x (S,), exactly zero off its support.

    `support` (s,) are variables expected to be positive; empty when nothing is known.
    """
    diagonal = _diagonal(objective)
    if not len(support):
        support = np.array([int(np.argmin(objective.linear + 0.5 * diagonal))])
    x = np.zeros(len(objective.linear))
    x[support] = 1.0 / len(support)
    scale = float(diagonal.max()) + float(np.ptp(objective.linear))
    x = _active_set(objective, x, scale, sums_to_one=True)
    return np.asarray(x / x.sum())


def minimise_over_orthant(objective: Model, support: Ints) -> Floats:
    """Minimise over ``{x >= 0}``; return x (S,), exactly zero off its support.

    The ridge keeps the minimiser bounded.  `support` (s,) are variables expected to be positive.
    """
    diagonal = _diagonal(objective)
    x = np.zeros(len(objective.linear))
    x[support] = 1.0
    return _active_set(objective, x, float(diagonal.max()), sums_to_one=False)


def _diagonal(objective: Model) -> Floats:
    """Return the Hessian's diagonal."""
    diagonal: Floats = np.einsum("ks,ks->s", objective.root, objective.root) + objective.ridge
    return diagonal


def _active_set(objective: Model, x: Floats, scale: float, *, sums_to_one: bool) -> Floats:
    """Move from a feasible `x` to the minimiser."""
    ridge = max(objective.ridge, _RIDGE_SHARE * scale, float(np.finfo(np.float64).tiny))
    objective = Model(objective.root, objective.linear, ridge)
    support, refused = x > 0.0, np.zeros(len(x), dtype=bool)
    entered, at_once = np.empty(0, dtype=np.intp), 1
    gradient = objective.gradient(x)
    for _ in range(20 * len(x) + 100):
        kept = np.flatnonzero(support)
        step = _newton_step(objective, kept, gradient[kept], sums_to_one=sums_to_one)
        x, leaving, moved = _advanced(objective, x, kept, step, sums_to_one=sums_to_one)
        if moved:
            refused[:] = False
        elif len(entered) == 1 and entered[0] in leaving:
            refused[entered] = True  # rounding sends back what has just entered
        support[leaving] = False
        gradient = objective.gradient(x)
        if len(leaving) and not refused.any():
            continue
        multiplier = float(gradient @ x) if sums_to_one else 0.0
        reduced = np.where(support | refused, np.inf, gradient - multiplier)
        least = -_TOLERANCE * (np.abs(gradient).max() + abs(multiplier))
        if reduced.min() >= least:
            break
        # One alone always moves; of several that enter, each may be sent back.
        at_once = 2 * at_once if support[entered].any() else 1
        entered = np.argsort(reduced, kind="stable")[:at_once]
        entered = entered[reduced[entered] < least]
        support[entered] = True
    return x


def _advanced(
    objective: Model, x: Floats, kept: Ints, step: Floats, *, sums_to_one: bool
) -> tuple[Floats, Ints, bool]:
    """Return the next point, the variables that leave the support, and whether the point moved.

    The step ends where the first variable vanishes.  If it is better that all which would turn
    negative vanish, they leave together, as thousands may.
    """
    length, leaving = _blocking(x, kept, step)
    stopped = x.copy()
    stopped[kept] = np.maximum(x[kept] + length * step, 0.0)
    stopped[leaving] = 0.0
    if length < 1.0:
        whole, turned = x.copy(), np.maximum(x[kept] + step, 0.0)
        whole[kept] = turned / turned.sum() if sums_to_one else turned
        if objective.value(whole) < objective.value(stopped):
            return whole, kept[turned == 0.0], True
    return stopped, leaving, length > 0.0


def _blocking(x: Floats, kept: Ints, step: Floats) -> tuple[float, Ints]:
    """Return the share of a step that keeps x >= 0, and the variables that stop it."""
    blocked = x[kept] + step < 0.0
    room = np.where(blocked, x[kept] / np.where(blocked, -step, 1.0), np.inf)
    length = min(1.0, float(room.min(initial=np.inf)))
    return length, kept[room <= length]


def _newton_step(objective: Model, kept: Ints, gradient: Floats, *, sums_to_one: bool) -> Floats:
    """Return the step to the stationary point on a support, without regard to signs.

    The factor of the Hessian comes from its root by a QR decomposition.  In the Hessian itself,
    rounding would hide the ridge, and only the ridge determines dependent variables.
    """
    root, gradient = objective.root[:, kept], -gradient
    if sums_to_one:
        root, gradient = _reflected(root)[:, 1:], _reflected(gradient)[1:]
    size = len(gradient)
    if not size:
        return np.zeros(len(kept))
    ridge, many = objective.ridge, size > 2 * len(root)
    if many and ridge > _RIDGE_KNOWN * np.square(root).sum():  # (R'R + r I)^-1 by that of RR' + r I
        step = (gradient - root.T @ _solved(root.T, ridge, root @ gradient)) / ridge
    else:
        step = _solved(root, ridge, gradient)
    return _reflected(np.append(0.0, step)) if sums_to_one else step


def _solved(root: Floats, ridge: float, right: Floats) -> Floats:
    """Return ``(root'root + ridge I)^-1 right``."""
    tall = np.vstack([root, math.sqrt(ridge) * np.eye(root.shape[1])])
    factor = np.linalg.qr(tall, mode="r")
    half = scipy.linalg.solve_triangular(factor, right, trans="T", check_finite=False)
    solved: Floats = scipy.linalg.solve_triangular(factor, half, check_finite=False)
    return solved


def _reflected(rows: Floats) -> Floats:
    """Reflect the last axis so that 1 turns into a multiple of the first unit vector."""
    normal = np.ones(rows.shape[-1])
    normal[0] += math.sqrt(len(normal))
    return rows - np.multiply.outer(rows @ normal, normal * (2.0 / (normal @ normal)))


INNER_TOLERANCE = 0.1  # of tol: gradient and Hessian are those of the optimal alpha
SLOPE_FLOOR = 1e-3  # of tol times the objective: a slope below says nothing
UNTESTED_LIMIT = 5  # steps below that floor in a row
DAMPING_FLOOR = 1e-10  # least share of the curvature in the proximal term
LONGEST = 10.0  # multiple of the weights' size that bounds a step where the model is flat
SHORT = 0.1  # length of a step, below which the model was wrong


@dataclass(frozen=True)
class WeightDomain:
    """Set of the kernel weights that are allowed."""

    # returns the minimiser of a model there, from a guess of its support
    minimise: Callable[[Model, Ints], Floats]
    # returns the part of a gradient, at weights, that vanishes where those are optimal
    reduced: Callable[[Floats, Floats], Floats]


SIMPLEX = WeightDomain(minimise_over_simplex, lambda gradient, d: gradient - d @ gradient)
ORTHANT = WeightDomain(minimise_over_orthant, lambda gradient, d: gradient)


class Damping:
    """Weight of the proximal term in a second-order model, relative to the model's curvature."""

    def __init__(self) -> None:
        self._share = DAMPING_FLOOR

    def ridge(self, root: Floats, slopes: Floats, size: float) -> float:
        """Return the weight of the proximal term for a root of the Hessian and reduced slopes (S,).

        Where the model is flat, it bounds the step by a multiple of the size of the weights.  It
        fades with the slopes, so that the last steps are Newton's.
        """
        curvature = float(np.einsum("ks,ks->s", root, root).max(initial=0.0))
        steepest = float(np.abs(slopes).max(initial=0.0))
        return max(self._share * curvature, steepest / (LONGEST * size))

    def adapt(self, length: float) -> None:
        """Lower the weight after a full step, and raise it after a short one."""
        if length >= 1.0:
            self._share = max(0.1 * self._share, DAMPING_FLOOR)
        elif length < SHORT:
            self._share = min(100.0 * self._share, 1.0)


class DampedNewton:
    """Damped Newton steps of a solver; its machines are sharpened once slopes drown."""

    def __init__(self, domain: WeightDomain, n_kernels: int, tol: float, svm_at: InnerSvm) -> None:
        self._domain, self._tol, self._svm_at = domain, tol, svm_at
        self._damping = Damping()
        self._support = np.zeros(n_kernels, dtype=bool)
        self._untested = 0

    @property
    def stuck(self) -> bool:
        """True once several steps in a row were untested."""
        return self._untested >= UNTESTED_LIMIT

    def minimiser(
        self, d: Floats, working: Ints, gradient: Floats, root: Floats, size: float
    ) -> Floats:
        """Return the weights (M,) that minimise the damped second-order model around d (M,).

        `working` (S,) are the kernels whose weights vary, among them all of positive weight;
        gradient (S,) and root (f, S) of the Hessian are those in their weights.
        """
        point = d[working]
        ridge = self._damping.ridge(root, self._domain.reduced(gradient, point), size)
        model = Model.around(point, gradient, root, ridge)
        d_end = np.zeros_like(d)
        d_end[working] = self._domain.minimise(model, np.flatnonzero(self._support[working]))
        self._support = d_end > 0.0
        return d_end

    def search(self, segment: Segment, objective: float) -> Iterate:
        """Return the iterate to which a Newton step leads, and adapt the damping to its length."""
        if segment.slope > -SLOPE_FLOOR * self._tol * objective:
            self._svm_at.sharpen()
            self._untested += 1
            moved = segment.at(1.0)
        else:
            self._untested = 0
            moved = segment.search()
        self._damping.adapt(moved.step)
        return moved
