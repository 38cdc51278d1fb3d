"""Preparation of a sweep: its plan, its work as workers get it, and how long that may take.

A thread of this process does a sweep of so little work that other processes would not pay.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from mkldist.bank.cache import BankUse
from mkldist.core.arrays import Array, Ints
from mkldist.core.checksums import content_id
from mkldist.core.durable import writing
from mkldist.core.memory import physical_memory
from mkldist.core.metrics import Metric
from mkldist.data.dataset import Dataset, Split
from mkldist.data.inputs import InputData
from mkldist.data.labels import ClassWeight
from mkldist.data.snapshot import save_snapshot
from mkldist.data.tables import MISSING
from mkldist.errors import ClusterError, InputError, OutOfTimeError, SpecError
from mkldist.methods.registry import METHODS, is_own
from mkldist.planning.checks import check_code
from mkldist.planning.model import BatchPlan, Plan, RunPlan
from mkldist.planning.planner import check_memory, parse_memory
from mkldist.planning.resolved import NOTHING, Resolved, resolve
from mkldist.results.layout import TreeFacts, check_names, kernel_coordinates
from mkldist.run.bank_refs import BankRef
from mkldist.run.cluster import ConnectOptions, default_workers, no_worker
from mkldist.run.forecast import SweepCosts
from mkldist.run.rounds import Rounds
from mkldist.scores import constant_answers, constant_score
from mkldist.solvers.grids import MethodGrid
from mkldist.spec.datasets import SplitsSpec
from mkldist.spec.model import SweepSpec

if TYPE_CHECKING:
    from mkldist.run.tasks import BatchSettings


def parse_wall_time(text: str | None, key: str = "wall_time") -> float:
    """Return the seconds that words such as ``90m`` stand for; infinity for None."""
    if text is None:
        return math.inf
    from dask.utils import parse_timedelta

    try:
        seconds = float(parse_timedelta(text, default=False))
    except (ValueError, KeyError, IndexError, OverflowError):
        seconds = math.nan
    if not 0.0 < seconds < math.inf:
        raise SpecError(key, f"{text!r}", "a time such as '90m' or '2h'")
    return seconds


WORKER_WAIT = 600.0  # seconds
NO_WORKERS_NOTE_SECONDS = 30.0


@dataclass(frozen=True)
class WallTime:
    """Time that a call of a sweep may take."""

    words: str = ""  # the time, as the sweep file gives it
    end: float = math.inf  # when it is over, by :func:`time.monotonic`
    worker_wait: float = math.inf  # seconds without a worker after which the call ends

    @classmethod
    def from_now(
        cls, words: str | None, worker_wait: str | None = None, *, patient: bool = False
    ) -> WallTime:
        """Return the time that begins now; one without end for None.

        Without `worker_wait` the call waits ten minutes for workers, or without end if `patient`.
        """
        wait = math.inf if patient else WORKER_WAIT
        if worker_wait is not None:
            wait = parse_wall_time(worker_wait, "worker_wait")
        return cls(words or "", time.monotonic() + parse_wall_time(words), wait)

    def check(self) -> None:
        """Raise if the time is over."""
        if time.monotonic() >= self.end:
            raise OutOfTimeError("wall_time", f"{self.words} to be over")

    def check_workers(self, seconds: float) -> None:
        """Raise if there has been no worker for too many seconds."""
        if seconds > self.worker_wait:
            found = no_worker(f"none within {self.worker_wait:g} s")
            hint = "Start workers, or set worker_wait to a longer time, and repeat the command"
            raise ClusterError("workers", found, "at least one that joins", hint)


class BankKey(NamedTuple):
    """Key of a bank among those of a sweep.

    The id alone is not enough: banks that differ in normalisation alone have one id and share one
    store, and so have those of data sets that differ in their splits alone.
    """

    id: str  # id of the bank
    label: str  # label of the bank in the sweep file
    dataset: str  # name of the data set

    @classmethod
    def of(cls, run: RunPlan) -> BankKey:
        """Return the key of a run's bank."""
        return cls(run.bank, run.bank_label, run.dataset)


def bank_refs(
    plan: Plan, resolved: Resolved, wanted: Collection[str], root: str, snapshots: Path
) -> dict[BankKey, BankRef]:
    """Write the data sets that workers are to read, and return the banks made from them."""
    banks: dict[BankKey, BankRef] = {}
    for bank in plan.banks:
        if bank.id not in wanted:
            continue
        dataset, splits = resolved.datasets[bank.dataset]
        name = content_id(data=dataset.fingerprint, splits=[s.fingerprint for s in splits])
        path = (snapshots / name).absolute()
        with writing(path):
            save_snapshot(path, dataset, splits)
        key = BankKey(bank.id, bank.spec.label, bank.dataset)
        code = resolved.code
        kernels = resolved.kernels[bank.dataset, bank.spec.label].fingerprint if code else ""
        banks[key] = BankRef(bank, root, str(path), dataset.fingerprint, code, kernels)
    return banks


@dataclass(frozen=True)
class Work:
    """Banks to build and batches to do."""

    # The banks.  Several may have one id, and share its store
    banks: Mapping[BankKey, BankRef]
    # Batches, holding only the runs that are to be done
    batches: tuple[BatchPlan, ...]
    settings: BatchSettings  # settings of the runs
    planned: tuple[RunPlan, ...] = ()  # all runs of the round, recorded ones included
    keep_banks: bool = True  # true to keep Gram matrices after their runs are recorded
    # True if the folder of the banks is this sweep's.  Otherwise the loop deletes only banks that
    # it has built itself
    own_banks: bool = False
    # The use of the folder of the banks: the loop deletes none while others use it
    use: BankUse = field(default_factory=BankUse)
    # Number of threads that all workers will have once they have joined; 0 if unknown
    expected_threads: int = 0
    # Ids of banks that later rounds of a search need, which the loop keeps
    later_banks: Container[str] = ()
    # Ids of the banks that this sweep has built; the loop adds to it
    built: set[str] = field(default_factory=set)
    wall_time: WallTime = field(default_factory=WallTime)  # time at whose end the loop stops

    @cached_property
    def banks_by_id(self) -> dict[str, BankRef]:
        """Banks by id, one of those that share it: one that is stored, if any is."""
        stored = {key.id: ref for key, ref in self.banks.items() if ref.plan.stored}
        return {key.id: ref for key, ref in self.banks.items()} | stored

    @cached_property
    def paths(self) -> dict[tuple[object, ...], list[RunPlan]]:
        """The runs of each path, recorded ones included, by its key."""
        found = defaultdict[tuple[object, ...], list[RunPlan]](list)
        for run in self.planned:
            if run.on_path:
                found[run.chain].append(run)
        return found


# Starting processes takes 4 s, and as much work as 10 s of a processor.  The forecast by typical
# rates is two to five times what small tables take.
SMALL_SECONDS = 10.0


def planned(
    spec: SweepSpec,
    origin: Path,
    data_dirs: Sequence[Path],
    options: ConnectOptions,
    *,
    allow_code: bool = False,
) -> tuple[Plan, Resolved]:
    """Return the plan of a sweep for the workers that the options ask for, and its data."""
    rounds = sweep_rounds(spec, origin, data_dirs, options, allow_code=allow_code)
    return rounds.most, rounds.resolved


def sweep_rounds(
    spec: SweepSpec,
    origin: Path,
    data_dirs: Sequence[Path],
    options: ConnectOptions,
    given: Mapping[str, InputData] = NOTHING,
    *,
    allow_code: bool = False,
) -> Rounds:
    """Return the rounds of a sweep for the workers that the options ask for, at the first."""
    check_names(spec)
    options = options.of_execution(spec.execution)
    parse_wall_time(spec.wall_time)  # refuses words that are no time
    parse_wall_time(spec.worker_wait, "worker_wait")
    memory_limit = parse_memory(spec.memory)
    if memory_limit is not None:
        memory_limit //= options.threads_per_worker
    code = check_code(spec, origin.parent, allowed=allow_code)
    resolved = replace(resolve(spec, data_dirs, origin.parent, given), code=code)
    n_threads = options.expected_threads() or default_workers()
    rounds = Rounds(spec, resolved, n_threads, memory_limit)
    available = physical_memory() if options.are_local else None
    check_memory(rounds.most, options.threads_per_worker, available)
    return rounds


def with_recorded(
    rounds: Rounds, of_file: Callable[[], Rounds], recorded: Collection[str]
) -> Rounds:
    """Return the rounds of a call that asks for a part of its sweep file, with what is recorded.

    ``--set`` may narrow a sweep, as to one value of a list: then the call does this part, and the
    results hold the recorded runs of the file beside it.
    """
    asked = {run.id for run in rounds.plan.runs}
    if rounds.are_several or not {*recorded} - asked:
        return rounds
    with suppress(InputError):  # the file may be wrong where a change of this call makes it right
        whole = of_file()
        known = {run.id for run in whole.plan.runs}
        if not whole.are_several and asked <= known:
            return whole.only(asked | known.intersection(recorded))
    return rounds


def batch_settings(spec: SweepSpec, *, predictions: bool = False) -> BatchSettings:
    """Return the settings of a sweep's batches."""
    from mkldist.run.tasks import BatchSettings

    return BatchSettings(
        execution=spec.execution,
        seed=spec.seed,
        memory_limit=parse_memory(spec.memory),
        predictions=predictions,
        coefficients=spec.outputs.coefficients,
    )


def is_small(rounds: Rounds, batches: Iterable[BatchPlan]) -> bool:
    """Return True if some batches of a sweep are so little work that processes would not pay.

    A method that kills its process would end the sweep, and this process does other things while
    clocks go.  So this is False for methods that do not come with mkldist, and for isolated runs,
    whose times are to be compared.
    """
    plan, batches = rounds.most, list(batches)
    own = all(is_own(METHODS[run.method]) for batch in batches for run in batch.runs)
    if plan.spec.execution == "isolated" or not own:
        return False
    costs = SweepCosts(plan, rounds.resolved.facts, rounds.memory_limit)
    return costs.together(batches) <= SMALL_SECONDS


T = TypeVar("T")


def tree_facts(rounds: Rounds) -> TreeFacts:
    """Return the facts that the layout of a sweep's tree needs beside the plan."""
    spec, resolved = rounds.spec, rounds.resolved
    data = {name: dataset for name, (dataset, _) in resolved.datasets.items()}
    splits = {name: own for name, (_, own) in resolved.datasets.items()}
    entries = {entry.name: entry for entry in spec.sized_datasets}
    rows_kept = rounds.keeps_predictions or spec.outputs.coefficients
    banks = {bank.label: bank for bank in spec.sized_banks}
    return TreeFacts(
        dims=_by_method(resolved, lambda grid: grid.dims),
        run_parameters=_by_method(resolved, lambda grid: grid.run_parameters),
        kernels={
            (name, label): kernel_coordinates(
                banks[label],
                resolved.kernel_names(name, label),
                resolved.kernels.get((name, label)),
                data[name].feature_names,
                {view: one.columns for view, one in data[name].views.items()},
            )
            for name, label in (resolved.banks if spec.outputs.weights else ())
        },
        labels={name: dataset.y for name, dataset in data.items()} if rows_kept else {},
        predictions=rounds.keeps_predictions,
        data={
            name: described(one, entries[name].class_weight)
            | {"kernels": resolved.silent_kernels(spec)[name]}
            for name, one in data.items()
        },
        tasks={name: dataset.task for name, dataset in data.items()},
        unlabelled={name for name, own in splits.items() if any(len(s.unlabelled) for s in own)},
        classes={name: dataset.classes for name, dataset in data.items() if dataset.classes},
        splits={
            name: found
            | scored_rows(data[name], own, spec.metric_of(data[name].task), found["repeat"])
            for name, own in splits.items()
            for found in [split_coordinates(spec.splits_of(entries[name]), own, data[name])]
        },
        n_features={name: dataset.n_features for name, dataset in data.items()},
        most_runs=rounds.most_runs,
    )


def described(dataset: Dataset, class_weight: ClassWeight | None = None) -> dict[str, Any]:
    """Return what a reader of results needs to know of a data set."""
    found: dict[str, Any] = {"rows": dataset.n_points, "features": dataset.n_features}
    if dataset.x is not None:
        absent = 0 if dataset.absent is None else int(dataset.absent.sum())
        empty = [name.endswith(f"={MISSING}") for name in dataset.feature_names]
        of_categories = int(np.nansum(dataset.x[:, empty]))
        found["missing"] = int(np.isnan(dataset.x).sum()) - absent + of_categories
    if dataset.classes is not None:
        counts = dataset.class_counts.tolist()
        found["classes"] = dict(zip(dataset.classes, counts, strict=True))
    if dataset.views or dataset.given:
        found["views"] = {name: len(view.columns) for name, view in dataset.views.items()}
        found["matrices"] = {name: len(one.grams) for name, one in dataset.given.items()}
    if dataset.row_groups is not None:
        found["groups"] = len(np.unique(dataset.row_groups))
    weights = ["balanced classes"] if class_weight == "balanced" else []
    if isinstance(class_weight, Mapping):
        each = [f"{name} {weight:g}" for name, weight in class_weight.items()]
        weights = [f"classes {', '.join(each)}"]
    weights += [] if dataset.weights is None else ["rows by a column"]
    if weights:
        found["weights"] = ", ".join(weights)
    return found


def _by_method(resolved: Resolved, of_grid: Callable[[MethodGrid], T]) -> dict[str, dict[str, T]]:
    """Return something of every grid, by data set and the method's key."""
    return {
        name: {key: of_grid(grid) for key, grid in grids.items()}
        for name, grids in resolved.grids.items()
    }


def split_coordinates(
    spec: SplitsSpec, splits: tuple[Split, ...], dataset: Dataset
) -> dict[str, Array]:
    """Return repetition, fold and sizes of every split, and the group where one is left out."""
    number: Ints = np.arange(len(splits))
    repeat, fold = number, np.zeros_like(number)
    group: dict[str, Array] = {}
    if spec.kind in ("kfold", "time"):
        repeat, fold = np.divmod(number, spec.folds)
    elif spec.kind == "leave-one-group-out":
        repeat, fold = fold, number
        if dataset.row_groups is not None and dataset.group_names:
            numbers = [dataset.row_groups[split.test[0]] for split in splits]
            group["group"] = np.array(dataset.group_names, dtype=object)[numbers]
    return {
        "repeat": repeat,
        "fold": fold,
        **group,
        "n_train": np.array([len(split.train) for split in splits]),
        "n_test": np.array([len(split.test) for split in splits]),
        "n_unlabelled": np.array([len(split.unlabelled) for split in splits]),
    }


def scored_rows(
    dataset: Dataset, splits: Sequence[Split], metric: Metric, repeat: Ints
) -> dict[str, Array]:
    """Return how many rows tell the scores of every split, and what a constant answer scores."""
    labels = dataset.y if dataset.classes is None else dataset.class_numbers.astype(np.float64)
    k = len(dataset.classes or ())
    unlabelled = not any(len(split.test) for split in splits)
    parts = [split.unlabelled if unlabelled else split.test for split in splits]
    parts = [rows[dataset.labelled[rows]] for rows in parts]
    seen = np.zeros(dataset.n_points, dtype=np.bool_)
    n_classes = np.array([len(np.unique(labels[rows])) for rows in parts])
    lacking = n_classes.min(initial=max(k, 2)) < max(k, 2)
    new, counts, scores = [], [], []
    for number, (split, rows) in enumerate(zip(splits, parts, strict=True)):
        new.append(int((~seen[rows]).sum()))
        seen[rows] = True
        answers, tested = constant_answers(labels[split.train], k), labels[rows]
        counts.append(np.bincount(tested.astype(np.intp), minlength=k) if k else [len(rows)])
        if lacking and metric.contrasts:
            same = np.flatnonzero(repeat == repeat[number])
            tested = labels[np.concatenate([parts[one] for one in same])]
        scores.append(constant_score(metric.name, answers, tested, k) if len(rows) else np.nan)
    by_class = np.array(counts)
    return {
        "n_new": np.array(new),
        "n_rarest": by_class[:, by_class.sum(axis=0).argmin()] if lacking else by_class.min(axis=1),
        "n_classes": n_classes,
        "constant_score": np.array(scores),
    }
