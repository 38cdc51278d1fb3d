"""A batch of runs on one bank: make the views, drive the solvers, record each run as it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from mkldist.arrays import Floats
from mkldist.errors import UnreadableError
from mkldist.fit.problem import (
    BankInputs,
    BankRef,
    SolvedSubproblem,
    Subproblem,
    TrainingView,
    bank_inputs,
    chains_of,
    is_scored_on_bank,
    labels_of,
    laplacian,
    subproblems_of,
    values_on_bank,
)
from mkldist.fit.score import Scorer, failed_record
from mkldist.gram.bank import Bank
from mkldist.gram.build_time import BuildTime
from mkldist.gram.cache import default_directory
from mkldist.gram.factored_kernels import FactoredKernels, begin_factors, limits_of
from mkldist.gram.kept_rows import MemoryBudget
from mkldist.gram.loading import DamagedBlocksError
from mkldist.gram.sources import BankSource
from mkldist.gram.view import BankView, make_views
from mkldist.memory import groups_at_once, kept_arrays_bytes, view_cache_bytes
from mkldist.methods.registry import METHODS
from mkldist.planning.costs import factors_bytes, run_memory
from mkldist.planning.model import RunPlan
from mkldist.results.run_record import RunRecord
from mkldist.solvers.base import Problem, Solution
from mkldist.solvers.kept_arrays import KeptArrays
from mkldist.solvers.lockstep import Job, JobTimes, drive, solve_timed
from mkldist.solvers.on_factors import solve_on_factors
from mkldist.worker.announcements import Announce
from mkldist.worker.kept_states import STATES
from mkldist.worker.record_sinks import RecordSink, record_sink


def factors_of(
    ref: BankRef, source: BankSource, memory_limit: int | None, threads: int
) -> FactoredKernels:
    """Return the kernels of a bank beside factors of few columns, which the bank's store keeps.

    Parameters
    ----------
    ref : BankRef
        The bank.
    source : BankSource
        Source of its values.
    memory_limit : int or None
        Bytes that the task may take, of which factors may take half; the others lie in a file of
        the node cache.  Without a limit memory holds all first factors.
    threads : int
        Kernels that are factorised at the same time.
    """
    plan = ref.plan
    limits = limits_of(plan.spec, factors_bytes(plan, memory_limit))
    store, folder = ref.factor_store(), default_directory()
    return begin_factors(source, limits, plan.seed, threads, store, folder, plan.dtype)


def solved_in_turn(factored: FactoredKernels, run: RunPlan, job: Job) -> tuple[Solution, JobTimes]:
    """Solve a subproblem, and let factors grow until the solution holds for the kernels.

    A subproblem on some of the points, those without an inner fold, is scored on the other points
    and not reported.  It is solved on the factors as they are.

    Parameters
    ----------
    factored : FactoredKernels
        The kernels and their factors.
    run : RunPlan
        The run.
    job : Job
        The subproblem's solver, not started.
    """
    if job.view.index is not None:
        return solve_timed(job.view.bank, job)
    method, kernels = METHODS[run.method], replace(factored, scale=job.view.scale)
    found = solve_on_factors(kernels, method, job.problem, method.params(**run.params))
    return found.solution, found.times


@dataclass(frozen=True)
class BatchSettings:
    """Settings of all batches of a sweep.

    Parameters
    ----------
    records : str
        Folder of the records.
    execution : str
        ``"shared"``: all solvers in lockstep; ``"path"``: all paths in lockstep; ``"isolated"``:
        one solver after the other.
    seed : int
        Seed of the sweep, for provenance.
    memory_limit : int, optional
        Bytes that a worker may take.
    predictions : bool
        True if records hold decision values of test and unlabelled points.
    coefficients : bool
        True if records hold the rows that coefficients belong to, and the coefficients of each
        kernel where these differ.
    topic : str
        Topic on which tasks announce finished runs and what they do; empty for none.
    own_workers : bool
        True if workers end with the sweep, so that they may keep memory for their next batch.
    post : str
        Name of the post by which records go to a coordinator with which workers share no folder,
        see :mod:`mkldist.worker.post`; empty if they share that of the records.
    """

    records: str
    execution: str = "shared"
    seed: int = 0
    memory_limit: int | None = None
    predictions: bool = False
    coefficients: bool = False
    topic: str = ""
    own_workers: bool = False
    post: str = ""


def solve_runs(
    bank: Bank,
    ref: BankRef,
    runs: Sequence[RunPlan],
    settings: BatchSettings,
    announce: Announce,
    build_time: Callable[[], BuildTime | None] = lambda: None,
    factored: FactoredKernels | None = None,
) -> None:
    """Solve the runs that have no record yet, and record each as it ends.

    A run whose solver raises is recorded as failed with its error; the others go on.

    Parameters
    ----------
    bank : Bank
        The bank, open.
    ref : BankRef
        The same bank by name.
    runs : sequence of RunPlan
        Runs on that bank.
    settings : BatchSettings
        Settings of the sweep.
    announce : callable
        Called with the id of a run as ``"run"`` and its ``"state"`` when its record is durable.
    build_time : callable
        Returns the time that took the bank to build, None if it is unknown.
    factored : FactoredKernels, optional
        The kernels for whose factors the bank stands, if it does.
    """
    with record_sink(settings.records, settings.post, runs[0].id) as sink:
        unrecorded = sink.unrecorded(runs)
        if not unrecorded:
            return
        inputs = bank_inputs(ref)
        subproblems = {run.id: list(subproblems_of(inputs, run)) for run in unrecorded}
        views = _views(factored or bank, ref, inputs, subproblems.values(), settings)
        scorer = Scorer(
            ref,
            inputs,
            views,
            settings.seed,
            settings.predictions,
            settings.coefficients,
            build_time,
        )
        batch = _Batch(scorer, sink, announce, subproblems, settings.memory_limit)
        if factored is not None:
            batch.solve_in_turn(factored)
            return
        bytes_of = _bytes_of_solvers(bank, views.values(), unrecorded, settings.memory_limit)
        batch.drive(bank, bytes_of, isolated=settings.execution == "isolated")


def _views(
    bank: Bank | FactoredKernels,
    ref: BankRef,
    inputs: BankInputs,
    subproblems: Iterable[Iterable[Subproblem]],
    settings: BatchSettings,
) -> dict[TrainingView, BankView]:
    """Return the view of the bank for every training view that a subproblem has."""
    training_views = list(
        dict.fromkeys(subproblem.training_view for run in subproblems for subproblem in run)
    )
    # The source of the bank has scaled its kernels to cosines already.
    normalisations = [name for name in ref.plan.spec.normalisations if name != "cosine"]
    indices = [inputs.view_index(training_view) for training_view in training_views]
    if isinstance(bank, FactoredKernels):
        return dict(zip(training_views, bank.views(indices, normalisations), strict=True))
    views = make_views(
        bank,
        indices,
        normalisations,
        MemoryBudget(view_cache_bytes(settings.memory_limit)),
        inputs.presence,
    )
    return dict(zip(training_views, views, strict=True))


def _bytes_of_solvers(
    bank: Bank, views: Iterable[BankView], runs: Sequence[RunPlan], memory_limit: int | None
) -> dict[str, int]:
    """Return the bytes of a solver of each run, by its id."""
    n_points, found = max(view.n_points for view in views), dict.fromkeys((r.id for r in runs), 0)
    for run in runs:
        with suppress(Exception):  # parameters that no longer fit are that run's failure
            memory = run_memory(run, n_points, bank.n_kernels)
            found[run.id] = memory.within(memory_limit)
    return found


@dataclass(eq=False)
class _Batch:
    """Runs that are being solved.

    Parameters
    ----------
    scorer : Scorer
        Scores the solved runs.
    sink : RecordSink
        Takes their records.
    announce : callable
        Announces each run when its record is durable.
    subproblems : mapping of str to list of Subproblem
        The subproblems of every run by its id.
    memory_limit : int, optional
        Bytes that the batch may take.
    solved : dict of str to dict of Subproblem to SolvedSubproblem
        The solved subproblems of every run that is not recorded yet.
    kept : KeptArrays
        Arrays that solvers on a graph share.
    """

    scorer: Scorer
    sink: RecordSink
    announce: Announce
    subproblems: Mapping[str, list[Subproblem]]
    memory_limit: int | None = None
    solved: dict[str, dict[Subproblem, SolvedSubproblem]] = field(init=False)
    kept: KeptArrays = field(init=False)

    def __post_init__(self) -> None:
        self.kept = KeptArrays(kept_arrays_bytes(self.memory_limit))
        self.solved = {run_id: {} for run_id in self.subproblems}

    def drive(self, bank: Bank, bytes_of: Mapping[str, int], *, isolated: bool) -> None:
        """Solve all subproblems, neighbouring chains together as far as memory allows.

        Parameters
        ----------
        bank : Bank
            The bank.
        bytes_of : mapping of str to int
            Bytes of a solver of each run, by its id.
        isolated : bool
            True to solve one subproblem after the other.
        """
        chains = chains_of(self.subproblems.values())
        sizes = [max(bytes_of[one.run.id] for one in chain) for chain in chains]
        groups = groups_at_once(sizes, self.memory_limit)
        if isolated:
            groups = [slice(i, i + 1) for i in range(len(chains))]
        for group in groups:
            self._drive_together(bank, chains[group])

    def solve_in_turn(self, factored: FactoredKernels) -> None:
        """Solve all subproblems on factors of kernels, one after the other.

        Every chain begins with the first factors, whatever others have made of theirs, so that its
        results do not depend on the chains beside it.

        Parameters
        ----------
        factored : FactoredKernels
            The kernels and their first factors.
        """
        for chain in chains_of(self.subproblems.values()):
            self._solve_chain(factored.copy(), chain)

    def _solve_chain(self, factored: FactoredKernels, chain: Sequence[Subproblem]) -> None:
        """Solve the subproblems of a chain on factors that grow, each from the last solution."""
        values: dict[str, Floats] = {}
        start: object = None
        for subproblem in chain:
            job = self._next_job(iter([subproblem]), values, start)
            if job is None:
                continue
            try:
                solution, times = solved_in_turn(factored, subproblem.run, job)
            except UnreadableError:
                raise
            except Exception as error:  # a failed run is a result: it is recorded, others go on
                self._fail(subproblem, error)
                continue
            start = self._ended(subproblem, solution, times, values)

    def _drive_together(self, bank: Bank, chains: Sequence[tuple[Subproblem, ...]]) -> None:
        """Solve some chains together; the next solver of a chain takes the place of the last."""
        values: dict[str, Floats] = {}
        remaining = [iter(chain) for chain in chains]
        subproblems = {subproblem.key: subproblem for chain in chains for subproblem in chain}
        chain_of = {
            subproblem.key: rest
            for chain, rest in zip(chains, remaining, strict=True)
            for subproblem in chain
        }

        def on_done(key: str, outcome: Solution | Exception, times: JobTimes) -> Job | None:
            subproblem = subproblems[key]
            if not isinstance(outcome, Solution):
                self._fail(subproblem, outcome)
                return self._next_job(chain_of[key], values)
            state = self._ended(subproblem, outcome, times, values)
            return self._next_job(chain_of[key], values, state)

        jobs = [self._next_job(rest, values) for rest in remaining]
        drive(bank, [job for job in jobs if job is not None], on_done)

    def _ended(
        self,
        subproblem: Subproblem,
        solution: Solution,
        times: JobTimes,
        values: dict[str, Floats],
    ) -> object:
        """Keep the solution of a subproblem; return its state, from which the next may start."""
        may_start_others = subproblem.run.is_followed and not self.scorer.ref.plan.is_factored
        if may_start_others and solution.state is not None:
            STATES.keep(subproblem.key, solution.state)
        # The state is for the next solver alone: kept with the solution, it would fill memory.
        kept = replace(solution, state=None)
        self._keep(subproblem, SolvedSubproblem(kept, times, values.pop(subproblem.key, None)))
        return solution.state

    def _next_job(
        self, rest: Iterator[Subproblem], values: dict[str, Floats], start: object = None
    ) -> Job | None:
        """Return the next solver of a chain, not started, or None at the end of the chain.

        Subproblems of recorded runs are left out.

        Parameters
        ----------
        rest : iterator of Subproblem
            Rest of the chain.
        values : dict
            Takes the values on the bank that are requested after the solver's end.
        start : object, optional
            State of the chain's last solver, from which this one starts.
        """
        for subproblem in rest:
            if subproblem.run.id not in self.solved:
                continue
            try:
                return self._job(subproblem, values, start)
            except (DamagedBlocksError, UnreadableError):  # a fault of the bank, not of the run
                raise
            except Exception as error:  # parameters that no longer fit are that run's failure
                self._fail(subproblem, error)
        return None

    def _job(self, subproblem: Subproblem, values: dict[str, Floats], start: object) -> Job:
        """Return the solver of a subproblem, not started."""
        run, scorer = subproblem.run, self.scorer
        method, ref, inputs = METHODS[run.method], scorer.ref, scorer.inputs
        if run.after and not ref.plan.is_factored:  # a state knows the factors that it was made on
            last_rung = STATES.take(subproblem.key_before)
            start = start if last_rung is None else last_rung
        view = scorer.views[subproblem.training_view]
        memory = run_memory(run, view.n_points, ref.plan.n_kernels, on_factors=ref.plan.is_factored)
        problem = Problem(
            y=labels_of(inputs, subproblem, scorer.scale(subproblem.training_view)),
            n_kernels=ref.plan.n_kernels,
            laplacian=None if run.graph is None else laplacian(ref, run.graph, run.split),
            start=start,
            spare_bytes=memory.spare_within(self.memory_limit),
            groups=inputs.groups if method.takes_groups else None,
            kept=self.kept.on(view.id) if method.needs_laplacian else None,
        )
        steps = method.solve(problem, method.params(**run.params))
        after = None
        if is_scored_on_bank(inputs, subproblem.training_view):
            after = partial(values_on_bank, view, into=values, key=subproblem.key)
        return Job(subproblem.key, view, problem, steps, after)

    def _keep(self, subproblem: Subproblem, solved: SolvedSubproblem) -> None:
        """Keep a solved subproblem, and record its run if it was the last."""
        run = subproblem.run
        if run.id not in self.solved:
            return  # another subproblem of the run has failed, and the run with it
        self.solved[run.id][subproblem] = solved
        if len(self.solved[run.id]) < len(self.subproblems[run.id]):
            return
        in_order = {one: self.solved[run.id][one] for one in self.subproblems[run.id]}
        try:
            record = self.scorer.record(run, in_order)
        except (DamagedBlocksError, UnreadableError):  # a fault of the bank, not of the run
            raise
        except Exception as error:  # a run whose scores fail is a failed run, not a failed batch
            record = failed_record(run, error, self.scorer.ref.plan.n_kernels)
        self._commit(record)

    def _fail(self, subproblem: Subproblem, error: Exception) -> None:
        """Record the run of a failed subproblem as failed; its other solutions are dropped."""
        if subproblem.run.id in self.solved:
            description = subproblem.description(self.scorer.inputs.dataset)
            n_kernels = self.scorer.ref.plan.n_kernels
            self._commit(failed_record(subproblem.run, error, n_kernels, description))

    def _commit(self, record: RunRecord) -> None:
        """Have a record stored, forget its run, and announce it."""
        self.sink.write(record)
        del self.solved[record.id]
        self.announce({"run": record.id, "state": str(record.state)})
