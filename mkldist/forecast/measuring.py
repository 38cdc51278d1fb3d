"""Measurement of this machine's rates, in processor time, which other programs change little."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.bank.bank import MemoryBank, TileLayout
from mkldist.bank.passes import answer
from mkldist.bank.requests import Combine, Quadratic
from mkldist.bank.sources import FeatureSource
from mkldist.bank.view import make_views
from mkldist.core.blas_threads import single_threaded
from mkldist.errors import MkldistError
from mkldist.fit.problem import problem_on
from mkldist.forecast.rates import Rates, store_rates
from mkldist.kernels.families import kernel_list
from mkldist.methods.registry import METHODS
from mkldist.planning.model import RunPlan
from mkldist.results.journal import JOURNAL, Journal
from mkldist.results.record import RunRecord
from mkldist.run.cluster import ConnectOptions
from mkldist.run.doctor import Finding, speed_of_writing
from mkldist.run.sweep_loop import PendingTasks
from mkldist.run.work_queue import BatchItem
from mkldist.solvers.base import Solution
from mkldist.solvers.lockstep import Job, JobTimes, drive
from mkldist.spec.banks import BankSpec

FEATURES = 8  # of points drawn at random; the bank of Xu et al. 2008 has 13 kernels for each
TINY, SMALL, LARGE = 20, 100, 400  # points
VECTORS = 16  # that share a pass
REPEATS = 3
LOOPS = 20  # of what takes less than a millisecond
RECORDS = 30
TASKS = 200


def measured_rates(folder: Path) -> Rates:
    """Return the rates of this machine; takes some seconds.

    Parameters
    ----------
    folder : Path
        Folder on the storage of sweeps; files are written there and removed.

    Raises
    ------
    OSError
        If the disk refuses them.
    mkldist.errors.ClusterError
        If no worker can be started.
    """
    with single_threaded():
        source, _ = _problem(LARGE)
        bank = _built(source)
        of_value = _least(lambda: _built(source)) / bank.n_kernels / bank.layout.n_entries
        of_pass, of_vector = _pass_rates(bank)
        fixed, of_request = _request_rates()
        of_solver, cubic = _solver_rates()
    of_record, receipt = _record_rates(folder)
    probe = folder / f".mkldist-rates-{time.time_ns()}"
    try:
        speed = speed_of_writing(probe)
    finally:
        probe.unlink(missing_ok=True)
    return Rates(
        kernel_value_seconds=of_value,
        pass_value_seconds=of_pass,
        vector_value_seconds=of_vector,
        pass_seconds=fixed,
        request_seconds=of_request,
        solver_seconds=of_solver,
        cubic_seconds=cubic,
        record_seconds=of_record,
        task_seconds=_task_seconds(),
        receipt_seconds=receipt,
        storage_bytes_per_second=speed,
    )


def rates_finding(folder: Path) -> Finding:
    """Measure the rates of this machine, store them, and say so.

    Parameters
    ----------
    folder : Path
        As for :func:`measured_rates`.
    """
    try:
        rates = measured_rates(folder)
        place = store_rates(rates)
    except (OSError, MkldistError) as error:
        return Finding("rates", str(error), "Plans for --workers measure them anew")
    words = (
        f"a second: {1e-6 / rates.kernel_value_seconds:.0f} million kernel values computed or "
        f"{1e-6 / rates.pass_value_seconds:.0f} million read in a pass, by one processor; "
        f"{1 / rates.task_seconds:.0f} tasks, by the scheduler; stored in {place}"
    )
    return Finding("rates", words)


def _least(do: Callable[[], object]) -> float:
    """Return the least processor time of this thread that some calls take."""
    found = []
    for _ in range(REPEATS):
        start = time.thread_time()
        do()
        found.append(time.thread_time() - start)
    return max(min(found), 1e-9)


def _problem(n_points: int) -> tuple[FeatureSource, Any]:
    """Return kernels on points of two classes that overlap, and the labels."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n_points) % 2, 1.0, -1.0)
    points = rng.normal(size=(n_points, FEATURES)) + 0.5 * y[:, None]
    names = [f"x{j}" for j in range(FEATURES)]
    return FeatureSource(points, kernel_list(BankSpec(family="xu2008"), FEATURES, names, {}, 0)), y


def _built(source: FeatureSource) -> MemoryBank:
    """Return a bank of all kernels of a source."""
    layout = TileLayout.for_points(source.n_points)
    values = np.empty((source.n_kernels, layout.n_entries))
    tiles = values.reshape(len(values), layout.n_tiles, layout.tile, layout.tile)
    source.fill(slice(0, len(values)), slice(0, layout.n_tiles), layout, tiles)
    return MemoryBank(values, layout)


def _pass_rates(bank: MemoryBank) -> tuple[float, float]:
    """Return the seconds for a value in a pass for one vector, and for each further vector."""
    vectors = np.random.default_rng(0).normal(size=(bank.n_points, VECTORS))
    answer(bank, [Quadratic(vectors)])
    n_values = bank.n_kernels * bank.layout.n_entries
    one = _least(lambda: answer(bank, [Quadratic(vectors[:, :1])])) / n_values
    many = _least(lambda: answer(bank, [Quadratic(vectors)])) / n_values
    return one, max(many - one, 1e-3 * one) / (VECTORS - 1)


def _request_rates() -> tuple[float, float]:
    """Return the seconds of a pass besides its values, and of each solver that shares it.

    A solver asks for a combined kernel and then for a pass.  On few points both take no longer for
    their values.
    """
    bank = _built(_problem(TINY)[0])
    vectors = np.random.default_rng(0).normal(size=(bank.n_points, VECTORS))
    weights = np.full(bank.n_kernels, 1.0 / bank.n_kernels)
    each = [(Combine(weights), Quadratic(vector[:, None])) for vector in vectors.T]

    def times(pairs: Sequence[tuple[Combine, Quadratic]]) -> float:
        requests = [request for kind in zip(*pairs, strict=True) for request in kind]
        return _least(lambda: [answer(bank, requests) for _ in range(LOOPS)]) / LOOPS

    answer(bank, [*each[0]])
    one, many = times(each[:1]), times(each)
    of_request = max(many - one, 1e-3 * one) / (VECTORS - 1)
    return max(one - of_request, 1e-3 * one), of_request


def _solver_rates() -> tuple[float, float]:
    """Return the seconds of a solver's own code, the part without and that with n³."""
    small, large = _solver_seconds(SMALL), _solver_seconds(LARGE)
    cubic = max(large - small, 1e-3 * small) / (LARGE**3 - SMALL**3)
    return max(small - cubic * SMALL**3, 1e-3 * small), cubic


def _solver_seconds(n_points: int) -> float:
    """Return the processor time of the Level method's own code on some points."""
    source, y = _problem(n_points)
    bank = _built(source)
    [view] = make_views(bank, [None], ("trace",))
    method = METHODS["level"]
    found: list[float] = []

    def done(key: str, outcome: Solution | Exception, times: JobTimes) -> None:
        if isinstance(outcome, Exception):
            raise outcome
        found.append(times.cpu_seconds)

    for _ in range(1 + REPEATS):  # the first compiles
        problem, params = problem_on(view, method, y), {"C": float(n_points)}
        steps = method.solve(problem, method.params(**params))
        drive(bank, [Job("level", view, problem, steps)], done)
    return max(min(found[1:]), 1e-9)


def _record_rates(folder: Path) -> tuple[float, float]:
    """Return the seconds to write a record, flushed, and of the processor to read it."""
    runs = [RunPlan(f"{i:016x}", "d", "b", "b", 0, "level", "level", {}) for i in range(RECORDS)]
    with tempfile.TemporaryDirectory(dir=folder, prefix=".mkldist-rates-") as place:
        store = Journal(Path(place, JOURNAL))
        start = time.perf_counter()
        for run in runs:
            store.append([RunRecord.failed(run, "a record that is timed")])
        written = time.perf_counter() - start
        start = time.thread_time()
        for run in runs:
            store.read(run.id)
        return max(written, 1e-9) / RECORDS, max(time.thread_time() - start, 1e-9) / RECORDS


def _task_seconds() -> float:
    """Return the processor time of coordinator and scheduler for a task that does nothing."""
    run = RunPlan("0" * 16, "d", "b", "b", 0, "level", "level", {})
    item = BatchItem("b", (run,))
    with ConnectOptions(n_workers=1).connect() as client:
        tasks = PendingTasks(client)
        start, left = 0.0, TASKS + 1
        while left:
            tasks.submit(item, repr, 0)
            while not tasks.wait(1.0):
                pass
            left -= 1
            start = start or time.process_time()  # the first task waits for imports
        return max(time.process_time() - start, 1e-9) / TASKS
