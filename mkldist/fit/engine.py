"""From data, splits and kernels to problems, and one driver that solves them.

:func:`fit` solves runs on an open bank: in lockstep, along their paths, or in turn on factors that
grow.  A sweep's task and ``mkldist fit`` call it; :func:`mkldist.solve` and the estimators call
:func:`solve_job`, for one problem of a user's.

A *task* is a run of the plan: a method with its parameters on one split of a data set and a bank.
With two classes or real values, and without a selection, it is one subproblem.  With k > 2 classes
it is k subproblems, one for each class against the rest; where the classes share their kernel
weights, it is one subproblem with k columns of labels.  A selection adds as many subproblems for
every inner fold.  Each of these leaves its fold out of the training rows and is then scored on that
fold.

:func:`problem_on` is the one place that makes a :class:`~mkldist.solvers.base.Problem`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mkldist.bank.bank import Bank, MemoryBudget
from mkldist.bank.bank_kernels import BankKernels, part_of_gram
from mkldist.bank.factored_kernels import FactoredKernels, FactorLimits
from mkldist.bank.readers import DamagedBlocksError
from mkldist.bank.requests import Request
from mkldist.bank.sources import ArraySource, BankSource
from mkldist.bank.view import BankView, make_views
from mkldist.core.arrays import Floats, Ints
from mkldist.core.devices import CPU
from mkldist.core.memory import groups_at_once, kept_arrays_bytes, view_cache_bytes
from mkldist.data.dataset import Dataset, Split
from mkldist.data.labels import class_weights
from mkldist.data.preprocessing import TargetScale, graph_points, preprocessed, target_scale
from mkldist.errors import DataError, UnreadableError, WorkerError
from mkldist.fit.bank import BankSize, factored, loaded, recomputed
from mkldist.fit.decision import BankFunctions, Expansion, NewPoints, TextSupport, bank_values
from mkldist.kernels.evaluate import Presence
from mkldist.kernels.graph import graph_laplacian
from mkldist.kernels.kernel_list import KernelList
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import ArrayCache, Method, Problem, Solution, learns_unlabelled
from mkldist.solvers.lockstep import Job, JobTimes, SolvedJob, drive, solve_timed
from mkldist.solvers.solver_params import SolverParams
from mkldist.spec.banks import FACTORS, BankSpec
from mkldist.spec.datasets import GraphTable, PreprocessingSpec
from mkldist.spec.model import SelectionSpec

if TYPE_CHECKING:
    from mkldist.planning.model import RunPlan

DENSE_SHARE = 0.05  # share of non-zero entries above which a matrix is multiplied as a dense one


def problem_on(
    view: BankView,
    method: Method,
    y: Floats,
    *,
    laplacian: Any = None,
    weights: Floats | None = None,
    groups: Ints | None = None,
    row_groups: Ints | None = None,
    start: object = None,
    spare_bytes: int | None = None,
    shared: ArrayCache | None = None,
) -> Problem:
    """Return the problem of a method on a view of a bank, without what the method does not take.

    `y` (n,) or (n, k) are labels of the view's points, `groups` (M,) the groups of its kernels, and
    the others as :class:`~mkldist.solvers.base.Problem` has them.
    """
    return Problem(
        y,
        view.n_kernels,
        laplacian=laplacian,
        start=start,
        weights=weights,
        spare_bytes=spare_bytes,
        groups=groups if method.takes_groups else None,
        row_groups=row_groups,
        kept=shared.on(view.id) if shared is not None and method.needs_laplacian else None,
    )


@dataclass(frozen=True)
class TrainingView:
    """The part of a split that a solver is trained on."""

    split: int
    unlabelled: bool = False  # True if the solver also gets rows without their labels
    selection: SelectionSpec | None = None  # of the inner folds; None to train on all labelled rows
    fold: int = 0
    """Inner fold that is held out; a solver of unlabelled rows gets its rows without labels."""


@dataclass(frozen=True, eq=False)
class BankInputs:
    """Data, splits and kernels of one bank."""

    dataset: Dataset
    splits: tuple[Split, ...]  # all of the sweep
    rows: Ints | None  # (n,), those of the data set that are the bank's points; None for all
    points: Floats | None  # (N, d), all rows, preprocessed; None without features
    kernels: BankKernels | None  # None for a data set of Gram matrices alone
    normalisations: tuple[str, ...]  # in order
    preprocessing: PreprocessingSpec  # of features and of real labels
    seed: int  # of the sweep, which the inner folds are drawn with
    device: str = CPU  # what computes the kernels, see mkldist.core.devices
    _found: dict[object, Any] = field(default_factory=dict)  # which copies share: folds, presence

    @classmethod
    def of(
        cls,
        spec: BankSpec,
        preprocessing: PreprocessingSpec,
        dataset: Dataset,
        splits: Sequence[Split],
        fitted_on: int | None,
        seed: int,
    ) -> BankInputs:
        """Preprocess the data of a bank and make its kernels.

        Preprocessing is fitted on the known rows of the split `fitted_on`, which are the bank's
        points; on all rows where it is None: a bank of fewer would round its sums in another way.
        """
        split = None if fitted_on is None or dataset.grams is not None else splits[fitted_on]
        has_features = dataset.x is not None or dataset.sparse is not None
        return cls(
            dataset,
            tuple(splits),
            None if split is None else split.known,
            preprocessed(preprocessing, dataset, split) if has_features else None,
            None
            if dataset.grams is not None
            else BankKernels.of(spec, dataset, seed, preprocessing),
            tuple(spec.normalisations),
            preprocessing,
            seed,
            CPU if dataset.grams is not None else spec.device,
        )

    @property
    def cosine(self) -> bool:
        """True if kernels are scaled to unit self-similarities, as their source does."""
        return "cosine" in self.normalisations

    @property
    def view_normalisations(self) -> list[str]:
        """The normalisations that views of the bank make: all but the cosine."""
        return [name for name in self.normalisations if name != "cosine"]

    @property
    def n_kernels(self) -> int:
        """Number M of kernels."""
        if self.kernels is not None:
            return len(self.kernels)
        return 0 if self.dataset.grams is None else len(self.dataset.grams)

    @property
    def groups(self) -> Ints | None:
        """Group of each kernel, (M,): its features; None for precomputed Gram matrices."""
        return None if self.kernels is None else self.kernels.groups

    def source(self) -> BankSource:
        """Return the source of the bank's values: kernels on points, or precomputed matrices."""
        if self.kernels is not None:
            given, where = (self.dataset, self.points, self.rows), f"data set {self.dataset.name!r}"
            return self.kernels.source(
                *given, cosine=self.cosine, device=self.device, where=f"{where}: device"
            )
        if self.dataset.grams is None:
            raise DataError(self.dataset.name, "neither features nor Gram matrices")
        return ArraySource(self.dataset.grams, self.cosine)

    @property
    def presence(self) -> Presence | None:
        """Which of the bank's points have which kernels; None if all have all."""
        if "presence" not in self._found:
            self._found["presence"] = self.source().presence
        found: Presence | None = self._found["presence"]
        return found

    @property
    def row_weights(self) -> Floats | None:
        """The weights of the bank's points, (n,); None for ones."""
        weights = self.dataset.weights
        return weights if weights is None or self.rows is None else weights[self.rows]

    def laplacian(
        self, graph: GraphTable, split: int, make: Callable[..., Any] = graph_laplacian
    ) -> Any:
        """Return the graph Laplacian of the known rows of a split, (n, n), sparse or dense."""
        divided = self.splits[split]
        points = graph_points(graph, self.preprocessing, self.dataset, divided, self.points)
        found = make(points, graph.graph)
        # A power of a sparse Laplacian fills up, and a dense product is then faster.
        return found.toarray() if found.nnz > DENSE_SHARE * found.shape[0] ** 2 else found

    def target_scale(self, training_view: TrainingView) -> TargetScale:
        """Return the units in which solvers of a training view see the labels."""
        labelled = Split(self.labelled_rows(training_view), np.zeros(0, dtype=np.intp))
        return target_scale(self.preprocessing, self.dataset, labelled)

    def expansion(self, training_view: TrainingView, solved: SolvedSubproblem) -> Expansion:
        """Return the decision functions of a solution apart from the bank, in the users' units."""
        if self.kernels is None:
            raise ValueError("an expansion needs kernels of features or of views")
        rows, kernels = self.training_rows(training_view), self.kernels
        points = np.zeros((len(rows), 0)) if self.points is None else self.points[rows]
        texts = None
        if kernels.of_texts is not None and self.dataset.texts is not None:
            texts = TextSupport(kernels.of_texts, self.dataset.texts.values[rows])
        of_features = kernels.of_features or KernelList.empty()
        found = Expansion.of(
            of_features, self.cosine, points, solved.functions, kernels.given, texts
        )
        scale = self.target_scale(training_view)
        return found.in_units(scale.centre, scale.spread)

    def new_points(
        self, view: BankView, rows: Ints, training_rows: Ints, cached_bytes: int = 0
    ) -> NewPoints:
        """Return rows of the data set as new points for decision functions over training rows."""
        own, data = self.kernels, self.dataset

        def values(kernels: Ints, points: slice, support: Ints | slice) -> Iterator[Floats]:
            there, learnt, cosine = rows[points], training_rows[support], self.cosine
            if own is not None:
                x = self.points
                yield from own.cross_values(data, x, kernels, there, learnt, cosine=cosine)
            elif data.grams is not None:
                for kernel in kernels:
                    yield part_of_gram(data.grams[kernel], there, learnt, cosine=cosine)

        return NewPoints(view, len(rows), values, cached_bytes)

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
        if key not in self._found:
            from mkldist.data.splits import inner_folds

            train = self.splits[split].train
            self._found[key] = inner_folds(self.dataset, train, selection, self.seed)
        found: tuple[Ints, ...] = self._found[key]
        return found

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
        return order[np.searchsorted(self.rows, rows, sorter=order)]

    def is_scored_on_bank(self, training_view: TrainingView) -> bool:
        """Return True if points of the bank are scored: a held-out fold or unlabelled points."""
        unlabelled = self.splits[training_view.split].unlabelled
        return training_view.selection is not None or len(unlabelled) > 0


@dataclass(frozen=True, eq=False)
class Subproblem:
    """One subproblem of a run."""

    run: RunPlan
    training_view: TrainingView
    class_number: int | None = None

    @property
    def key(self) -> str:
        """Name among the subproblems of all runs."""
        fold = "" if self.training_view.selection is None else self.training_view.fold
        return f"{self.run.id}/{fold}/{'' if self.class_number is None else self.class_number}"

    def description(self, dataset: Dataset) -> str:
        """Return the class and the inner fold in words; empty for a run of one subproblem."""
        parts = []
        if self.class_number is not None:
            parts.append(f"class {dataset.multiclass[self.class_number]!r}")
        if self.training_view.selection is not None:
            parts.append(f"inner fold {self.training_view.fold} (from 0)")
        return ", ".join(parts)

    def labels(self, inputs: BankInputs) -> Floats:
        """Return the labels that its solver is given, 0 for rows without: (n,) or (n, k)."""
        dataset, training_view = inputs.dataset, self.training_view
        if not dataset.multiclass:
            y = inputs.target_scale(training_view).scaled(dataset.y)
        elif self.class_number is not None:
            y = np.where(dataset.y == self.class_number, 1.0, -1.0)
        else:
            y = np.where(dataset.y[:, None] == np.arange(len(dataset.multiclass)), 1.0, -1.0)
        rows = inputs.training_rows(training_view)
        labelled = np.isin(rows, inputs.labelled_rows(training_view))
        return np.where(labelled if y.ndim == 1 else labelled[:, None], y[rows], 0.0)

    def row_groups(self, inputs: BankInputs) -> Ints | None:
        """Return the groups of its points, (n,), which folds keep together; None without any."""
        groups = inputs.dataset.row_groups
        return None if groups is None else groups[inputs.training_rows(self.training_view)]

    def weights(self, inputs: BankInputs) -> Floats | None:
        """Return the weights of its points, (n,): of rows times of classes; None for ones."""
        dataset, asked = inputs.dataset, self.run.class_weight
        if dataset.weights is None and asked is None:
            return None
        rows = inputs.training_rows(self.training_view)
        labelled = np.isin(rows, inputs.labelled_rows(self.training_view))
        found = np.ones(len(rows))
        if dataset.weights is not None:
            found[labelled] = dataset.weights[rows[labelled]]
        if asked is not None:
            numbers, own = dataset.class_numbers[rows[labelled]], found[labelled]
            found[labelled] *= class_weights(asked, dataset.classes or (), numbers, own)[numbers]
        return found


@dataclass(frozen=True, eq=False)
class SolvedSubproblem:
    """Outcome of a subproblem whose solver returned."""

    solution: Solution  # in the solver's units
    times: JobTimes
    view: BankView  # the bank as the solver saw it
    values: Floats | None = None
    """Its decision functions at all points of the bank, (k, N); None where none is scored."""

    @property
    def functions(self) -> BankFunctions:
        """The decision functions on the kernels as stored, one for each column of the labels."""
        return functions_of(self.view, self.solution)


def functions_of(view: BankView, solution: Solution) -> BankFunctions:
    """Return the decision functions of a solution, one for each column of its labels."""
    own = solution.kernel_coefficients
    coefficients = solution.coefficients if own is None else own
    return BankFunctions.of(view, solution.kernel_weights, coefficients, solution.bias)


def subproblems_of(inputs: BankInputs, run: RunPlan) -> list[Subproblem]:
    """Return the subproblems of a run: all labelled rows first, then folds; classes in order."""
    method = METHODS.get(run.method)
    unlabelled = method is not None and learns_unlabelled(method)
    on_all = TrainingView(run.split, unlabelled and len(inputs.splits[run.split].unlabelled) > 0)
    n_folds = len(inputs.folds(run.split, run.selection)) if run.selection else 0
    on_folds = (TrainingView(run.split, unlabelled, run.selection, f) for f in range(n_folds))
    n_classes = len(inputs.dataset.multiclass)
    class_numbers = range(n_classes) if n_classes and not run.shared_weights else (None,)
    return [
        Subproblem(run, training_view, class_number)
        for training_view in (on_all, *on_folds)
        for class_number in class_numbers
    ]


def chains_of(subproblems: Iterable[Iterable[Subproblem]]) -> list[tuple[Subproblem, ...]]:
    """Return the subproblems of runs in chains, in which each solver starts from the last solution.

    The runs of a path are solved from the strongest regularisation to the weakest, and every class
    and inner fold of them has a chain of its own.  A subproblem of any other run is a chain by
    itself.
    """
    chains: dict[tuple[object, ...], list[Subproblem]] = {}
    for subproblem in (one for of_run in subproblems for one in of_run):
        key = subproblem.run.chain, subproblem.training_view, subproblem.class_number
        chains.setdefault(key, []).append(subproblem)
    return [tuple(sorted(links, key=lambda one: one.run.order)) for links in chains.values()]


Link = TypeVar("Link")


def drive_chains(
    bank: Bank,
    chains: Iterable[Iterable[Link]],
    begin: Callable[[Link, Any], Job | None],
    end: Callable[[Link, Solution | Exception, JobTimes], None],
) -> None:
    """Solve chains of problems together, each from the state in which the last solved one ended.

    ``begin(link, state)`` returns the solver of a problem, or None to leave it out.
    """
    running: dict[str, tuple[Link, Iterator[Link], Any]] = {}

    def following(rest: Iterator[Link], state: Any = None) -> Job | None:
        for link in rest:
            job = begin(link, state)
            if job is not None:
                running[job.key] = link, rest, state
                return job
        return None

    def on_done(key: str, outcome: Solution | Exception, times: JobTimes) -> Job | None:
        link, rest, state = running.pop(key)
        end(link, outcome, times)
        return following(rest, outcome.state if isinstance(outcome, Solution) else state)

    jobs = [following(iter(chain)) for chain in chains]
    drive(bank, [job for job in jobs if job is not None], on_done)


OF_BANK = (DamagedBlocksError, UnreadableError)
"""Faults of the bank and not of a run, which end a batch."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A run whose subproblems are all solved."""

    run: RunPlan
    solved: dict[Subproblem, SolvedSubproblem]

    @property
    def on_all_rows(self) -> dict[Subproblem, SolvedSubproblem]:
        """The subproblems on all labelled rows, which make the run's decision functions."""
        return {one: s for one, s in self.solved.items() if one.training_view.selection is None}

    @property
    def on_folds(self) -> dict[Subproblem, SolvedSubproblem]:
        """The subproblems that each leave an inner fold out."""
        return {one: s for one, s in self.solved.items() if one.training_view.selection is not None}


@dataclass(frozen=True, eq=False)
class FailedFit:
    """A run of which a subproblem failed."""

    run: RunPlan
    error: Exception
    subproblem: str = ""


def solve_job(
    job: Job, method: Method, params: SolverParams, factored: FactoredKernels | None = None
) -> SolvedJob:
    """Solve one problem on a bank, or on factors that grow until it is solved for the kernels.

    `job` is not started.  `factored` are the kernels for whose factors the bank stands, if it does.
    A problem on some of the points of factors is solved on these as they are: an inner fold, which
    is scored on the other points and not reported.
    """
    if factored is not None and job.view.index is None:
        from mkldist.solvers.on_factors import solve_on_factors  # which few banks need

        kernels = replace(factored, scale=job.view.scale)
        return solve_on_factors(kernels, method, job.problem, params)
    return solve_timed(job.view.bank, job)


@contextmanager
def opened(inputs: BankInputs, spec: BankSpec) -> Iterator[Bank | FactoredKernels]:
    """Open the bank of a fit in this process: in memory where it fits, in passes, or of factors."""
    source = inputs.source()
    if spec.backend == FACTORS:
        yield factored(source, FactorLimits.of(spec.rank, spec.tolerance), spec.dtype, inputs.seed)
        return
    size = BankSize(source.n_kernels, source.n_points, np.dtype("float64"))
    bank = loaded(source, size.dtype) if size.fits else recomputed(source)
    try:
        yield bank
    finally:
        bank.close()


def fit(
    bank: Bank | FactoredKernels,
    inputs: BankInputs,
    runs: Sequence[RunPlan],
    on_ended: Callable[[Fitted | FailedFit], None],
    *,
    laplacian: Callable[[GraphTable, int], Any] | None = None,
    scored: bool = True,
    memory_limit: int | None = None,
    isolated: bool = False,
) -> None:
    """Solve runs on a bank, and hand on each as it ends.

    A run whose solver raises has failed; the others go on.
    """
    subproblems = {run.id: subproblems_of(inputs, run) for run in runs}
    training_views = list(
        dict.fromkeys(one.training_view for of_run in subproblems.values() for one in of_run)
    )
    indices = [inputs.view_index(training_view) for training_view in training_views]
    steps = inputs.view_normalisations
    if isinstance(bank, FactoredKernels):
        views = bank.views(indices, steps, inputs.row_weights)
    else:
        budget = MemoryBudget(view_cache_bytes(memory_limit))
        views = make_views(bank, indices, steps, budget, inputs.presence, inputs.row_weights)
    batch = _Batch(
        inputs,
        dict(zip(training_views, views, strict=True)),
        subproblems,
        on_ended,
        laplacian or cache(inputs.laplacian),
        scored,
        memory_limit,
        isinstance(bank, FactoredKernels),
    )
    if isinstance(bank, FactoredKernels):
        batch.solve_in_turn(bank)
    else:
        batch.drive(bank, runs, isolated=isolated)


@dataclass(eq=False)
class _Batch:
    """Runs that are being solved."""

    inputs: BankInputs
    views: Mapping[TrainingView, BankView]
    subproblems: Mapping[str, list[Subproblem]]
    on_ended: Callable[[Fitted | FailedFit], None]
    laplacian: Callable[[GraphTable, int], Any]
    scored: bool
    memory_limit: int | None
    on_factors: bool
    solved: dict[str, dict[Subproblem, SolvedSubproblem]] = field(init=False)
    values: dict[str, Floats] = field(init=False, default_factory=dict)  # on the bank, by key
    shared: ArrayCache = field(init=False)
    groups: Ints | None = field(init=False)

    def __post_init__(self) -> None:
        self.shared = ArrayCache(kept_arrays_bytes(self.memory_limit))
        self.solved = {run_id: {} for run_id in self.subproblems}
        self.groups = self.inputs.groups

    def drive(self, bank: Bank, runs: Sequence[RunPlan], *, isolated: bool) -> None:
        """Solve all subproblems, neighbouring chains together as far as memory allows."""
        chains = chains_of(self.subproblems.values())
        groups = [slice(i, i + 1) for i in range(len(chains))]
        if not isolated:
            bytes_of = self._bytes_of_solvers(runs)
            sizes = [max(bytes_of[one.run.id] for one in chain) for chain in chains]
            groups = groups_at_once(sizes, self.memory_limit)
        for group in groups:
            drive_chains(bank, chains[group], self._begin, self._end)

    def solve_in_turn(self, kernels: FactoredKernels) -> None:
        """Solve all subproblems on factors of kernels, one after the other.

        Every chain begins with the first factors, whatever others have made of theirs, so that its
        results do not depend on the chains beside it.
        """
        for chain in chains_of(self.subproblems.values()):
            factors, start = kernels.copy(), None
            for subproblem in chain:
                job = self._begin(subproblem, start)
                if job is None:
                    continue
                method = METHODS[subproblem.run.method]
                try:
                    params = method.params(**subproblem.run.params)
                    found = solve_job(job, method, params, factors)
                except OF_BANK:
                    raise
                except Exception as error:  # a failed run is a result: it is recorded, others go on
                    self._fail(subproblem, error)
                    continue
                start = found.solution.state
                self._end(subproblem, found.solution, found.times)

    def _bytes_of_solvers(self, runs: Sequence[RunPlan]) -> dict[str, int]:
        """Return the bytes of a solver of each run, by its id."""
        views, found = self.views.values(), dict.fromkeys((run.id for run in runs), 0)
        n_points = max(view.n_points for view in views)
        n_kernels = next(iter(views)).n_kernels
        for run in runs:
            with suppress(Exception):  # parameters that no longer fit are that run's failure
                found[run.id] = run.memory(n_points, n_kernels).within(self.memory_limit)
        return found

    def _begin(self, subproblem: Subproblem, start: object) -> Job | None:
        """Return the solver of a subproblem, not started; None if its run has failed."""
        if subproblem.run.id not in self.solved:
            return None
        try:
            return self._job(subproblem, start)
        except OF_BANK:
            raise
        except Exception as error:  # parameters that no longer fit are that run's failure
            self._fail(subproblem, error)
            return None

    def _job(self, subproblem: Subproblem, start: object) -> Job:
        """Return the solver of a subproblem, not started."""
        run, view = subproblem.run, self.views[subproblem.training_view]
        method = METHODS[run.method]
        memory = run.memory(view.n_points, view.n_kernels, on_factors=self.on_factors)
        problem = problem_on(
            view,
            method,
            subproblem.labels(self.inputs),
            laplacian=None if run.graph is None else self.laplacian(run.graph, run.split),
            weights=subproblem.weights(self.inputs),
            groups=self.groups,
            row_groups=subproblem.row_groups(self.inputs),
            start=start,
            spare_bytes=memory.spare_within(self.memory_limit),
            shared=self.shared,
        )

        def after(solution: Solution) -> Generator[Request, Any, None]:
            values = yield from bank_values(view, functions_of(view, solution))
            self.values[subproblem.key] = values

        steps = method.solve(problem, method.params(**run.params))
        scored = self.scored and self.inputs.is_scored_on_bank(subproblem.training_view)
        return Job(subproblem.key, view, problem, steps, after if scored else None)

    def _end(self, subproblem: Subproblem, solution: Solution | Exception, times: JobTimes) -> None:
        """Keep the solution of a subproblem, and hand on its run if it was the last."""
        values, run = self.values.pop(subproblem.key, None), subproblem.run
        if isinstance(solution, Exception):
            self._fail(subproblem, solution)
            return
        if run.id not in self.solved:
            return  # another subproblem of the run has failed, and the run with it
        # The state is for the next solver alone: kept with the solution, it would fill memory.
        kept = replace(solution, state=None)
        view = self.views[subproblem.training_view]
        self.solved[run.id][subproblem] = SolvedSubproblem(kept, times, view, values)
        if len(self.solved[run.id]) == len(self.subproblems[run.id]):
            in_order = {one: self.solved[run.id][one] for one in self.subproblems[run.id]}
            self.on_ended(Fitted(run, in_order))
            del self.solved[run.id]

    def _fail(self, subproblem: Subproblem, error: Exception) -> None:
        """Hand on the run of a failed subproblem; its other solutions are dropped."""
        if isinstance(error, OSError | ImportError):
            raise WorkerError.of(error) from error
        run = subproblem.run
        if run.id in self.solved:
            words = subproblem.description(self.inputs.dataset)
            self.on_ended(FailedFit(run, error, words))
            del self.solved[run.id]
