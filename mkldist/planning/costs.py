"""Expected cost of a plan: memory of a worker, and passes over banks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from mkldist.gram.normalisation import takes_pass
from mkldist.gram.shards import block_bytes
from mkldist.memory import (
    FLOAT_BYTES,
    KEPT_STATES_BYTES,
    ProblemSize,
    SolverMemory,
    bank_bytes,
    groups_at_once,
    kept_arrays_bytes,
    row_cache_bytes,
    view_cache_bytes,
)
from mkldist.methods.registry import METHODS
from mkldist.optim.block_ascent import LARGEST
from mkldist.planning.model import BankPlan, BatchPlan, RunPlan
from mkldist.spec.banks import FACTORS
from mkldist.spec.graph import GraphTable

WORKER_BASE_BYTES = 300 * 2**20  # interpreter, libraries, compiled code
BUFFER_BYTES = 64 * 2**20  # blocks that a pass reads, and what it computes of them
BLOCKS, VECTORS_OF_POINTS = 3, 200  # of a solver on factors: its blocks of a matrix, and (n,)
ENTRY_BYTES = 12  # of a sparse matrix, with the index of its column
FURTHER_PASSES = 3  # of a run that starts from the solution of another

Settings = tuple[str, int, int, int, int | None]
"""Method, identity of the parameters, and the size of a problem: points, kernels, labelled points.

Runs of one point of a grid have one object of parameters, which lives as long as they do.
"""


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
        Bytes that a task may take; :mod:`mkldist.memory` says how they are divided.
    """
    by_id = {bank.id: bank for bank in banks}
    of_settings: dict[Settings, int] = {}
    peak = 0
    for batch in batches:
        bank = by_id[batch.bank]
        graphs = {run.graph for run in batch.runs if run.graph is not None}
        each = _bytes_of_solvers(bank, batch.runs, memory_limit, of_settings)
        work = max(each, default=0)
        if execution != "isolated":
            work = max((sum(each[g]) for g in groups_at_once(each, memory_limit)), default=0)
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
    with ``"sharded"`` a part of some kernels.

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
    of_settings: dict[Settings, int] = {}
    tasks = [
        _least_held(bank) + max(_bytes_of_solvers(bank, batch.runs, 0, of_settings), default=0)
        for batch in batches
        for bank in [by_id[batch.bank]]
    ]
    features = max((bank.feature_bytes for bank in banks), default=0)  # which its tasks share
    return WORKER_BASE_BYTES + features + n_threads * max(tasks, default=0)


def _least_held(bank: BankPlan) -> int:
    """Return the bytes of a bank that a task cannot do without."""
    if bank.spec.backend in ("memory", FACTORS):
        return bank.n_bytes
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
    if on_factors:
        block = FLOAT_BYTES * min(n_points, LARGEST) ** 2
        return SolverMemory(BLOCKS * block + FLOAT_BYTES * VECTORS_OF_POINTS * n_points)
    n_labelled = n_points if run.n_labelled is None else min(run.n_labelled, n_points)
    size = ProblemSize(n_points, n_kernels, n_labelled)
    return method.memory(size, method.params(**run.params))


def _bytes_of_solvers(
    bank: BankPlan,
    runs: Sequence[RunPlan],
    memory_limit: int | None,
    of_settings: dict[Settings, int],
) -> list[int]:
    """Return the bytes of the solvers of a batch, in order, one solver of each path at a time.

    Those of settings that other batches share are taken from `of_settings`, or put there.
    """
    each: list[int] = []
    for run in runs:
        size = bank.n_points, bank.n_kernels, run.n_labelled
        settings = run.method, id(run.params), *size
        if settings not in of_settings:
            memory = run_memory(run, bank.n_points, bank.n_kernels, on_factors=bank.is_factored)
            of_settings[settings] = memory.within(memory_limit)
        each.append(of_settings[settings])
    if all(run.path is None for run in runs):  # as most; there may be many thousands of them
        return [n for run, n in zip(runs, each, strict=True) for _ in range(run.n_jobs)]
    of_chain: dict[tuple[object, ...], tuple[int, int]] = {}
    for run, n_bytes in zip(runs, each, strict=True):
        largest, _ = of_chain.get(run.chain, (0, 0))
        of_chain[run.chain] = max(largest, n_bytes), run.n_jobs
    return [n_bytes for n_bytes, n_jobs in of_chain.values() for _ in range(n_jobs)]


def _held(bank: BankPlan, memory_limit: int | None) -> int:
    """Return the bytes of a bank in a worker; the system reclaims the pages of a mapped one."""
    if bank.backend == "memory":
        return bank.n_bytes
    if bank.is_factored:  # they may grow
        return max(bank.n_bytes, bank_bytes(memory_limit)) + BUFFER_BYTES
    if bank.sharded:  # a worker keeps a part of them, however many workers there are
        return min(bank.n_bytes, bank_bytes(memory_limit))
    kept = 0 if bank.backend == "mmap" else min(bank.n_bytes, row_cache_bytes(memory_limit))
    return BUFFER_BYTES + kept


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
    of_settings: dict[Settings, int] = {}
    for batch in batches:
        for first in batch.runs[:1]:
            bank = by_key[batch.bank, first.bank_label]
            own = _passes_of(execution, bank, batch, memory_limit, of_settings)
            passes[first.dataset, first.bank_label] += own
    return dict(passes)


def _passes_of(
    execution: str,
    bank: BankPlan,
    batch: BatchPlan,
    memory_limit: int | None,
    of_settings: dict[Settings, int],
) -> int:
    """Return the passes of a batch over its bank."""
    rounds = [
        METHODS[run.method].typical_passes(bank.n_kernels) + (run.selection is not None)
        for run in batch.runs
    ]
    return math.ceil(passes_of_runs(execution, bank, batch.runs, rounds, memory_limit, of_settings))


def passes_of_runs(
    execution: str,
    bank: BankPlan,
    runs: Sequence[RunPlan],
    rounds: Sequence[float],
    memory_limit: int | None,
    of_settings: dict[Settings, int],
) -> float:
    """Return the passes over a bank that runs of one batch take together.

    Parameters
    ----------
    execution, memory_limit
        As for :func:`typical_passes`.
    bank : BankPlan
        The bank.
    runs : sequence of RunPlan
        The runs.
    rounds : sequence of float
        Passes that a solver of each run takes, if it is the first of its path.
    of_settings : dict
        Bytes of solvers that are known already; takes the others.
    """
    if execution == "isolated":
        passes = sum(run.n_jobs * of_each for run, of_each in zip(runs, rounds, strict=True))
    else:
        each = _bytes_of_solvers(bank, runs, memory_limit, of_settings)
        further = FURTHER_PASSES * (_longest_chain(runs) - 1)
        passes = (max(rounds, default=0) + further) * len(groups_at_once(each, memory_limit))
    return passes + takes_pass(bank.spec.normalisations)


def _longest_chain(runs: Sequence[RunPlan]) -> int:
    """Return the number of runs of the longest path of a batch."""
    return max(Counter(run.chain for run in runs if run.path).values(), default=1)
