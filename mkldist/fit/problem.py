"""The subproblems of runs on a bank: their points, labels and chains."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.data.dataset import Dataset, Split
from mkldist.data.folds import inner_folds
from mkldist.data.preprocessing import TargetScale, filled, preprocessed
from mkldist.data.snapshot import load_snapshot
from mkldist.devices import CPU
from mkldist.errors import DataError
from mkldist.fit.decision import BankFunctions, bank_values
from mkldist.gram.bank_kernels import BankKernels
from mkldist.gram.device_source import on_device
from mkldist.gram.factor_store import FactorStore
from mkldist.gram.layout import TileLayout
from mkldist.gram.node_folders import NodeFolders
from mkldist.gram.requests import Request
from mkldist.gram.sources import ArraySource, BankSource
from mkldist.gram.store import GramStore
from mkldist.gram.stored_banks import BankStore
from mkldist.gram.view import BankView
from mkldist.kernel_functions.custom import search_first
from mkldist.kernels.gaps import Presence
from mkldist.methods.registry import METHODS
from mkldist.planning.model import BankPlan, RunPlan
from mkldist.solvers.base import Solution
from mkldist.solvers.lockstep import JobTimes
from mkldist.solvers.targets import learns_unlabelled
from mkldist.spec.graph import GraphTable
from mkldist.spec.selection import SelectionSpec
from mkldist.worker.laplacian_cache import cached_laplacian
from mkldist.worker.snapshot_places import FETCHED_DATA, fetched_snapshot

CACHED_BANKS = 4
OWN_BANKS = NodeFolders("built")
"""Banks that the workers of one machine build for themselves."""
DENSE_SHARE = 0.05  # share of non-zero entries above which a matrix is multiplied as a dense one


@dataclass(frozen=True, eq=False)
class BankRef:
    """A bank by name: its plan, its place, and the snapshot that it is made from.

    Two of them are equal if their bank's id, its place and the snapshot are.

    Parameters
    ----------
    plan : BankPlan
        The bank.
    root : str
        Folder or URL of all banks; empty if each machine builds them for itself.
    snapshot : str
        Folder of the snapshot of the data set and its splits.
    data_fingerprint : str
        Content hash of the data set.
    code : str
        Folder of the user's kernel functions; empty if the sweep has none.
    kernels : str
        Content hash of the kernels, if `code` is given.
    post : str
        Name of the post to a coordinator whose snapshots are not seen here, see
        :mod:`mkldist.worker.post`; empty if they are.
    """

    plan: BankPlan
    root: str
    snapshot: str
    data_fingerprint: str
    code: str = ""
    kernels: str = ""
    post: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BankRef) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[str, str, str]:
        return self.plan.id, self.root, self.snapshot

    @property
    def is_shared(self) -> bool:
        """True if the bank is stored where all workers and the coordinator see it."""
        return self.plan.stored and bool(self.root)

    @property
    def place(self) -> str:
        """Folder or URL of all banks, as this process sees it."""
        return self.root or str(OWN_BANKS.root)

    @property
    def snapshot_folder(self) -> Path:
        """Folder of the snapshot, as this process sees it; fetched if it has to be."""
        folder = Path(self.snapshot)
        return fetched_snapshot(folder.name, self.root, self.post) if self.post else folder

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep what this machine built of the bank, and the data it fetched, from being removed.

        Raises
        ------
        mkldist.errors.OutputError
            If the cache of this machine cannot be written.
        """
        with ExitStack() as used:
            if self.post:
                used.enter_context(FETCHED_DATA.used(Path(self.snapshot).name))
            if self.plan.stored and not self.root:
                used.enter_context(OWN_BANKS.used(self.plan.id))
            yield

    def store(self) -> BankStore:
        """Return the bank's store; make it if it does not exist."""
        return self.factor_store() if self.plan.is_factored else self.gram_store()

    def gram_store(self) -> GramStore:
        """Return the store of a bank of Gram matrices; make it if it does not exist."""
        plan, layout = self.plan, TileLayout.for_points(self.plan.n_points)
        return GramStore.create(
            self.place, plan.id, plan.n_kernels, layout, plan.dtype, self._attributes
        )

    def factor_store(self) -> FactorStore:
        """Return the store of a bank of factors; make it if it does not exist."""
        plan = self.plan
        return FactorStore.create(self.place, plan.id, plan.factor_shape, self._attributes)

    @property
    def _attributes(self) -> dict[str, str]:
        return {"dataset": self.plan.dataset, "label": self.plan.spec.label}


@dataclass(frozen=True)
class TrainingView:
    """The part of a split that a solver is trained on.

    Parameters
    ----------
    split : int
        Index of the split.
    unlabelled : bool
        True if the solver also gets rows without their labels.
    selection : SelectionSpec, optional
        Division of the labelled rows into inner folds; None to train on all of them.
    fold : int
        Index of the inner fold that is held out.  A solver that gets unlabelled rows gets the rows
        of this fold among them, without their labels.
    """

    split: int
    unlabelled: bool = False
    selection: SelectionSpec | None = None
    fold: int = 0


@dataclass(frozen=True, eq=False)
class BankInputs:
    """Data, splits and kernels of one bank.

    Parameters
    ----------
    dataset : Dataset
        All rows.
    splits : tuple of Split
        All splits of the sweep.
    rows : (n,) intp or None
        Rows of the data set that are the bank's points; None for all of them.
    points : (N, d) float64 or None
        All rows, preprocessed; None for data without features.
    kernels : BankKernels or None
        The kernels; None for a data set of Gram matrices alone.
    cosine : bool
        True if kernels are scaled to unit self-similarities.
    seed : int
        Seed of the sweep, which the inner folds are drawn with.
    device : str
        What computes the kernels, see :mod:`mkldist.devices`.
    """

    dataset: Dataset
    splits: tuple[Split, ...]
    rows: Ints | None
    points: Floats | None
    kernels: BankKernels | None
    cosine: bool
    seed: int
    device: str = CPU
    _folds: dict[tuple[int, SelectionSpec], tuple[Ints, ...]] = field(default_factory=dict)

    @property
    def groups(self) -> Ints | None:
        """Group of each kernel, (M,): its features; None for precomputed Gram matrices."""
        return None if self.kernels is None else self.kernels.groups

    def source(self) -> BankSource:
        """Return the source of the bank's values: kernels on points, or precomputed matrices."""
        if self.kernels is not None:
            own = self.kernels.source(self.dataset, self.points, self.rows, cosine=self.cosine)
            return on_device(own, self.device, f"data set {self.dataset.name!r}: device")
        if self.dataset.grams is None:
            raise DataError(self.dataset.name, "neither features nor Gram matrices")
        return ArraySource(self.dataset.grams, self.cosine)

    @cached_property
    def presence(self) -> Presence | None:
        """Which of the bank's points have which kernels; None if all have all."""
        return self.source().presence

    def training_rows(self, training_view: TrainingView) -> Ints:
        """Return the rows of the data set that a solver is trained on, unlabelled ones included."""
        if training_view.unlabelled:
            return self.splits[training_view.split].known
        return self.labelled_rows(training_view)

    def labelled_rows(self, training_view: TrainingView) -> Ints:
        """Return the rows of the data set whose labels a solver is given."""
        train = self.splits[training_view.split].train
        if training_view.selection is None:
            return train
        return train[~np.isin(train, self.held_out_rows(training_view))]

    def held_out_rows(self, training_view: TrainingView) -> Ints:
        """Return the labelled rows of the inner fold that is held out; none without a selection."""
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
        """Return the training rows as points of the bank; None for all points in order."""
        rows = self.training_rows(training_view)
        bank_rows = np.arange(self.dataset.n_points) if self.rows is None else self.rows
        return None if np.array_equal(rows, bank_rows) else self.bank_points(rows)

    def bank_points(self, rows: Ints) -> Ints:
        """Return the points of the bank that are the given rows of the data set."""
        if self.rows is None:
            return rows
        order = np.argsort(self.rows)
        points: Ints = order[np.searchsorted(self.rows, rows, sorter=order)]
        return points

    def training_labels(self, training_view: TrainingView, y: Floats) -> Floats:
        """Return the labels of the training rows, 0 where a row is unlabelled.

        Parameters
        ----------
        training_view : TrainingView
            The training rows.
        y : (N,) or (N, k) float64
            Labels of all rows of the data set.
        """
        rows = self.training_rows(training_view)
        labelled = np.isin(rows, self.labelled_rows(training_view))
        return np.where(labelled if y.ndim == 1 else labelled[:, None], y[rows], 0.0)

    def training_views(
        self, split: int, selection: SelectionSpec | None, *, unlabelled: bool
    ) -> Iterator[TrainingView]:
        """Yield the training views of a run: the whole split, then without each inner fold.

        Parameters
        ----------
        split : int
            Index of the split.
        selection : SelectionSpec or None
            Inner folds; None for a run without them.
        unlabelled : bool
            True if the method makes use of unlabelled rows.
        """
        yield TrainingView(split, unlabelled and len(self.splits[split].unlabelled) > 0)
        for fold in range(len(self.folds(split, selection)) if selection else 0):
            yield TrainingView(split, unlabelled, selection, fold)


@lru_cache(maxsize=CACHED_BANKS)
def bank_inputs(ref: BankRef) -> BankInputs:
    """Return the inputs of a bank: those that this process has made lately, or new ones."""
    with ref.in_use():  # until its files are mapped
        dataset, splits = load_snapshot(ref.snapshot_folder, mmap=True)
    if ref.code:
        search_first(ref.code)
    inputs = make_bank_inputs(ref.plan, dataset, splits)
    if ref.kernels and inputs.kernels is not None and inputs.kernels.fingerprint != ref.kernels:
        raise DataError(
            f"bank {ref.plan.spec.label}",
            "kernel functions whose code has changed since the sweep began",
            "the same code until its end",
            "Repeat the command; runs with the old code keep their records",
        )
    return inputs


def make_bank_inputs(plan: BankPlan, dataset: Dataset, splits: Sequence[Split]) -> BankInputs:
    """Preprocess the data and make the kernels of a bank.

    Parameters
    ----------
    plan : BankPlan
        The bank.
    dataset : Dataset
        Its data set.
    splits : sequence of Split
        All splits of the data set.
    """
    cosine = "cosine" in plan.spec.normalisations
    if dataset.grams is not None:
        return BankInputs(dataset, tuple(splits), None, None, None, cosine, plan.seed)
    split = None if plan.split is None else splits[plan.split]
    kernels = BankKernels.of(plan.spec, dataset, plan.seed)
    points = None
    if dataset.x is not None or dataset.sparse is not None:
        points = preprocessed(plan.preprocessing, dataset, split)
    rows = None if split is None else split.known
    device = plan.spec.device
    return BankInputs(dataset, tuple(splits), rows, points, kernels, cosine, plan.seed, device)


@lru_cache(maxsize=CACHED_BANKS)
def laplacian(ref: BankRef, graph: GraphTable, split: int) -> Any:
    """Return the graph Laplacian of the known rows of a split.

    One process computes it; a file beside the banks hands it to all others.

    Parameters
    ----------
    ref : BankRef
        A bank of the data set.
    graph : GraphTable
        The graph.
    split : int
        Index of the split.

    Returns
    -------
    (n, n) csr_array or array of float64
    """
    inputs = bank_inputs(ref)
    points, divided = inputs.points, inputs.splits[split]
    if points is None:
        raise DataError(inputs.dataset.name, "Gram matrices", "features, for a graph")
    if graph.of_raw_features:
        points = filled(ref.plan.preprocessing, inputs.dataset, divided)
    found = cached_laplacian(points[divided.known], graph.graph, ref.place)
    # A power of a sparse Laplacian fills up, and a dense product is then faster than a sparse one.
    return found.toarray() if found.nnz > DENSE_SHARE * found.shape[0] ** 2 else found


@dataclass(frozen=True, eq=False)
class Subproblem:
    """One subproblem of a run.

    Parameters
    ----------
    run : RunPlan
        The run.
    training_view : TrainingView
        The part of the split that its solver is trained on.
    class_number : int or None
        Position of the class that is learnt against the rest; None for a run of one problem.
    """

    run: RunPlan
    training_view: TrainingView
    class_number: int | None = None

    @property
    def key(self) -> str:
        """Name among the subproblems of all runs."""
        return self._key_in(self.run.id)

    @property
    def key_before(self) -> str:
        """Name of the same subproblem in the run that this one may start from."""
        return self._key_in(self.run.after)

    def _key_in(self, run_id: str) -> str:
        fold = "" if self.training_view.selection is None else self.training_view.fold
        return f"{run_id}/{fold}/{'' if self.class_number is None else self.class_number}"

    def description(self, dataset: Dataset) -> str:
        """Return the class and the inner fold in words; empty for a run of one subproblem."""
        parts = []
        if self.class_number is not None:
            parts.append(f"class {dataset.multiclass[self.class_number]!r}")
        if self.training_view.selection is not None:
            parts.append(f"inner fold {self.training_view.fold} (from 0)")
        return ", ".join(parts)


@dataclass(frozen=True, eq=False)
class SolvedSubproblem:
    """Outcome of a subproblem whose solver returned.

    Parameters
    ----------
    solution : Solution
        The solution, in the solver's units.
    times : JobTimes
        The solver's times.
    values : (k, N) float64 or None
        Values of its decision functions at all points of the bank, in the solver's units; None
        where no point of the bank is scored.
    """

    solution: Solution
    times: JobTimes
    values: Floats | None


def subproblems_of(inputs: BankInputs, run: RunPlan) -> Iterator[Subproblem]:
    """Yield the subproblems of a run: all labelled rows first, then folds; classes in order."""
    method = METHODS.get(run.method)
    unlabelled = method is not None and learns_unlabelled(method)
    n_classes = len(inputs.dataset.multiclass)
    class_numbers = range(n_classes) if n_classes and not run.shared_weights else (None,)
    for training_view in inputs.training_views(run.split, run.selection, unlabelled=unlabelled):
        for class_number in class_numbers:
            yield Subproblem(run, training_view, class_number)


def labels_of(inputs: BankInputs, subproblem: Subproblem, scale: TargetScale) -> Floats:
    """Return the labels that a solver is given, (n,), or (n, k) for all classes at once."""
    dataset, training_view = inputs.dataset, subproblem.training_view
    if not dataset.multiclass:
        y = scale.scaled(dataset.y)
    elif subproblem.class_number is not None:
        y = np.where(dataset.y == subproblem.class_number, 1.0, -1.0)
    else:
        class_numbers = np.arange(len(dataset.multiclass))
        y = np.where(dataset.y[:, None] == class_numbers, 1.0, -1.0)
    return inputs.training_labels(training_view, y)


def is_scored_on_bank(inputs: BankInputs, training_view: TrainingView) -> bool:
    """Return True if points of the bank are scored: a held-out fold or unlabelled points."""
    unlabelled = inputs.splits[training_view.split].unlabelled
    return training_view.selection is not None or len(unlabelled) > 0


def functions_of(view: BankView, solution: Solution) -> BankFunctions:
    """Return the decision functions of a solution, one for each column of its labels."""
    own = solution.kernel_coefficients
    coefficients = solution.coefficients if own is None else own
    return BankFunctions.of(view, solution.kernel_weights, coefficients, solution.bias)


def values_on_bank(
    view: BankView, solution: Solution, into: dict[str, Floats], key: str
) -> Generator[Request, Any, None]:
    """Request the values of a solution's decision functions on the bank; store them in `into`."""
    into[key] = yield from bank_values(view, functions_of(view, solution))


def chains_of(subproblems: Iterable[Iterable[Subproblem]]) -> list[tuple[Subproblem, ...]]:
    """Return the subproblems of runs in chains, each in the order in which they are solved.

    The runs of a path are solved from the strongest regularisation to the weakest, and every class
    and inner fold of them has a chain of its own.  A subproblem of any other run is a chain by
    itself.

    Parameters
    ----------
    subproblems : iterable of iterables of Subproblem
        The subproblems of each run.
    """
    chains: dict[tuple[object, ...], list[Subproblem]] = {}
    for subproblem in chain.from_iterable(subproblems):
        key = subproblem.run.chain, subproblem.training_view, subproblem.class_number
        chains.setdefault(key, []).append(subproblem)
    return [
        tuple(sorted(links, key=lambda subproblem: subproblem.run.order))
        for links in chains.values()
    ]
