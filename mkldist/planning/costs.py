"""Expected cost of a plan: memory of a worker and its limit, passes, bytes that shards move."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

from mkldist.bank.factored_kernels import FactorLimits, least_bytes
from mkldist.bank.shards import block_bytes, cut, kernel_bytes
from mkldist.bank.view import takes_pass
from mkldist.core.memory import (
    FLOAT_BYTES,
    KEPT_STATES_BYTES,
    ProblemSize,
    SolverMemory,
    bank_bytes,
    groups_at_once,
    kept_arrays_bytes,
    physical_memory,
    row_cache_bytes,
    shard_bytes,
    trace_bytes,
    view_cache_bytes,
)
from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS
from mkldist.optim.block_ascent import LARGEST
from mkldist.planning.model import BankFacts, BankPlan, BatchPlan, DatasetFacts, Plan, RunPlan
from mkldist.solvers.base import Method
from mkldist.solvers.factor_needs import LEAST_GROWTH, MOST_GROWTH
from mkldist.solvers.most_points import most_points
from mkldist.solvers.on_factors import MANY, MOST_CHANGES
from mkldist.solvers.parameters import MethodGrid
from mkldist.solvers.refusals import ProblemFacts, all_of
from mkldist.spec.banks import FACTORS, BankSpec
from mkldist.spec.datasets import GraphTable
from mkldist.spec.model import SweepSpec

USUAL_GROWTH = math.sqrt(LEAST_GROWTH * MOST_GROWTH)
FEW_ROUNDS = 2  # of a method that need not make factors longer


class FactorRounds(NamedTuple):
    """Rounds of a solver on factors.

    Parameters
    ----------
    first, longest : int
        Columns of each factor at first, and of the longest at most.
    usual, most : int
        Rounds if the longest factors reach their limit by the usual growth, and at most.
    """

    first: int
    longest: int
    usual: int
    most: int


def factor_rounds(bank: BankPlan, method: Method | None = None) -> FactorRounds:
    """Return the rounds that a solver on a bank of factors takes.

    On many points, methods on machines of the hinge loss take diagonals of kernels before columns,
    or go on by products with the kernels from their first solution.

    Parameters
    ----------
    bank : BankPlan
        The bank.
    method : Method, optional
        A method that solves on factors; by default one that only makes factors longer.
    """
    limits, many = FactorLimits.of(bank.spec.rank, bank.spec.tolerance), bank.n_points >= MANY
    first, longest = limits.first(bank.n_points), limits.most(bank.n_points)
    ratio = math.log(longest / first)
    most = 1 + math.ceil(ratio / math.log(LEAST_GROWTH))
    usual = 1 + math.ceil(ratio / math.log(USUAL_GROWTH))
    if many and method is not None and method.hinge_machines:
        usual, most = min(usual, FEW_ROUNDS), most + MOST_CHANGES
    return FactorRounds(first, longest, usual, most)


WORKER_BASE_BYTES = 300 * 2**20  # interpreter, libraries, compiled code
BUFFER_BYTES = 64 * 2**20  # blocks that a pass reads, and what it computes of them
BLOCKS, VECTORS_OF_POINTS = 3, 200  # of a solver on factors: its blocks of a matrix, and (n,)
ENTRY_BYTES = 12  # of a sparse matrix, with the index of its column
FURTHER_PASSES = 3  # of a run that starts from the solution of another

_params, _n_labelled, _n_jobs = map(attrgetter, ("params", "n_labelled", "n_jobs"))


def peak_memory(
    execution: str,
    banks: Sequence[BankPlan],
    batches: Sequence[BatchPlan],
    memory_limit: int | None,
) -> int:
    """Return the bytes that a worker of one thread is expected to take at its peak.

    Parameters
    ----------
    execution : str
        ``"shared"`` keeps all solvers of a batch alive, as far as memory allows; ``"path"`` one of
        each path; ``"isolated"`` one.
    banks : sequence of BankPlan
        All banks.
    batches : sequence of BatchPlan
        All batches.
    memory_limit : int or None
        Bytes that a task may take; :mod:`mkldist.core.memory` says how they are divided.
    """
    by_id = {bank.id: bank for bank in banks}
    solvers = SolverBytes(memory_limit)
    peak = 0
    for batch in batches:
        bank = by_id[batch.bank]
        graphs = {run.graph for run in batch.runs if run.graph is not None}
        each, groups = solvers.of(bank, batch.runs)
        work = max(each, default=0)
        if execution != "isolated":
            work = max((sum(each[group]) for group in groups), default=0)
        held = bank.feature_bytes + _held(bank, memory_limit)
        held += _of_views(bank, batch, memory_limit)
        held += KEPT_STATES_BYTES * any(run.after for run in batch.runs)
        held += _kept_for_graphs(bank, len(graphs), memory_limit)
        held += sum(_graph_bytes(g, bank.n_points) for g in graphs)
        peak = max(peak, held + work)
    return WORKER_BASE_BYTES + peak


def _kept_for_graphs(bank: BankPlan, n_graphs: int, memory_limit: int | None) -> int:
    """Return the bytes of deformed kernels that a batch keeps: factor, system and root of each."""
    each = 3 * FLOAT_BYTES * bank.n_points**2
    return min(kept_arrays_bytes(memory_limit), n_graphs * bank.n_kernels * each)


def least_memory(banks: Sequence[BankPlan], batches: Sequence[BatchPlan], n_threads: int) -> int:
    """Return the bytes that a worker needs at least.

    Each task holds one solver, and a buffer of blocks; with ``backend = "memory"`` the whole bank,
    with ``"sharded"`` a part of some kernels, with ``"factors"`` a factor in the making.

    Parameters
    ----------
    banks : sequence of BankPlan
        All banks.
    batches : sequence of BatchPlan
        All batches.
    n_threads : int
        Tasks that a worker runs at the same time.
    """
    by_id = {bank.id: bank for bank in banks}
    solvers = SolverBytes(memory_limit=0)
    tasks = [
        _least_held(bank) + max(solvers.of(bank, batch.runs).each, default=0)
        for batch in batches
        for bank in [by_id[batch.bank]]
    ]
    features = max((bank.feature_bytes for bank in banks), default=0)  # which its tasks share
    return WORKER_BASE_BYTES + features + n_threads * max(tasks, default=0)


def _least_held(bank: BankPlan) -> int:
    """Return the bytes of a bank that a task cannot do without."""
    if bank.spec.backend == "memory":
        return bank.n_bytes
    if bank.is_factored:  # those that memory does not hold lie in a file
        limits = FactorLimits.of(bank.spec.rank, bank.spec.tolerance)
        return least_bytes(bank.n_points, limits) + BUFFER_BYTES
    return block_bytes(bank.shape) if bank.sharded else BUFFER_BYTES


def run_memory(
    run: RunPlan, n_points: int, n_kernels: int, *, on_factors: bool = False
) -> SolverMemory:
    """Return the memory of a solver of a run.

    Parameters
    ----------
    run : RunPlan
        The run.
    n_points, n_kernels : int
        Size of what the solver is trained on.
    on_factors : bool
        True if thin factors stand for the kernels: no matrix of all points is then made.
    """
    method = METHODS[run.method]
    params = method.params(**run.params)
    traced = trace_bytes(n_kernels, params.max_iter) if params.trace else 0
    if on_factors:
        block = FLOAT_BYTES * min(n_points, LARGEST) ** 2
        return SolverMemory(BLOCKS * block + FLOAT_BYTES * VECTORS_OF_POINTS * n_points + traced)
    n_labelled = n_points if run.n_labelled is None else min(run.n_labelled, n_points)
    memory = method.memory(ProblemSize(n_points, n_kernels, n_labelled), params)
    return SolverMemory(memory.needed + traced, memory.spare)


class OfBatch(NamedTuple):
    """Bytes of each solver of a batch, and the groups of those that are at work at once."""

    each: Sequence[int]
    groups: Sequence[slice]


class SolverBytes:
    """Bytes of the solvers of batches, found once for each setting, and for batches of equal ones.

    Runs of one point of a grid have one object of parameters, by which they are known.  The runs
    must live as long as this object does.

    Parameters
    ----------
    memory_limit : int or None
        Bytes that a task may take.
    """

    def __init__(self, memory_limit: int | None) -> None:
        self._memory_limit = memory_limit
        self._of_settings: dict[tuple[object, ...], int] = {}
        self._of_batches: dict[tuple[object, ...], OfBatch] = {}

    def of(self, bank: BankPlan, runs: Sequence[RunPlan]) -> OfBatch:
        """Return the bytes of the solvers of a batch, in order, one of each path at a time."""
        params = tuple(map(id, map(_params, runs)))
        numbers = tuple(map(_n_labelled, runs)), tuple(map(_n_jobs, runs))
        key = bank.n_points, bank.n_kernels, bank.is_factored, params, *numbers
        if key not in self._of_batches:
            each = self._found(bank, runs)
            self._of_batches[key] = OfBatch(each, groups_at_once(each, self._memory_limit))
        return self._of_batches[key]

    def _found(self, bank: BankPlan, runs: Sequence[RunPlan]) -> list[int]:
        each = [self._of(bank, run) for run in runs]
        if not any(run.on_path for run in runs):  # as most; there may be many thousands of them
            return [n for run, n in zip(runs, each, strict=True) for _ in range(run.n_jobs)]
        of_chain: dict[tuple[object, ...], tuple[int, int]] = {}
        for run, n_bytes in zip(runs, each, strict=True):
            largest, _ = of_chain.get(run.chain, (0, 0))
            of_chain[run.chain] = max(largest, n_bytes), run.n_jobs
        return [n_bytes for n_bytes, n_jobs in of_chain.values() for _ in range(n_jobs)]

    def _of(self, bank: BankPlan, run: RunPlan) -> int:
        size = bank.n_points, bank.n_kernels, run.n_labelled
        settings = bank.is_factored, id(run.params), *size
        if settings not in self._of_settings:
            memory = run_memory(run, bank.n_points, bank.n_kernels, on_factors=bank.is_factored)
            self._of_settings[settings] = memory.within(self._memory_limit)
        return self._of_settings[settings]


def _held(bank: BankPlan, memory_limit: int | None) -> int:
    """Return the bytes of a bank in a worker; the system reclaims the pages of a mapped one."""
    if bank.backend == "memory":
        return bank.n_bytes
    if bank.is_factored:  # they may grow
        return factors_bytes(bank, memory_limit) + BUFFER_BYTES
    if bank.sharded:  # a worker keeps a part of them, however many workers there are
        return min(bank.n_bytes, bank_bytes(memory_limit))
    kept = 0 if bank.backend == "mmap" else min(bank.n_bytes, row_cache_bytes(memory_limit))
    return BUFFER_BYTES + kept


def factors_bytes(bank: BankPlan, memory_limit: int | None) -> int:
    """Return the bytes of memory that factors of a bank may take in a task.

    Parameters
    ----------
    bank : BankPlan
        A bank of factors.
    memory_limit : int or None
        Bytes that the task may take; without a limit memory holds all first factors.
    """
    least = least_bytes(bank.n_points, FactorLimits.of(bank.spec.rank, bank.spec.tolerance))
    first = bank.n_bytes if memory_limit is None else 0
    return max(bank_bytes(memory_limit), first, least)


def _of_views(bank: BankPlan, batch: BatchPlan, memory_limit: int | None) -> int:
    """Return the bytes of kernels kept for views of some of a bank's points: splits or folds."""
    if bank.is_factored:
        return 0
    partial = bank.split is None or any(run.selection is not None for run in batch.runs)
    n_views = len({run.split for run in batch.runs})
    return min(view_cache_bytes(memory_limit), n_views * bank.n_bytes) if partial else 0


def _graph_bytes(graph: GraphTable, n_points: int) -> int:
    """Return the bytes of a graph of many edges: its entries and their indices, twice.

    A graph of nearest neighbours in Euclidean or cosine distance is small beside a solver, and
    counts nothing.
    """
    few_edges = graph.kind == "knn" and graph.power == 1
    image_distances = graph.distance in ("tangent", "affine")
    return 0 if few_edges and not image_distances else 2 * ENTRY_BYTES * n_points**2


def typical_passes(
    execution: str,
    banks: Sequence[BankPlan],
    batches: Sequence[BatchPlan],
    memory_limit: int | None,
) -> int:
    """Return the passes over banks if every solver takes the passes typical of its method.

    The solvers of a batch share their passes as far as memory allows, unless they are isolated.
    To fit a normalisation by centred kernels takes one pass a batch, to score inner folds one.
    After the first run of a path the others take few.

    Parameters
    ----------
    execution : str
        ``"shared"``, ``"isolated"`` or ``"path"``.
    banks : sequence of BankPlan
        All banks.
    batches : sequence of BatchPlan
        All batches.
    memory_limit : int or None
        Bytes that a task may take.
    """
    by_place = passes_by_bank(execution, banks, batches, memory_limit)
    return sum(by_place.values())


def passes_by_bank(
    execution: str,
    banks: Sequence[BankPlan],
    batches: Sequence[BatchPlan],
    memory_limit: int | None,
) -> dict[tuple[str, str], int]:
    """Return the passes that :func:`typical_passes` sums, by data set and label of the bank.

    Parameters
    ----------
    execution, banks, batches, memory_limit
        As for :func:`typical_passes`.
    """
    by_key = {(bank.id, bank.spec.label): bank for bank in banks}
    passes: Counter[tuple[str, str]] = Counter()
    solvers = SolverBytes(memory_limit)
    for batch in batches:
        for first in batch.runs[:1]:
            bank = by_key[batch.bank, first.bank_label]
            own = _passes_of(execution, bank, batch, solvers)
            passes[first.dataset, first.bank_label] += own
    return dict(passes)


def _passes_of(
    execution: str,
    bank: BankPlan,
    batch: BatchPlan,
    solvers: SolverBytes,
) -> int:
    """Return the passes of a batch over its bank."""
    methods = {run.method for run in batch.runs}
    of_method = {name: METHODS[name].typical_passes(bank.n_kernels) for name in methods}
    rounds = [of_method[run.method] + (run.selection is not None) for run in batch.runs]
    return math.ceil(passes_of_runs(execution, bank, batch.runs, rounds, solvers))


def passes_of_runs(
    execution: str,
    bank: BankPlan,
    runs: Sequence[RunPlan],
    rounds: Sequence[float],
    solvers: SolverBytes,
) -> float:
    """Return the passes over a bank that runs of one batch take together.

    Parameters
    ----------
    execution : str
        As for :func:`typical_passes`.
    bank : BankPlan
        The bank.
    runs : sequence of RunPlan
        The runs.
    rounds : sequence of float
        Passes that a solver of each run takes, if it is the first of its path.
    solvers : SolverBytes
        Bytes of the solvers under the limit of memory.
    """
    if execution == "isolated":
        passes = sum(run.n_jobs * of_each for run, of_each in zip(runs, rounds, strict=True))
    else:
        groups = solvers.of(bank, runs).groups
        further = FURTHER_PASSES * (_longest_chain(runs) - 1)
        passes = (max(rounds, default=0) + further) * len(groups)
    return passes + takes_pass(bank.spec.normalisations)


def _longest_chain(runs: Sequence[RunPlan]) -> int:
    """Return the number of runs of the longest path of a batch."""
    return max(Counter(run.chain for run in runs if run.on_path).values(), default=1)


@dataclass(frozen=True)
class ShardTraffic:
    """Shards of a bank, and what requests move between them and the solver.

    Parameters
    ----------
    n_shards : int
        Number of shards.
    largest_bytes : int
        Bytes of the largest shard.
    pass_bytes : int
        Bytes that a pass moves for one vector: the vector to every shard, its forms back.
    sum_bytes : int
        Bytes that a combination of all kernels moves: the weights, and the sum from shard to shard.
    """

    n_shards: int
    largest_bytes: int
    pass_bytes: int
    sum_bytes: int


def shard_traffic(bank: BankPlan, memory_limit: int | None, n_workers: int) -> ShardTraffic:
    """Return the shards of a bank and their traffic.

    Parameters
    ----------
    bank : BankPlan
        The bank.
    memory_limit : int or None
        Bytes that a worker may take; None without a limit.
    n_workers : int
        Number of workers.
    """
    shards = cut(bank.shape, shard_bytes(memory_limit), n_workers)
    largest = max(shard.stop - shard.start for shard in shards) * kernel_bytes(bank.shape)
    of_kernels = FLOAT_BYTES * bank.n_kernels
    return ShardTraffic(
        n_shards=len(shards),
        largest_bytes=largest,
        pass_bytes=FLOAT_BYTES * len(shards) * bank.n_points + of_kernels,
        sum_bytes=FLOAT_BYTES * len(shards) * bank.shape.layout.n_entries + of_kernels,
    )


def with_backends(
    spec: SweepSpec,
    grids: Mapping[str, Mapping[str, MethodGrid]],
    banks: Mapping[tuple[str, str], BankFacts],
    datasets: Mapping[str, DatasetFacts],
) -> dict[tuple[str, str], BankFacts]:
    """Return the facts of banks, which say for which of them thin factors stand.

    A bank that allows factors gets them on a data set if memory does not hold what some solver on
    it needs, of the matrices of all its points.

    Parameters
    ----------
    spec : SweepSpec
        The sweep.
    grids : mapping of str to mapping of str to MethodGrid
        By data set, all settings of its methods by their keys.
    banks : mapping of (str, str) to BankFacts
        Facts by data set and bank label.
    datasets : mapping of str to DatasetFacts
        Facts by data set.
    """
    found = dict(banks)
    for bank in (one for one in spec.sized_banks if one.may_be_factors):
        for name, facts in datasets.items():
            place = name, bank.label
            thin = bank.backend == FACTORS or not _fits(
                spec, bank, grids[name], banks[place].n_kernels, max(facts.known_sizes)
            )
            found[place] = replace(banks[place], on_factors=thin)
    return found


def _fits(
    spec: SweepSpec,
    bank: BankSpec,
    grids: Mapping[str, MethodGrid],
    n_kernels: int,
    n_points: int,
) -> bool:
    """Return True if memory holds the matrices of every solver on a bank."""
    n_bytes = memory_of(spec)
    own = (grids[entry.key] for entry in spec.methods if entry.runs_on(bank))
    return all(n_points <= most_points_of(grid, n_kernels, n_bytes) for grid in own)


def most_points_of(grid: MethodGrid, n_kernels: int, n_bytes: int) -> int:
    """Return the most points on which memory holds what a solver needs at every setting."""
    return min(most_points(grid.method, point, n_kernels, n_bytes) for point in grid.points)


def memory_of(spec: SweepSpec) -> int:
    """Return the bytes that the solver of a worker of one thread may take.

    The worker has the sweep's `memory`, or this machine's; libraries and a buffer take some.
    """
    given = parse_memory(spec.memory) or physical_memory()
    return max(given - WORKER_BASE_BYTES - BUFFER_BYTES, 0)


def parse_memory(text: str | None, where: str = "memory") -> int | None:
    """Return the bytes that words such as ``2GiB`` stand for; None for None.

    Raises
    ------
    mkldist.errors.SpecError
        For anything else.
    """
    if text is None:
        return None
    from dask.utils import parse_bytes

    try:
        n_bytes = int(parse_bytes(text))
    except (ValueError, OverflowError):
        n_bytes = 0
    if n_bytes <= 0 or (n_bytes < 2**20 and text.strip().isdecimal()):
        raise SpecError(where, f"{text!r}", "a number of bytes such as '2GiB'")
    return n_bytes


def check_memory(plan: Plan, threads: int, available: int | None = None) -> None:
    """Refuse a limit of memory that no worker can keep, or more than the machine has.

    Parameters
    ----------
    plan : Plan
        The sweep's plan.
    threads : int
        Tasks that a worker runs at the same time.
    available : int, optional
        Bytes of memory of the machine on which workers run; None if it is unknown.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the bytes that a worker needs, and for what.
    """
    given, least = parse_memory(plan.spec.memory), least_memory(plan.banks, plan.batches, threads)
    limits = [limit for limit in (given, available) if limit is not None]
    if not limits or min(limits) >= least:
        return
    loaded = any(bank.spec.backend == "memory" for bank in plan.banks)
    held = "a whole bank" if loaded else "a buffer"
    if any(bank.sharded for bank in plan.banks):
        held = "a part of a bank"
    largest = max(bank.n_points for bank in plan.banks)
    needed = (
        f"at least {math.ceil(least / 2**20)} MiB, for the libraries, "
        f"{held} and one solver on {largest} points"
        + (f" in each of {threads} threads" if threads > 1 else "")
    )
    if available is not None and available < least:
        found = f"{available // 2**20} MiB in this machine"
        hint = 'Remove backend = "memory", or set "recompute"' if loaded else _advice(plan, threads)
        raise SpecError("memory", found, needed, hint)
    hint = 'Raise it, or remove backend = "memory"' if loaded else _advice(plan, threads)
    raise SpecError("memory", f"{plan.spec.memory!r}", needed, hint)


def _advice(plan: Plan, threads: int) -> str:
    """Return what helps where solvers do not fit: factors, for the methods that take them."""

    def needed(bank: BankPlan) -> int:
        return least_memory([bank], [one for one in plan.batches if one.bank == bank.id], threads)

    largest = max(plan.banks, key=needed)
    if largest.is_factored:
        return "Lower rank, or use fewer points"
    keys = dict.fromkeys((run.key, run.method) for run in plan.runs if run.bank == largest.id)
    refusals = {key: METHODS[name].refuses(ProblemFacts(factors=True)) for key, name in keys}
    can = [key for key, refusal in refusals.items() if refusal is None]
    cannot = [key for key, refusal in refusals.items() if refusal is not None]
    if not can:
        return f"Use fewer points: {_need(cannot)} whole Gram matrices"
    if not cannot:
        return f'Set backend = "{FACTORS}", which needs no matrix of all points'
    return (
        f'Give {all_of(can)} a bank with backend = "{FACTORS}", which needs no matrix of all '
        f"points; {_need(cannot)} whole Gram matrices, for fewer points"
    )


def _need(names: Sequence[str]) -> str:
    """Return names with the verb that says that they need something."""
    return f"{all_of(names)} need{'s' if len(names) == 1 else ''}"
