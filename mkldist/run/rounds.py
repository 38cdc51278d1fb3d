"""Rounds of a sweep: a plan of the runs so far, and what a search adds when these are recorded.

A sweep of grids has one round.  A search adds a round when all runs of the last are recorded.  So
does a method whose C another gives, when the runs of the other are.  The plan after each round is a
function of the sweep file, the data and the records: nothing else is stored, and a sweep that was
interrupted goes on as if it had not been.

Settings of a search are a function of the seed and the number of their trial alone: a trial draws a
parameter of one name alike for every method, data set and split, so that these are compared at
equal settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from typing import Any

from mkldist.core.checksums import content_id
from mkldist.core.metrics import Metric
from mkldist.methods.registry import METHODS
from mkldist.planning.model import BatchPlan, Place, Plan, Proposal, RunPlan
from mkldist.planning.planner import make_plan, passes_by_bank, without
from mkldist.planning.resolved import Resolved
from mkldist.results.journal import Journal
from mkldist.results.schema import RunState
from mkldist.solvers.grids import MethodGrid, Space
from mkldist.solvers.solver_params import setting
from mkldist.spec.kinds import LINKED, SOURCE_PREFIX, TRIAL
from mkldist.spec.model import SearchSpec, SweepSpec

Values = Mapping[str, Any]
Setting = frozenset[tuple[str, Any]]
HEX_DIGITS = 13  # 52 bits, as many as a share in [0, 1) can hold
ATTEMPTS = 1000  # to draw a setting that no other trial has


def drawn(space: Space, seed: int, trial: int, attempt: int = 0) -> Values:
    """Return the setting that a trial draws."""

    def share(name: str) -> float:
        digits = content_id(seed=seed, parameter=name, trial=trial, attempt=attempt)[:HEX_DIGITS]
        return float(int(digits, 16)) / 16.0**HEX_DIGITS

    return space.at({name: share(name) for name in space.names})


def all_fresh(space: Space, seed: int, n_trials: int) -> Iterator[Values]:
    """Yield another setting for each of some trials; stop where none is left."""
    tried: set[Setting] = set()
    for trial in range(n_trials):
        draws = (drawn(space, seed, trial, attempt) for attempt in range(ATTEMPTS))
        values = next((one for one in draws if setting_key(one) not in tried), None)
        if values is None:
            return
        tried.add(setting_key(values))
        yield values


def setting_key(values: Values) -> Setting:
    """Return the values as a member of sets; lists and dicts are told apart by how they print."""
    return frozenset(
        (name, value if isinstance(value, Hashable) else repr(value))
        for name, value in values.items()
    )


def survivors(losses: Mapping[int, float], factor: int) -> list[int]:
    """Return the trials that go on: those of least loss, of equal ones the first."""
    best = sorted(losses, key=lambda trial: (losses[trial], trial))
    best = best[: -(-len(losses) // factor)]
    return sorted(trial for trial in best if math.isfinite(losses[trial]))


TrialLoss = Callable[[int, int], float]
"""Loss of a trial on a rung, both by number; infinite if it failed."""


@dataclass(eq=False)
class Study:
    """Trials of one method on one bank, data set and split."""

    space: Space  # space of the method's settings
    search: SearchSpec
    seed: int
    trials: list[Values] = field(default_factory=list)  # the setting of each trial
    # Numbers of the trials on each rung so far; one rung without halving
    rungs: list[list[int]] = field(default_factory=list)

    def advance(self, loss: TrialLoss) -> bool:
        """Propose the runs of the next round; return False if the study is complete."""
        last = len(self.rungs) - 1
        if not self.rungs:
            self.trials = list(all_fresh(self.space, self.seed, self.search.trials))
            self.rungs = [list(range(len(self.trials)))]
        elif self.search.kind == "random" or len(self.rungs) == self.search.rungs:
            return False
        else:
            losses = {trial: loss(trial, last) for trial in self.rungs[last]}
            self.rungs.append(survivors(losses, self.search.factor))
        return bool(self.rungs[-1])


MOST_VALUES = 1_000_000
"""Decision values of a sweep that are recorded without being asked for: 8 MB of them at most."""
DIGITS = 6  # of a given C: tables can show it, and rounding elsewhere seldom changes it


@dataclass(frozen=True)
class DependentSetting:
    """A method on one split of one data set and bank that takes its C from another."""

    place: Place  # place of its runs
    grid: MethodGrid  # its settings, without C

    @property
    def source(self) -> Place:
        """Place of the runs that give it C."""
        dataset, bank, _, split = self.place
        return dataset, bank, self.grid.source, split

    def proposals(
        self, sources: Iterable[RunPlan], given: Mapping[str, float]
    ) -> Iterator[Proposal]:
        """Yield its runs: every setting at the C that each run of the other method gives."""
        for run in sources:
            if math.isnan(given[run.id]):
                continue
            at = {
                name: setting(run.params, name.removeprefix(SOURCE_PREFIX))
                for name in self.grid.dims
                if name.startswith(SOURCE_PREFIX)
            }
            for own in self.grid.settings:
                yield Proposal(own | {LINKED: given[run.id]}, at, source=run.id)


def given_C(run: RunPlan, store: Journal) -> float | None:
    """Return the C that a run gives; NaN if it failed or has no kernel, None unless recorded."""
    record = store.read(run.id)
    if record is None:
        return None
    if record.state is not RunState.COMPLETE:
        return math.nan
    C = METHODS[run.method].params(**run.params).given_C(record.extra)
    return float(f"{C:.{DIGITS}g}") if C > 0.0 else math.nan


Loss = Callable[[Place, int, int], float]
"""Loss of a trial of the study at a place, on a rung."""

STAND_IN_C = 1.0  # of runs whose C is not known yet, to plan their work


class Rounds:
    """Rounds of a sweep."""

    def __init__(
        self, spec: SweepSpec, resolved: Resolved, n_threads: int, memory_limit: int | None
    ) -> None:
        self.spec, self.resolved = spec, resolved
        self.memory_limit = memory_limit
        self._n_threads = n_threads
        self._studies: dict[Place, Study] = {}
        self._dependents: list[DependentSetting] = []
        self._given: dict[str, float] | None = None  # C by the id of the run that gives it
        self._losses: dict[str, float] = {}  # by the id of a run
        self._begin()

    def _begin(self) -> None:
        """Go to the first round."""
        self.number, self._runs = 0, dict[tuple[Place, int, int], RunPlan]()
        self._studies, self._given = self._new_studies(), None
        self._dependents = [
            DependentSetting(place, grid) for place, grid in self._grids_by_place() if grid.source
        ]
        for study in self._studies.values():
            study.advance(lambda trial, rung: math.inf)
        self._make()

    def _new_studies(self) -> dict[Place, Study]:
        search = self.spec.search
        if search is None:
            return {}
        seed = self.spec.seed if search.seed is None else search.seed
        return {
            place: Study(grid.space, search, seed)
            for place, grid in self._grids_by_place()
            if grid.space is not None
        }

    def _grids_by_place(self) -> Iterator[tuple[Place, MethodGrid]]:
        """Yield every method on every bank, data set and split, and its settings there."""
        for dataset in self.spec.sized_datasets:
            grids = self.resolved.grids[dataset.name]
            splits = range(self.resolved.facts[dataset.name].n_splits)
            for bank, method in product(self.spec.sized_banks, self.spec.methods):
                if method.runs_on(bank):
                    for split in splits:
                        yield (dataset.name, bank.label, method.key, split), grids[method.key]

    def only(self, run_ids: Collection[str]) -> Rounds:
        """Return the rounds of a sweep of grids with some of its runs alone."""
        found = copy(self)
        dropped = {run.id for run in self.plan.runs} - {*run_ids}
        plan = replace(self.plan, batches=without(self.plan.batches, dropped))
        ids = sorted(run.id for run in plan.runs)
        found.plan = replace(plan, id=content_id(name=self.spec.name, runs=ids))
        found.keeps_predictions = self.keeps_predictions
        found._ahead = found.plan, []
        return found

    @property
    def are_several(self) -> bool:
        """True if records decide on further runs."""
        return bool(self._studies or self._dependents)

    @property
    def most_runs(self) -> int:
        """As many runs as there may be in the end; 0 if records decide on none."""
        return len(self.expected.runs) if self.are_several else 0

    @property
    def expected(self) -> Plan:
        """The plan of as many runs as there may be: that of now, if no other round can follow."""
        ended = not self._studies and self._given is not None
        return self.plan if ended else self.most

    @property
    def most(self) -> Plan:
        """The plan if every round takes place: as many runs as there may be, with their passes."""
        return self._ahead[0]

    @cached_property
    def keeps_predictions(self) -> bool:
        """True if runs record decision values: asked for, few, or to score folds together."""
        asked = self.spec.outputs.predictions
        if asked is not None:
            return asked
        facts = self.resolved.facts
        if any(one.n_of_few_classes for one in facts.values()):
            return True
        sizes = {name: one.n_points * one.n_problems for name, one in facts.items()}
        return sum(sizes[run.dataset] for run in self.most.runs) <= MOST_VALUES

    @property
    def passes_by_bank(self) -> dict[tuple[str, str], int]:
        """Passes that are expected over each bank, by data set and label of the bank."""
        return self._passes(self.plan.batches)

    @property
    def later_banks(self) -> frozenset[str]:
        """Ids of the banks that later rounds need, if every round takes place."""
        return frozenset().union(*self._ahead[1][self.number + 1 :])

    @cached_property
    def _ahead(self) -> tuple[Plan, list[frozenset[str]]]:
        """The plan if every round takes place, and the banks of each round."""
        if not self.are_several:
            return self.plan, []
        ahead = Rounds(self.spec, self.resolved, self._n_threads, self.memory_limit)
        passes, banks, done = 0, [], frozenset[str]()
        more = True
        while more:
            batches = without(ahead.plan.batches, done)
            passes += sum(ahead._passes(batches).values())
            banks.append(frozenset(batch.bank for batch in batches))
            done = frozenset(run.id for run in ahead.plan.runs)
            more = ahead._advance(
                lambda place, trial, rung: float(trial), dict.fromkeys(done, STAND_IN_C)
            )
        return replace(ahead.plan, estimated_passes=passes), banks

    def replay(self, store: Journal) -> None:
        """Go from the first round as far as all runs are recorded."""
        if not self.are_several:
            return
        self._losses.clear()
        self._begin()
        while self.advance(store):
            pass

    def advance(self, store: Journal) -> bool:
        """Go to the next round; return False if there is none, or this one lacks records."""
        for run in self._runs.values():
            if run.id not in self._losses:
                metric = self.metric_of(run.dataset)
                loss = _loss(store, run.id, metric)
                if loss is None:
                    return False
                self._losses[run.id] = loss
        given = self._recorded_C(store) if self._given is None else self._given
        if given is None:
            return False
        return self._advance(
            lambda place, trial, rung: self._losses[self._runs[place, trial, rung].id], given
        )

    def _recorded_C(self, store: Journal) -> dict[str, float] | None:
        """Return the C that each run of another method gives; None unless all are recorded."""
        found = {}
        for runs in self._sources.values():
            for run in runs:
                C = given_C(run, store)
                if C is None:
                    return None
                found[run.id] = C
        return found

    @property
    def _sources(self) -> dict[Place, list[RunPlan]]:
        """The runs whose solutions give others their C, by their places."""
        found: dict[Place, list[RunPlan]] = {one.source: [] for one in self._dependents}
        for run in self.plan.runs if found else ():
            if run.place in found:
                found[run.place].append(run)
        return found

    @property
    def without_C(self) -> list[RunPlan]:
        """Runs that failed or have no kernel, so that they give others no C."""
        given = self._given or {}
        runs = (run for of_place in self._sources.values() for run in of_place)
        return [run for run in runs if math.isnan(given.get(run.id, 0.0))]

    def metric_of(self, dataset: str) -> Metric:
        """Return the metric that compares the runs on a data set."""
        return self.spec.metric_of(self.resolved.datasets[dataset][0].task)

    def _advance(self, loss: Loss, given: dict[str, float]) -> bool:
        """Let studies propose, and methods take their C; plan anew and return True if any has."""
        moved = [study.advance(partial(loss, place)) for place, study in self._studies.items()]
        moved.append(bool(self._dependents) and self._given is None)
        self._given = given
        if any(moved):
            self.number += 1
            self._make()
        return any(moved)

    def _passes(self, batches: Sequence[BatchPlan]) -> dict[tuple[str, str], int]:
        return passes_by_bank(self.spec.execution, self.plan.banks, batches, self.memory_limit)

    def _make(self) -> None:
        """Plan the runs that are decided so far."""
        proposals: dict[Place, list[Proposal]] = {}
        for place, study in self._studies.items():
            proposals[place] = [
                self._proposal(place, study, trial, rung)
                for rung, trials in enumerate(study.rungs)
                for trial in trials
            ]
        if self._given is not None:
            sources = self._sources
            for one in self._dependents:
                own = one.proposals(sources[one.source], self._given)
                proposals[one.place] = list(own)
        self.plan = make_plan(
            self.spec,
            self.resolved.facts,
            self.resolved.banks,
            self.resolved.grids,
            self._n_threads,
            self.memory_limit,
            proposals,
        )
        self._runs = {
            (run.place, run.at[TRIAL], rungs.index(run.at["tol"]) if rungs else 0): run
            for run in self.plan.runs
            if TRIAL in run.at
            for rungs in [self.resolved.grids[run.dataset][run.key].dims.get("tol")]
        }

    def _proposal(self, place: Place, study: Study, trial: int, rung: int) -> Proposal:
        """Return the run of a trial on a rung, at a looser tolerance than the next."""
        grid, at = self.resolved.grids[place[0]][place[2]], {TRIAL: trial}
        values = dict(study.trials[trial])
        if study.search.kind == "halving":
            values["tol"] = at["tol"] = grid.dims["tol"][rung]
        return Proposal(grid.plain_settings_at(values), at)


def _loss(store: Journal, run_id: str, metric: Metric) -> float | None:
    """Return the validation loss of a run; infinity if it has none, None unless recorded."""
    record = store.read(run_id)
    if record is None:
        return None
    loss = float(metric.loss(record.scores.get(metric.variable("validation"), math.nan)))
    return loss if math.isfinite(loss) else math.inf
