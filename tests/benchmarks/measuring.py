"""Measurement of the rows of the benchmarks."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.bank.bank import Bank
from mkldist.bank.view import BankView, make_views
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Problem, Solution
from mkldist.solvers.lockstep import Job, drive

TOL = 0.01


@dataclass(frozen=True)
class Measured:
    """One line of the table."""

    work: str  # what was done
    ours: float  # seconds that it took, or another figure of `unit`
    reach: str  # what was aimed at
    theirs: float | None = None  # the same of the yardstick
    unit: str = "s"
    note: str = ""  # further figures


Row = Callable[[Path | None], Iterator[Measured]]


def named(*rows: Row) -> dict[str, Row]:
    """Return rows by their names on the command line."""
    return {row.__name__.replace("_", "-"): row for row in rows}


def timed(function: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Return the least wall time of some calls, in seconds, and what the last returned."""
    best = np.inf
    for _ in range(repeats):
        started = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - started)
    return best, result


def jobs(method: str, view: BankView, y: np.ndarray, grid: list[dict[str, Any]]) -> list[Job]:
    """Return one job for each point of a grid, not yet started."""
    entry = METHODS[method]
    found = []
    for number, params in enumerate(grid):
        problem = Problem(y, view.n_kernels)
        steps = entry.solve(problem, entry.params(**{"tol": TOL} | params))
        found.append(Job(str(number), view, problem, steps))
    return found


def run(bank: Bank, some: list[Job]) -> list[Solution]:
    """Run jobs in lockstep; raise what one of them raised."""
    found: dict[str, Solution] = {}

    def done(key: str, outcome: Solution | Exception, _: Any) -> None:
        if isinstance(outcome, Exception):
            raise outcome
        found[key] = outcome

    drive(bank, some, done)
    return [found[job.key] for job in some]


def solved(bank: Bank, y: np.ndarray, method: str, **params: Any) -> Solution:
    """Run one method on kernels of unit trace."""
    [view] = make_views(bank, [None], ("trace",))
    [solution] = run(bank, jobs(method, view, y, [params]))
    assert solution.gap <= TOL
    return solution
