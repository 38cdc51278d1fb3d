"""Preparation of a sweep: its plan, the settings of its batches, and how long they may take.

A thread of this process does a sweep that is so small that it ends before other processes would
start.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.core.memory import FLOAT_BYTES, physical_memory
from mkldist.data.given import GivenData
from mkldist.errors import InputError
from mkldist.methods.registry import METHODS, is_own
from mkldist.planning.code_check import check_code
from mkldist.planning.costs import factor_rounds
from mkldist.planning.memory_limit import check_memory, parse_memory
from mkldist.planning.model import BankPlan, BatchPlan, Plan
from mkldist.planning.resolved import NOTHING, Resolved, resolve
from mkldist.results.layout import check_names
from mkldist.run.cluster import ConnectOptions, default_workers
from mkldist.run.rounds import Rounds
from mkldist.run.work import parse_wall_time
from mkldist.spec.model import SweepSpec

if TYPE_CHECKING:
    from mkldist.run.tasks import BatchSettings

SECONDS_OF_PROCESSES = 3.0  # that starting processes takes, with their imports
SECONDS_OF_A_SOLVER = 0.05
BYTES_A_SECOND = 4e9  # of a pass over stored kernels
RECOMPUTED_BYTES_A_SECOND = 4e8
FLOPS_A_SECOND = 4e9
FACTORISATIONS = 50  # of the Gram matrix, that a solver's machines are worth


def planned(
    spec: SweepSpec,
    origin: Path,
    data_dirs: Sequence[Path],
    options: ConnectOptions,
    *,
    allow_code: bool = False,
) -> tuple[Plan, Resolved]:
    """Return the plan of a sweep for the workers that the options ask for, and its data.

    With a search it is a plan of as many runs as there may be.

    Parameters
    ----------
    spec, origin, data_dirs, options, allow_code
        As for :func:`sweep_rounds`.

    Raises
    ------
    mkldist.errors.InputError
        For input that cannot be used.
    """
    rounds = sweep_rounds(spec, origin, data_dirs, options, allow_code=allow_code)
    return rounds.most, rounds.resolved


def sweep_rounds(
    spec: SweepSpec,
    origin: Path,
    data_dirs: Sequence[Path],
    options: ConnectOptions,
    given: Mapping[str, GivenData] = NOTHING,
    *,
    allow_code: bool = False,
) -> Rounds:
    """Return the rounds of a sweep for the workers that the options ask for, at the first.

    Parameters
    ----------
    spec, origin, data_dirs
        As for :func:`mkldist.run.sweep.run_sweep`.
    options : ConnectOptions
        Workers of the sweep.
    given : mapping of str to GivenData
        Data sets that are in memory, by name.
    allow_code : bool
        True if kernel functions that are not mkldist's may be imported and called.

    Raises
    ------
    mkldist.errors.InputError
        For input that cannot be used.
    """
    check_names(spec)
    options = options.of_execution(spec.execution)
    parse_wall_time(spec.wall_time)  # refuses words that are no time
    memory_limit = parse_memory(spec.memory)
    if memory_limit is not None:
        memory_limit //= options.threads_per_worker
    code = check_code(spec, origin.parent, allowed=allow_code)
    resolved = replace(resolve(spec, data_dirs, origin.parent, given), code=code)
    n_threads = options.expected_threads() or default_workers()
    rounds = Rounds(spec, resolved, n_threads, memory_limit)
    available = physical_memory() if options.are_local else None
    check_memory(rounds.most, options.threads_per_worker, available)
    return rounds


def with_recorded(
    rounds: Rounds, of_file: Callable[[], Rounds], recorded: Collection[str]
) -> Rounds:
    """Return the rounds of a call that asks for a part of its sweep file, with what is recorded.

    ``--set`` may narrow a sweep, as to one value of a list: then the call does this part, and the
    results hold the recorded runs of the file beside it.

    Parameters
    ----------
    rounds : Rounds
        What the call asks for.
    of_file : callable
        Returns the rounds of the file as it is.
    recorded : collection of str
        Ids of the recorded runs.

    Returns
    -------
    Rounds
        The same `rounds` if the call asks for a run that the file does not, if records decide on
        further runs, or if nothing else is recorded.
    """
    asked = {run.id for run in rounds.plan.runs}
    if rounds.are_several or not {*recorded} - asked:
        return rounds
    with suppress(InputError):  # the file may be wrong where a change of this call makes it right
        whole = of_file()
        known = {run.id for run in whole.plan.runs}
        if not whole.are_several and asked <= known:
            return whole.only(asked | known.intersection(recorded))
    return rounds


def batch_settings(spec: SweepSpec, *, predictions: bool = False) -> BatchSettings:
    """Return the settings of a sweep's batches."""
    from mkldist.run.tasks import BatchSettings

    return BatchSettings(
        execution=spec.execution,
        seed=spec.seed,
        memory_limit=parse_memory(spec.memory),
        predictions=predictions,
        coefficients=spec.outputs.coefficients or bool(spec.outputs.figures),
    )


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
