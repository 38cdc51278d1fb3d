"""The plan: every run, bank and batch of a sweep with stable ids, bytes and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mkldist.solvers.base import USUAL_PASSES, Path
from mkldist.spec.banks import BankSpec
from mkldist.spec.graph import GraphTable
from mkldist.spec.model import PreprocessingSpec, SweepSpec
from mkldist.spec.selection import SelectionSpec

Place = tuple[str, str, str, int]


@dataclass(frozen=True)
class BankPlan:
    """One bank of Gram matrices to be built.

    ``split`` is the index of the split whose known rows, labelled or not, it covers, or None when
    the bank covers all rows of the data set (preprocessing fitted on all rows, or precomputed
    matrices).
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

    @property
    def stored(self) -> bool:
        """Whether its kernels are computed once and stored, not inside every pass."""
        return self.backend != "recompute"


@dataclass(frozen=True)
class RunPlan:
    """One run: a method with fixed parameters on one split of one data set and bank.

    ``graph`` is that whose Laplacian the method is given; None for a method without.  The run is
    made of ``n_jobs`` solvers: one for each class of more than two, or one for all of them with
    ``shared_weights``; and as many on each of the inner folds of a ``selection``.  With a ``path``
    they start from the solutions of another run, see :attr:`chain`.  A solver of it is expected to
    take ``typical_passes``.
    """

    id: str
    dataset: str
    bank: str
    bank_label: str
    split: int
    method: str
    key: str
    params: dict[str, Any]
    graph: GraphTable | None = None
    shared_weights: bool = False
    selection: SelectionSpec | None = None
    n_jobs: int = 1
    path: Path | None = None
    typical_passes: int = USUAL_PASSES

    @property
    def place(self) -> Place:
        """Where its results go, but for the point of the grid."""
        return self.dataset, self.bank_label, self.key, self.split

    @property
    def chain(self) -> tuple[object, ...]:
        """What it has in common with the runs of its path, and with no others."""
        if self.path is None:
            return (self.id,)
        others = {name: v for name, v in self.params.items() if name != self.path.parameter}
        return *self.place, repr(sorted(others.items()))

    @property
    def order(self) -> float:
        """Its place in the path: runs of stronger regularisation come first."""
        if self.path is None:
            return 0.0
        value = float(self.params[self.path.parameter])
        return value if self.path.rising else -value


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
        """Bytes of Gram matrices on disk; banks of one id share them."""
        return sum({bank.id: bank.n_bytes for bank in self.banks if bank.stored}.values())
