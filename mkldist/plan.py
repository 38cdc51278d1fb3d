"""The plan: every run, bank and batch of a sweep with stable ids, bytes and memory.

Planning is pure and deterministic: resolved data sets in, plan out.  Ids are content hashes, so
what is recorded under an id is never done again, and a changed sweep re-runs only what changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mkldist.spec.model import BankSpec, PreprocessingSpec, SweepSpec


@dataclass(frozen=True)
class BankPlan:
    """One bank of Gram matrices to be built.

    ``split`` is the index of the split whose training rows it covers, or None when the bank
    covers all rows of the data set (preprocessing fitted on all rows, or precomputed matrices).
    """

    id: str
    dataset: str
    spec: BankSpec
    preprocessing: PreprocessingSpec
    split: int | None
    seed: int
    n_points: int
    n_kernels: int
    dtype: str
    backend: str
    n_bytes: int


@dataclass(frozen=True)
class RunPlan:
    """One solver run: a method with fixed parameters on one split of one data set and bank."""

    id: str
    dataset: str
    bank: str
    bank_label: str
    split: int
    method: str
    key: str
    params: dict[str, Any]


@dataclass(frozen=True)
class BatchPlan:
    """Runs that share one bank and are advanced together by one worker."""

    id: str
    bank: str
    runs: tuple[RunPlan, ...]


@dataclass(frozen=True)
class Plan:
    """All of a sweep."""

    id: str
    spec: SweepSpec
    banks: tuple[BankPlan, ...]
    batches: tuple[BatchPlan, ...]
    memory_per_worker: int
    estimated_passes: int

    @property
    def runs(self) -> tuple[RunPlan, ...]:
        """All runs, batch by batch."""
        return tuple(run for batch in self.batches for run in batch.runs)

    @property
    def bank_bytes(self) -> int:
        """Bytes of Gram matrices on disk."""
        return sum(bank.n_bytes for bank in self.banks)
