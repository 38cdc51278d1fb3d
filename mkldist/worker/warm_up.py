"""Compilation of the solvers' inner loops before the clocks of runs start.

A function is compiled when a process first calls it, which takes seconds where no compiled code is
cached on disk yet.  Each method therefore solves a problem of a few points first; otherwise its
first run would be charged for the compilation.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np

from mkldist.gram.bank import MemoryBank
from mkldist.gram.view import make_views
from mkldist.methods.registry import METHODS
from mkldist.plan.model import RunPlan
from mkldist.solvers.base import Problem
from mkldist.solvers.lockstep import Job, solve_alone

OWN_METHODS = "mkldist.methods."  # a method from elsewhere may do anything, at any cost
N_POINTS = 12
TOLERANCE = 1e-6  # small, so that a solver takes several steps and enters all of its branches

_warm: set[tuple[str, Any]] = set()


def warm_up(runs: Iterable[RunPlan]) -> None:
    """Solve a small problem by every method and loss of some runs, once in this process.

    Parameters
    ----------
    runs : iterable of RunPlan
        Runs that the process is about to do.
    """
    for run in runs:
        key = (run.method, run.params.get("loss"))
        is_own = METHODS[run.method].solve.__module__.startswith(OWN_METHODS)
        if is_own and key not in _warm:
            _warm.add(key)
            with suppress(Exception):  # the run itself will meet the same error and report it
                _solve_small(run)


def _solve_small(run: RunPlan) -> None:
    """Solve a problem of three Gaussian kernels with the parameters of a run."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(N_POINTS, 2))
    squared = ((x[:, None] - x) ** 2).sum(axis=2)
    bank = MemoryBank.from_grams(np.array([np.exp(-squared / s) for s in (0.5, 2.0, 8.0)]))
    y = np.where(np.arange(N_POINTS) % 2, 1.0, -1.0)
    method = METHODS[run.method]
    laplacian = N_POINTS * np.eye(N_POINTS) - 1.0 if method.needs_laplacian else None
    problem = Problem(y=y, n_kernels=3, laplacian=laplacian)
    params = method.params(**{**run.params, "tol": TOLERANCE})
    [view] = make_views(bank, [None], ())
    solve_alone(bank, Job("warm-up", view, problem, method.solve(problem, params)))
