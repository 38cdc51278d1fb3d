"""Sweeps so small that a thread of this process ends them before other processes would start."""

from __future__ import annotations

from collections.abc import Iterable

from mkldist.memory import FLOAT_BYTES
from mkldist.methods.registry import METHODS, is_own
from mkldist.planning.costs import factor_rounds
from mkldist.planning.model import BankPlan, BatchPlan, Plan

SECONDS_OF_PROCESSES = 3.0  # that starting processes takes, with their imports
SECONDS_OF_A_SOLVER = 0.05
BYTES_A_SECOND = 4e9  # of a pass over stored kernels
RECOMPUTED_BYTES_A_SECOND = 4e8
FLOPS_A_SECOND = 4e9
FACTORISATIONS = 50  # of the Gram matrix, that a solver's machines are worth


def is_small(plan: Plan, batches: Iterable[BatchPlan]) -> bool:
    """Return True if some batches of a plan end before processes would start.

    A method that kills its process would end the sweep, and this process does other things while
    clocks go.  So this is False for methods that do not come with mkldist, and for isolated runs,
    whose times are to be compared.
    """
    batches = list(batches)
    runs = [run for batch in batches for run in batch.runs]
    own = all(is_own(METHODS[name]) for name in {run.method for run in runs})
    if plan.spec.execution == "isolated" or not own:
        return False
    return expected_seconds(plan, batches) <= SECONDS_OF_PROCESSES


def expected_seconds(plan: Plan, batches: Iterable[BatchPlan]) -> float:
    """Return the seconds of one thread that some batches of a plan are expected to take, roughly.

    They include the build of the banks, as if none were stored already.

    Parameters
    ----------
    plan : Plan
        The plan, whose passes are divided evenly among its batches.
    batches : iterable of BatchPlan
        Its batches that are to be done.
    """
    banks = {bank.id: bank for bank in plan.banks}
    passes = plan.estimated_passes / max(1, len(plan.batches))
    batches = list(batches)
    seconds = sum(build_seconds(banks[bank]) for bank in {batch.bank for batch in batches})
    for batch in batches:
        n_solvers = sum(run.n_jobs for run in batch.runs)
        seconds += bank_seconds(banks[batch.bank], passes, n_solvers)
    return seconds


def build_seconds(bank: BankPlan) -> float:
    """Return the seconds of one thread that a bank is expected to take to build, roughly.

    They are those of one pass that computes its kernels, or the entries of its factors; none for a
    bank that every pass computes.
    """
    return 0.0 if bank.recomputed else bank.n_bytes / RECOMPUTED_BYTES_A_SECOND


def certificate_bytes(bank: BankPlan) -> float:
    """Return the bytes of kernel values of one pass over kernels that factors stand for."""
    return FLOAT_BYTES * bank.n_kernels * bank.n_points * (bank.n_points + 1) / 2


def bank_seconds(bank: BankPlan, passes: float, n_solvers: int) -> float:
    """Return the seconds of one thread that runs on a bank are expected to take, roughly.

    A second is 4 GB of passes over stored kernels, 0.4 GB of passes that compute kernels, or 20
    solvers; each solver also takes the time of 50 factorisations of its Gram matrix.  On factors
    it takes that of a pass over the kernels in each round instead.
    """
    if bank.is_factored:
        computed = factor_rounds(bank).usual * certificate_bytes(bank)
        each = SECONDS_OF_A_SOLVER + computed / RECOMPUTED_BYTES_A_SECOND
        return passes * bank.n_bytes / BYTES_A_SECOND + n_solvers * each
    speed = RECOMPUTED_BYTES_A_SECOND if bank.recomputed else BYTES_A_SECOND
    machine = FACTORISATIONS * bank.n_points**3 / 3 / FLOPS_A_SECOND
    return passes * bank.n_bytes / speed + n_solvers * (SECONDS_OF_A_SOLVER + machine)
