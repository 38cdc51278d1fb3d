"""Solutions on thin factors of kernels, which grow until the solution holds for the kernels.

Where the bounds of :mod:`.exact_certificate` are too far apart, some factors lack too much of their
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

Of many points, a method that can start from a solution need not have longer factors.  It goes on
with the kernels themselves, by their products with vectors (:mod:`mkldist.bank.recomputed`): few
dual variables still change, and only those cost kernel values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mkldist.bank.factored_kernels import DRAWN, FIRST_RANK, FactoredKernels, sampled_values
from mkldist.bank.passes import driven
from mkldist.bank.recomputed import PointBank
from mkldist.bank.view import BankView, answer_views
from mkldist.core.arrays import Floats, Ints
from mkldist.core.counters import Counters
from mkldist.optim.pivoted_cholesky import ThinFactor
from mkldist.solvers.base import Method, Problem, Solution
from mkldist.solvers.exact_certificate import ExactForms, Sample, certified_exactly, with_kernels
from mkldist.solvers.lockstep import Job, JobTimes, SolvedJob, solve_timed
from mkldist.solvers.progress import SAMPLED, StopReason, working_cpu_time, working_time
from mkldist.solvers.solver_params import SolverParams

SLACK = 0.25  # of the tolerance: less of the largest form may be missing
POWER = 0.5  # of the ratio of what is lacking to what may be, by which ranks grow
LEAST_GROWTH, MOST_GROWTH = 1.5, 4.0
NARROW = 0.2  # share of the trace, of which a kernel's factor lacks more if it is narrow
HOPELESS = 0.9  # share of the trace left, from which on more columns are no help
TINY = float(np.finfo(float).tiny)

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
    corrected: Floats = times * np.where(chosen, np.clip(1.0 + ratio, 0.0, MOST_GROWTH), 1.0)
    return corrected


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
MOST_CHANGES = 3  # of diagonals, before ranks grow after all
LIMITS = {
    "rank": StopReason.RANK_LIMIT,
    "memory": StopReason.MEMORY_LIMIT,
    "rounding": StopReason.STALLED,
    "time_limit": StopReason.TIME_LIMIT,
}
MANY = 5000  # points from which on factors take diagonals rather than so many columns
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
        own = np.repeat(found.coefficients[None], np.count_nonzero(found.kernel_weights), axis=0)
        lower = solution.dual_objective
        found = replace(found, exact_dual_objective=lower, kernel_coefficients=own)
        return self._with_rank(found)

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
        renewal, y = self.method.renewal, self.problem.y
        renews = renewal is not None and renewal.by_points
        return renews and y.ndim == 1 and len(y) >= MANY and self.kernels.by_points

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
