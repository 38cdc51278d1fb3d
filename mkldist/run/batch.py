"""A batch of runs on one bank: views, solvers in lockstep, test scores, one record per run."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.data.preprocessing import TargetScale, target_scale
from mkldist.errors import UnreadableError
from mkldist.gram.bank import Bank
from mkldist.gram.loading import DamagedBlocksError
from mkldist.gram.view import BankView, make_views
from mkldist.memory import live_solvers
from mkldist.plan import RunPlan
from mkldist.results.records import RecordStore, RunRecord
from mkldist.run.materials import BankRef, Materials, Sight, laplacian, materials
from mkldist.run.predict import Part, parts_of
from mkldist.run.scores import part_scores, scores
from mkldist.run.telemetry import environment, provenance
from mkldist.solvers.base import Problem, Solution
from mkldist.solvers.lockstep import Job, JobTimes, drive
from mkldist.solvers.registry import METHODS
from mkldist.solvers.targets import learns_unlabelled

Report = Callable[[str, str], None]

KEPT_BYTES = 2**28


@dataclass(frozen=True)
class BatchSettings:
    """How runs are done and where their records go.

    Parameters
    ----------
    records : str
        Folder of the records.
    execution : str
        ``"shared"``: all solvers in lockstep; ``"isolated"``: one after the other.
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
    """

    records: str
    execution: str = "shared"
    seed: int = 0
    memory_limit: int | None = None
    predictions: bool = False
    coefficients: bool = False
    topic: str = ""


@dataclass(eq=False)
class _Batch:
    """What the runs of a batch share."""

    ref: BankRef
    given: Materials
    views: dict[Sight, BankView]
    settings: BatchSettings
    done: Report
    store: RecordStore
    parts: dict[Sight, dict[str, Part]] = field(default_factory=dict)

    def target_scale(self, split: int) -> TargetScale:
        """Return the units in which solvers see the labels of a split."""
        given = self.given
        return target_scale(self.ref.plan.preprocessing, given.dataset, given.splits[split])

    def parts_of(self, sight: Sight) -> dict[str, Part]:
        """Return what runs of a sight are scored on, with what was computed for the last ones."""
        if sight not in self.parts:
            kept = sum(part.n_bytes for parts in self.parts.values() for part in parts.values())
            if kept > KEPT_BYTES:
                self.parts.clear()
            self.parts[sight] = parts_of(self.given, sight, self.views[sight])
        return self.parts[sight]


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
    given = materials(ref)
    sights = sorted({_sight(given, run) for run in left}, key=astuple)
    normalisations = [name for name in ref.plan.spec.normalisations if name != "cosine"]
    views = make_views(bank, [given.view_index(sight) for sight in sights], normalisations)
    batch = _Batch(ref, given, dict(zip(sights, views, strict=True)), settings, done, store)
    size = _wave(views, left, settings)
    for start in range(0, len(left), size):
        _drive_wave(bank, batch, left[start : start + size])


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


def _sight(given: Materials, run: RunPlan) -> Sight:
    """Return what a run sees of its split."""
    method = METHODS.get(run.method)
    return given.sight(run.split, unlabelled=method is not None and learns_unlabelled(method))


def _wave(views: Sequence[BankView], runs: Sequence[RunPlan], settings: BatchSettings) -> int:
    """Return how many solvers may be alive at once, each holding a few (n, n) matrices."""
    if settings.execution == "isolated":
        return 1
    n_points = max(view.n_points for view in views)
    on_graph = any(run.graph is not None for run in runs)
    return live_solvers(n_points, settings.memory_limit, on_graph=on_graph)


def _drive_wave(bank: Bank, batch: _Batch, runs: Sequence[RunPlan]) -> None:
    """Advance the solvers of some runs together."""
    by_id = {run.id: run for run in runs}

    def on_done(key: str, outcome: Solution | Exception, times: JobTimes) -> None:
        _commit(batch, by_id[key], outcome, times)

    jobs = []
    for run in runs:
        try:
            jobs.append(_job(batch, run))
        except Exception as error:  # parameters that no longer fit are that run's failure alone
            _commit(batch, run, error, None)
    drive(bank, jobs, on_done)


def _job(batch: _Batch, run: RunPlan) -> Job:
    """Return the solver of a run, not yet started."""
    method = METHODS[run.method]
    given, sight = batch.given, _sight(batch.given, run)
    y = given.labels(sight, batch.target_scale(run.split).scaled(given.dataset.y))
    problem = Problem(
        y=y,
        n_kernels=batch.ref.plan.n_kernels,
        laplacian=None if run.graph is None else laplacian(batch.ref, run.graph, run.split),
    )
    steps = method.solve(problem, method.params(**run.params))
    return Job(run.id, batch.views[sight], problem, steps)


def _commit(
    batch: _Batch, run: RunPlan, outcome: Solution | Exception, times: JobTimes | None
) -> None:
    """Record the outcome of a run."""
    if isinstance(outcome, Solution):
        try:
            record = _complete(batch, run, outcome, times)
        except (DamagedBlocksError, UnreadableError):  # the bank's trouble, not the run's
            raise
        except Exception as error:  # a run whose scores fail is a failed run, not a failed batch
            record = failed_record(run, error, batch.ref.plan.n_kernels)
    else:
        record = failed_record(run, outcome, batch.ref.plan.n_kernels)
    batch.store.write(record)
    batch.done(run.id, str(record.state))


def _complete(batch: _Batch, run: RunPlan, solution: Solution, times: JobTimes | None) -> RunRecord:
    """Return the record of a finished run, scored on its test and unlabelled parts."""
    given, settings, sight = batch.given, batch.settings, _sight(batch.given, run)
    solution = _in_units(solution, batch.target_scale(run.split))
    own = solution.kernel_coefficients
    predictor = batch.views[sight].raw_predictor(
        solution.kernel_weights,
        solution.coefficients if own is None else own,
        float(solution.bias),
    )
    parts = batch.parts_of(sight)
    values = {name: part.decision_values(predictor) for name, part in parts.items()}
    scored: dict[str, float] = {}
    for name, part in parts.items():
        scored |= part_scores(scores(values[name], part.y, given.dataset.task), name)
    scored_rows = np.concatenate([part.rows for part in parts.values()])
    return RunRecord.from_solution(
        run,
        solution,
        scores=scored,
        times=_seconds(times),
        provenance=_provenance(batch, run),
        test_rows=scored_rows if settings.predictions else None,
        decision_values=np.concatenate(list(values.values())) if settings.predictions else None,
        train_rows=given.learnt_rows(sight) if settings.coefficients else None,
        kernel_coefficients=own if settings.coefficients else None,
        counters=_counts(times),
    )


def _in_units(solution: Solution, scale: TargetScale) -> Solution:
    """Return a solution whose decision function predicts in the user's units.

    Objective and bounds stay those of the problem that was solved.
    """
    own = solution.kernel_coefficients
    return replace(
        solution,
        coefficients=scale.spread * solution.coefficients,
        kernel_coefficients=None if own is None else scale.spread * own,
        bias=scale.centre + scale.spread * solution.bias,
    )


def failed_record(run: RunPlan, error: Exception | str, n_kernels: int) -> RunRecord:
    """Return the record of a run that ended in an error.

    Parameters
    ----------
    run : RunPlan
        The run.
    error : Exception or str
        Why it failed; where an exception was raised goes to the provenance.
    n_kernels : int
        Number of kernels of its bank.
    """
    if isinstance(error, str):
        return RunRecord.failed(run, error, n_kernels=n_kernels, provenance=environment())
    trace = "".join(traceback.format_exception(error))
    return RunRecord.failed(
        run,
        f"{type(error).__name__}: {error}",
        n_kernels=n_kernels,
        provenance={**environment(), "traceback": trace},
    )


def _provenance(batch: _Batch, run: RunPlan) -> dict[str, Any]:
    return provenance(
        seed=batch.settings.seed,
        data=batch.ref.data_fingerprint,
        bank=batch.ref.plan.id,
        split=batch.given.splits[run.split].fingerprint,
        threads=1,
    )


def _seconds(times: JobTimes | None) -> dict[str, float]:
    if times is None:
        return {}
    return {
        "wall_seconds": times.wall_seconds,
        "cpu_seconds": times.cpu_seconds,
        "own_seconds": times.own_seconds,
        "pass_seconds": times.pass_seconds,
    }


def _counts(times: JobTimes | None) -> dict[str, int]:
    if times is None:
        return {}
    return {"requests": times.rounds, "bytes_read": round(times.bytes_read)}
