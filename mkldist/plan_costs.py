"""What a plan is expected to cost: memory of a worker, and passes over banks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkldist.plan import BankPlan, BatchPlan

WORKER_BASE_BYTES = 300 * 2**20  # interpreter, libraries, compiled code, data set
STREAM_BUFFER_BYTES = 64 * 2**20
MATRICES_PER_SOLVER = 4
LIVE_SOLVER_BYTES = 2**30
TYPICAL_ROUNDS = 40
ONE_PASS_METHODS = frozenset({"uniform", "best_single", "majority"})


def peak_memory(
    execution: str,
    banks: Sequence[BankPlan],
    batches: Sequence[BatchPlan],
    memory_limit: int | None,
) -> int:
    """Return the bytes that a worker is expected to take at its peak.

    Parameters
    ----------
    execution : str
        ``"shared"`` keeps all solvers of a batch alive, as far as memory goes; ``"isolated"`` one.
    banks : sequence of BankPlan
        All banks.
    batches : sequence of BatchPlan
        All batches.
    memory_limit : int or None
        Bytes that a worker may take, a quarter of which are for solvers.
    """
    by_id = {bank.id: bank for bank in banks}
    live = LIVE_SOLVER_BYTES if memory_limit is None else memory_limit // 4
    peak = 0
    for batch in batches:
        bank = by_id[batch.bank]
        held = bank.n_bytes if bank.backend == "memory" else STREAM_BUFFER_BYTES
        solver = MATRICES_PER_SOLVER * 8 * bank.n_points**2
        alive = 1 if execution == "isolated" else len(batch.runs)
        peak = max(peak, held + min(alive * solver, max(live, solver)))
    return WORKER_BASE_BYTES + peak


def typical_passes(execution: str, banks: Sequence[BankPlan], batches: Sequence[BatchPlan]) -> int:
    """Return the passes over banks if every solver takes a typical number of rounds.

    Runs of a batch share their passes, unless they are isolated; a normalisation that is fitted
    to the training rows takes one pass a batch.

    Parameters
    ----------
    execution : str
        ``"shared"`` or ``"isolated"``.
    banks : sequence of BankPlan
        All banks.
    batches : sequence of BatchPlan
        All batches.
    """
    fitted = {bank.id for bank in banks if set(bank.spec.normalisations) - {"cosine"}}
    passes = 0
    for batch in batches:
        rounds = [1 if run.method in ONE_PASS_METHODS else TYPICAL_ROUNDS for run in batch.runs]
        passes += sum(rounds) if execution == "isolated" else max(rounds, default=0)
        passes += batch.bank in fitted
    return passes
