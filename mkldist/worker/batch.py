"""A batch of runs on one bank: views, solvers in lockstep, one record per run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from mkldist.arrays import Floats
from mkldist.errors import UnreadableError
from mkldist.gram.bank import Bank
from mkldist.gram.kept_rows import MemoryBudget
from mkldist.gram.loading import DamagedBlocksError
from mkldist.gram.view import BankView, make_views
from mkldist.memory import live_solvers, view_cache_bytes
from mkldist.methods.registry import METHODS
from mkldist.plan.model import RunPlan
from mkldist.results.records import RecordStore, RunRecord
from mkldist.solvers.base import Problem, Solution
from mkldist.solvers.lockstep import Job, JobTimes, drive
from mkldist.worker.bank_inputs import BankRef, bank_inputs, laplacian
from mkldist.worker.chains import chains_of
from mkldist.worker.scoring import Scorer, failed_record
from mkldist.worker.subproblems import (
    Ended,
    Subproblem,
    is_scored_on_bank,
    labels,
    subproblems_of,
    values_on_bank,
)

Report = Callable[[str, str], None]


@dataclass(frozen=True)
class BatchSettings:
    """How runs are done and where their records go.

    Parameters
    ----------
    records : str
        Folder of the records.
    execution : str
        ``"shared"``: all solvers in lockstep; ``"path"``: all paths; ``"isolated"``: one solver
        after the other.
    seed : int
        Seed of the sweep, for provenance.
    memory_limit : int, optional
        Bytes that a worker may take.
    predictions : bool
        Whether records hold decision values of test and unlabelled points.
    coefficients : bool
        Whether records say which rows their coefficients belong to, and hold those of each kernel.
    topic : str
        Dask topic on which finished runs are announced; empty for none.
    own_workers : bool
        Whether workers end with the sweep, so that they may keep memory for their next batch.
    """

    records: str
    execution: str = "shared"
    seed: int = 0
    memory_limit: int | None = None
    predictions: bool = False
    coefficients: bool = False
    topic: str = ""
    own_workers: bool = False


def solve_runs(
    bank: Bank, ref: BankRef, runs: Sequence[RunPlan], settings: BatchSettings, done: Report
) -> None:
    """Do the runs that are not recorded yet, and record each as it ends.

    A run whose solver raises is recorded as failed with its error; the others go on.

    Parameters
    ----------
    bank : Bank
        The bank, open.
    ref : BankRef
        What the bank is.
    runs : sequence of RunPlan
        Runs on that bank.
    settings : BatchSettings
        How to do them.
    done : callable
        Called as ``done(run id, state)`` after a record is durable.
    """
    store = RecordStore(Path(settings.records))
    left = [run for run in runs if store.read(run.id) is None]
    if not left:
        return
    given = bank_inputs(ref)
    subproblems = {run.id: list(subproblems_of(given, run)) for run in left}
    training_views = list(
        dict.fromkeys(
            subproblem.training_view for of_run in subproblems.values() for subproblem in of_run
        )
    )
    normalisations = [name for name in ref.plan.spec.normalisations if name != "cosine"]
    budget = MemoryBudget(view_cache_bytes(settings.memory_limit))
    made = make_views(
        bank,
        [given.view_index(training_view) for training_view in training_views],
        normalisations,
        budget,
    )
    views = dict(zip(training_views, made, strict=True))
    scorer = Scorer(ref, given, views, settings.seed, settings.predictions, settings.coefficients)
    batch = _Batch(scorer, store, done, subproblems)
    batch.drive(bank, _wave(views.values(), left, settings))


@contextmanager
def report_to(topic: str) -> Iterator[Report]:
    """Yield a function that announces a finished run on a Dask topic, if this is a worker."""

    def silent(run_id: str, state: str) -> None:
        pass

    if not topic:
        yield silent
        return
    from distributed import get_worker

    worker = get_worker()

    def announce(run_id: str, state: str) -> None:
        worker.log_event(topic, {"run": run_id, "state": state})

    yield announce


def _wave(views: Iterable[BankView], runs: Sequence[RunPlan], settings: BatchSettings) -> int:
    """Return how many solvers may be alive at once, each holding a few (n, n) matrices."""
    if settings.execution == "isolated":
        return 1
    n_points = max(view.n_points for view in views)
    on_graph = any(run.graph is not None for run in runs)
    return live_solvers(n_points, settings.memory_limit, on_graph=on_graph)


@dataclass(eq=False)
class _Batch:
    """The runs of a batch at work.

    Parameters
    ----------
    scorer : Scorer
        What makes their records.
    store : RecordStore
        Where these go.
    done : callable
        Told of each.
    subproblems : mapping of str to list of Subproblem
        The solvers of every run by its id.
    ended : dict of str to dict of Subproblem to Ended
        What became of them so far; runs that are recorded are gone.
    """

    scorer: Scorer
    store: RecordStore
    done: Report
    subproblems: Mapping[str, list[Subproblem]]
    ended: dict[str, dict[Subproblem, Ended]] = field(init=False)

    def __post_init__(self) -> None:
        self.ended = {run_id: {} for run_id in self.subproblems}

    def drive(self, bank: Bank, size: int) -> None:
        """Advance as many solvers together as may be alive, neighbours first."""
        waiting = chains_of(self.subproblems.values())
        for start in range(0, len(waiting), size):
            self._drive_wave(bank, waiting[start : start + size])

    def _drive_wave(self, bank: Bank, wave: Sequence[tuple[Subproblem, ...]]) -> None:
        """Advance the first solvers of some chains together, and the others in their places."""
        values: dict[str, Floats] = {}
        left = {chain[0].key: iter(chain) for chain in wave}
        at = {
            subproblem.key: (subproblem, left[chain[0].key])
            for chain in wave
            for subproblem in chain
        }

        def on_done(key: str, outcome: Solution | Exception, times: JobTimes) -> Job | None:
            subproblem, chain = at[key]
            if not isinstance(outcome, Solution):
                self._fail(subproblem, outcome)
                return self._next(chain, values)
            own = replace(outcome, state=None)
            self._end(subproblem, Ended(own, times, values.pop(key, None)))
            return self._next(chain, values, outcome.state)

        jobs = [self._next(chain, values) for chain in left.values()]
        drive(bank, [job for job in jobs if job is not None], on_done)

    def _next(
        self, chain: Iterator[Subproblem], values: dict[str, Floats], start: object = None
    ) -> Job | None:
        """Return the next solver of a chain whose run is not recorded yet, not yet started.

        Parameters
        ----------
        chain : iterator of Subproblem
            What is left of the chain.
        values : dict
            Takes what is asked of the bank after it.
        start : object, optional
            What the last solver handed on.
        """
        for subproblem in chain:
            if subproblem.run.id not in self.ended:
                continue
            try:
                return self._job(subproblem, values, start)
            except (DamagedBlocksError, UnreadableError):  # the bank's trouble, not the run's
                raise
            except Exception as error:  # parameters that no longer fit are that run's failure
                self._fail(subproblem, error)
        return None

    def _job(self, subproblem: Subproblem, values: dict[str, Floats], start: object) -> Job:
        """Return the solver of a subproblem."""
        run, scorer = subproblem.run, self.scorer
        method, ref, given = METHODS[run.method], scorer.ref, scorer.given
        view = scorer.views[subproblem.training_view]
        problem = Problem(
            y=labels(given, subproblem, scorer.scale(subproblem.training_view)),
            n_kernels=ref.plan.n_kernels,
            laplacian=None if run.graph is None else laplacian(ref, run.graph, run.split),
            start=start,
        )
        steps = method.solve(problem, method.params(**run.params))
        after = None
        if is_scored_on_bank(given, subproblem.training_view):
            after = partial(values_on_bank, view, into=values, key=subproblem.key)
        return Job(subproblem.key, view, problem, steps, after)

    def _end(self, subproblem: Subproblem, ended: Ended) -> None:
        """Keep what a solver returned, and record its run if it was the last."""
        run = subproblem.run
        if run.id not in self.ended:
            return
        self.ended[run.id][subproblem] = ended
        if len(self.ended[run.id]) < len(self.subproblems[run.id]):
            return
        in_order = {one: self.ended[run.id][one] for one in self.subproblems[run.id]}
        try:
            record = self.scorer.record(run, in_order)
        except (DamagedBlocksError, UnreadableError):  # the bank's trouble, not the run's
            raise
        except Exception as error:  # a run whose scores fail is a failed run, not a failed batch
            record = failed_record(run, error, self.scorer.ref.plan.n_kernels)
        self._commit(record)

    def _fail(self, subproblem: Subproblem, error: Exception) -> None:
        """Record a run as failed whose solver did; what its others return is dropped."""
        if subproblem.run.id in self.ended:
            words = subproblem.words(self.scorer.given.dataset)
            n_kernels = self.scorer.ref.plan.n_kernels
            self._commit(failed_record(subproblem.run, error, n_kernels, words))

    def _commit(self, record: RunRecord) -> None:
        self.store.write(record)
        del self.ended[record.id]
        self.done(record.id, str(record.state))
