"""The lockstep driver: many solvers advance together, and one pass answers all their requests.

Questions about few kernels are answered at once; a pass is made when every live solver waits for
one, and answers them all.  A bank that does not fit in memory is so read once a round, not once a
run an iteration, and many vectors at once turn matrix-vector products into a matrix product.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.gram.bank import Bank
from mkldist.gram.requests import Combine, Inner, Matvec, Quadratic, Radii, Request
from mkldist.gram.view import BankView, answer_views
from mkldist.solvers.base import Problem, Solution, Steps

RADIUS_COST = 100.0  # quadratic forms that take about as long as the ball of the same kernel


@dataclass(frozen=True, eq=False)
class Job:
    """One solver at work on its view of the bank.

    Parameters
    ----------
    key : str
        Name under which the outcome is reported.
    view : BankView
        The rows and the normalisation of the bank that this solver sees.
    problem : Problem
        The problem, whose clock the driver keeps.
    steps : generator
        The solver, not yet started.
    after : callable, optional
        Given the solution, a generator of further requests, e.g. for values of the decision
        function.  They are put to the bank itself and share its passes; the solver is not charged.
    """

    key: str
    view: BankView
    problem: Problem
    steps: Steps
    after: Callable[[Solution], Generator[Request, Any, None]] | None = None


@dataclass(frozen=True)
class JobTimes:
    """Where the time of one job went.

    Parameters
    ----------
    wall_seconds : float
        From the start of the drive, or of the job that took another's place, to the job's end,
        work for other jobs included.
    own_seconds, cpu_seconds : float
        Wall and processor time of the solver's own code.
    pass_seconds : float
        The job's share of the passes, in proportion to what it asked of each.
    rounds : int
        Requests made.
    bytes_read : float
        The job's share of the bytes read from the bank.
    """

    wall_seconds: float
    own_seconds: float
    cpu_seconds: float
    pass_seconds: float
    rounds: int
    bytes_read: float


Done = Callable[[str, Solution | Exception, JobTimes], Job | None]


def drive(bank: Bank, jobs: Iterable[Job], on_done: Done) -> None:
    """Run all jobs to their ends.

    Parameters
    ----------
    bank : Bank
        The bank of all the jobs' views.
    jobs : iterable of Job
        Solvers that have not started.
    on_done : callable
        Called as ``on_done(key, outcome, times)`` when a job and what is asked after it end, with
        its solution or with the exception raised; one job's failure leaves the others alone.  The
        job that it returns, if any, takes the place of the one that ended.
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
    """Run one job and return its solution, or raise what it raised."""
    outcomes: list[Solution | Exception] = []
    drive(bank, [job], lambda key, outcome, times: outcomes.append(outcome))
    if isinstance(outcomes[0], Exception):
        raise outcomes[0]
    return outcomes[0]


class _Runner:
    """A job, its pending request and its account of time."""

    def __init__(self, job: Job, start: float, on_done: Done) -> None:
        self._on_done = on_done
        self._take(job, start)

    def _take(self, job: Job, start: float) -> None:
        """Begin with a job and a new account."""
        self.job, self.view = job, job.view
        self._steps: Generator[Request, Any, Any] = job.steps
        self._solution: Solution | None = None
        self.pass_seconds = self.bytes_read = 0.0
        self._start = start
        self._own = self._cpu = 0.0
        self._rounds = 0
        self.request: Request | None = None
        self.needs_pass = False  # for the pending request

    def advance(self, reply: Any) -> None:
        """Run the solver, and then what comes after it, until the next request or the end."""
        outcome: Solution | Exception | None = None
        if self._solution is None:
            outcome = self._solved(reply)
            if isinstance(outcome, Solution) and self.job.after is not None:
                self._solution, reply = outcome, None
                self._steps, self.view = self.job.after(outcome), BankView.whole(self.view.bank)
        if self._solution is not None:
            outcome = self._followed(reply)
        if outcome is not None:
            self.request = None
            following = self._on_done(self.job.key, outcome, self._times())
            if following is not None:
                self._take(following, time.perf_counter())
                self.advance(None)

    def charge(self, seconds: float, bytes_read: float) -> None:
        """Take on a share of a pass."""
        if self._solution is None:
            self.pass_seconds += seconds
            self.bytes_read += bytes_read
            self.job.problem.clock.charge(seconds)

    def _solved(self, reply: Any) -> Solution | Exception | None:
        """Run the solver on its own time; return what it ended with, None if it asks."""
        outcome: Solution | Exception | None = None
        wall, cpu = time.perf_counter(), time.thread_time()
        self.job.problem.clock.resume()
        try:
            self._ask(reply)
            self._rounds += 1
        except StopIteration as end:
            outcome = _ended(end.value)
        except Exception as error:  # a failed run is a result: it is recorded, the others go on
            outcome = error
        self.job.problem.clock.pause()
        self._own += time.perf_counter() - wall
        self._cpu += time.thread_time() - cpu
        return outcome

    def _followed(self, reply: Any) -> Solution | Exception | None:
        """Run what comes after the solver; return its solution at the end, None if it asks."""
        try:
            self._ask(reply)
        except StopIteration:
            return self._solution
        except Exception as error:  # as above
            return error
        return None

    def _ask(self, reply: Any) -> None:
        """Take the next request of what is running."""
        self.request = _asked(self._steps.send(reply))
        self.needs_pass = self.view.needs_pass(self.request)

    def _times(self) -> JobTimes:
        return JobTimes(
            wall_seconds=time.perf_counter() - self._start,
            own_seconds=self._own,
            cpu_seconds=self._cpu,
            pass_seconds=self.pass_seconds,
            rounds=self._rounds,
            bytes_read=self.bytes_read,
        )


def _asked(request: Any) -> Request:
    """Return what a solver yielded if it is a request."""
    if not isinstance(request, Request):
        raise TypeError(f"the solver asked with {type(request).__name__} instead of a request")
    return request


def _ended(outcome: Any) -> Solution | TypeError:
    """Return what a solver ended with, or what is wrong with it."""
    if isinstance(outcome, Solution):
        return outcome
    return TypeError(f"the solver ended with {type(outcome).__name__} instead of a Solution")


def _answer(bank: Bank, runners: Sequence[_Runner]) -> None:
    """Answer the pending requests by one traversal at most, and let each solver go on."""
    wall, bytes_before = time.perf_counter(), bank.counter.bytes_read
    asked = [runner.request for runner in runners if runner.request is not None]
    views = [runner.view for runner in runners]
    replies = answer_views(list(zip(views, asked, strict=True)))
    seconds = time.perf_counter() - wall
    bytes_read = bank.counter.bytes_read - bytes_before
    costs = [_cost(request, bank.n_kernels) for request in asked]
    total = sum(costs) or 1.0
    replies.reverse()
    for runner, cost in zip(runners, costs, strict=True):
        runner.charge(seconds * cost / total, bytes_read * cost / total)
        runner.advance(replies.pop())


def _cost(request: Request, n_kernels: int) -> float:
    """Return the work of a request in kernels times vectors."""
    match request:
        case Combine(weights):
            return float(np.count_nonzero(weights))
        case Matvec(kernels, vectors):
            return float(len(kernels) * (1 if vectors.ndim == 1 else vectors.shape[1]))
        case Quadratic(vectors, kernels):
            asked = n_kernels if kernels is None else len(kernels)
            return float(asked * (1 if vectors.ndim == 1 else vectors.shape[1]))
        case Inner(matrices):
            return float(n_kernels * len(matrices))
        case Radii():
            return RADIUS_COST * n_kernels
