"""What a worker needs to build a bank or to test on it, remade from paths, ids and spec fragments.

Nothing large travels in a task: data and splits come from a snapshot file, kernels from the words
of the sweep file, and both are kept for the next task of the same bank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.data.dataset import Dataset, Split
from mkldist.data.folds import inner_folds
from mkldist.data.preprocessing import scaled
from mkldist.data.snapshot import load_snapshot
from mkldist.errors import DataError
from mkldist.gram.layout import TileLayout
from mkldist.gram.sources import ArraySource, BankSource, FeatureSource
from mkldist.gram.store import GramStore
from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.plan.model import BankPlan
from mkldist.spec.graph import GraphTable
from mkldist.spec.selection import SelectionSpec
from mkldist.worker.laplacian_cache import cached_laplacian

KEPT = 4
FULL = 0.05  # share of entries that are not zero


@dataclass(frozen=True, eq=False)
class BankRef:
    """A bank and where its ingredients lie; equal if they name the same bank and place.

    Parameters
    ----------
    plan : BankPlan
        What the bank is.
    root : str
        Folder or URL of all banks.
    snapshot : str
        Data set and splits.
    data_fingerprint : str
        Content hash of the data set.
    """

    plan: BankPlan
    root: str
    snapshot: str
    data_fingerprint: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BankRef) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[str, str, str]:
        return self.plan.id, self.root, self.snapshot

    def store(self) -> GramStore:
        """Return the bank's store, made if it is not there."""
        return GramStore.create(
            self.root,
            self.plan.id,
            self.plan.n_kernels,
            TileLayout.for_points(self.plan.n_points),
            self.plan.dtype,
            {"dataset": self.plan.dataset, "label": self.plan.spec.label},
        )


@dataclass(frozen=True)
class TrainingView:
    """What a run sees of the training side of a split.

    Parameters
    ----------
    split : int
        Index of the split.
    unlabelled : bool
        Whether it sees unlabelled rows besides the labelled ones.
    selection : SelectionSpec, optional
        How the labelled rows are divided into inner folds; None to learn from all of them.
    fold : int
        Index of the inner fold that is held out.  Who sees unlabelled rows sees it among them.
    """

    split: int
    unlabelled: bool = False
    selection: SelectionSpec | None = None
    fold: int = 0


@dataclass(frozen=True, eq=False)
class BankInputs:
    """The ingredients of one bank.

    Parameters
    ----------
    dataset : Dataset
        All rows.
    splits : tuple of Split
        All splits of the sweep.
    rows : (n,) intp or None
        Rows of the data set that are the bank's points; None for all of them.
    points : (N, d) float64 or None
        All rows, preprocessed; None for precomputed Gram matrices.
    kernels : KernelList or None
        The kernels; None for precomputed Gram matrices.
    cosine : bool
        Whether kernels are scaled to unit self-similarities.
    seed : int
        Of the sweep, for inner folds.
    """

    dataset: Dataset
    splits: tuple[Split, ...]
    rows: Ints | None
    points: Floats | None
    kernels: KernelList | None
    cosine: bool
    seed: int
    _folds: dict[tuple[int, SelectionSpec], tuple[Ints, ...]] = field(default_factory=dict)

    def source(self) -> BankSource:
        """Return what can say the bank's values."""
        if self.points is not None and self.kernels is not None:
            points = self.points if self.rows is None else self.points[self.rows]
            return FeatureSource(points, self.kernels, self.cosine)
        if self.dataset.grams is None:
            raise DataError(self.dataset.name, "neither features nor Gram matrices")
        return ArraySource(self.dataset.grams, self.cosine)

    def learnt_rows(self, training_view: TrainingView) -> Ints:
        """Return the rows of the data set that runs of such a training view learn from."""
        return (
            self.splits[training_view.split].known
            if training_view.unlabelled
            else self.labelled_rows(training_view)
        )

    def labelled_rows(self, training_view: TrainingView) -> Ints:
        """Return the rows of the data set whose labels runs of such a training view see."""
        train = self.splits[training_view.split].train
        if training_view.selection is None:
            return train
        return train[~np.isin(train, self.held_out(training_view))]

    def held_out(self, training_view: TrainingView) -> Ints:
        """Return the training rows that are held out in the fold of a training view."""
        if training_view.selection is None:
            return np.zeros(0, dtype=np.intp)
        return self.folds(training_view.split, training_view.selection)[training_view.fold]

    def folds(self, split: int, selection: SelectionSpec) -> tuple[Ints, ...]:
        """Return the rows of each inner fold of a split."""
        key = split, selection
        if key not in self._folds:
            train = self.splits[split].train
            self._folds[key] = inner_folds(self.dataset, train, selection, self.seed)
        return self._folds[key]

    def view_index(self, training_view: TrainingView) -> Ints | None:
        """Return the same rows as points of the bank; None for all of them in order."""
        rows = self.learnt_rows(training_view)
        every = np.arange(self.dataset.n_points) if self.rows is None else self.rows
        return None if np.array_equal(rows, every) else self.bank_points(rows)

    def bank_points(self, rows: Ints) -> Ints:
        """Return which of the bank's points some rows of the data set are."""
        if self.rows is None:
            return rows
        order = np.argsort(self.rows)
        points: Ints = order[np.searchsorted(self.rows, rows, sorter=order)]
        return points

    def labels(self, training_view: TrainingView, y: Floats) -> Floats:
        """Return the labels of the rows to learn from, 0 if unlabelled.

        Parameters
        ----------
        training_view : TrainingView
            What is seen.
        y : (N,) or (N, k) float64
            Labels of all rows.
        """
        rows = self.learnt_rows(training_view)
        labelled = np.isin(rows, self.labelled_rows(training_view))
        return np.where(labelled if y.ndim == 1 else labelled[:, None], y[rows], 0.0)

    def training_views(
        self, split: int, selection: SelectionSpec | None, *, unlabelled: bool
    ) -> Iterator[TrainingView]:
        """Yield what a run sees of a split: the whole of it, then without each inner fold.

        Parameters
        ----------
        split : int
            Index of the split.
        selection : SelectionSpec or None
            Inner folds, if there are any.
        unlabelled : bool
            Whether it may take unlabelled rows.
        """
        yield TrainingView(split, unlabelled and len(self.splits[split].unlabelled) > 0)
        for fold in range(len(self.folds(split, selection)) if selection else 0):
            yield TrainingView(split, unlabelled, selection, fold)


@lru_cache(maxsize=KEPT)
def bank_inputs(ref: BankRef) -> BankInputs:
    """Return the ingredients of a bank, from memory if this process had them lately."""
    dataset, splits = load_snapshot(Path(ref.snapshot), mmap=True)
    return ingredients(ref.plan, dataset, splits)


def ingredients(plan: BankPlan, dataset: Dataset, splits: Sequence[Split]) -> BankInputs:
    """Return the ingredients of a bank.

    Parameters
    ----------
    plan : BankPlan
        What the bank is.
    dataset : Dataset
        Its data set.
    splits : sequence of Split
        All splits of the data set.
    """
    cosine = "cosine" in plan.spec.normalisations
    if dataset.x is None:
        return BankInputs(dataset, tuple(splits), None, None, None, cosine, plan.seed)
    split = None if plan.split is None else splits[plan.split]
    kernels = kernel_list(
        plan.spec, dataset.n_features, dataset.feature_names, dataset.groups, plan.seed
    )
    points = scaled(plan.preprocessing, dataset.x, split)
    rows = None if split is None else split.known
    return BankInputs(dataset, tuple(splits), rows, points, kernels, cosine, plan.seed)


@lru_cache(maxsize=KEPT)
def laplacian(ref: BankRef, graph: GraphTable, split: int) -> Any:
    """Return the graph Laplacian of the known rows of a split, computed once for all processes.

    Parameters
    ----------
    ref : BankRef
        A bank of the data set; the Laplacian is kept beside it.
    graph : GraphTable
        The graph.
    split : int
        Index of the split.

    Returns
    -------
    (n, n) csr_array or array of float64
    """
    given = bank_inputs(ref)
    points = given.dataset.x if graph.of_raw_features else given.points
    if points is None:
        raise DataError(given.dataset.name, "Gram matrices", "features, for a graph")
    found = cached_laplacian(points[given.splits[split].known], graph.graph, ref.root)
    # Powers fill up, and a matrix that is hardly sparse multiplies faster as a full one.
    return found.toarray() if found.nnz > FULL * found.shape[0] ** 2 else found
