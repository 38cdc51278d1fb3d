"""Subproblems of a batch on a bank of factors, which grow while they are solved in turn."""

from __future__ import annotations

from dataclasses import replace

from mkldist.gram.cache import default_directory
from mkldist.gram.factored_kernels import FactoredKernels, begin_factors, limits_of
from mkldist.gram.sources import BankSource
from mkldist.methods.registry import METHODS
from mkldist.planning.costs import factors_bytes
from mkldist.planning.model import RunPlan
from mkldist.solvers.base import Solution
from mkldist.solvers.lockstep import Job, JobTimes, solve_timed
from mkldist.solvers.on_factors import solve_on_factors
from mkldist.worker.bank_inputs import BankRef


def factors_of(
    ref: BankRef, source: BankSource, memory_limit: int | None, threads: int
) -> FactoredKernels:
    """Return the kernels of a bank beside factors of few columns, which the bank's store keeps.

    Parameters
    ----------
    ref : BankRef
        The bank.
    source : BankSource
        Source of its values.
    memory_limit : int or None
        Bytes that the task may take, of which factors may take half; the others lie in a file of
        the node cache.  Without a limit memory holds all first factors.
    threads : int
        Kernels that are factorised at the same time.
    """
    plan = ref.plan
    limits = limits_of(plan.spec, factors_bytes(plan, memory_limit))
    store, folder = ref.factor_store(), default_directory()
    return begin_factors(source, limits, plan.seed, threads, store, folder, plan.dtype)


def solved_in_turn(factored: FactoredKernels, run: RunPlan, job: Job) -> tuple[Solution, JobTimes]:
    """Solve a subproblem, and let factors grow until the solution holds for the kernels.

    A subproblem on some of the points, those without an inner fold, is scored on the other points
    and not reported.  It is solved on the factors as they are.

    Parameters
    ----------
    factored : FactoredKernels
        The kernels and their factors.
    run : RunPlan
        The run.
    job : Job
        The subproblem's solver, not started.
    """
    if job.view.index is not None:
        return solve_timed(job.view.bank, job)
    method, kernels = METHODS[run.method], replace(factored, scale=job.view.scale)
    found = solve_on_factors(kernels, method, job.problem, method.params(**run.params))
    return found.solution, found.times
