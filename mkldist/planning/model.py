"""Plan of a sweep: facts that it is made of, and every run, bank and batch with its stable id.

A plan made of facts is a pure function of them, which tests call with made-up data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from mkldist.bank.bank import TileLayout
from mkldist.bank.factored_kernels import FactorLimits
from mkldist.bank.store import BankShape
from mkldist.core.memory import FLOAT_BYTES, ProblemSize, SolverMemory, trace_bytes
from mkldist.methods.registry import METHODS
from mkldist.optim.box_qp import LARGEST
from mkldist.spec.banks import FACTORS, BankSpec
from mkldist.spec.datasets import GraphTable, PreprocessingSpec
from mkldist.spec.model import SelectionSpec, SweepSpec

BLOCKS, VECTORS_OF_POINTS = 3, 200  # of a solver on factors: its blocks of a matrix, and (n,)
Place = tuple[str, str, str, int]
"""Data set, label of the bank, key of the method, and split: the place of results."""


@dataclass(frozen=True)
class DatasetFacts:
    """Sizes and content hashes of a data set and its splits, no arrays.

    `known` rows of a split are its training and unlabelled rows.
    """

    fingerprint: str  # of features and labels
    n_points: int
    split_fingerprints: tuple[str, ...]
    known_fingerprints: tuple[str, ...]
    known_sizes: tuple[int, ...]
    precomputed: bool = False  # nothing is fitted on rows: Gram matrices, or unscaled sparse ones
    target: str = "none"  # preprocessing of the values of regression
    graph: GraphTable | None = None  # over the known rows of each split
    class_weight: Literal["balanced"] | dict[str, float] | None = None
    n_problems: int = 1  # classes that are learnt against the rest; 1 for two and for regression
    inner_folds: tuple[int, ...] = ()  # of each split; empty without a selection
    train_sizes: tuple[int, ...] = ()  # of each split; empty if all known rows are labelled
    row_bytes: int = 0  # of dense features
    n_of_few_classes: int = 0  # test parts, of folds, that lack a class or a second real value

    @property
    def n_splits(self) -> int:
        """Number of its splits."""
        return len(self.split_fingerprints)


@dataclass(frozen=True)
class BankFacts:
    """Number and content hash of the kernels of a bank on a data set."""

    n_kernels: int
    fingerprint: str
    on_factors: bool = False  # thin factors stand for the kernels


@dataclass(frozen=True)
class BankPlan:
    """Bank of Gram matrices to be built."""

    id: str
    dataset: str
    spec: BankSpec
    preprocessing: PreprocessingSpec
    split: int | None  # whose known rows it covers; None for all rows of the data set
    seed: int
    n_points: int
    n_kernels: int
    dtype: str
    backend: str
    n_bytes: int
    feature_bytes: int = 0  # of preprocessed features that a worker keeps

    @property
    def stored(self) -> bool:
        """True if the kernels, or their factors, are written to a store."""
        return not (self.recomputed or self.sharded)

    @property
    def needs_source(self) -> bool:
        """True if tasks compute values of the kernels however complete a store is."""
        return self.is_factored or not self.stored

    @property
    def recomputed(self) -> bool:
        """True if every pass computes the kernels."""
        return self.backend == "recompute"

    @property
    def is_factored(self) -> bool:
        """True if thin factors stand for the kernels."""
        return self.backend == FACTORS

    @property
    def sharded(self) -> bool:
        """True if the workers keep the kernels together, each a part of them."""
        return self.backend == "sharded"

    @property
    def limits(self) -> FactorLimits:
        """Limits of its factors."""
        return FactorLimits.of(self.spec.rank, self.spec.tolerance)

    @property
    def shape(self) -> BankShape:
        """Kernels, layout and dtype."""
        layout = TileLayout.for_points(self.n_points)
        return BankShape(self.n_kernels, layout, self.dtype, self.is_factored)

    @property
    def stored_bytes(self) -> int:
        """Bytes on disk before the first run; factors may grow after it."""
        if self.is_factored:
            return self.n_kernels * self.shape.chunk_bytes
        return self.n_bytes if self.stored else 0


@dataclass(frozen=True)
class Proposal:
    """Settings of one run, of a grid or as other runs decide."""

    params: dict[str, Any]  # plain settings
    at: dict[str, Any]  # see RunPlan
    source: str = ""  # id of the run whose solution gave a setting

    @property
    def identity(self) -> dict[str, Any]:
        """The settings, and the runs that decided on them, by which ids know them."""
        return {"params": self.params} | ({"source": self.source} if self.source else {})


@dataclass(frozen=True)
class RunPlan:
    """Run: a method with fixed parameters on one split of one data set and bank.

    The run consists of `n_jobs` solvers: of more than two classes one for each, or with
    `shared_weights` one for all; and as many on every inner fold of a `selection`.
    """

    id: str
    dataset: str
    bank: str
    bank_label: str
    split: int
    method: str
    key: str
    params: dict[str, Any]  # plain settings, see mkldist.solvers.solver_params
    graph: GraphTable | None = None  # whose Laplacian the method takes
    shared_weights: bool = False
    selection: SelectionSpec | None = None
    class_weight: Literal["balanced"] | dict[str, float] | None = None
    n_jobs: int = 1
    on_path: bool = False  # the solvers start from the solutions of another run, see `chain`
    n_labelled: int | None = None  # points of the bank; None for all
    at: dict[str, Any] = field(default_factory=dict)  # along dims that are no parameters: `trial`

    def at_other_point(self, run_id: str, proposal: Proposal) -> RunPlan:
        """Return the run of the same problem with other settings.

        A plan may have a hundred thousand of them; to copy a run takes a small part of the time
        that it takes to make one.
        """
        fields = self.__dict__ | {"id": run_id, "params": proposal.params, "at": proposal.at}
        other = object.__new__(RunPlan)
        object.__setattr__(other, "__dict__", fields)
        return other

    def memory(self, n_points: int, n_kernels: int, *, on_factors: bool = False) -> SolverMemory:
        """Return the memory of a solver; on thin factors it makes no matrix of all points."""
        method = METHODS[self.method]
        params = method.params(**self.params)
        traced = trace_bytes(n_kernels, params.max_iter) if params.trace else 0
        if on_factors:
            block = FLOAT_BYTES * min(n_points, LARGEST) ** 2
            vectors = FLOAT_BYTES * VECTORS_OF_POINTS * n_points
            return SolverMemory(BLOCKS * block + vectors + traced)
        n_labelled = n_points if self.n_labelled is None else min(self.n_labelled, n_points)
        memory = method.memory(ProblemSize(n_points, n_kernels, n_labelled), params)
        return SolverMemory(memory.needed + traced, memory.spare)

    @property
    def place(self) -> Place:
        """Place of its results, except for the point of the grid."""
        return self.dataset, self.bank_label, self.key, self.split

    @property
    def chain(self) -> tuple[object, ...]:
        """Key that the runs of one path share, and no others."""
        if not self.on_path:
            return (self.id,)
        others = {name: v for name, v in self.params.items() if name != "C"}
        return *self.place, repr(sorted(others.items()))

    @property
    def order(self) -> float:
        """Position in the path, rising; runs of stronger regularisation come first."""
        return float(self.params["C"]) if self.on_path else 0.0


@dataclass(frozen=True)
class BatchPlan:
    """Runs that share one bank and are advanced together by one worker."""

    id: str
    bank: str
    runs: tuple[RunPlan, ...]


@dataclass(frozen=True)
class Plan:
    """All runs of a sweep in batches, the banks that they need, and the expected cost."""

    id: str  # content hash of the sweep's name and runs
    spec: SweepSpec
    banks: tuple[BankPlan, ...]
    batches: tuple[BatchPlan, ...]
    memory_per_worker: int  # bytes of a worker of one thread at its peak
    estimated_passes: int  # over banks, of all batches together

    @cached_property
    def runs(self) -> tuple[RunPlan, ...]:
        """All runs, batch by batch."""
        return tuple(run for batch in self.batches for run in batch.runs)

    @property
    def bank_bytes(self) -> int:
        """Bytes of Gram matrices and factors on disk; banks of one id share them."""
        return sum({bank.id: bank.stored_bytes for bank in self.banks}.values())
