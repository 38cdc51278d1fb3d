"""What a worker needs to build a bank or to test on it, remade from paths, ids and spec fragments.

Nothing large travels in a task: data and splits come from a snapshot file, kernels from the words
of the sweep file, and both are kept for the next task of the same bank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.data.dataset import Dataset, Split
from mkldist.data.preprocessing import scaled
from mkldist.data.snapshot import load_snapshot
from mkldist.errors import DataError
from mkldist.gram.build import ArraySource, BankSource, FeatureSource
from mkldist.gram.laplacian_cache import cached_laplacian
from mkldist.gram.layout import TileLayout
from mkldist.gram.store import GramStore
from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.plan import BankPlan
from mkldist.spec.graph import GraphTable

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

KEPT = 4


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
class Sight:
    """What a run sees of the training side of a split.

    Parameters
    ----------
    split : int
        Index of the split.
    unlabelled : bool
        Whether it sees unlabelled rows besides the labelled ones.
    """

    split: int
    unlabelled: bool = False


@dataclass(frozen=True, eq=False)
class Materials:
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
    """

    dataset: Dataset
    splits: tuple[Split, ...]
    rows: Ints | None
    points: Floats | None
    kernels: KernelList | None
    cosine: bool

    def source(self) -> BankSource:
        """Return what can say the bank's values."""
        if self.points is not None and self.kernels is not None:
            points = self.points if self.rows is None else self.points[self.rows]
            return FeatureSource(points, self.kernels, self.cosine)
        if self.dataset.grams is None:
            raise DataError(self.dataset.name, "neither features nor Gram matrices")
        return ArraySource(self.dataset.grams, self.cosine)

    def learnt_rows(self, sight: Sight) -> Ints:
        """Return the rows of the data set that runs of such a sight learn from."""
        split = self.splits[sight.split]
        return split.known if sight.unlabelled else split.train

    def view_index(self, sight: Sight) -> Ints | None:
        """Return the same rows as points of the bank; None for all of them in order."""
        rows = self.learnt_rows(sight)
        every = np.arange(self.dataset.n_points) if self.rows is None else self.rows
        return None if np.array_equal(rows, every) else self.bank_points(rows)

    def bank_points(self, rows: Ints) -> Ints:
        """Return which of the bank's points some rows of the data set are."""
        if self.rows is None:
            return rows
        order = np.argsort(self.rows)
        points: Ints = order[np.searchsorted(self.rows, rows, sorter=order)]
        return points

    def labels(self, sight: Sight, y: Floats) -> Floats:
        """Return the labels, of all rows `y` (N,), of the rows to learn from; 0 if unlabelled."""
        rows = self.learnt_rows(sight)
        labelled = np.isin(rows, self.splits[sight.split].train)
        return np.where(labelled, y[rows], 0.0)

    def sight(self, split: int, *, unlabelled: bool) -> Sight:
        """Return what a run sees of a split that may take unlabelled rows or not."""
        return Sight(split, unlabelled and len(self.splits[split].unlabelled) > 0)


@lru_cache(maxsize=KEPT)
def materials(ref: BankRef) -> Materials:
    """Return the ingredients of a bank, from memory if this process had them lately."""
    dataset, splits = load_snapshot(Path(ref.snapshot), mmap=True)
    return ingredients(ref.plan, dataset, splits)


def ingredients(plan: BankPlan, dataset: Dataset, splits: Sequence[Split]) -> Materials:
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
        return Materials(dataset, tuple(splits), None, None, None, cosine)
    split = None if plan.split is None else splits[plan.split]
    kernels = kernel_list(
        plan.spec, dataset.n_features, dataset.feature_names, dataset.groups, plan.seed
    )
    points = scaled(plan.preprocessing, dataset.x, split)
    rows = None if split is None else split.known
    return Materials(dataset, tuple(splits), rows, points, kernels, cosine)


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
    (n, n) csr_array of float64
    """
    given = materials(ref)
    points = given.dataset.x if graph.of_raw_features else given.points
    if points is None:
        raise DataError(given.dataset.name, "Gram matrices", "features, for a graph")
    return cached_laplacian(points[given.splits[split].known], graph.graph, ref.root)
