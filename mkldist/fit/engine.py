"""One driver for all fits: a batch of runs on one bank, a single run, a problem of a user's.

:func:`fit` solves runs on an open bank: in lockstep, along their paths, or in turn on factors that
grow.  A sweep's task and ``mkldist fit`` call it; :func:`mkldist.solve` and the estimators call
:func:`solve_job`, for one problem of a user's.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Protocol

import numpy as np

from mkldist.bank.bank import Bank, MemoryBudget
from mkldist.bank.factored_kernels import FactoredKernels, FactorLimits
from mkldist.bank.readers import DamagedBlocksError
from mkldist.bank.requests import Request
from mkldist.bank.view import BankView, make_views
from mkldist.core.arrays import Floats, Ints
from mkldist.core.memory import groups_at_once, kept_arrays_bytes, view_cache_bytes
from mkldist.errors import UnreadableError
from mkldist.fit.bank import BankSize, factored, loaded, recomputed
from mkldist.fit.decision import bank_values
from mkldist.fit.problem import (
    BankInputs,
    SolvedSubproblem,
    Subproblem,
    TrainingView,
    chains_of,
    functions_of,
    problem_on,
    subproblems_of,
)
from mkldist.methods.registry import METHODS
from mkldist.planning.costs import run_memory
from mkldist.planning.model import RunPlan
from mkldist.solvers.base import ArrayCache, Method, Solution
from mkldist.solvers.lockstep import Job, JobTimes, SolvedJob, drive, solve_timed
from mkldist.solvers.on_factors import solve_on_factors
from mkldist.solvers.solver_params import SolverParams
from mkldist.spec.banks import FACTORS, BankSpec
from mkldist.spec.datasets import GraphTable

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


class States(Protocol):
    """Keeper of the final states of solvers that later runs may start from."""

    def keep(self, name: str, state: Any) -> None:
        """Keep a state."""

    def take(self, name: str) -> Any:
        """Return a state and forget it; None if there is none of the name."""


def solve_job(
    job: Job, method: Method, params: SolverParams, factored: FactoredKernels | None = None
) -> SolvedJob:
    """Solve one problem on a bank, or on factors that grow until it is solved for the kernels.

    `job` is not started.  `factored` are the kernels for whose factors the bank stands, if it does.
    A problem on some of the points of factors is solved on these as they are: an inner fold, which
    is scored on the other points and not reported.
    """
    if factored is not None and job.view.index is None:
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
    states: States | None = None,
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
        views = bank.views(indices, steps)
    else:
        budget = MemoryBudget(view_cache_bytes(memory_limit))
        views = make_views(bank, indices, steps, budget, inputs.presence)
    batch = _Batch(
        inputs,
        dict(zip(training_views, views, strict=True)),
        subproblems,
        on_ended,
        laplacian or cache(inputs.laplacian),
        scored,
        memory_limit,
        None if isinstance(bank, FactoredKernels) else states,
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
    states: States | None
    on_factors: bool
    solved: dict[str, dict[Subproblem, SolvedSubproblem]] = field(init=False)
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
            self._drive_together(bank, chains[group])

    def solve_in_turn(self, kernels: FactoredKernels) -> None:
        """Solve all subproblems on factors of kernels, one after the other.

        Every chain begins with the first factors, whatever others have made of theirs, so that its
        results do not depend on the chains beside it.
        """
        values: dict[str, Floats] = {}
        for chain in chains_of(self.subproblems.values()):
            factors, start = kernels.copy(), None
            for subproblem in chain:
                if subproblem.run.id not in self.solved:
                    continue
                method = METHODS[subproblem.run.method]
                try:
                    params = method.params(**subproblem.run.params)
                    found = solve_job(self._job(subproblem, values, start), method, params, factors)
                except OF_BANK:
                    raise
                except Exception as error:  # a failed run is a result: it is recorded, others go on
                    self._fail(subproblem, error)
                    continue
                start = found.solution.state
                values_there = values.pop(subproblem.key, None)
                self._keep(subproblem, found.solution, found.times, values_there)

    def _bytes_of_solvers(self, runs: Sequence[RunPlan]) -> dict[str, int]:
        """Return the bytes of a solver of each run, by its id."""
        views, found = self.views.values(), dict.fromkeys((run.id for run in runs), 0)
        n_points = max(view.n_points for view in views)
        n_kernels = next(iter(views)).n_kernels
        for run in runs:
            with suppress(Exception):  # parameters that no longer fit are that run's failure
                found[run.id] = run_memory(run, n_points, n_kernels).within(self.memory_limit)
        return found

    def _drive_together(self, bank: Bank, chains: Sequence[tuple[Subproblem, ...]]) -> None:
        """Solve some chains together; the next solver of a chain takes the place of the last."""
        values: dict[str, Floats] = {}
        remaining = [iter(chain) for chain in chains]
        subproblems = {one.key: one for chain in chains for one in chain}
        chain_of = {
            one.key: rest for chain, rest in zip(chains, remaining, strict=True) for one in chain
        }

        def on_done(key: str, outcome: Solution | Exception, times: JobTimes) -> Job | None:
            state = None
            if isinstance(outcome, Solution):
                state = outcome.state
                self._keep(subproblems[key], outcome, times, values.pop(key, None))
            else:
                self._fail(subproblems[key], outcome)
            return self._next_job(chain_of[key], values, state)

        jobs = [self._next_job(rest, values) for rest in remaining]
        drive(bank, [job for job in jobs if job is not None], on_done)

    def _next_job(
        self, rest: Iterator[Subproblem], values: dict[str, Floats], start: object = None
    ) -> Job | None:
        """Return the next solver of a chain, not started, or None at the end of the chain."""
        for subproblem in rest:
            if subproblem.run.id not in self.solved:
                continue
            try:
                return self._job(subproblem, values, start)
            except OF_BANK:
                raise
            except Exception as error:  # parameters that no longer fit are that run's failure
                self._fail(subproblem, error)
        return None

    def _job(self, subproblem: Subproblem, values: dict[str, Floats], start: object) -> Job:
        """Return the solver of a subproblem, not started."""
        run, view = subproblem.run, self.views[subproblem.training_view]
        method = METHODS[run.method]
        if run.after and self.states is not None:
            last_rung = self.states.take(subproblem.key_before)
            start = start if last_rung is None else last_rung
        memory = run_memory(run, view.n_points, view.n_kernels, on_factors=self.on_factors)
        problem = problem_on(
            view,
            method,
            subproblem.labels(self.inputs),
            laplacian=None if run.graph is None else self.laplacian(run.graph, run.split),
            weights=subproblem.weights(self.inputs),
            groups=self.groups,
            start=start,
            spare_bytes=memory.spare_within(self.memory_limit),
            shared=self.shared,
        )
        after = None
        if self.scored and self.inputs.is_scored_on_bank(subproblem.training_view):
            after = partial(_values_on_bank, view, into=values, key=subproblem.key)
        steps = method.solve(problem, method.params(**run.params))
        return Job(subproblem.key, view, problem, steps, after)

    def _keep(
        self,
        subproblem: Subproblem,
        solution: Solution,
        times: JobTimes,
        values: Floats | None = None,
    ) -> None:
        """Keep the solution of a subproblem, and hand on its run if it was the last."""
        run = subproblem.run
        if run.is_followed and self.states is not None and solution.state is not None:
            self.states.keep(subproblem.key, solution.state)
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
        run = subproblem.run
        if run.id in self.solved:
            words = subproblem.description(self.inputs.dataset)
            self.on_ended(FailedFit(run, error, words))
            del self.solved[run.id]


def _values_on_bank(
    view: BankView, solution: Solution, into: dict[str, Floats], key: str
) -> Generator[Request, Any, None]:
    """Request the values of a solution's decision functions on the bank; store them in `into`."""
    into[key] = yield from bank_values(view, functions_of(view, solution))
