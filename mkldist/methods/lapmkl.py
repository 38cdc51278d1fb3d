"""LapMKL: semi-supervised multiple kernel learning in the primal.

Hao, Yuan, Yang & Chen 2012, section 4.  On n points, of which those with ``y_i = 0`` have no label,
with the graph Laplacian L and kernel weights d in the simplex, two forms:

``shared``
    The paper's (18), one vector alpha of coefficients for all kernels,

        F = 1/2 { gamma_a alpha'K alpha + gamma_i alpha'N alpha
                  + sum over labelled i of w_i max(0, 1 - y_i ((K alpha)_i + b))^2 },

    ``K = sum_m d_m K_m``, ``N = sum_m d_m K_m L K_m``.  :func:`alternate` below is the paper's
    Algorithm 1 for it.
``deformed``
    The paper's (16), from which (18) follows by sharing alpha: a function per kernel, convex, with
    a duality gap, over components ``g_m = d_m f_m`` on all n points,

        F = 1/2 { sum_m g_m'(gamma_a K_m^-1 + gamma_i L) g_m / d_m
                  + sum over labelled i of w_i loss(y_i, sum_m g_m(x_i) + b) }.

    :func:`solve_deformed` below solves it, and GLKS with it.

The optimum of ``deformed`` is at most that of ``shared``, which restricts it to
``g_m = d_m K_m alpha``.  Both equal PrimalMKL with ``lam = gamma_a`` on the labelled points where
``gamma_i = 0``, F for F, and LapSVM where there is one kernel.

The z-step of ``shared``.  With ``R = gamma_a K + gamma_i N`` and K_l the labelled rows of K,

    F(alpha, b) = 1/2 alpha'R alpha + L(K_l alpha + b 1),

whose minimum has ``alpha = R^+ K_l'c``, c the residual of the loss.  The dual variables c are thus
the coefficients of PrimalMKL's machine with lam = 1 on ``H = K_l R^+ K_l'``.  The z-step minimises
over z; with ``machine="one-step"`` it is the paper's, a single one.

The d-step.  With ``v_m = K_m alpha`` and ``t_m = gamma_a alpha'v_m + gamma_i v_m'L v_m``, F at
fixed z is ``1/2 t'd`` plus the loss of ``sum_m d_m v_m + b``: the d-step of PrimalMKL with t for q.
As there, the paper's alternation takes short steps.  By default the step therefore minimises a
second-order model of ``J(d) = min_z F``,

    d2J/dd2 = B'B - W'R^+ W,   w_m = K_m (gamma_a alpha + gamma_i L v_m - S'r),

where S selects the labelled points, ``K_l = S K``, r is the residual of the loss, and B is that of
PrimalMKL's model for the columns ``S v_m - K_l R^+ w_m``.  The second term makes J non-convex;
without it the model is convex.

Stopping rule of ``shared``.  F is convex in z = (alpha, b) and in d, but not in both.  Which of
several stationary points a run meets depends on its steps.  Where the alternation ends, no change
of z alone and no change of d alone can gain more than

    z_gap = 1/2 (dF/dalpha)'R^+ (dF/dalpha)      and      fw_gap = max_m <dF/dd, d - e_m>.

The run has converged when ``stationarity = (z_gap + fw_gap) / F <= tol``, the rounding of F added
to the gaps.  A ridge of the size of its rounding is added to R: what z could gain where R has
smaller eigenvalues is not seen.

Its ``dual_objective`` is a lower bound of F over all (z, d): the dual of (18) with gamma_i = 0,
``y'r - 1/2 r'W^-1 r - max_m r'K_m r / (2 gamma_a)``, at the best multiple of the residual r,
``1/2 (y'r)^2 / (r'W^-1 r + max_m r'K_m r / gamma_a)``.  The weights w_i of the points, 1 in the
paper, are the diagonal of W.  The solution's ``dual_variables`` are ``r * y``.
The bound is honest, but loose unless gamma_i is small, so that the solution has no gap.  The
optimum of ``deformed`` is a tighter bound.

``deformed`` is the problem of PrimalMKL with lam = 1 over the kernels
``Kd_m = K_m (gamma_a I + gamma_i L K_m)^-1`` restricted to the labelled points, see
:mod:`.deformed`, and so is its certificate: the best multiple of a residual r of the labelled
points, of sum 0, gives the lower bound ``1/2 g^2 / (r'W^-1 r + max_m r'Kd_m r)``, ``g = y'r`` for
both losses.  The solution's ``dual_variables`` are ``r * y`` for the squared hinge, where
``y*r >= 0``, else r.  Without a bias, b is 0.  With kernels of unit norm, each K_m has its own
gamma_a and gamma_i, multiplied by one factor.  In three steps:

1. The bank is asked for its Gram matrices, a few at a time, and each is deformed.
2. PrimalMKL runs on the deformed kernels, which form a bank of their own in memory.
3. The bank is asked for the Gram matrices in use once more, for coefficients on all points and for
   the value of F on the original kernels.

Erratum: (18) sums the loss over all n points; the labelled ones of (16) are meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import scipy
from pydantic import Field

from mkldist.bank.bank import MemoryBank, TileLayout
from mkldist.bank.passes import answered
from mkldist.bank.requests import Diagonal, Matvec, Quadratic
from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.core.memory import VECTORS_PER_SOLVER, ProblemSize, SolverMemory
from mkldist.methods import primalmkl
from mkldist.methods.deformed import MATRICES, Deformation, ManifoldParams
from mkldist.methods.primalmkl import (
    CHI_1,
    LOWER_CHI_2,
    PrimalMKLParams,
    ValueModel,
    alternating_objective,
    nesterov,
    signed_by_class,
    squared_loss,
)
from mkldist.optim.accuracy import form_rounding, relative_gap
from mkldist.optim.weight_sets import WeightSet
from mkldist.solvers.base import (
    Counters,
    Method,
    Problem,
    Requesting,
    Search,
    Solution,
    Steps,
    reason_to_stop,
)
from mkldist.solvers.primal_newton import ETA, PrimalMachine, PrimalPoint, SupportSystem
from mkldist.solvers.progress import STATIONARITY, Own, StopReason
from mkldist.solvers.queries import AT_A_TIME, gram_matrices
from mkldist.solvers.solver_params import Effects
from mkldist.solvers.squared_losses import SquaredLoss, squared_hinge

HALVINGS, SUFFICIENT = 30, 1e-4
Weights = Requesting[Floats]
INNER_SHARE = 1e-2  # of tol: the error of dF/dd is of the order of the root of the machine's gap
PATIENCE, PROGRESS = 8, 1e-13
TINY = float(np.finfo(np.float64).tiny)
RIDGE = 4.0 * np.finfo(np.float64).eps  # of the largest diagonal entry of R
SIMPLEX = WeightSet(1.0)
MODEL_SHARE = 1e-4  # of the gap, left by the minimum of the model
COLUMNS = 1000  # kernels asked for in one Matvec
SECOND_COLUMNS = 8  # kernels and vectors asked for in one Matvec when each has its own vector
ZERO_WEIGHT = 1e-15


class LapMKLParams(ManifoldParams):
    """Parameters of LapMKL."""

    steers: ClassVar[tuple[str, ...]] = ("coupled", "machine", "chi_2")
    effective_with: ClassVar[Effects] = {
        "machine": ("coupled", (False,)),
        "chi_2": ("machine", ("one-step",)),
    }

    form: Literal["shared", "deformed"] = Field(
        "deformed",
        description="coefficients of each kernel's own, (16), certified; or shared by all, (18), "
        "which is not convex: tol is then on stationarity, and there is no gap",
    )
    coupled: bool = Field(
        True, description="let the coefficients follow in the weight step; false: the paper's step"
    )
    machine: Literal["minimum", "one-step"] = Field(
        "minimum",
        description="how far the machine is minimised between two weight steps; one-step: "
        "Algorithm 1 as printed",
    )
    chi_2: float = Field(
        0.0,
        ge=0,
        description="norm of the machine's gradient at which to stop, 0.1 in the paper; such a run "
        "has converged only if its gap, or stationarity, is at most tol",
    )

    @property
    def after_a_stall(self) -> str:
        """What to do about a run that stalled above its tolerance."""
        return LOWER_CHI_2 if self.chi_2 > 0.0 else super().after_a_stall


def solve(problem: Problem, params: LapMKLParams) -> Steps:
    """Run LapMKL in the form that the parameters name.

    In the shared form, ``objective`` is F where the alternation ended, which rounding may put above
    the least F met, the last of the trace.  ``extra`` holds ``z_gradient``, the norm of dF/dz,
    ``frank_wolfe_gap``, and ``stationarity``, which is at most tol when the run has converged.
    """
    if params.form == "shared":
        return (yield from alternate(problem, params))
    steps = {"coupled": params.coupled, "machine": params.machine, "chi_2": params.chi_2}
    return (yield from solve_deformed(problem, params, "squared-hinge", steps=steps))


def alternate(problem: Problem, params: LapMKLParams) -> Steps:
    """Alternate between z and d in the shared form (Algorithm 1 for (18))."""
    norms = Deformation.of(problem, params)
    n, labelled = problem.n_points, norms.labelled
    weights = None if problem.weights is None else problem.weights[labelled]
    loss, counters = squared_hinge(problem.y[labelled], weights), Counters()
    machine = SharedMachine(norms, loss, (INNER_SHARE * params.tol) ** 2, counters)
    stationarity, patience = np.inf, PATIENCE
    d = SIMPLEX.uniform(problem.n_kernels)
    steps = _steps(machine, params)
    K, R = yield from machine.start(d, n)  # line 4: Combine
    at: SharedPoint = steps.first(d, K, R)  # lines 5 to 10
    nothing = np.zeros(len(labelled))
    bounds = Search(problem, params, at, 0.0, dual_point=nothing, counters=counters)
    for iteration in range(1, params.max_iter + 1):
        r = loss.feasible(at.r)
        forms = yield from kernel_forms(at, r, norms)  # line 11: Matvec
        value = _objective(at, forms.columns, machine)
        squares = loss.squares(r) + forms.largest / params.gamma_a
        gain = float(np.abs(r).sum())  # y'r, of which the best multiple of r gives the bound
        bounds.improve_lower(0.5 * gain**2 / squares if gain > 0.0 else 0.0, r)
        fw_gap = max(float(forms.gradient @ at.d - forms.gradient.min()), 0.0)
        # The two values of F differ by rounding; add the difference to the possible gain.
        left = at.z_gap + fw_gap + abs(value - at.value)
        last, stationarity = stationarity, left / max(value, TINY)
        better = bounds.upper - value > PROGRESS * value or stationarity < 0.5 * last
        patience = PATIENCE if better else patience - 1
        bounds.improve_upper(at, value)
        bounds.own = Own(value)
        bounds.record(at.d)
        stalled = steps.is_flat or patience == 0
        stop = reason_to_stop(problem, params, stationarity, stalled=stalled)
        if stop is not None or iteration == params.max_iter:
            break
        d = yield from steps.weights(at, forms.columns)  # line 12
        K, R = yield from machine.matrices(d, n)  # line 4
        at = steps.following(at, forms.columns, d, K, R)  # lines 5 to 10
    z_gradient = np.append(at.gradient, at.r.sum())
    return bounds.finish(
        stop,
        certified=False,
        kernel_weights=at.d,
        coefficients=at.alpha,
        bias=at.b,
        dual_variables=norms.spread(bounds.dual_point, n) * problem.y,
        objective=value,
        extra={
            "z_gradient": float(np.linalg.norm(z_gradient)),
            "frank_wolfe_gap": fw_gap,
            STATIONARITY: stationarity,
        },
    )


def _steps(machine: SharedMachine, params: LapMKLParams) -> SingleSteps:
    """Return the steps that the parameters name."""
    minimised = CoupledSteps if params.coupled else MinimisedSteps
    kind = SingleSteps if params.machine == "one-step" else minimised
    return kind(machine, params.tol, params.chi_2)


def _objective(at: SharedPoint, columns: SharedColumns, machine: SharedMachine) -> float:
    """Return F by its definition, and what rounding may have taken off it.

    The machine's own value is less exact, because its R contains ``K_m L K_m``.
    """
    used = at.d[columns.kernels] > 0.0
    kernels, v, norms = columns.kernels[used], columns.v[used], machine.norms
    d = at.d[kernels]
    r = machine.loss.residual(d @ v[:, norms.labelled] + at.b)
    value = 0.5 * float(d @ columns.t[used]) + machine.loss.value(r, at.b)
    for weight, m, v_m in zip(d, kernels, v, strict=True):
        reach = machine.reaches[int(m)]
        value += float(weight) * norms.rounding(
            reach, at.alpha, v_m, np.abs(r), machine.loss.weights
        )
    return value


class SingleSteps:
    """A step of z, unless its gradient is shorter than chi_2, and the minimum over d, by turns."""

    def __init__(self, machine: SharedMachine, tol: float, chi_2: float) -> None:
        self.machine, self._tol, self._chi_2 = machine, tol, chi_2
        self.is_flat = False  # True if the last gradient in z was so short that no step was taken

    def first(self, d: Floats, K: Floats, R: Floats) -> SharedPoint:
        """Return the point after a step from alpha = 0 (line 2)."""
        return self._stepped(d, K, R, np.zeros(len(K)))

    def weights(self, at: Any, columns: SharedColumns) -> Weights:
        """Return the minimum over d at fixed z (line 12)."""
        yield from ()
        G = columns.v[:, self.machine.norms.labelled].T
        F = alternating_objective(G, columns.t, 1.0, self.machine.loss, at.b)
        x = nesterov(F, SIMPLEX, at.d[columns.kernels], chi=min(CHI_1, self._tol))
        return _weights(at, columns, x)

    def following(
        self, at: Any, columns: SharedColumns, d: Floats, K: Floats, R: Floats
    ) -> SharedPoint:
        """Return the point after a step at new weights."""
        return self._stepped(d, K, R, at.alpha)

    def _stepped(self, d: Floats, K: Floats, R: Floats, alpha: Floats) -> SharedPoint:
        """Return the point after a step, or the one before it where its gradient is short."""
        machine, labelled, inverse = self.machine, self.machine.norms.labelled, RidgedInverse(R)
        at = machine.point(d, K, R, alpha, inverse)
        self.is_flat = float(np.linalg.norm(at.gradient)) < self._chi_2  # line 6
        if self.is_flat:
            return at
        along = self._newton(at)  # line 9
        machine.counters.svm_iterations += 1
        machine.counters.newton_steps += 1
        constant, curvature = float(alpha @ along.R_p), max(float(along.p @ along.R_p), 0.0)
        u, change = at.f[labelled] + at.b, along.K_p + along.p_b
        step = machine.loss.best_step(u, change, constant, curvature)
        return machine.point(d, K, R, alpha + step * along.p, inverse)  # line 10

    def _newton(self, at: SharedPoint) -> _Direction:
        """Return an approximate Newton direction (Algorithm 2)."""
        machine, K_l = self.machine, at.K[self.machine.norms.labelled]
        sv, precondition = machine.loss.active(at.r), RidgedInverse(at.K)
        rest, rest_b = -at.gradient, 0.0  # the linear residual; the bias is optimal
        found = _Direction(np.zeros_like(rest), 0.0, np.zeros(len(K_l)), np.zeros_like(rest))
        s = precondition(rest)
        p, p_b = s, 0.0
        rho = first_rho = float(s @ rest)
        first_norm = float(np.linalg.norm(rest))
        for _ in range(2 * len(rest)):
            K_p, R_p = K_l @ p, at.R @ p
            v = np.where(sv, machine.loss.weighted(K_p + p_b), 0.0)
            w, w_b = R_p + K_l.T @ v, float(v.sum())
            curvature = float(p @ w) + p_b * w_b
            if not curvature > 0.0:
                break
            machine.counters.cg_steps += 1
            step = rho / curvature
            found = _Direction(
                found.p + step * p,
                found.p_b + step * p_b,
                found.K_p + step * K_p,
                found.R_p + step * R_p,
            )
            rest, rest_b = rest - step * w, rest_b - step * w_b
            s = precondition(rest)
            rho, last_rho = float(s @ rest) + rest_b**2, rho
            norm = float(np.hypot(np.linalg.norm(rest), rest_b))
            if not rho > 0.0 or (norm <= ETA * first_norm and rho <= ETA**2 * first_rho):
                break
            ratio = rho / last_rho
            p, p_b = s + ratio * p, rest_b + ratio * p_b
        return found


class MinimisedSteps(SingleSteps):
    """Minimum over z and minimum over d by turns."""

    def first(self, d: Floats, K: Floats, R: Floats) -> SharedMinimum:
        """Return the minimum over z."""
        return self.machine.minimum(d, K, R, np.zeros(len(self.machine.norms.labelled)))

    def following(
        self, at: Any, columns: SharedColumns, d: Floats, K: Floats, R: Floats
    ) -> SharedMinimum:
        """Return the minimum over z at new weights, which descends by itself."""
        return self.machine.minimum(d, K, R, at.z.alpha)


class CoupledSteps(MinimisedSteps):
    """Minimum over z, and a weight step that z follows."""

    def weights(self, at: Any, columns: SharedColumns) -> Weights:
        """Return the minimum over d of the model of J."""
        x = at.d[columns.kernels]
        model = yield from value_model(at, columns, self.machine)
        minimum = x if model is None else model.minimum(SIMPLEX, x, MODEL_SHARE)
        return _weights(at, columns, minimum)

    def following(
        self, at: Any, columns: SharedColumns, d: Floats, K: Floats, R: Floats
    ) -> SharedMinimum:
        """Return the minimum over z at new weights, halved until it descends enough."""
        slope = float(columns.gradient @ (d - at.d)[columns.kernels])
        step = 1.0
        for _ in range(HALVINGS):
            now = at.d + step * (d - at.d) if step < 1.0 else d
            K_now, R_now = at.K + step * (K - at.K), at.R + step * (R - at.R)
            new = self.machine.minimum(now, K_now, R_now, at.z.alpha)
            if new.value <= at.value + SUFFICIENT * step * min(slope, 0.0):
                return new
            step *= 0.5
        last: SharedMinimum = at
        return last


class _Direction(NamedTuple):
    """Direction (p, p_b) of z with the products K_l p and R p."""

    p: Floats
    p_b: float
    K_p: Floats
    R_p: Floats


@dataclass(frozen=True, eq=False)
class SharedPoint:
    """Weights, z = (alpha, b), and the matrices of these weights."""

    d: Floats  # (M,) kernel weights
    K: Floats  # (n, n) ``sum_m d_m K_m``
    R: Floats  # (n, n) ``gamma_a K + gamma_i N``
    alpha: Floats  # (n,) coefficients
    f: Floats  # (n,) ``K alpha``
    b: float  # bias, the best one at f
    r: Floats  # (l,) residual of the loss at f
    gradient: Floats  # (n,) dF/dalpha
    value: float  # F
    z_gap: float  # the most that a change of z could gain


@dataclass(frozen=True, eq=False)
class SharedMinimum(SharedPoint):
    """Minimum over z at fixed weights."""

    back: Floats  # (n, l) ``R^+ K_l'``, which makes alpha of dual variables
    H: Floats  # (l, l) ``K_l R^+ K_l'``
    z: PrimalPoint  # the machine's point on H


class SharedMachine:
    """Minimise F over z = (alpha, b), for one vector of weights after another.

    `share` is the gap of the machine on H, relative to F, at which to stop.
    """

    def __init__(
        self, norms: Deformation, loss: SquaredLoss, share: float, counters: Counters
    ) -> None:
        self.norms, self.loss, self.counters = norms, loss, counters
        self._machine = PrimalMachine(loss, 1.0, "newton", share, counters)
        self.reaches: dict[int, Floats] = {}
        """Roots of the diagonals of the kernels that were asked for, by kernel."""

    def start(self, d: Floats, n: int) -> Requesting[tuple[Floats, Floats]]:
        """Ask for K and R (n, n) at the weights `d` (M,) at which runs begin.

        Runs of other labels and of other gammas begin at the same K and N, which are kept.
        """
        kept, n_kernels = self.norms.kept, len(d)
        if kept is None or not kept.kernels_id or self.norms.gamma_i == 0.0:
            return (yield from self.matrices(d, n))
        key = ("mixture", kept.kernels_id, self.norms.graph_id, d.tobytes())
        rows = kept.known(key)
        if rows is None:
            made = np.zeros((2 * n + n_kernels, n))
            yield from self._add_up(d, made[:n], made[n : 2 * n])
            made[2 * n :] = [self.reaches[m] for m in range(n_kernels)]
            rows = kept.keep(key, made)
        self.reaches.update(enumerate(rows[2 * n :]))
        return rows[:n], self._form(rows[:n], rows[n : 2 * n])

    def matrices(self, d: Floats, n: int) -> Requesting[tuple[Floats, Floats]]:
        """Ask for K and R (n, n) at weights `d` (M,)."""
        K, N = np.zeros((n, n)), np.zeros((n, n))
        yield from self._add_up(d, K, N)
        return K, self._form(K, N)

    def _form(self, K: Floats, N: Floats) -> Floats:
        """Return R (n, n) of K and N."""
        return self.norms.gamma_a * K + self.norms.gamma_i * N

    def _add_up(self, d: Floats, K: Floats, N: Floats) -> Requesting[None]:
        """Add the kernels at weights `d` (M,) to K (n, n), and ``K_m L K_m`` to N, if it counts."""
        active = np.flatnonzero(d)
        for start in range(0, len(active), AT_A_TIME):
            kernels = active[start : start + AT_A_TIME]
            for m, K_m in zip(kernels, (yield from gram_matrices(kernels)), strict=True):
                self.reaches[int(m)] = np.sqrt(K_m.diagonal())
                K += d[m] * K_m
                if self.norms.gamma_i > 0.0:
                    N += d[m] * self._smoothed(int(m), K_m)
        N[:] = 0.5 * (N + N.T)

    def _smoothed(self, m: int, K_m: Floats) -> Floats:
        """Return ``K_m L K_m`` (n, n), which depends on neither labels nor weights."""
        norms = self.norms

        def make() -> Floats:
            return np.asarray(K_m @ (norms.laplacian @ K_m))

        if norms.kept is None or not norms.kept.kernels_id:
            return make()
        return norms.kept.get(("smoothed", norms.kept.kernels_id, m, norms.graph_id), make)

    def point(
        self, d: Floats, K: Floats, R: Floats, alpha: Floats, inverse: RidgedInverse
    ) -> SharedPoint:
        """Return the point of coefficients at weights d, with the bias that is best for them."""
        labelled = self.norms.labelled
        f = K @ alpha
        b = self.loss.best_bias(f[labelled])
        r = self.loss.residual(f[labelled] + b)
        of_norms = R @ alpha
        value = 0.5 * max(float(alpha @ of_norms), 0.0) + self.loss.value(r, b)
        gradient = of_norms - K[:, labelled] @ r
        z_gap = 0.5 * max(float(gradient @ inverse(gradient)), 0.0)
        return SharedPoint(d, K, R, alpha, f, b, r, gradient, value, z_gap)

    def minimum(self, d: Floats, K: Floats, R: Floats, c: Floats) -> SharedMinimum:
        """Return the minimum over z at weights d (M,), from dual variables c (l,)."""
        labelled, gamma_a = self.norms.labelled, self.norms.gamma_a
        inverse = RidgedInverse(R)
        if self.norms.gamma_i == 0.0:
            back = np.zeros((len(K), len(labelled)))
            back[labelled, np.arange(len(labelled))] = 1.0 / gamma_a
        else:
            back = inverse(K[:, labelled])
        H = K[labelled] @ back
        H = 0.5 * (H + H.T)
        z = self._machine(H, c)
        at = self.point(d, K, R, back @ z.alpha, inverse)
        return SharedMinimum(**vars(at), back=back, H=H, z=z)


class RidgedInverse:
    """The inverse of a positive semi-definite R plus a ridge of the size of rounding; 0 where R is.

    The ridge keeps solutions small.  Along eigenvectors of R with tiny eigenvalues, large
    coefficients would change no decision and only cost digits.
    """

    def __init__(self, R: Floats) -> None:
        ridge = RIDGE * float(R.diagonal().max())
        self._factor: Floats | None = None
        while ridge > 0.0 and self._factor is None:
            ridged = R.copy()
            ridged[np.diag_indices_from(R)] += ridge
            try:
                self._factor = scipy.linalg.cholesky(ridged, lower=True, check_finite=False)
            except scipy.linalg.LinAlgError:
                ridge *= 10.0

    def __call__(self, columns: Floats) -> Floats:
        """Return the product of the inverse with `columns` (n, ...)."""
        if self._factor is None:
            return np.zeros_like(columns)
        solved: Floats = scipy.linalg.cho_solve((self._factor, True), columns, check_finite=False)
        return solved


@dataclass(frozen=True, eq=False)
class SharedColumns:
    """Products of the kernels whose weights a step changes."""

    kernels: Ints  # (k,) these kernels: all in use, and those whose weight would grow
    v: Floats  # (k, n) ``K_m alpha``
    Kr: Floats  # (k, n) ``K_m S'r``
    t: Floats  # (k,) ``gamma_a alpha'v_m + gamma_i v_m'L v_m``
    gradient: Floats  # (k,) dF/dd_m


@dataclass(frozen=True, eq=False)
class KernelForms:
    """Results of a pass over all kernels at a point."""

    gradient: Floats  # (M,) dF/dd
    largest: float  # ``max_m r'K_m r`` at the feasible residual
    columns: SharedColumns  # products of the kernels whose weights the next step changes


def kernel_forms(at: SharedPoint, r: Floats, norms: Deformation) -> Requesting[KernelForms]:
    """Ask for ``K_m alpha`` and ``K_m S'r``, r feasible, of all kernels, some at a time."""
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


def _weights(at: SharedPoint, columns: SharedColumns, x: Floats) -> Floats:
    """Return feasible weights (M,), those of the kernels that a step changed being `x`."""
    d = np.zeros_like(at.d)
    d[columns.kernels] = np.where(x > ZERO_WEIGHT, x, 0.0)
    return np.asarray(d / d.sum())


def value_model(
    at: SharedMinimum, columns: SharedColumns, machine: SharedMachine
) -> Requesting[ValueModel | None]:
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


Solver = Callable[[Problem, PrimalMKLParams], Steps]
DEFORMED_SHARE = 0.9  # of tol; the rest is for rounding between the deformed kernels and the bank's
SURE = 0.01  # of tol, that rounding may account for in the form of a kernel that is not in use


def memory_of_deformed_kernels(size: ProblemSize, params: ManifoldParams) -> SolverMemory:
    """Return the memory of a solver that keeps the deformed kernels between labelled points."""
    n_entries = TileLayout.for_points(size.n_labelled).n_entries
    columns = 2 * size.n_labelled  # of PrimalMKL's weight step
    return size.memory(matrices=MATRICES, vectors=VECTORS_PER_SOLVER + n_entries + columns)


def solve_deformed(
    problem: Problem,
    params: ManifoldParams,
    loss: Literal["squared-hinge", "squared"],
    *,
    steps: Mapping[str, Any] | None = None,
    bias: bool = True,
    unit_norm: bool = False,
    solver: Solver = primalmkl.solve,
) -> Steps:
    """Run PrimalMKL, or another `solver` of its problem at lam = 1, on the deformed kernels.

    `steps` are parameters of PrimalMKL that say how it takes its steps.  Without a bias, `solver`
    must have none.  `unit_norm` divides each deformed kernel by ``gamma_a`` times the Frobenius
    norm of its block between the labelled points.  The solution's ``kernel_coefficients`` are on
    all points; ``coefficients`` are the shared coefficients of the deformed kernels, 0 at points
    without a label.
    """
    deformation = Deformation.of(problem, params)
    labelled = deformation.labelled
    deformed = yield from _deformed_bank(problem, params, deformation, unit_norm=unit_norm)
    inner = PrimalMKLParams(
        C=1.0,
        loss=loss,
        tol=DEFORMED_SHARE * params.tol,
        max_iter=params.max_iter,
        time_limit=params.time_limit,
        trace=params.trace,
        **({} if steps is None else steps),
    )
    y = problem.y[labelled]
    losses = squared_loss(inner, y, None if problem.weights is None else problem.weights[labelled])
    constant = _constant(problem, deformation, inner, losses, bias=bias)
    if deformed is None:
        return constant
    on_labelled = Problem(
        problem.y[labelled],
        problem.n_kernels,
        problem.clock,
        weights=None if problem.weights is None else problem.weights[labelled],
    )
    solution = answered(deformed.bank, solver(on_labelled, inner))
    return (
        yield from _on_all_points(
            problem, deformed, inner, losses, solution, constant, params.tol, bias=bias
        )
    )


@dataclass(frozen=True, eq=False)
class _Deformed:
    """Deformed kernels between the labelled points."""

    bank: MemoryBank
    deformations: list[Deformation]
    doubts: Floats  # (M,) share that rounding may have taken off a quadratic form, at most


def _deformed_bank(
    problem: Problem, params: ManifoldParams, deformation: Deformation, *, unit_norm: bool
) -> Requesting[_Deformed | None]:
    """Return the deformed kernels between the labelled points, or None when the time is up."""
    layout = TileLayout.for_points(len(deformation.labelled))
    values, doubts = np.empty((problem.n_kernels, layout.n_entries)), np.empty(problem.n_kernels)
    deformations: list[Deformation] = []
    for start in range(0, problem.n_kernels, AT_A_TIME):
        if problem.clock.past(params.time_limit):
            return None
        kernels = np.arange(start, min(start + AT_A_TIME, problem.n_kernels))
        matrices = yield from gram_matrices(kernels)
        own = [_of_unit_norm(deformation, K) if unit_norm else deformation for K in matrices]
        blocks = [of_kernel(K).block() for of_kernel, K in zip(own, matrices, strict=True)]
        deformations += own
        values[kernels] = layout.pack(np.array(blocks))
        doubts[kernels] = [deformation.doubt(K) for K in matrices]
    return _Deformed(MemoryBank(values, layout), deformations, doubts)


def _of_unit_norm(deformation: Deformation, K: Floats) -> Deformation:
    """Return the deformation after which the block of K has the Frobenius norm ``1 / gamma_a``."""
    norm = deformation.gamma_a * float(np.linalg.norm(deformation(K).block()))
    return deformation.divided(norm) if norm > 0.0 else deformation


def _constant(
    problem: Problem,
    deformation: Deformation,
    inner: PrimalMKLParams,
    loss: SquaredLoss,
    *,
    bias: bool,
) -> Solution:
    """Return the best constant, 0 without a bias, which needs no kernel, with the lower bound 0.

    It is the solution of a run whose time is up before the kernels are deformed.
    """
    y = problem.y[deformation.labelled]
    b = loss.best_bias(np.zeros(len(y))) if bias else 0.0
    r = loss.residual(np.full(len(y), b))
    weights = np.zeros(problem.n_kernels)
    weights[0] = 1.0
    return Solution(
        kernel_weights=weights,
        coefficients=np.zeros(problem.n_points),
        bias=b,
        dual_variables=deformation.spread(signed_by_class(inner, r, y), problem.n_points),
        objective=loss.value(r, b),
        dual_objective=0.0,
        stop_reason=StopReason.TIME_LIMIT,
    )


@dataclass
class _Components:
    """Components ``g_m = d_m f_m`` on all points, added up kernel by kernel."""

    coefficients: Floats  # (S, n) coefficients of f_m of the kernels in use
    f: Floats  # (n,) sum of the components
    norms: float = 0.0  # weighted sum of the penalties of f_m
    rounding: float = 0.0  # the most that rounding may have taken off F


def _components(
    inner: Solution,
    deformed: _Deformed,
    loss: SquaredLoss,
    r: Floats,
    n: int,
    forms: Floats,
    doubtful: Bools,
) -> Requesting[_Components]:
    """Ask for the kernels in use and the doubtful ones; return the components of a solution.

    `forms`, (M,), are quadratic forms of the residuals r, (l,): those of the kernels asked for
    become upper bounds that no error can break.  A kernel is doubtful, (M,), where rounding may
    have changed its form by more than the tolerance allows.
    """
    d, c = inner.kernel_weights, inner.coefficients
    active = np.flatnonzero(d)
    found = _Components(np.empty((len(active), n)), np.zeros(n))
    places = dict(zip(active.tolist(), range(len(active)), strict=True))
    asked = np.flatnonzero((d > 0.0) | doubtful)
    for start in range(0, len(asked), AT_A_TIME):
        kernels = asked[start : start + AT_A_TIME]
        matrices = yield from gram_matrices(kernels)
        for m, K in zip(kernels.tolist(), matrices, strict=True):
            deformation, weight = deformed.deformations[m], float(d[m])
            kernel = deformation(K)
            forms[m] = kernel.norm(r)
            if m not in places:
                continue
            a = found.coefficients[places[m]] = kernel.coefficients(c)
            f_m = K @ a
            found.f += weight * f_m
            found.norms += weight * deformation.penalty(a, f_m)
            reach, slopes = np.sqrt(K.diagonal()), np.abs(c)
            rounding = deformation.rounding(reach, a, f_m, slopes, loss.weights)
            found.rounding += weight * rounding
    return found


def _forms(r: Floats) -> Requesting[Floats]:
    """Ask for the quadratic forms of residuals, and add the most that rounding may have taken."""
    q = yield Quadratic(r)
    energies = yield Diagonal((r**2)[:, None])
    rounded: Floats = q + form_rounding(q, energies[:, 0], len(r))
    return rounded


def _on_all_points(
    problem: Problem,
    deformed: _Deformed,
    params: PrimalMKLParams,
    loss: SquaredLoss,
    inner: Solution,
    constant: Solution,
    tol: float,
    *,
    bias: bool,
) -> Requesting[Solution]:
    """Return the predictor on the bank's own kernels, with F and a lower bound there.

    `inner` is the solution of PrimalMKL on the deformed kernels with `params`; `constant`, the best
    constant, replaces a predictor that rounding made worse.
    """
    first, n, doubts = deformed.deformations[0], problem.n_points, deformed.doubts
    labelled, spread = first.labelled, first.spread
    y = problem.y[labelled]
    r = signed_by_class(params, inner.dual_variables, y)
    forms = answered(deformed.bank, _forms(r)) * (1.0 + doubts)
    own = yield from _components(inner, deformed, loss, r, n, forms, doubts > SURE * tol)
    f = own.f[labelled]
    b = loss.best_bias(f) if bias else 0.0
    objective = 0.5 * own.norms + loss.value(loss.residual(f + b), b) + own.rounding
    coefficients = own.coefficients
    if objective > constant.objective:  # rounding left nothing better
        b, objective = float(constant.bias), constant.objective
        coefficients = np.zeros_like(coefficients)
    # The dual value at the best multiple of the residuals.
    linear = loss.dual_value(r, b) + 0.5 * loss.squares(r)
    squares = loss.squares(r) + float(forms.max())
    lower = 0.5 * linear**2 / squares if squares > 0.0 and linear > 0.0 else 0.0
    # A bound on the deformed kernels of value D >= 0 has a form of at most w - 2 D, for labels that
    # weigh w together.
    total = float(loss.weighted(np.ones(len(y))).sum())
    lower = max(lower, inner.dual_objective - 0.5 * total * float(doubts.max()))
    met = relative_gap(objective, lower) <= tol
    missed = StopReason.STALLED if inner.converged else inner.stop_reason
    return Solution(
        kernel_weights=inner.kernel_weights,
        coefficients=spread(inner.coefficients, n),
        bias=b,
        dual_variables=spread(inner.dual_variables, n),
        objective=objective,
        dual_objective=lower,
        stop_reason=StopReason.CONVERGED if met else missed,
        counters=inner.counters,
        trace=inner.trace,
        kernel_coefficients=coefficients,
    )


METHOD = Method(
    name="lapmkl",
    solve=solve,
    params=LapMKLParams,
    title="LapMKL, manifold regularisation with many kernels",
    problem="semi-supervised MKL in the primal, weights in the simplex",
    loss="squared hinge",
    regularizer="gamma_a and gamma_i norms of the components, (16) or (18)",
    reference="Hao, Yuan, Yang & Chen 2012, section 4, (16) and (18)",
    hyperparameters=("gamma_a", "gamma_i"),
    needs_laplacian=True,
    weighs_points=True,
    memory=memory_of_deformed_kernels,
)
