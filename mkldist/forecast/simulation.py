"""Discrete-event simulation of a sweep: its work queue with a clock in place of workers.

The queue is that of real sweeps, asked and told by the same rules as in
:mod:`mkldist.run.sweep_loop`: one task in flight for every thread, each outcome told before further
tasks are submitted.  Three resources take time:

- the threads of the workers, which may be slow or die;
- the storage, which all workers share: it serves their reads and writes one after the other;
- the coordinator, which does one thing at a time, so that outcomes wait for it.

A task that dies with its worker is done again.  As with the settings that sweeps give Dask, the
scheduler repeats it once by itself, and the second death is an error that the queue is told.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from mkldist.run.work_queue import BuildItem, Item, WorkQueue

DEATHS_OF_A_TASK = 2  # with its worker, until Dask reports an error
RESTART_SECONDS = 5.0  # until a worker that died has another in its place
KILLED = "its worker died"


@dataclass(frozen=True)
class TaskCost:
    """What a task takes.

    Parameters
    ----------
    seconds : float
        Time of one thread.
    moved_bytes : float
        Bytes between the worker and the storage.
    kept_bytes : float
        Further bytes that a worker reads once for all of its tasks on the bank, and keeps.
    receipt_seconds : float
        Time of the coordinator for the outcome, besides that of any task.
    shared_seconds : float
        Further time of threads, of what workers do together, each some parts of it.
    parts : int
        Parts of that, of equal size.
    """

    seconds: float
    moved_bytes: float = 0.0
    kept_bytes: float = 0.0
    receipt_seconds: float = 0.0
    shared_seconds: float = 0.0
    parts: int = 1

    @property
    def all_seconds(self) -> float:
        """Time of all threads together."""
        return self.seconds + self.shared_seconds

    def seconds_on(self, workers: int) -> float:
        """Return the time from beginning to end where there are so many workers."""
        most = -(-self.parts // workers)  # parts of the worker that has most
        return self.seconds + self.shared_seconds * most / self.parts


CostOf = Callable[[Item], TaskCost]


class MakesQueue(Protocol):
    """Makes the work queue of a sweep for the storage and the threads of a simulation."""

    def __call__(
        self, is_recorded: Callable[[str], bool], n_threads: Callable[[], int]
    ) -> WorkQueue:
        """Return a new queue."""


@dataclass(frozen=True)
class Crew:
    """The workers of a simulation, and what happens to them.

    Parameters
    ----------
    workers, threads : int
        Number of workers, and threads of each.
    stragglers : float
        Share of the workers that are slow, drawn for each.
    slowness : float
        How many times longer a slow worker takes.
    deaths_per_hour : float
        Expected deaths of each worker in an hour.
    seed : int
        Seed of the draws.
    """

    workers: int = 1
    threads: int = 1
    stragglers: float = 0.0
    slowness: float = 3.0
    deaths_per_hour: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class Service:
    """Speed of what all workers share.

    Parameters
    ----------
    task_seconds : float
        Time of the coordinator to submit a task and take its outcome.
    bytes_per_second : float
        Speed of the storage.
    """

    task_seconds: float = 0.0
    bytes_per_second: float = float("inf")


@dataclass
class Outcome:
    """What a simulated sweep took.

    Parameters
    ----------
    seconds : float
        Wall time, from the first task to the outcome of the last.
    computing_seconds : float
        Time that threads computed, of all threads together; lost tasks count.
    coordinator_seconds, storage_seconds : float
        Time that the coordinator and the storage were busy.
    longest_seconds : float
        Time of the longest task, without waiting for others.
    moved_bytes : float
        Bytes between workers and storage.
    tasks, deaths, abandoned : int
        Tasks that were begun, workers that died, and runs that are recorded as failed for it.
    """

    seconds: float = 0.0
    computing_seconds: float = 0.0
    coordinator_seconds: float = 0.0
    storage_seconds: float = 0.0
    longest_seconds: float = 0.0
    moved_bytes: float = 0.0
    tasks: int = 0
    deaths: int = 0
    abandoned: int = 0


@dataclass(eq=False)
class _Worker:
    """A worker: how slow it is, the tasks that it does, and the banks that its machine keeps."""

    slowness: float
    tasks: set[int] = field(default_factory=set)
    banks: set[str] = field(default_factory=set)


@dataclass(frozen=True, eq=False)
class _Task:
    """A task: its worker, when it computes and ends, its threads, and its deaths before."""

    item: Item
    cost: TaskCost
    worker: _Worker
    computes: float
    ends: float
    n_threads: float  # on average, while it computes
    deaths: int


def simulate(make_queue: MakesQueue, cost_of: CostOf, crew: Crew, service: Service) -> Outcome:
    """Return what a sweep takes on some workers.

    Parameters
    ----------
    make_queue : callable
        Makes the work queue.
    cost_of : callable
        Takes an item of the queue and returns what its task takes.
    crew : Crew
        The workers.
    service : Service
        The coordinator and the storage.
    """
    return _Simulation(make_queue, cost_of, crew, service).run()


class _Simulation:
    """One simulated sweep.  The coordinator is busy until `now`; `took` counts so far."""

    def __init__(
        self, make_queue: MakesQueue, cost_of: CostOf, crew: Crew, service: Service
    ) -> None:
        self._cost_of, self._crew, self._service = cost_of, crew, service
        self._random = random.Random(crew.seed)
        self._recorded: set[str] = set()
        self._queue = make_queue(self._recorded.__contains__, lambda: crew.workers * crew.threads)
        self._numbers = itertools.count()
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._running: dict[int, _Task] = {}
        self._again: deque[tuple[Item, int]] = deque()  # with the deaths of each
        self._free: deque[_Worker] = deque()  # once for each free thread
        self._storage_free = 0.0
        self.now, self.took = 0.0, Outcome()

    def run(self) -> Outcome:
        """Do all the work of the queue."""
        for _ in range(self._crew.workers):
            slow = self._random.random() < self._crew.stragglers
            self._join(_Worker(self._crew.slowness if slow else 1.0), 0.0)
        while self._submit() or self._running or self._waits_for_workers():
            at, _, happen = heapq.heappop(self._events)
            self.now = max(self.now, at)
            happen(at)
        return self.took

    def _submit(self) -> bool:
        """Give every free thread a task; return True if there was any."""
        submitted = False
        while self._free and (following := self._next()) is not None:
            self._coordinate(self._service.task_seconds)
            self._begin(*following, self._free.popleft())
            submitted = True
        return submitted

    def _next(self) -> tuple[Item, int] | None:
        """Return the next item and its deaths; those that died with their worker go first."""
        if self._again:
            return self._again.popleft()
        item = self._queue.next()
        return None if item is None else (item, 0)

    def _waits_for_workers(self) -> bool:
        """Return True if all workers are dead and there is work for those in their place."""
        if not self._free and (following := self._next()) is not None:
            self._again.appendleft(following)
        return bool(self._again)

    def _begin(self, item: Item, deaths: int, worker: _Worker) -> None:
        """Begin a task: it moves bytes, then computes."""
        cost, number = self._cost_of(item), next(self._numbers)
        moved = cost.moved_bytes
        if cost.kept_bytes and item.bank not in worker.banks:
            worker.banks.add(item.bank)
            moved += cost.kept_bytes
        alone, together = cost.all_seconds, cost.seconds_on(self._crew.workers)
        moving, computing = moved / self._service.bytes_per_second, together * worker.slowness
        computes = self._moved(moving)
        ends, n_threads = computes + computing, alone / together if together else 1.0
        task = _Task(item, cost, worker, computes, ends, n_threads, deaths)
        self._running[number] = task
        worker.tasks.add(number)
        self._at(ends, lambda at: self._end(number, at))
        self.took.tasks += 1
        self.took.moved_bytes += moved
        self.took.longest_seconds = max(self.took.longest_seconds, moving + computing)

    def _moved(self, seconds: float) -> float:
        """Return when the storage has moved bytes for some time, after what was asked before."""
        if not seconds:
            return self.now
        self._storage_free = max(self._storage_free, self.now) + seconds
        self.took.storage_seconds += seconds
        return self._storage_free

    def _end(self, number: int, at: float) -> None:
        """Tell the queue that a task has ended, unless it died before."""
        if number not in self._running:
            return
        task = self._stop(number, at)
        task.worker.tasks.remove(number)
        self._coordinate(task.cost.receipt_seconds)
        if isinstance(task.item, BuildItem):
            self._queue.built(task.item)
        else:
            self._recorded.update(run.id for run in task.item.runs)
            self._queue.batch_done(task.item)
        self._free.append(task.worker)
        self.took.seconds = self.now

    def _stop(self, number: int, at: float) -> _Task:
        """Take a task from those that run, and return it."""
        task = self._running.pop(number)
        computed = max(0.0, min(at, task.ends) - task.computes)
        self.took.computing_seconds += task.n_threads * computed
        return task

    def _join(self, worker: _Worker, at: float) -> None:
        """Let a worker join, and draw when it dies."""
        self._free.extend([worker] * self._crew.threads)
        if self._crew.deaths_per_hour:
            life = self._random.expovariate(self._crew.deaths_per_hour / 3600)
            self._at(at + life, lambda then: self._die(worker, then))

    def _die(self, worker: _Worker, at: float) -> None:
        """Let a worker die with its tasks; another one on its machine joins soon."""
        self.took.deaths += 1
        self._free = deque(one for one in self._free if one is not worker)
        lost = [self._stop(number, at) for number in sorted(worker.tasks)]
        worker.tasks.clear()
        for task in lost:
            if task.deaths + 1 < DEATHS_OF_A_TASK:
                self._again.append((task.item, task.deaths + 1))
            else:
                self._fail(task.item)
        self._at(at + RESTART_SECONDS, lambda then: self._join(worker, then))

    def _fail(self, item: Item) -> None:
        """Tell the queue that a task failed; record the runs that it abandons."""
        if isinstance(item, BuildItem):
            abandoned = self._queue.build_failed(item, KILLED)
        else:
            abandoned = self._queue.batch_failed(item, KILLED)
        self._recorded.update(one.run.id for one in abandoned)
        self.took.abandoned += len(abandoned)
        self.took.seconds = self.now

    def _coordinate(self, seconds: float) -> None:
        """Keep the coordinator busy."""
        self.now += seconds
        self.took.coordinator_seconds += seconds

    def _at(self, at: float, happen: Callable[[float], None]) -> None:
        """Let something happen at a time; of equal times, what was said first comes first."""
        heapq.heappush(self._events, (at, next(self._numbers), happen))
