"""Planning: from the facts of a sweep to all its runs, banks and batches.

Planning is pure and deterministic: it takes facts of data sets and banks and grids of settings,
and returns a plan.  Ids are content hashes.  A run that is recorded under its id is therefore
never repeated, and a changed sweep repeats only the runs that changed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

import numpy as np

from mkldist.bank.bank import LAYOUT_VERSION, TileLayout
from mkldist.bank.factored_kernels import FactorLimits
from mkldist.bank.store import FACTORS_VERSION
from mkldist.core.checksums import content_id
from mkldist.core.devices import CPU
from mkldist.core.memory import bank_bytes
from mkldist.optim.pivoted_cholesky import PIECE
from mkldist.planning.costs import passes_by_bank, peak_memory
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
from mkldist.solvers.grids import MethodGrid
from mkldist.spec.banks import FACTORS, BankSpec
from mkldist.spec.datasets import DatasetSpec
from mkldist.spec.model import MethodSpec, SweepSpec

BATCHES_PER_THREAD = 2


def split_groups(splits: Sequence[int], n_threads: int) -> list[list[int]]:
    """Divide splits into groups, so that every thread gets a few batches of one shared bank.

    Examples
    --------
    >>> split_groups(range(5), 1)
    [[0, 1, 2], [3, 4]]
    """
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

    @property
    def _all_grids(self) -> Iterator[MethodGrid]:
        return (grid for of_dataset in self.grids.values() for grid in of_dataset.values())

    @cached_property
    def _is_open(self) -> bool:
        return any(grid.is_open for grid in self._all_grids)

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
        n_splits = len(facts.split_fingerprints)
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
        tightest = min(
            (point.tol for grid in self._all_grids for point in grid.points), default=math.inf
        )
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
        limits = FactorLimits.of(bank.spec.rank, bank.spec.tolerance)
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
            **({"factors": [limits.rank, limits.tolerance]} if bank.is_factored else {}),
        )
        place = bank.dataset, bank.spec.label, entry.key, split
        if self._is_open:
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
        if grid.is_open:
            proposals = self.proposals.get(place, ())
        else:  # splits with fewer training rows are for searches alone
            proposals = self._grid_points[place[0], place[2]] if split < facts.n_splits else ()
        return [
            first.at_other_point(content_id(problem=problem, **proposal.identity), proposal)
            for proposal in proposals
        ]
