"""Lockstep driver: advances many solvers together and answers all their requests by one pass.

A request about a few kernels is answered at once.  A request that needs a pass over the bank waits
until every live solver has such a request, and one pass then answers all of them.  So a bank that
does not fit in memory is read once per round, not once per run and iteration, and products with
many vectors at once become one product of matrices.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np

from mkldist.bank.bank import Bank
from mkldist.bank.passes import check
from mkldist.bank.requests import Combine, Diagonal, Inner, Matvec, Quadratic, Radii, Request
from mkldist.bank.view import BankView, answer_views
from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.solvers.base import Problem, Solution, Steps
from mkldist.solvers.progress import working_cpu_time, working_time


class RequestCount:
    """Passes over the bank and combined matrices that a solver asked for.

    A pass is counted when requests have read all M kernels, see :mod:`mkldist.solvers.base`.
    """

    def __init__(self, n_kernels: int) -> None:
        self.passes = self.combines = 0
        self._unread: Bools = np.ones(n_kernels, dtype=bool)

    def count(self, request: Request) -> None:
        """Count a request."""
        if isinstance(request, Combine):
            self.combines += 1 if request.weights.ndim == 1 else len(request.weights)
        kernels = _kernels_read(request)
        if kernels is not None:
            self._unread[kernels] = False
        if kernels is None or not np.count_nonzero(self._unread):
            self.passes += 1
            self._unread[:] = True

    def of(self, solution: Solution) -> Solution:
        """Return a solution with these counts among its own."""
        counters = replace(solution.counters, passes=self.passes, combines=self.combines)
        return replace(solution, counters=counters)


def _kernels_read(request: Request) -> Ints | None:
    """Return the kernels that a request reads, or None for all."""
    match request:
        case Combine(weights, kernels):
            used = np.flatnonzero(weights if weights.ndim == 1 else weights.any(axis=0))
            return used if kernels is None else kernels[used]
        case Matvec(kernels) | Quadratic(_, kernels):
            return kernels
        case Diagonal():  # entries, and no kernel as a whole
            return np.empty(0, dtype=np.intp)
        case _:
            return None


RADIUS_COST = 100.0  # quadratic forms that take about as long as the ball of the same kernel


@dataclass(frozen=True, eq=False)
class Job:
    """A solver and its view of the bank."""

    key: str  # name under which the driver reports the outcome
    view: BankView  # the bank's points and normalisation that the solver sees
    problem: Problem  # the problem, whose clock the driver keeps
    steps: Steps  # the solver, not started
    # Takes the solution and returns further requests, for instance for decision values.  These go
    # to the bank itself and share its passes; neither their time nor their bytes are charged
    after: Callable[[Solution], Generator[Request, Any, None]] | None = None


@dataclass(frozen=True)
class JobTimes:
    """Times and requests of one job, and its shares of passes in proportion to its requests."""

    # Time from the job's start to its end, including work for other jobs.  A job starts with the
    # drive, or when it takes another job's place
    wall_seconds: float = 0.0
    own_seconds: float = 0.0  # wall and processor time of the solver's own code
    cpu_seconds: float = 0.0
    rounds: int = 0  # requests
    # Shares of the passes: of their time, the processor time with that of the bank's threads, the
    # bytes read from the bank, those read or computed, and those to and from shards of the bank
    pass_seconds: float = 0.0
    pass_cpu_seconds: float = 0.0
    bytes_read: float = 0.0
    pass_bytes: float = 0.0
    bytes_moved: float = 0.0

    def __add__(self, other: JobTimes) -> JobTimes:
        """Return the times and requests of two jobs, one after the other."""
        return JobTimes(*map(operator.add, astuple(self), astuple(other)))


@dataclass(frozen=True, eq=False)
class SolvedJob:
    """Solution of a job, and its times."""

    solution: Solution
    times: JobTimes  # of a solution on factors those of all rounds
    # What ended the growth of factors before the exact gap reached the tolerance: ``"rank"``,
    # ``"memory"``, ``"rounding"`` or ``"time_limit"``; empty if nothing did
    limit: str = ""


OnDone = Callable[[str, Solution | Exception, JobTimes], Job | None]


def drive(bank: Bank, jobs: Iterable[Job], on_done: OnDone) -> None:
    """Run all jobs on one bank to their ends.

    ``on_done(key, outcome, times)`` is called when a job, with the requests after it, has ended.
    The outcome is the solution, or the exception that was raised; a job that fails does not affect
    the others.  If the call returns a job, this one takes the place of the ended one.
    """
    start = time.perf_counter()
    live = [_Runner(job, start, on_done) for job in jobs]
    for runner in live:
        runner.advance(None)
    while live := [runner for runner in live if runner.request is not None]:
        ready = [runner for runner in live if not runner.needs_pass]
        if not ready:
            _answer(bank, live)
        elif bank.shares_rows:
            _answer(bank, ready)
        else:  # one after the other: a solver's few kernels stay in the processor's cache
            for runner in ready:
                while runner.request is not None and not runner.needs_pass:
                    _answer(bank, [runner])


def solve_alone(bank: Bank, job: Job) -> Solution:
    """Run one job and return its solution, or raise the job's exception."""
    return solve_timed(bank, job).solution


def solve_timed(bank: Bank, job: Job) -> SolvedJob:
    """Run one job and return its solution and times, or raise the job's exception."""
    ended: list[tuple[Solution | Exception, JobTimes]] = []
    drive(bank, [job], lambda key, outcome, times: ended.append((outcome, times)))
    [(outcome, times)] = ended
    if isinstance(outcome, Exception):
        raise outcome
    return SolvedJob(outcome, times)


class _Runner:
    """A job, its pending request and its times; then the job that takes its place, and so on.

    `request` is None at the end of the last job; `view` is what it is about, and `needs_pass` says
    whether it needs a pass over the bank.
    """

    def __init__(self, job: Job, start: float, on_done: OnDone) -> None:
        self._on_done = on_done
        self._begin(job, start)

    def _begin(self, job: Job, start: float) -> None:
        """Take a job, and set all times to zero."""
        self._job, self.view = job, job.view
        self._steps: Generator[Request, Any, Any] = job.steps
        self._solution: Solution | None = None  # set while the requests after the solver run
        self._count = RequestCount(job.view.n_kernels)
        self._passes = np.zeros(5)  # shares of passes, as in JobTimes
        self._start = start
        self._own = self._cpu = 0.0
        self._rounds = 0
        self.request: Request | None = None
        self.needs_pass = False

    def advance(self, reply: Any) -> None:
        """Run the solver, and the requests after it, until the next request or the end."""
        outcome: Solution | Exception | None = None
        if self._solution is None:
            outcome = self._advance_solver(reply)
            if isinstance(outcome, Solution) and self._job.after is not None:
                self._solution, reply = outcome, None
                self._steps, self.view = self._job.after(outcome), BankView.whole(self.view.bank)
        if self._solution is not None:
            outcome = self._advance_after(reply)
        if outcome is not None:
            self.request = None
            following = self._on_done(self._job.key, outcome, self._times())
            if following is not None:
                self._begin(following, time.perf_counter())
                self.advance(None)

    def charge(self, cost: Floats) -> None:
        """Charge the solver with its share of a pass; requests after the solver are free."""
        if self._solution is None:
            self._passes += cost
            self._job.problem.clock.charge(float(cost[0]))

    def _advance_solver(self, reply: Any) -> Solution | Exception | None:
        """Run the solver by its clock; return its outcome, or None if it has a request."""
        outcome: Solution | Exception | None = None
        clock, cpu = self._job.problem.clock, working_cpu_time()
        clock.resume()
        try:
            self._count.count(self._send(reply))
            clock.passes = self._count.passes
            self._rounds += 1
        except StopIteration as end:
            if isinstance(end.value, Solution):
                outcome = self._count.of(end.value)
            else:
                found = type(end.value).__name__
                outcome = TypeError(f"the solver ended with {found} instead of a Solution")
        except Exception as error:  # a failed run is a result: it is recorded, the others go on
            outcome = error
        self._own += clock.pause()
        self._cpu += working_cpu_time() - cpu
        return outcome

    def _advance_after(self, reply: Any) -> Solution | Exception | None:
        """Run the requests after the solver; return its solution at their end, else None."""
        try:
            self._send(reply)
        except StopIteration:
            return self._solution
        except Exception as error:  # as above
            return error
        return None

    def _send(self, reply: Any) -> Request:
        """Send a reply to the running generator; check, take and return its next request."""
        request = self._steps.send(reply)
        if not isinstance(request, Request):
            raise TypeError(f"the solver asked with {type(request).__name__} instead of a request")
        check(self.view.n_points, self.view.n_kernels, request)
        self.request, self.needs_pass = request, self.view.needs_pass(request)
        return request

    def _times(self) -> JobTimes:
        """Return the times of the job so far."""
        return JobTimes(
            time.perf_counter() - self._start,
            self._own,
            self._cpu,
            self._rounds,
            *self._passes.tolist(),
        )


def _answer(bank: Bank, runners: Sequence[_Runner]) -> None:
    """Answer the pending requests by at most one pass, charge it, and advance each solver."""
    worked, cpu, before = working_time(), working_cpu_time(), bank.counter.copy()
    requests = [runner.request for runner in runners if runner.request is not None]
    views = [runner.view for runner in runners]
    replies = answer_views(list(zip(views, requests, strict=True)))
    spent = bank.counter - before
    seconds = working_time() - worked
    cpu_seconds = working_cpu_time() - cpu + spent.threads_cpu_seconds
    moved = spent.bytes_read, spent.value_bytes, spent.bytes_moved
    cost_of_all = np.array([seconds, cpu_seconds, *moved])
    costs = [_cost(request, bank.n_kernels) for request in requests]
    total = sum(costs) or 1.0
    # Replies may be large: each is dropped from the list before its solver runs.
    replies.reverse()
    for runner, cost in zip(runners, costs, strict=True):
        runner.charge(cost_of_all * (cost / total))
        runner.advance(replies.pop())


def _cost(request: Request, n_kernels: int) -> float:
    """Return the work of a request as a number of kernels times a number of vectors."""
    match request:
        case Combine(weights):
            return float(np.count_nonzero(weights))
        case Matvec(kernels, vectors):
            return float(len(kernels) * (1 if vectors.ndim == 1 else vectors.shape[1]))
        case Quadratic(vectors, kernels):
            n_asked = n_kernels if kernels is None else len(kernels)
            return float(n_asked * (1 if vectors.ndim == 1 else vectors.shape[1]))
        case Inner(matrices):
            return float(n_kernels * len(matrices))
        case Radii():
            return RADIUS_COST * n_kernels
        case Diagonal(weights):
            return float(n_kernels * weights.shape[1]) / len(weights)
