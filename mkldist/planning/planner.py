"""Planning: from the facts of a sweep to all its runs, banks and batches.

Planning is pure and deterministic: it takes facts of data sets and banks and grids of settings,
and returns a plan.  Ids are content hashes.  A run that is recorded under its id is therefore
never repeated, and a changed sweep repeats only the runs that changed.

First stands what a plan is expected to cost: memory of a worker and its limit, and passes.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np

from mkldist.bank.bank import LAYOUT_VERSION, TileLayout
from mkldist.bank.factored_kernels import (
    LEAST_GROWTH,
    MANY,
    MOST_CHANGES,
    MOST_GROWTH,
    FactorLimits,
    least_bytes,
)
from mkldist.bank.store import FACTORS_VERSION
from mkldist.bank.view import takes_pass
from mkldist.core.checksums import content_id
from mkldist.core.devices import CPU
from mkldist.core.memory import (
    FLOAT_BYTES,
    bank_bytes,
    groups_at_once,
    kept_arrays_bytes,
    physical_memory,
    row_cache_bytes,
    view_cache_bytes,
)
from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS
from mkldist.optim.pivoted_cholesky import PIECE
from mkldist.planning.model import (
    BankFacts,
    BankPlan,
    BatchPlan,
    DatasetFacts,
    Place,
    Plan,
    Proposal,
    RunPlan,
)
from mkldist.solvers.base import Method, ProblemFacts, most_points
from mkldist.solvers.grids import MethodGrid
from mkldist.spec.banks import FACTORS, BankSpec
from mkldist.spec.datasets import DatasetSpec
from mkldist.spec.model import MethodSpec, SweepSpec

WORKER_BASE_BYTES = 400 * 2**20  # interpreter, libraries, compiled code
BUFFER_BYTES = 64 * 2**20  # blocks that a pass reads, and what it computes of them
ENTRY_BYTES = 12  # of a sparse matrix, with the index of its column
FURTHER_PASSES = 3  # of a run that starts from the solution of another
USUAL_GROWTH = math.sqrt(LEAST_GROWTH * MOST_GROWTH)
FEW_ROUNDS = 2  # of a method that need not make factors longer


class FactorRounds(NamedTuple):
    """Rounds of a solver on factors, and the columns of a factor at first and at most."""

    first: int
    longest: int
    usual: int  # rounds if the longest factors reach their limit by the usual growth
    most: int


def factor_rounds(bank: BankPlan, method: Method | None = None) -> FactorRounds:
    """Return the rounds that a solver on a bank of factors takes."""
    many, first = bank.n_points >= MANY, bank.limits.first(bank.n_points)
    longest = bank.limits.most(bank.n_points)
    ratio = math.log(longest / first)
    most = 1 + math.ceil(ratio / math.log(LEAST_GROWTH))
    usual = 1 + math.ceil(ratio / math.log(USUAL_GROWTH))
    if many and method is not None and method.hinge_machines:
        usual, most = min(usual, FEW_ROUNDS), most + MOST_CHANGES
    if method is not None and method.one_sum:  # of the kernels themselves, if memory holds it
        usual = 1
    return FactorRounds(first, longest, usual, most)


def peak_memory(
    execution: str,
    banks: Sequence[BankPlan],
    batches: Sequence[BatchPlan],
    memory_limit: int | None,
) -> int:
    """Return the bytes that a worker of one thread is expected to take at its peak.

    ``"shared"`` execution keeps all solvers of a batch alive, as far as the task's `memory_limit`
    allows; ``"path"`` one of each path; ``"isolated"`` one.
    """
    by_id = {bank.id: bank for bank in banks}
    solvers = SolverBytes(memory_limit)
    peak = 0
    for batch in batches:
        bank = by_id[batch.bank]
        each, groups = solvers.of(bank, batch.runs)
        work = max(each, default=0)
        if execution != "isolated" and not bank.is_factored:  # on factors, solvers go in turn
            work = max((sum(each[group]) for group in groups), default=0)
        peak = max(peak, work + _held(bank, batch, memory_limit))
    return WORKER_BASE_BYTES + peak


def _held(bank: BankPlan, batch: BatchPlan, memory_limit: int | None) -> int:
    """Return the bytes that a batch holds beside its solvers: of its bank, views and graphs."""
    n_bytes = bank.feature_bytes
    if bank.backend == "memory":
        n_bytes += bank.n_bytes
    elif bank.is_factored:  # they may grow
        n_bytes += factors_bytes(bank, memory_limit) + BUFFER_BYTES
    elif bank.sharded:  # a worker keeps a part of them, however many workers there are
        n_bytes += min(bank.n_bytes, bank_bytes(memory_limit))
    else:  # the system reclaims the pages of a mapped one
        rows = 0 if bank.backend == "mmap" else min(bank.n_bytes, row_cache_bytes(memory_limit))
        n_bytes += BUFFER_BYTES + rows
    of_parts = bank.split is None or any(run.selection is not None for run in batch.runs)
    if of_parts and not bank.is_factored:  # kernels of views of splits or folds
        n_views = len({run.split for run in batch.runs})
        n_bytes += min(view_cache_bytes(memory_limit), n_views * bank.n_bytes)
    graphs = {run.graph for run in batch.runs if run.graph is not None}
    deformed = 3 * FLOAT_BYTES * bank.n_points**2  # of each kernel: factor, system and root
    n_bytes += min(kept_arrays_bytes(memory_limit), len(graphs) * bank.n_kernels * deformed)
    for graph in graphs:  # few edges, of nearest neighbours, are small beside a solver
        many_edges = graph.kind != "knn" or graph.power != 1
        if many_edges or graph.distances is not None:
            n_bytes += 2 * ENTRY_BYTES * bank.n_points**2
    return n_bytes


def factors_bytes(bank: BankPlan, memory_limit: int | None) -> int:
    """Return the bytes that factors of a bank may take in a task; without a limit, all at first."""
    first = bank.n_bytes if memory_limit is None else 0
    return max(bank_bytes(memory_limit), first, least_bytes(bank.n_points, bank.limits))


def least_memory(banks: Sequence[BankPlan], batches: Sequence[BatchPlan], n_threads: int) -> int:
    """Return the bytes that a worker needs at least.

    Each task holds one solver, and a buffer of blocks; with ``backend = "memory"`` the whole bank,
    with ``"sharded"`` a part of some kernels, with ``"factors"`` a factor in the making.
    """
    by_id = {bank.id: bank for bank in banks}
    solvers = SolverBytes(memory_limit=0)
    tasks = [0]
    for batch in batches:
        bank = by_id[batch.bank]
        held = BUFFER_BYTES
        if bank.spec.backend == "memory":
            held = bank.n_bytes
        elif bank.is_factored:  # those that memory does not hold lie in a file
            held += least_bytes(bank.n_points, bank.limits)
        elif bank.sharded:
            held = bank.shape.least_shard_bytes
        each, _ = solvers.of(bank, batch.runs)
        tasks.append(held + max(each, default=0))
    features = max((bank.feature_bytes for bank in banks), default=0)  # which its tasks share
    return WORKER_BASE_BYTES + features + n_threads * max(tasks)


class SolverBytes:
    """Bytes of the solvers of batches under a limit of memory, found once for each setting.

    Runs of one point of a grid have one object of parameters, by which they are known.  The runs
    must live as long as this object does.
    """

    def __init__(self, memory_limit: int | None) -> None:
        self._memory_limit = memory_limit
        self._of_settings: dict[tuple[object, ...], int] = {}

    def of(self, bank: BankPlan, runs: Sequence[RunPlan]) -> tuple[list[int], Sequence[slice]]:
        """Return the bytes of each solver, one of a path at a time, and those at work at once."""
        of_chain: dict[tuple[object, ...], tuple[int, int]] = {}
        for run in runs:
            largest, _ = of_chain.get(run.chain, (0, 0))
            of_chain[run.chain] = max(largest, self._of_run(bank, run)), run.n_jobs
        each = [n_bytes for n_bytes, n_jobs in of_chain.values() for _ in range(n_jobs)]
        return each, groups_at_once(each, self._memory_limit)

    def _of_run(self, bank: BankPlan, run: RunPlan) -> int:
        size = bank.n_points, bank.n_kernels, run.n_labelled
        settings = bank.is_factored, id(run.params), *size
        if settings not in self._of_settings:
            memory = run.memory(bank.n_points, bank.n_kernels, on_factors=bank.is_factored)
            self._of_settings[settings] = memory.within(self._memory_limit)
        return self._of_settings[settings]


def passes_by_bank(
    execution: str,
    banks: Sequence[BankPlan],
    batches: Sequence[BatchPlan],
    memory_limit: int | None,
) -> dict[tuple[str, str], int]:
    """Return the typical passes over banks, by data set and label of the bank."""
    by_key = {(bank.id, bank.spec.label): bank for bank in banks}
    passes: Counter[tuple[str, str]] = Counter()
    solvers = SolverBytes(memory_limit)
    for batch in (one for one in batches if one.runs):
        first = batch.runs[0]
        bank = by_key[batch.bank, first.bank_label]
        of_method = {
            name: METHODS[name].typical_passes(bank.n_kernels)
            for name in {run.method for run in batch.runs}
        }
        rounds = [of_method[run.method] + (run.selection is not None) for run in batch.runs]
        own = math.ceil(passes_of_runs(execution, bank, batch.runs, rounds, solvers))
        passes[first.dataset, first.bank_label] += own
    return dict(passes)


def passes_of_runs(
    execution: str,
    bank: BankPlan,
    runs: Sequence[RunPlan],
    rounds: Sequence[float],
    solvers: SolverBytes,
) -> float:
    """Return the passes over a bank that runs of one batch take together.

    `rounds` are the passes that a solver of each run takes, if it is the first of its path; the
    others take few.  The solvers share their passes as far as memory allows, unless they are
    isolated.  To fit a normalisation by centred kernels takes one pass a batch.
    """
    if execution == "isolated":
        passes = sum(run.n_jobs * of_each for run, of_each in zip(runs, rounds, strict=True))
    else:
        longest = max(Counter(run.chain for run in runs if run.on_path).values(), default=1)
        each = max(rounds, default=0) + FURTHER_PASSES * (longest - 1)
        _, groups = solvers.of(bank, runs)
        passes = each * len(groups)
    return passes + takes_pass(bank.spec.normalisations)


def with_backends(
    spec: SweepSpec,
    grids: Mapping[str, Mapping[str, MethodGrid]],
    banks: Mapping[tuple[str, str], BankFacts],
    datasets: Mapping[str, DatasetFacts],
) -> dict[tuple[str, str], BankFacts]:
    """Return the facts of banks, which say for which of them thin factors stand.

    A bank that allows factors gets them on a data set if memory does not hold what some solver on
    it needs, of the matrices of all its points.
    """
    found, n_bytes = dict(banks), memory_of(spec)
    for bank in (one for one in spec.sized_banks if one.may_be_factors):
        keys = [entry.key for entry in spec.methods if entry.runs_on(bank)]
        for name, facts in datasets.items():
            kernels, n_points = banks[name, bank.label], max(facts.known_sizes)
            thin = bank.backend == FACTORS or any(
                n_points > most_points_of(grids[name][key], kernels.n_kernels, n_bytes)
                for key in keys
            )
            found[name, bank.label] = replace(kernels, on_factors=thin)
    return found


def most_points_of(grid: MethodGrid, n_kernels: int, n_bytes: int) -> int:
    """Return the most points on which memory holds what a solver needs at every setting."""
    return min(most_points(grid.method, point, n_kernels, n_bytes) for point in grid.points)


def memory_of(spec: SweepSpec) -> int:
    """Return the bytes that the solver of a worker of one thread may take."""
    given = parse_memory(spec.memory) or physical_memory()
    return max(given - WORKER_BASE_BYTES - BUFFER_BYTES, 0)


def parse_memory(text: str | None, where: str = "memory") -> int | None:
    """Return the bytes that words such as ``2GiB`` stand for; None for None."""
    if text is None:
        return None
    from dask.utils import parse_bytes

    try:
        n_bytes = int(parse_bytes(text))
    except (ValueError, OverflowError):
        n_bytes = 0
    if n_bytes <= 0 or (n_bytes < 2**20 and text.strip().isdecimal()):
        raise SpecError(where, f"{text!r}", "a number of bytes such as '2GiB'")
    return n_bytes


def check_memory(plan: Plan, threads: int, available: int | None = None) -> None:
    """Refuse a limit of memory that no worker can keep, or more than the machine has."""
    given, least = parse_memory(plan.spec.memory), least_memory(plan.banks, plan.batches, threads)
    limits = [limit for limit in (given, available) if limit is not None]
    if not limits or min(limits) >= least:
        return
    batches = {bank.id: [one for one in plan.batches if one.bank == bank.id] for bank in plan.banks}
    largest = max(plan.banks, key=lambda bank: least_memory([bank], batches[bank.id], threads))
    held = "a part of a bank" if largest.sharded else "a buffer"
    found, hint = repr(plan.spec.memory), "Raise memory"
    if available is not None and available < least:
        found, hint = f"{available // 2**20} MiB in this machine", "Take a machine with more"
    if largest.spec.backend == "memory":
        held, hint = "a whole bank", f'{hint}, or remove backend = "memory"'
    elif largest.is_factored:
        hint += ", lower rank, or use fewer points"
    else:
        hint += ", or use fewer points"
        runs = [run for run in plan.runs if run.bank == largest.id]
        facts = ProblemFacts(factors=True)
        keys = dict.fromkeys(r.key for r in runs if METHODS[r.method].refuses(facts) is None)
        if keys:
            hint += f'; {", ".join(keys)} can take backend = "{FACTORS}", without such matrices'
    expected = (
        f"at least {math.ceil(least / 2**20)} MiB, for the libraries, {held} and one solver on "
        f"{largest.n_points} points (threads: {threads})"
    )
    raise SpecError("memory", found, expected, hint)


BATCHES_PER_THREAD = 2


def split_groups(splits: Sequence[int], n_threads: int) -> list[list[int]]:
    """Divide splits into groups, so that every thread gets a few batches of one shared bank."""
    wanted = min(len(splits), BATCHES_PER_THREAD * max(1, n_threads))
    return [part.tolist() for part in np.array_split(np.asarray(splits), wanted)]


def divided(runs: Iterable[RunPlan], n_threads: int) -> list[tuple[RunPlan, ...]]:
    """Divide runs, bank by bank, into batches.

    All runs of a split stay together, because they share passes.  Two banks of one id with
    different labels have different normalisations, and two of different data sets have different
    splits; the runs of such banks share no passes.
    """
    banks: dict[tuple[str, str], dict[int, list[RunPlan]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        banks[run.dataset, run.bank_label][run.split].append(run)
    return [
        tuple(run for split in group for run in by_split[split])
        for by_split in banks.values()
        for group in split_groups(sorted(by_split), n_threads)
    ]


def shares_of(runs: Iterable[RunPlan], n_shares: int) -> list[tuple[RunPlan, ...]]:
    """Divide the runs of a batch among several threads, runs of one path together."""
    chains: dict[object, list[RunPlan]] = defaultdict(list)
    for run in runs:
        chains[run.chain].append(run)
    shares = [list(chains.values())[start::n_shares] for start in range(min(n_shares, len(chains)))]
    return [tuple(run for chain in share for run in chain) for share in shares]


def without(batches: Iterable[BatchPlan], run_ids: Collection[str]) -> tuple[BatchPlan, ...]:
    """Return batches without some of their runs, and without those that have no others."""
    left = (
        replace(batch, runs=tuple(run for run in batch.runs if run.id not in run_ids))
        for batch in batches
    )
    return tuple(batch for batch in left if batch.runs)


IDENTITY_VERSION = 1  # raised when the same settings would give another outcome

# Banks of dtype "auto" that would be larger than this are stored in single precision, unless a
# method asks for a smaller tolerance than single precision allows.
FLOAT32_ABOVE_BYTES = 2**30
FLOAT32_ABOVE_TOL = 1e-5


def make_plan(
    spec: SweepSpec,
    datasets: Mapping[str, DatasetFacts],
    banks: Mapping[tuple[str, str], BankFacts],
    grids: Mapping[str, Mapping[str, MethodGrid]],
    n_threads: int,
    memory_limit: int | None,
    proposals: Mapping[Place, Sequence[Proposal]] | None = None,
) -> Plan:
    """Plan a sweep on so many threads of all workers, each with a limit of memory for its task.

    Facts are by data set, and by data set and bank; grids by data set and method.  `proposals` are
    the settings of methods whose runs other runs decide on: what a search proposes, or what has
    its C from another method.
    """
    planner = _Planner(spec, grids, n_threads, memory_limit, proposals or {})
    bank_plans: list[BankPlan] = []
    batches: list[BatchPlan] = []
    for dataset in spec.sized_datasets:
        facts = datasets[dataset.name]
        for bank in spec.sized_banks:
            kernels = banks[dataset.name, bank.label]
            used = bank.on_factors if kernels.on_factors else bank
            for plan, groups in planner.banks(dataset, facts, used, kernels):
                own = [batch for batch in planner.batches(plan, facts, groups) if batch.runs]
                bank_plans += [plan] * bool(own)
                batches += own
    batches = _with_distinct_ids(batches, planner.owners)
    passes = passes_by_bank(spec.execution, bank_plans, batches, memory_limit)
    return Plan(
        id=content_id(name=spec.name, runs=sorted(run.id for b in batches for run in b.runs)),
        spec=spec,
        banks=tuple(bank_plans),
        batches=tuple(batches),
        memory_per_worker=peak_memory(spec.execution, bank_plans, batches, memory_limit),
        estimated_passes=sum(passes.values()),
    )


def _with_distinct_ids(
    batches: Sequence[BatchPlan], owners: Mapping[Place, Place]
) -> list[BatchPlan]:
    """Give ids of their own to runs that differ only in the place of their results.

    Two labels of one method, two names of one data set or two equal draws of a split have the
    same content.  The first of such places, in their order, keeps the id of the content.  At a
    place in `owners`, which names the first of them, it does so whatever a search has proposed
    at the others so far.
    """
    ids = [run.id for batch in batches for run in batch.runs]
    if not owners and len(set(ids)) == len(ids):
        return list(batches)
    first: dict[str, Place] = {}
    for batch in batches:
        for run in batch.runs:
            first[run.id] = min(run.place, first.get(run.id, run.place))
    return [
        _batch(
            batch.bank,
            tuple(
                run
                if run.place == owners.get(run.place, first[run.id])
                else replace(run, id=content_id(content=run.id, place=list(run.place)))
                for run in batch.runs
            ),
        )
        for batch in batches
    ]


def _batch(bank: str, runs: tuple[RunPlan, ...]) -> BatchPlan:
    """Return a batch whose id is the content hash of its runs' ids."""
    return BatchPlan(content_id(runs=[run.id for run in runs]), bank, runs)


@dataclass(frozen=True)
class _Planner:
    """Decisions of a plan about banks, their dtypes and backends, and runs."""

    spec: SweepSpec
    grids: Mapping[str, Mapping[str, MethodGrid]]
    n_threads: int
    memory_limit: int | None
    proposals: Mapping[Place, Sequence[Proposal]]
    _places: dict[str, list[Place]] = field(default_factory=dict)

    @property
    def owners(self) -> dict[Place, Place]:
        """The first of the places of one problem, for places of it that records may fill."""
        return {
            place: min(places)
            for places in self._places.values()
            if any(self.grids[dataset][key].is_open for dataset, _, key, _ in places)
            for place in places
        }

    @cached_property
    def _grid_points(self) -> dict[tuple[str, str], list[Proposal]]:
        """The points of every grid by data set and method, one object each for all splits."""
        return {
            (dataset, key): [Proposal(params, {}) for params in grid.settings]
            for dataset, grids in self.grids.items()
            for key, grid in grids.items()
            if not grid.is_open
        }

    def banks(
        self, dataset: DatasetSpec, facts: DatasetFacts, bank: BankSpec, kernels: BankFacts
    ) -> Iterator[tuple[BankPlan, list[list[int]]]]:
        """Yield the banks of a data set, each with the groups of splits that share a batch."""
        n_splits = facts.n_splits
        on_all = facts.precomputed or self.spec.preprocessing_of(dataset).fit == "all"
        if on_all and bank.backend != FACTORS:  # pivots of factors are training points
            groups = [list(range(n_splits))]
            if bank.backend != "sharded":
                groups = split_groups(groups[0], self.n_threads)
            yield self._bank(dataset, facts, bank, kernels, None, len(groups)), groups
        else:
            for split in range(n_splits):
                yield self._bank(dataset, facts, bank, kernels, split, 1), [[split]]

    def batches(
        self, bank: BankPlan, facts: DatasetFacts, groups: Sequence[Sequence[int]]
    ) -> Iterator[BatchPlan]:
        """Yield the batches of a bank: all methods and parameters of some splits."""
        methods = [method for method in self.spec.methods if method.runs_on(bank.spec)]
        for splits in groups:
            of_each = (self._runs(bank, facts, split, one) for split in splits for one in methods)
            yield _batch(bank.id, tuple(chain.from_iterable(of_each)))

    def _bank(
        self,
        dataset: DatasetSpec,
        facts: DatasetFacts,
        spec: BankSpec,
        kernels: BankFacts,
        split: int | None,
        n_batches: int,
    ) -> BankPlan:
        n_points = facts.n_points if split is None else facts.known_sizes[split]
        layout = TileLayout.for_points(n_points)
        preprocessing = self.spec.preprocessing_of(dataset)
        # The preprocessing of labels changes no bank.
        of_features = preprocessing.model_dump(exclude={"target"})
        n_values, factors = kernels.n_kernels * layout.n_entries, {}
        if spec.backend == FACTORS:
            rank = FactorLimits.of(spec.rank, spec.tolerance).first(n_points)
            n_values = kernels.n_kernels * n_points * rank
            factors = {"factors": [FACTORS_VERSION, PIECE, self.spec.seed]}
        dtype = self._dtype(spec, n_values)
        n_bytes = n_values * np.dtype(dtype).itemsize
        device = {} if spec.device == CPU else {"device": spec.device}
        identity = content_id(
            version=IDENTITY_VERSION,
            layout=[LAYOUT_VERSION, layout.n_points, layout.tile],
            data=facts.fingerprint,
            preprocessing=None if facts.precomputed else of_features,
            train=None if split is None else facts.known_fingerprints[split],
            kernels=kernels.fingerprint,
            cosine="cosine" in spec.normalisations,
            dtype=dtype,
            **factors,
            **device,
        )
        return BankPlan(
            id=identity,
            dataset=dataset.name,
            spec=spec,
            preprocessing=preprocessing,
            split=split,
            seed=self.spec.seed,
            n_points=n_points,
            n_kernels=kernels.n_kernels,
            dtype=dtype,
            backend=self._backend(spec, n_bytes, n_batches),
            n_bytes=n_bytes,
            feature_bytes=facts.row_bytes * (facts.n_points + (0 if split is None else n_points)),
        )

    def _dtype(self, spec: BankSpec, n_values: int) -> str:
        if spec.dtype != "auto":
            return spec.dtype
        if spec.backend in ("recompute", FACTORS):
            return "float64"
        grids = [grid for of_dataset in self.grids.values() for grid in of_dataset.values()]
        tightest = min((point.tol for grid in grids for point in grid.points), default=math.inf)
        large = 8 * n_values > FLOAT32_ABOVE_BYTES
        return "float32" if large and tightest >= FLOAT32_ABOVE_TOL else "float64"

    def _backend(self, spec: BankSpec, n_bytes: int, n_batches: int) -> str:
        if spec.backend != "auto":
            return spec.backend
        if n_batches > 1:
            return "mmap"
        return "memory" if n_bytes <= bank_bytes(self.memory_limit) else "stream"

    def _runs(
        self, bank: BankPlan, facts: DatasetFacts, split: int, entry: MethodSpec
    ) -> list[RunPlan]:
        """Return the runs of a method on a split."""
        grid = self.grids[bank.dataset][entry.key]
        graph = facts.graph if grid.method.needs_laplacian else None
        shared = entry.kernel_weights == "shared" and facts.n_problems > 1
        selection = self.spec.inner_folds
        n_folds = facts.inner_folds[split] if selection else 0
        execution = self.spec.execution
        if execution == "shared" and grid.is_path and grid.method.has_path:
            execution = "path"
        problem = content_id(
            version=IDENTITY_VERSION,
            bank=bank.id,
            split=facts.split_fingerprints[split],
            normalisation=list(bank.spec.normalisations),
            method=grid.method.name,
            execution=execution,
            **({} if facts.target == "none" else {"target": facts.target}),
            **({} if graph is None else {"graph": graph.identity}),
            **({} if facts.class_weight is None else {"class_weight": facts.class_weight}),
            **({"kernel_weights": "shared"} if shared else {}),
            **({"selection": selection.identity(self.spec.seed)} if selection else {}),
            **({"factors": [bank.limits.rank, bank.limits.tolerance]} if bank.is_factored else {}),
        )
        place = bank.dataset, bank.spec.label, entry.key, split
        self._places.setdefault(problem, []).append(place)
        first = RunPlan(
            id="",
            dataset=bank.dataset,
            bank=bank.id,
            bank_label=bank.spec.label,
            split=split,
            method=grid.method.name,
            key=entry.key,
            params={},
            graph=graph,
            shared_weights=shared,
            selection=selection,
            class_weight=facts.class_weight,
            n_jobs=(1 if shared else facts.n_problems) * (1 + n_folds),
            on_path=execution == "path" and grid.method.has_path,
            n_labelled=facts.train_sizes[split] if facts.train_sizes else None,
        )
        grid_points = () if grid.is_open else self._grid_points[place[0], place[2]]
        proposals = self.proposals.get(place, ()) if grid.is_open else grid_points
        return [
            first.at_other_point(content_id(problem=problem, **proposal.identity), proposal)
            for proposal in proposals
        ]
