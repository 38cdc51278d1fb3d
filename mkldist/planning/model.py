"""Plan of a sweep: facts that it is made of, and every run, bank and batch with its stable id.

A plan made of facts is a pure function of them, which tests call with made-up data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from mkldist.bank.bank import TileLayout
from mkldist.bank.store import BankShape, FactorShape
from mkldist.core.identity import json_text
from mkldist.spec.banks import FACTORS, BankSpec
from mkldist.spec.datasets import GraphTable, PreprocessingSpec
from mkldist.spec.model import SelectionSpec, SweepSpec


@dataclass(frozen=True)
class DatasetFacts:
    """Facts of a data set and its splits.

    Parameters
    ----------
    fingerprint : str
        Content hash of features and labels.
    n_points : int
        Number of rows.
    split_fingerprints : tuple of str
        Content hash of each split's index arrays.
    known_fingerprints : tuple of str
        Content hash of each split's training and unlabelled rows.
    known_sizes : tuple of int
        Number of training and unlabelled rows of each split.
    precomputed : bool
        True if nothing is fitted on rows: Gram matrices, and sparse features that are not scaled.
    target : str
        Preprocessing of the values of regression; ``"none"`` if they stay as they are.
    graph : GraphTable or None
        Graph over the known rows of each split, for methods that need one.
    class_weight : "balanced", dict of str to float, or None
        Weights of the classes.
    n_problems : int
        Number of classes that are learnt against the rest; 1 for two classes and for regression.
    inner_folds : tuple of int
        Number of inner folds of each split, by which hyperparameters are selected; empty without
        a selection.
    train_sizes : tuple of int
        Number of training rows of each split, which are labelled; empty if all known rows are.
    n_smaller : int
        How many of the splits, the last ones, repeat others with fewer training rows, for a search.
    row_bytes : int
        Bytes of the features of a row; 0 without features that are dense.
    """

    fingerprint: str
    n_points: int
    split_fingerprints: tuple[str, ...]
    known_fingerprints: tuple[str, ...]
    known_sizes: tuple[int, ...]
    precomputed: bool = False
    target: str = "none"
    graph: GraphTable | None = None
    class_weight: Literal["balanced"] | dict[str, float] | None = None
    n_problems: int = 1
    inner_folds: tuple[int, ...] = ()
    train_sizes: tuple[int, ...] = ()
    n_smaller: int = 0
    row_bytes: int = 0

    @property
    def n_splits(self) -> int:
        """Number of the splits that the sweep asks for."""
        return len(self.split_fingerprints) - self.n_smaller


@dataclass(frozen=True)
class BankFacts:
    """Facts of a bank on a data set.

    Parameters
    ----------
    n_kernels : int
        Number of kernels.
    fingerprint : str
        Content hash of the kernels.
    on_factors : bool
        True if thin factors stand for the kernels.
    """

    n_kernels: int
    fingerprint: str
    on_factors: bool = False


Place = tuple[str, str, str, int]


@dataclass(frozen=True)
class BankPlan:
    """Bank of Gram matrices to be built.

    ``split`` is the index of the split whose known rows, labelled or not, the bank covers.  It is
    None for a bank of all rows of the data set, whose preprocessing is fitted on all rows or whose
    matrices are precomputed.  ``feature_bytes`` are those of preprocessed features that a worker
    keeps: of all rows, and of the bank's points if they are some of these.
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
    feature_bytes: int = 0

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
    def shape(self) -> BankShape:
        """Kernels, layout and dtype."""
        return BankShape(self.n_kernels, TileLayout.for_points(self.n_points), self.dtype)

    @property
    def factor_shape(self) -> FactorShape:
        """Kernels, points and dtype of factors."""
        return FactorShape(self.n_kernels, self.n_points, self.dtype)

    @property
    def stored_bytes(self) -> int:
        """Bytes on disk before the first run; factors may grow after it."""
        if self.is_factored:
            return self.n_kernels * self.factor_shape.chunk_bytes
        return self.n_bytes if self.stored else 0


@dataclass(frozen=True)
class Proposal:
    """Settings of one run, of a grid or as other runs decide.

    Parameters
    ----------
    params : dict of str to object
        Plain settings.
    at : dict of str to object
        See :attr:`RunPlan.at`.
    after : str
        See :attr:`RunPlan.after`.
    is_followed : bool
        See :attr:`RunPlan.is_followed`.
    source : str
        Id of the run whose solution gave a setting; empty for none.
    """

    params: dict[str, Any]
    at: dict[str, Any]
    after: str = ""
    is_followed: bool = False
    source: str = ""

    @cached_property
    def texts(self) -> dict[str, str]:
        """The settings, and the runs that decided on them, as texts by which ids know them."""
        decided_by = {"after": self.after, "source": self.source}
        found = {name: json_text(run_id) for name, run_id in decided_by.items() if run_id}
        return {"params": json_text(self.params), **found}


@dataclass(frozen=True)
class RunPlan:
    """Run: a method with fixed parameters on one split of one data set and bank.

    ``params`` are plain settings, see :mod:`mkldist.solvers.settings`.  ``graph`` is the graph
    whose Laplacian the method takes; None for a method without one.  The run consists of
    ``n_jobs`` solvers: of more than two classes one for each, or with ``shared_weights`` one for
    all; and as many on every inner fold of a ``selection``.  Weights of classes, ``class_weight``,
    multiply the losses of their rows beside the row weights of the data set.  With ``on_path`` the
    solvers start from the solutions of another run, see :attr:`chain`.  ``n_labelled`` points of
    its bank are labelled, all where it is None.  ``at`` is its position along dims of the results
    that are no parameters of the method, such as the ``trial`` of a search.  ``after`` is the id of
    a run of the same problem at a looser tolerance, whose solution it may start from;
    ``is_followed`` is True for a run that another may start from so.
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
    class_weight: Literal["balanced"] | dict[str, float] | None = None
    n_jobs: int = 1
    on_path: bool = False
    n_labelled: int | None = None
    at: dict[str, Any] = field(default_factory=dict)
    after: str = ""
    is_followed: bool = False

    def at_other_point(self, run_id: str, proposal: Proposal) -> RunPlan:
        """Return the run of the same problem with other settings.

        A plan may have a hundred thousand of them; to copy a run takes a small part of the time
        that it takes to make one.
        """
        fields = self.__dict__.copy()
        fields["id"] = run_id
        fields["params"], fields["at"] = proposal.params, proposal.at
        fields["after"], fields["is_followed"] = proposal.after, proposal.is_followed
        other = object.__new__(RunPlan)
        object.__setattr__(other, "__dict__", fields)
        return other

    @property
    def asked_split(self) -> int:
        """Split of the sweep whose training rows the run learns, or a share of them."""
        return int(self.at.get("split", self.split)) if self.at else self.split

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
    """All runs of a sweep in batches, the banks that they need, and the expected cost.

    Parameters
    ----------
    id : str
        Content hash of the sweep's name and runs.
    spec : SweepSpec
        The sweep.
    banks : tuple of BankPlan
        Banks to be built.
    batches : tuple of BatchPlan
        Runs, divided into batches.
    memory_per_worker : int
        Bytes that a worker of one thread is expected to take at its peak.
    estimated_passes : int
        Passes over banks that all batches together are expected to take.
    """

    id: str
    spec: SweepSpec
    banks: tuple[BankPlan, ...]
    batches: tuple[BatchPlan, ...]
    memory_per_worker: int
    estimated_passes: int

    @cached_property
    def runs(self) -> tuple[RunPlan, ...]:
        """All runs, batch by batch."""
        return tuple(run for batch in self.batches for run in batch.runs)

    @property
    def bank_bytes(self) -> int:
        """Bytes of Gram matrices and factors on disk; banks of one id share them."""
        return sum({bank.id: bank.stored_bytes for bank in self.banks}.values())
