"""Solutions on thin factors of kernels, which grow until the solution holds for the kernels.

Where the bounds below are too far apart, some factors lack too much of their
kernels: those of active kernels, whose norms then are too small, or those of others, which would be
active.  These factors go on, and the method solves again, from the last solution if it can.

A kernel of which a factor lacks much at any rank is near its diagonal: a narrow one on many points.
If one is to grow, and the method's objective is that of machines of the hinge loss, factors take
the diagonals of their kernels (:mod:`mkldist.bank.factor_bank`), and the value of the solution is
computed with the kernels themselves.

A pass over the active kernels alone tells most of the time that they lack too much.  Where they do
not, a sample of the points tells which others seem to.  Only where none does, a pass over all
kernels is spent on the certificate.  Where even that is too dear, the certificate is statistical:
it takes the forms of active kernels as they are, and upper limits of the others by a sample.

A method that asks for one sum of all kernels takes no factors where memory holds the sum: its
values are as many as those of one certificate.  Nor does a method that goes on by points where a
kernel is narrow and no rank is asked for: to compute sums anew takes less time than long factors.

Of many points, a method that can start from a solution need not have longer factors.  It goes on
with the kernels themselves, by their products with vectors (:mod:`mkldist.bank.recomputed`): few
dual variables still change, and only those cost kernel values.

Certificates are with the kernels themselves.  Every factor lies below its kernel, ``G G' <= K``.
A solution on the factors therefore bounds the optimum with the kernels from above: its function is
an expansion on the pivots with the kernels, of the same values at the training points and the same
norm.  A lower bound takes one pass over the kernels at the dual points of the solution.  Where the
objective grows with the kernels, it is the other way round.

Factors with the diagonals of the kernels lie neither below nor above.  The function is then that
which the coefficients expand with the kernels themselves, whose value is computed.  So it is where
factors are rounded to float32 and ``G G' <= K`` fails by the rounding: the function is an expansion
on the pivots still, and its value is computed with the kernels, which bounds the optimum whatever
the factors are (:func:`with_expansions`).  The lower bound never knew the factors.

Where even one pass is too dear, the pass visits the active kernels alone.  The forms of the others
are then upper limits by a sample, and the lower bound is a statistical one.

The value with the kernels of a machine of the hinge loss, of coefficients v and kernel weights d
that expand ``f = sum_m d_m K_m v``, is

    1/2 v'f + sum_i C_i max(0, 1 - y_i (f_i + b)),

at the best b; it bounds their optimum from above, wherever v comes from.  Each kernel may have
coefficients a_m of its own.  Then ``f = sum_m d_m K_m a_m``, and the value is

    1/2 sum_m d_m a_m'K_m a_m + sum_i C_i max(0, 1 - y_i (f_i + b)).

It is the objective at the functions ``d_m K_m a_m``, of squared norms ``d_m^2 a_m'K_m a_m`` and
with the weights d, in

    min_{f, b}  1/2 sum_m ||f_m||^2 / d_m + sum_i C_i max(0, 1 - y_i (sum_m f_m(x_i) + b)),

and so bounds the minimum over all functions, and over weights too where d is feasible, whatever the
a_m are.  Coefficients of pivots, of a factor that is rounded to float32, are such: they need no
``G G' <= K``, which the rounding breaks.  ``K_m a_m`` takes n values of the kernel for each pivot.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from mkldist.bank.factor_bank import FactorBank
from mkldist.bank.factored_kernels import (
    DRAWN,
    FIRST_RANK,
    LEAST_GROWTH,
    MANY,
    MOST_CHANGES,
    MOST_GROWTH,
    FactoredKernels,
    sampled_forms,
    sampled_values,
)
from mkldist.bank.passes import driven
from mkldist.bank.recomputed import PointBank, RecomputedBank
from mkldist.bank.requests import Quadratic, Request
from mkldist.bank.view import BankView, answer_views
from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.core.memory import SHARE_OF_MEMORY, ProblemSize, physical_memory
from mkldist.optim.accuracy import LAST_PLACES, form_rounding
from mkldist.optim.pivoted_cholesky import ThinFactor
from mkldist.solvers.base import Counters, Method, Problem, Solution
from mkldist.solvers.lockstep import Job, JobTimes, SolvedJob, solve_timed
from mkldist.solvers.progress import SAMPLED, StopReason, working_cpu_time, working_time
from mkldist.solvers.solver_params import SolverParams
from mkldist.solvers.svm import EPS, best_bias

SLACK = 0.25  # of the tolerance: less of the largest form may be missing
POWER = 0.5  # of the ratio of what is lacking to what may be, by which ranks grow
NARROW = 0.2  # share of the trace, of which a kernel's factor lacks more if it is narrow
HOPELESS = 0.9  # share of the trace left, from which on more columns are no help
TINY = float(np.finfo(float).tiny)


def with_kernels(
    kernels: FactoredKernels, problem: Problem, C: float, solution: Solution
) -> Solution:
    """Return a solution as the machine with the kernels themselves, and its value.

    C is the bound of the dual variables; the machine is of one class or of several.
    """
    d, shape = solution.kernel_weights, problem.y.shape
    y, v = (one.reshape(len(one), -1) for one in (problem.y, solution.coefficients))
    f = kernels.expansion(d, v)
    squared = np.maximum((d * kernels.scale) @ _diagonals(kernels), 0.0)
    of_norms = np.einsum("nk,nk->k", v, f), squared @ v**2, np.sqrt(squared)
    value, biases = _value(problem, C, y, f, of_norms)
    bias = float(biases[0]) if problem.y.ndim == 1 else biases
    values = (f + biases).reshape(shape)
    return replace(solution, objective=value, bias=bias, training_values=values)


def with_expansions(
    kernels: FactoredKernels, problem: Problem, C: float, solution: Solution, own: Floats
) -> Solution:
    """Return a solution as the machine with the kernels and coefficients of each, and its value.

    `own` (S, n) or (S, n, k) are coefficients of the kernels of non-zero weight.
    """
    n, y = len(problem.y), problem.y.reshape(len(problem.y), -1)
    f, norms, energies, reach = np.zeros_like(y), *np.zeros((2, y.shape[1])), np.zeros(n)
    for kernel, a in zip(np.flatnonzero(solution.kernel_weights).tolist(), own, strict=True):
        part, columns = kernels.select(np.array([kernel])), a.reshape(n, -1)
        values = part.expansion(solution.kernel_weights[[kernel]], columns)
        own_reach = solution.kernel_weights[kernel] * part.scale[0] * _diagonals(part)[0]
        norms += np.einsum("nk,nk->k", columns, values)
        energies += own_reach @ columns**2
        reach, f = reach + own_reach, f + values
    value, biases = _value(problem, C, y, f, (norms, energies, np.sqrt(np.maximum(reach, 0.0))))
    single = problem.y.ndim == 1
    values = (f + biases).reshape(problem.y.shape)
    return replace(
        solution,
        objective=value,
        bias=float(biases[0]) if single else biases,
        training_values=values,
        kernel_coefficients=own,
    )


def _value(
    problem: Problem, C: float, y: Floats, f: Floats, of_norms: tuple[Floats, Floats, Floats]
) -> tuple[float, Floats]:
    """Return an upper bound of the value of machines, in spite of rounding, and their biases (k,).

    Rounding adds up as :mod:`mkldist.solvers.svm` and :mod:`mkldist.optim.accuracy` say:
    with ``r = sum_m d_m K_m,ii`` and the energy ``e = sum_m d_m sum_j K_m,jj a_mj^2``, terms of f_i
    are as large as ``sqrt(r_i e)``, by the inequality of Cauchy over m.  `f` are decision values
    (n, k) without bias; `of_norms` are squared norms (k,), energies e (k,), and roots of r (n,).
    """
    n, (norms, energies, reach) = len(y), of_norms
    weights, equal = np.broadcast_to(problem.bound(C), n).copy(), problem.weights is None
    value, biases = 0.0, np.zeros(y.shape[1])
    for k, (norm, energy) in enumerate(zip(norms.tolist(), energies.tolist(), strict=True)):
        biases[k] = best_bias(f[:, k], y[:, k], None if equal else weights)
        slack = 1.0 - y[:, k] * (f[:, k] + biases[k])
        unsure = EPS * (reach * math.sqrt(energy) + 1.0)
        rounding = float(weights.max()) * float(unsure[slack > -unsure].sum())
        loss = (1.0 + LAST_PLACES * EPS) * float(weights @ np.maximum(slack, 0.0))
        value += 0.5 * (norm + form_rounding(norm, energy, n)) + loss + rounding
    return value, biases


def estimated_value(
    kernels: FactoredKernels, problem: Problem, C: float, solution: Solution, rows: Ints
) -> float:
    """Return the value of :func:`with_kernels` at the solution's b, by values of some points.

    The `rows` (r,) are points drawn with equal probabilities; the solution has its decision values.
    """
    if solution.training_values is None:
        raise ValueError("found no decision values; expected those of a machine")
    n = len(problem.y)
    v, before, y = (
        one.reshape(n, -1) for one in (solution.coefficients, solution.training_values, problem.y)
    )
    exact = kernels.expansion(solution.kernel_weights, v, rows) + solution.bias
    weights = np.broadcast_to(problem.bound(C), n)[rows, None]
    of_norm = 0.5 * v[rows] * (exact - before[rows])
    losses = [np.maximum(0.0, 1.0 - y[rows] * values) for values in (exact, before[rows])]
    change = float((of_norm + weights * (losses[0] - losses[1])).sum())
    return solution.objective + change * n / len(rows)


def _diagonals(kernels: FactoredKernels) -> Floats:
    """Return the diagonals of the kernels, (M, n)."""
    if kernels.factors.exact is not None:
        return kernels.factors.exact
    return kernels.source.diagonals(slice(0, kernels.source.n_kernels))


ROWS = 4000  # points of an estimate of the objective


class Sample(NamedTuple):
    """A sample by which forms are estimated."""

    n_drawn: int  # points to draw for each group
    margin: float  # standard errors to be added to estimates
    active_exactly: bool  # True to compute the forms of active kernels
    seed: int = 0  # seed of the draws


@dataclass(frozen=True, eq=False)
class ExactForms:
    """Quadratic forms at the dual points of a certificate."""

    exact: Floats  # (M, R), those of the kernels, or estimates of them
    # (M, R), those of their factors, which are no larger unless diagonals are added to them
    found: Floats
    of_rests: Floats  # (M, R), what is due to these diagonals


def certified_exactly(
    kernels: FactoredKernels,
    method: Method,
    problem: Problem,
    params: Any,
    solution: Solution,
    sample: Sample | None = None,
) -> tuple[Solution, ExactForms]:
    """Return a solution on factors as one of the kernels, with a lower bound of their optimum.

    The method has an :attr:`~mkldist.solvers.base.Method.exact_bound`, and `solution` is that on
    the factors.  `sample` says how to estimate the forms of kernels that are not active; None
    computes them.  Returned are the solution with its certificate and the coefficients of each
    kernel, and the forms that the bound asked for.
    """
    asked: list[tuple[Floats, Floats, Floats]] = []
    active = solution.kernel_weights > 0.0

    def answer(request: Request) -> Floats:
        if not (isinstance(request, Quadratic) and request.kernels is None):
            return kernels.exactly(request)
        [found] = answer_views([(kernels.view, request)])
        if sample is None:
            exact = kernels.exactly(request)
        else:
            exact = _estimated(kernels, request.vectors, found, active, sample)
        columns = request.vectors.reshape(problem.n_points, -1)
        of_rests = (kernels.scale * kernels.factors.forms_of_rests(columns).T).T
        asked.append((exact, found, of_rests))
        return exact

    if method.exact_bound is None:
        raise ValueError(f"{method.name} has no exact bound")
    lower, point = driven(method.exact_bound(problem, params, solution), answer)
    certified = solution
    own = _expansions(solution, kernels.factors)
    if not kernels.factors.lies_below:
        certified = _machine(kernels, problem, params.C, solution, own, sample)
        if sample is None or sample.active_exactly:
            certified = replace(certified, dual_objective=lower)
    elif method.exact_objective is not None:
        upper = driven(method.exact_objective(problem, params, solution), answer)
        certified = replace(solution, objective=upper)
    certified = replace(
        certified, dual_variables=point, exact_dual_objective=lower, kernel_coefficients=own
    )
    none = np.zeros((problem.n_kernels, 0))
    parts = ([none, *(one[i].reshape(len(none), -1) for one in asked)] for i in range(3))
    return certified, ExactForms(*(np.concatenate(part, axis=1) for part in parts))


def _machine(
    kernels: FactoredKernels,
    problem: Problem,
    C: float,
    solution: Solution,
    own: Floats,
    sample: Sample | None,
) -> Solution:
    """Return a solution as the machine with the kernels, or an estimate of its value.

    The value on factors that are rounded estimates that with the kernels.
    """
    diagonals = kernels.factors.exact is not None
    if sample is None or sample.active_exactly:
        if diagonals:
            return with_kernels(kernels, problem, C, solution)
        return with_expansions(kernels, problem, C, solution, own)
    if not diagonals:
        return solution
    rows = np.random.default_rng(sample.seed).integers(problem.n_points, size=ROWS)
    value = estimated_value(kernels, problem, C, solution, rows)
    return replace(solution, objective=value)


def _estimated(
    kernels: FactoredKernels, vectors: Floats, found: Floats, active: Bools, sample: Sample
) -> Floats:
    """Return forms of all kernels: of the active ones as the sample says, of others estimated."""
    columns = vectors.reshape(len(vectors), -1)
    forms = found.reshape(len(found), -1).copy()
    sampled = np.flatnonzero(~active if sample.active_exactly else np.ones_like(active))
    if len(sampled):
        of = sampled_forms(kernels, sampled, columns, sample.n_drawn, sample.seed)
        forms[sampled] += of.lacking + sample.margin * of.errors
    others = np.setdiff1d(np.arange(len(forms)), sampled)
    if len(others):
        forms[others] += np.maximum(kernels.lacking(others, columns), 0.0)
    return forms.reshape(found.shape)


def _expansions(solution: Solution, factors: FactorBank) -> Floats:
    """Return the coefficients of each kernel of non-zero weight, (S, n) or (S, n, k).

    They are on pivots alone where factors have no diagonals.
    """
    kernels = np.flatnonzero(solution.kernel_weights).tolist()
    shape = (len(kernels), *solution.coefficients.shape)
    given = solution.kernel_coefficients
    coefficients = np.broadcast_to(solution.coefficients, shape) if given is None else given
    if factors.exact is not None:
        return coefficients.copy()
    found = np.empty(shape)
    for own, kernel, c in zip(found, kernels, coefficients, strict=True):
        own[...] = factors.factors[kernel].on_pivots(c)
    return found


Ranks = dict[int, int]
"""Wanted numbers of columns, by kernel."""


def longer(factors: Sequence[ThinFactor], kernels: Ints, ratios: Floats) -> Ranks:
    """Return ranks of kernels, each of which lacks `ratios` times what it may."""
    growth = np.clip(ratios**POWER, LEAST_GROWTH, MOST_GROWTH)
    wanted = zip(kernels.tolist(), growth.tolist(), strict=True)
    return {m: int(times * max(factors[m].rank, 1)) + 1 for m, times in wanted}


def lacked_by_norms(solution: Solution, active: Ints, lack: Floats, allowed: float) -> Floats:
    """Return how many times what it may each active kernel lacks in its norm, 0 within the limit.

    The solution's coefficients are shared; `lack` (S,) is what their quadratic forms lack, and
    `allowed` what the objective may lack.
    """
    shares = 0.5 * unit_of_norms(solution) * solution.kernel_weights[active] * lack
    if float(shares.sum()) <= allowed:
        return np.zeros(len(active))
    counted: Floats = np.where(shares > 0.5 * allowed / len(active), shares, 0.0)
    return len(active) * counted / allowed


def error_by_kernel(solution: Solution, forms: ExactForms, tol: float) -> Floats:
    """Return what the factor of each kernel lacks (M,), 0 where that does not add to the gap.

    To the gap add kernels which are active, or would be if nothing lacked: on the simplex those
    of larger forms than all others.  Where these lack nothing, the method has another rule, such as
    a threshold, and all kernels may add to it.
    """
    largest = np.maximum(forms.found.max(axis=0), TINY)
    with np.errstate(over="ignore"):  # where factors have no form at all
        lack = (forms.exact - forms.found) / largest
    concerned = (solution.kernel_weights > 0.0)[:, None] | (forms.exact > largest)
    errors: Floats = np.where(concerned, lack, 0.0).max(axis=1, initial=0.0)
    if errors.max(initial=0.0) <= SLACK * tol:
        errors = lack.max(axis=1, initial=0.0)
    return errors


def error_by_diagonals(solution: Solution, factors: Sequence[ThinFactor]) -> Floats:
    """Return the shares (M,) of kernels in what the objective lost by diagonals."""
    lack = np.array([factor.left for factor in factors])
    shares: Floats = solution.kernel_weights * lack
    return shares / max(float(shares.sum()), TINY)


def largest_errors(errors: Floats, tol: float) -> Ints:
    """Return the kernels that lack more than a part of the tolerance, or of the most (M,)."""
    most = float(errors.max(initial=0.0))
    return np.flatnonzero(errors > min(SLACK * tol, most / 2))


def is_narrow(factor: ThinFactor) -> bool:
    """Return True if a factor lacks so much of its kernel that its diagonal may matter more."""
    return factor.left > NARROW


def may_help(factor: ThinFactor) -> bool:
    """Return True if a narrow kernel may lose most of what its factor lacks by more columns."""
    return factor.rank <= FIRST_RANK and factor.left < HOPELESS


def corrected_diagonals(times: Floats, forms: ExactForms, kernels: Collection[int]) -> Floats:
    """Return factors of diagonals (M,) with which some kernels have the forms that they lack.

    Where neighbours have like coefficients, the form of a narrow kernel exceeds its diagonal's.
    """
    chosen = np.isin(np.arange(len(times)), list(kernels))
    lack, own = (forms.exact - forms.found).sum(1), forms.of_rests.sum(1)
    enough = own > np.finfo(float).eps * np.abs(lack)
    ratio = np.divide(lack, own, out=np.zeros_like(own), where=enough)
    return times * np.where(chosen, np.clip(1.0 + ratio, 0.0, MOST_GROWTH), 1.0)


def used_points(solution: Solution) -> int:
    """Return the number of points whose coefficients are not zero, which passes are made of."""
    return int(np.atleast_2d(solution.coefficients.T).any(axis=0).sum())


def unit_of_norms(solution: Solution) -> float:
    """Return the unit of norms in the objective.

    Near the optimum the dual variables are the slopes of the loss at the function, and a multiple
    of its coefficients: 1 for the hinge loss with a norm of 1/2, lam for PrimalMKL, and one over
    the sum of the weights before they are normalised for block norms.
    """
    length = float(np.linalg.norm(solution.coefficients))
    return float(np.linalg.norm(solution.dual_variables)) / length if length > 0.0 else 0.0


SHARE = 0.5  # of the tolerance that the gap on the factors may take
FEW = 0.5  # share of active kernels up to which a pass over them alone pays
SAMPLE_PAYS = 4  # values of a pass for each of a sample, from which on the sample pays
MARGIN = 4.0  # standard errors that a statistical certificate adds to its estimates
LIMITS = {
    "rank": StopReason.RANK_LIMIT,
    "memory": StopReason.MEMORY_LIMIT,
    "rounding": StopReason.STALLED,
    "time_limit": StopReason.TIME_LIMIT,
}
POINT_SHARE = 0.9  # of the tolerance for a solver on the kernels; the rest is rounding
POINT_ROUNDS = 10  # products of active kernels with the solution that such a solver may take


def solve_on_factors(
    kernels: FactoredKernels, method: Method, problem: Problem, params: SolverParams
) -> SolvedJob:
    """Solve on factors of kernels, and make factors longer until the solution holds for these.

    The `extra` of the solution has the ``largest_rank`` of all factors, and the number of
    ``sampled_points`` if the certificate is statistical.  A limit of the growth is its
    ``stop_reason``.  Passes over the kernels, and the growth of factors, count as passes, also by
    the problem's clock.  The method has an :attr:`~mkldist.solvers.base.Method.exact_bound`; its
    parameter `tol` is that of the exact gap, `time_limit` that of all.
    """
    growing = _Growing(kernels, method, problem, params)
    if growing.takes_sums():
        return growing.ended(growing.solved_on_sums())
    growing.begin()
    while True:
        solution = growing.solved()
        if growing.goes_on_by_points(solution):
            return growing.ended(growing.solved_by_points())
        if growing.grow(growing.needs_of_active(solution)):
            continue
        if growing.grow(growing.needs_by_sample(solution)):
            continue
        solution, forms = growing.certified(solution)
        if not growing.grow(growing.needs_of_all(solution, forms)):
            return growing.ended(solution)


@dataclass(eq=False)
class _Growing:
    """Rounds of a solution on factors that grow in between."""

    kernels: FactoredKernels
    method: Method
    problem: Problem
    params: SolverParams
    limit: str = ""  # what has kept factors from growing further; empty if nothing has
    times: JobTimes = field(default_factory=JobTimes)  # times so far
    _spent: Counters = field(default_factory=Counters)
    _last: Solution | None = None
    _gap: float = 1.0  # on the factors
    _objective: float = 0.0
    _forms: ExactForms | None = None
    _changes: int = 0

    def __post_init__(self) -> None:
        self._own = self.params.model_copy(update={"tol": SHARE * self.params.tol})

    def begin(self) -> None:
        """Give factors the diagonals of kernels if one is narrow and a solver goes on by points."""
        if self._by_points and any(map(is_narrow, self._factors)):
            with self._charged():
                self.kernels = self.kernels.with_diagonals(np.ones(len(self._factors)))

    def solved(self) -> Solution:
        """Solve on the factors as they are, from the last solution if there is one."""
        return self._solved_on(self.kernels.view, self._own)

    def goes_on_by_points(self, solution: Solution) -> bool:
        """Return True if products of the kernels take a solution to the optimum with them."""
        active = int(np.count_nonzero(solution.kernel_weights))
        n_values = POINT_ROUNDS * active * used_points(solution) * self.kernels.source.n_points
        return self._by_points and solution.converged and n_values <= self._limit

    def solved_by_points(self) -> Solution:
        """Go on from the last solution with the kernels themselves, and certify what is found."""
        if not self._has_diagonals:  # the solution is that of the kernels from now on
            self.kernels = self.kernels.with_diagonals(self.kernels.factors.times)
        source, scale = self.kernels.source, self.kernels.scale
        view = BankView(PointBank(source, self.kernels.threads), None, scale, centred=False)
        params: Any = self.params.model_copy(update={"tol": POINT_SHARE * self.params.tol})
        solution = self._solved_on(view, params)
        if not solution.converged:  # which may have seen few kernels
            return self.certified(solution)[0]
        with self._charged():
            found = with_kernels(self.kernels, self.problem, params.C, solution)
        return self._of_kernels(found)

    def takes_sums(self) -> bool:
        """Return True if memory holds sums of kernels, which are sooner computed than factors.

        They are those of a method that asks for one sum, or of a solver that goes on by points
        where a narrow kernel needs many columns and no rank is asked for.
        """
        n, m, limits = self.problem.n_points, self.problem.n_kernels, self.kernels.limits
        most = limits.n_bytes or SHARE_OF_MEMORY * physical_memory()
        fits = self._bytes_of_matrices <= most and m * n**2 / 2 <= self._limit
        narrow = any(one.rank >= limits.first(n) and is_narrow(one) for one in self._factors)
        sooner = narrow and limits.rank is None and self._renews_by_points
        return fits and (self.method.one_sum or sooner)

    def solved_on_sums(self) -> Solution:
        """Solve with the kernels themselves, whose sums are computed as dense matrices."""
        source, threads = self.kernels.source, self.kernels.threads
        if self.kernels.by_points:
            bank: RecomputedBank = PointBank(source, threads, dense=True)
        else:
            bank = RecomputedBank(source, threads=threads)
        view = BankView(bank, None, self.kernels.scale, centred=False)
        cache = self.kernels.factors.cache
        with nullcontext() if cache is None else cache.leaving(self._bytes_of_matrices):
            return self._of_kernels(self._solved_on(view, self.params))

    @property
    def _bytes_of_matrices(self) -> int:
        """Memory of the method's solver on matrices of all points."""
        n, m = self.kernels.source.n_points, self.kernels.source.n_kernels
        return self.method.memory(ProblemSize(n, m, n), self.params).needed

    def _of_kernels(self, solution: Solution) -> Solution:
        """Return a solution on the kernels themselves, whose bounds are exact."""
        active = np.count_nonzero(solution.kernel_weights)
        own = np.repeat(solution.coefficients[None], active, axis=0)
        lower = solution.dual_objective
        return self._with_rank(
            replace(solution, exact_dual_objective=lower, kernel_coefficients=own)
        )

    def _solved_on(self, view: BankView, params: SolverParams) -> Solution:
        """Solve on a view of the kernels, or of factors, from the last solution if there is one."""
        with self._charged():
            problem = replace(self.problem, start=self._start(view))
        job = Job("", view, problem, self.method.solve(problem, params))
        found = solve_timed(view.bank, job)
        solution, self.times = found.solution, self.times + found.times
        self._spent = self._spent + solution.counters
        self._gap, self._objective = solution.gap, solution.objective
        self._last = replace(solution, counters=self._spent)
        return self._last

    def needs_of_active(self, solution: Solution) -> Ranks:
        """Return the ranks that active kernels need, by what their norms in the objective lack."""
        active = np.flatnonzero(solution.kernel_weights)
        few = 0 < len(active) <= FEW * self.kernels.source.n_kernels
        shared = solution.kernel_coefficients is None and not self._has_diagonals
        if not (solution.converged and few and shared):
            return {}
        with self._charged():
            lack = self.kernels.lacking(active, solution.coefficients).reshape(len(active), -1)
        allowed = (1.0 - SHARE) * self.params.tol * abs(solution.objective)
        ratios = lacked_by_norms(solution, active, lack.sum(axis=1), allowed)
        return longer(self._factors, active[ratios > 0.0], ratios[ratios > 0.0])

    def needs_by_sample(self, solution: Solution) -> Ranks:
        """Return the ranks that kernels seem to need, by a sample that costs little of a pass."""
        pays = SAMPLE_PAYS * sampled_values(DRAWN) <= used_points(solution) ** 2 / 2
        if not (solution.converged and pays):
            return {}
        sample = Sample(DRAWN, 0.0, active_exactly=False, seed=self.kernels.seed)
        return self.needs_of_all(*self._certified(solution, sample))

    def certified(self, solution: Solution) -> tuple[Solution, ExactForms]:
        """Certify the solution for the kernels, by a sample where a pass is too dear."""
        sample, source = None, self.kernels.source
        if source.n_kernels * used_points(solution) ** 2 / 2 > self._limit:
            sample = Sample(DRAWN, MARGIN, active_exactly=True, seed=self.kernels.seed + 1)
        found, forms = self._certified(solution, sample)
        if sample is not None:
            found = replace(found, extra={**found.extra, SAMPLED: float(sample.n_drawn)})
        return self._with_rank(found), forms

    def _with_rank(self, solution: Solution) -> Solution:
        """Return a solution that tells the columns of the longest factor."""
        rank = max(factor.rank for factor in self._factors)
        return replace(solution, extra={**solution.extra, "largest_rank": float(rank)})

    def _certified(self, solution: Solution, sample: Sample | None) -> tuple[Solution, ExactForms]:
        method, problem = self.method, self.problem
        with self._charged():
            return certified_exactly(self.kernels, method, problem, self._own, solution, sample)

    def needs_of_all(self, solution: Solution, forms: ExactForms) -> Ranks:
        """Return the ranks that kernels need whose errors make the exact gap.

        None is where most of that gap is the gap on the factors.
        """
        tol, gap, self._forms = self.params.tol, solution.exact_gap, forms
        if gap <= tol or self._gap > SHARE * gap:
            return {}
        errors = error_by_kernel(solution, forms, tol)
        if self._has_diagonals:
            lost = (solution.objective - self._objective) / max(solution.objective, TINY)
            errors = np.maximum(errors, error_by_diagonals(solution, self._factors) * lost)
        kernels = largest_errors(errors, tol)
        return longer(
            self._factors, kernels, np.minimum(errors[kernels], 1.0) / ((1.0 - SHARE) * tol)
        )

    def ended(self, solution: Solution) -> SolvedJob:
        """Return the last solution, which has converged where its exact gap is at most `tol`.

        One whose gap on the factors is within its tolerance, and which the time limit ended all the
        same, chose its kernel weights by some of the kernels.
        """
        stop, limit = solution.stop_reason, self.limit
        if stop is StopReason.TIME_LIMIT and self._gap <= self._own.tol:
            limit = ""
        elif solution.exact_gap <= self.params.tol:
            stop, limit = StopReason.CONVERGED, ""
        elif limit or solution.converged:  # or nothing is lacking that could be seen
            limit = limit or "rounding"
            stop = LIMITS[limit]
        return SolvedJob(replace(solution, stop_reason=stop), self.times, limit)

    def grow(self, ranks: Ranks) -> bool:
        """Make factors longer; return True if any is."""
        self.limit = ""
        if not ranks:
            return False
        if self.problem.clock.past(self.params.time_limit):
            self.limit = "time_limit"
            return False
        narrow = self._narrow(ranks)
        with self._charged():
            if narrow:
                stay = {m for m in narrow if not may_help(self._factors[m])}
                self.kernels = self.kernels.with_diagonals(self._times_of_diagonals(stay))
                ranks = {m: rank for m, rank in ranks.items() if m not in stay}
            grown = self.kernels.lengthen(ranks)
        if not (grown or narrow):
            self.limit = self.kernels.limit_on(ranks)
        return bool(grown or narrow)

    @property
    def _factors(self) -> Sequence[ThinFactor]:
        return self.kernels.factors.factors

    @property
    def _limit(self) -> float:
        return self.kernels.limits.pass_values

    @property
    def _by_points(self) -> bool:
        """True if the method may go on by products of the kernels."""
        y = self.problem.y
        return self._renews_by_points and y.ndim == 1 and len(y) >= MANY

    @property
    def _renews_by_points(self) -> bool:
        """True if loops or a device compute what the method asks for from the points."""
        renewal = self.method.renewal
        return renewal is not None and renewal.by_points and self.kernels.by_points

    @property
    def _has_diagonals(self) -> bool:
        return self.kernels.factors.exact is not None

    def _narrow(self, ranks: Ranks) -> set[int]:
        """Return the kernels for which diagonals had better change than ranks."""
        few = len(self.problem.y) < MANY or self._changes == MOST_CHANGES
        if few or not self.method.hinge_machines:
            return set()
        narrow = {m for m in ranks if is_narrow(self._factors[m])}
        self._changes += bool(narrow)
        return narrow

    def _times_of_diagonals(self, kernels: set[int]) -> Floats:
        """Return factors of diagonals, corrected for some kernels where forms are known."""
        times: Floats = self.kernels.factors.times
        if self._forms is None or not self._has_diagonals:
            return times.copy()
        return corrected_diagonals(times, self._forms, kernels)

    def _start(self, view: BankView) -> Any:
        """Return the state from which to solve, for a view as it is; None for a new start.

        Factors may have grown since any state was made, that of another solution too.
        """
        state = self.problem.start if self._last is None else self._last.state
        renewal = self.method.renewal
        if state is None or renewal is None:
            return None
        steps = renewal.renewed(self.problem, state)
        return driven(steps, lambda request: answer_views([(view, request)])[0])

    @contextmanager
    def _charged(self) -> Iterator[None]:
        """Charge the solver with the time of a block, and with what it computes."""
        begun, cpu, before = working_time(), working_cpu_time(), self.kernels.counter.copy()
        yield
        seconds, spent = working_time() - begun, self.kernels.counter - before
        self.problem.clock.charge(seconds)
        self.times = self.times + JobTimes(
            wall_seconds=seconds,
            pass_seconds=seconds,
            pass_cpu_seconds=working_cpu_time() - cpu + spent.threads_cpu_seconds,
            pass_bytes=spent.value_bytes,
        )
