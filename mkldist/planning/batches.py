"""Division of the runs of a bank into batches, for a plan and for the workers at hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from mkldist.planning.model import BatchPlan, RunPlan

BATCHES_PER_THREAD = 2


def split_groups(splits: Sequence[int], n_threads: int) -> list[list[int]]:
    """Divide splits into groups, so that every thread gets a few batches of one shared bank.

    Parameters
    ----------
    splits : sequence of int
        The splits.
    n_threads : int
        Tasks that run at the same time, on all workers together.

    Examples
    --------
    >>> split_groups(range(5), 1)
    [[0, 1, 2], [3, 4]]
    """
    wanted = min(len(splits), BATCHES_PER_THREAD * max(1, n_threads))
    return [part.tolist() for part in np.array_split(np.asarray(splits), wanted)]


def divided(runs: Iterable[RunPlan], n_threads: int) -> list[tuple[RunPlan, ...]]:
    """Divide runs, bank by bank, into batches.

    All runs of a split stay together, because they share passes.  Two banks of one id with
    different labels have different normalisations, and two of different data sets have different
    splits; the runs of such banks share no passes.

    Parameters
    ----------
    runs : iterable of RunPlan
        The runs.
    n_threads : int
        Tasks that run at the same time, on all workers together.
    """
    banks: dict[tuple[str, str], dict[int, list[RunPlan]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        banks[run.dataset, run.bank_label][run.split].append(run)
    return [
        tuple(run for split in group for run in by_split[split])
        for by_split in banks.values()
        for group in split_groups(sorted(by_split), n_threads)
    ]


def shares_of(runs: Iterable[RunPlan], n_shares: int) -> list[tuple[RunPlan, ...]]:
    """Divide the runs of a batch among several threads, runs of one path together.

    Parameters
    ----------
    runs : iterable of RunPlan
        The runs.
    n_shares : int
        Number of shares; there are fewer where there are fewer paths.
    """
    chains: dict[object, list[RunPlan]] = defaultdict(list)
    for run in runs:
        chains[run.chain].append(run)
    shares = [list(chains.values())[start::n_shares] for start in range(min(n_shares, len(chains)))]
    return [tuple(run for chain in share for run in chain) for share in shares]


def without(batches: Iterable[BatchPlan], run_ids: Collection[str]) -> tuple[BatchPlan, ...]:
    """Return batches without some of their runs, and without those that have no others."""
    left = (
        replace(batch, runs=tuple(run for run in batch.runs if run.id not in run_ids))
        for batch in batches
    )
    return tuple(batch for batch in left if batch.runs)
