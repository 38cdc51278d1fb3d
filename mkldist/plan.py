"""The plan: every run, bank and batch of a sweep with stable ids, bytes and memory.

Planning is pure and deterministic: facts about data sets, banks and methods in, plan out.  Ids
are content hashes, so what is recorded under an id is never done again, and a changed sweep
re-runs only what changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.gram.layout import LAYOUT_VERSION, TileLayout
from mkldist.identity import content_id
from mkldist.spec.model import BankSpec, PreprocessingSpec, SweepSpec

IDENTITY_VERSION = 1

FLOAT32_ABOVE_BYTES = 2**30
FLOAT32_ABOVE_TOL = 1e-5
DEFAULT_WORKER_BYTES = 2 * 2**30
WORKER_BASE_BYTES = 300 * 2**20
STREAM_BUFFER_BYTES = 64 * 2**20
MATRICES_PER_SOLVER = 4
LIVE_SOLVER_BYTES = 2**30
BATCHES_PER_WORKER = 2
TYPICAL_ROUNDS = 40


@dataclass(frozen=True)
class DatasetFacts:
    """What planning knows of a data set.

    Parameters
    ----------
    fingerprint : str
        Content hash of features and labels.
    n_points : int
        Number of rows.
    split_fingerprints : tuple of str
        Content hash of each split's index arrays.
    train_fingerprints : tuple of str
        Content hash of each split's training rows.
    train_sizes : tuple of int
        Training rows of each split.
    precomputed : bool
        Whether the data are Gram matrices.
    """

    fingerprint: str
    n_points: int
    split_fingerprints: tuple[str, ...]
    train_fingerprints: tuple[str, ...]
    train_sizes: tuple[int, ...]
    precomputed: bool = False


@dataclass(frozen=True)
class BankFacts:
    """What planning knows of a bank on a data set: its kernels' number and content hash."""

    n_kernels: int
    fingerprint: str


@dataclass(frozen=True)
class GridFacts:
    """What planning knows of a method: its name, and the parameters of each point of its grid."""

    method: str
    points: tuple[dict[str, Any], ...]


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


def make_plan(
    spec: SweepSpec,
    datasets: Mapping[str, DatasetFacts],
    banks: Mapping[tuple[str, str], BankFacts],
    grids: Mapping[str, GridFacts],
    n_workers: int,
    memory_limit: int | None,
) -> Plan:
    """Plan a sweep.

    Parameters
    ----------
    spec : SweepSpec
        The sweep.
    datasets : mapping of str to DatasetFacts
        Facts by data set.
    banks : mapping of (str, str) to BankFacts
        Facts by data set and bank label.
    grids : mapping of str to GridFacts
        Facts by method key.
    n_workers : int
        Number of workers to keep busy.
    memory_limit : int or None
        Bytes that a worker may take.

    Returns
    -------
    Plan
    """
    planner = _Planner(spec, grids, n_workers, memory_limit)
    bank_plans: list[BankPlan] = []
    batches: list[BatchPlan] = []
    for dataset in spec.datasets:
        facts = datasets[dataset.name]
        for bank in spec.banks:
            kernels = banks[dataset.name, bank.label]
            for plan, groups in planner.banks(dataset.name, facts, bank, kernels):
                bank_plans.append(plan)
                batches.extend(planner.batches(plan, facts, groups))
    return Plan(
        id=content_id(name=spec.name, runs=sorted(run.id for b in batches for run in b.runs)),
        spec=spec,
        banks=tuple(bank_plans),
        batches=tuple(batches),
        memory_per_worker=planner.memory_per_worker(bank_plans, batches),
        estimated_passes=planner.estimated_passes(batches),
    )


@dataclass(frozen=True)
class _Planner:
    """The decisions of a plan."""

    spec: SweepSpec
    grids: Mapping[str, GridFacts]
    n_workers: int
    memory_limit: int | None

    def banks(
        self, dataset: str, facts: DatasetFacts, bank: BankSpec, kernels: BankFacts
    ) -> Iterator[tuple[BankPlan, list[list[int]]]]:
        """Yield the banks of a data set, each with the groups of splits that share a batch."""
        n_splits = len(facts.split_fingerprints)
        if facts.precomputed or self.spec.preprocessing.fit == "all":
            groups = self._groups(n_splits)
            yield self._bank(dataset, facts, bank, kernels, None, len(groups)), groups
        else:
            for split in range(n_splits):
                yield self._bank(dataset, facts, bank, kernels, split, 1), [[split]]

    def batches(
        self, bank: BankPlan, facts: DatasetFacts, groups: Sequence[Sequence[int]]
    ) -> Iterator[BatchPlan]:
        """Yield the batches of a bank: all methods and parameters of some splits."""
        for splits in groups:
            runs = tuple(
                self._run(bank, facts, split, key, grid.method, params)
                for split in splits
                for key, grid in self.grids.items()
                for params in grid.points
            )
            yield BatchPlan(content_id(runs=[run.id for run in runs]), bank.id, runs)

    def memory_per_worker(self, banks: Sequence[BankPlan], batches: Sequence[BatchPlan]) -> int:
        """Return the bytes that a worker is expected to take at its peak."""
        by_id = {bank.id: bank for bank in banks}
        peak = 0
        for batch in batches:
            bank = by_id[batch.bank]
            held = bank.n_bytes if bank.backend == "memory" else STREAM_BUFFER_BYTES
            solver = MATRICES_PER_SOLVER * 8 * bank.n_points**2
            alive = 1 if self.spec.execution == "isolated" else len(batch.runs)
            peak = max(peak, held + min(alive * solver, max(self._live_bytes, solver)))
        return WORKER_BASE_BYTES + peak

    def estimated_passes(self, batches: Sequence[BatchPlan]) -> int:
        """Return passes over banks if every solver takes a typical number of rounds."""
        iterative = {key for key, grid in self.grids.items() if grid.method != "majority"}
        passes = 0
        for batch in batches:
            n_runs = sum(run.key in iterative for run in batch.runs)
            shared = min(n_runs, 1)
            passes += TYPICAL_ROUNDS * (n_runs if self.spec.execution == "isolated" else shared)
        return passes

    @property
    def _worker_bytes(self) -> int:
        return DEFAULT_WORKER_BYTES if self.memory_limit is None else self.memory_limit

    @property
    def _live_bytes(self) -> int:
        return LIVE_SOLVER_BYTES if self.memory_limit is None else self.memory_limit // 4

    def _groups(self, n_splits: int) -> list[list[int]]:
        """Divide splits so that every worker has a few batches of one shared bank."""
        wanted = min(n_splits, BATCHES_PER_WORKER * max(1, self.n_workers))
        return [part.tolist() for part in np.array_split(np.arange(n_splits), wanted)]

    def _bank(
        self,
        dataset: str,
        facts: DatasetFacts,
        spec: BankSpec,
        kernels: BankFacts,
        split: int | None,
        n_batches: int,
    ) -> BankPlan:
        n_points = facts.n_points if split is None else facts.train_sizes[split]
        layout = TileLayout.for_points(n_points)
        dtype = self._dtype(spec, kernels.n_kernels * layout.n_entries)
        n_bytes = kernels.n_kernels * layout.n_entries * np.dtype(dtype).itemsize
        identity = content_id(
            version=IDENTITY_VERSION,
            layout=[LAYOUT_VERSION, layout.n_points, layout.tile],
            data=facts.fingerprint,
            preprocessing=None if facts.precomputed else self.spec.preprocessing.model_dump(),
            train=None if split is None else facts.train_fingerprints[split],
            kernels=kernels.fingerprint,
            cosine="cosine" in spec.normalisations,
            dtype=dtype,
        )
        return BankPlan(
            id=identity,
            dataset=dataset,
            spec=spec,
            preprocessing=self.spec.preprocessing,
            split=split,
            seed=self.spec.seed,
            n_points=n_points,
            n_kernels=kernels.n_kernels,
            dtype=dtype,
            backend=self._backend(spec, n_bytes, n_batches),
            n_bytes=n_bytes,
        )

    def _dtype(self, spec: BankSpec, n_values: int) -> str:
        if spec.dtype != "auto":
            return spec.dtype
        tightest = min(
            (float(point["tol"]) for grid in self.grids.values() for point in grid.points),
            default=math.inf,
        )
        large = 8 * n_values > FLOAT32_ABOVE_BYTES
        return "float32" if large and tightest >= FLOAT32_ABOVE_TOL else "float64"

    def _backend(self, spec: BankSpec, n_bytes: int, n_batches: int) -> str:
        if spec.backend != "auto":
            return spec.backend
        if n_batches > 1:
            return "mmap"
        return "memory" if n_bytes <= self._worker_bytes // 2 else "stream"

    def _run(
        self,
        bank: BankPlan,
        facts: DatasetFacts,
        split: int,
        key: str,
        method: str,
        params: dict[str, Any],
    ) -> RunPlan:
        identity = content_id(
            version=IDENTITY_VERSION,
            bank=bank.id,
            split=facts.split_fingerprints[split],
            normalisation=list(bank.spec.normalisations),
            method=method,
            params=params,
            execution=self.spec.execution,
        )
        return RunPlan(identity, bank.dataset, bank.id, bank.spec.label, split, method, key, params)
