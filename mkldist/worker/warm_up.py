"""Compiling what solvers run before their clocks do.

Solvers are compiled when a process first runs them, which takes seconds where nothing is cached
yet.  A problem of a few points, solved with the same parameters, takes them off the first run.
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

SOLVERS = "mkldist.methods."  # nothing is known of what others do or cost
N_POINTS = 12
SEVERAL_STEPS = 1e-6  # tolerance at which a solver meets all of its code

_warm: set[tuple[str, Any]] = set()


def warm_up(runs: Iterable[RunPlan]) -> None:
    """Run every method, with each of its losses, once in this process on a small problem.

    Parameters
    ----------
    runs : iterable of RunPlan
        Runs that are to be done next.
    """
    for run in runs:
        key = (run.method, run.params.get("loss"))
        ours = METHODS[run.method].solve.__module__.startswith(SOLVERS)
        if ours and key not in _warm:
            _warm.add(key)
            with suppress(Exception):  # whatever is wrong with a run is told by the run itself
                _solve_small(run)


def _solve_small(run: RunPlan) -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(N_POINTS, 2))
    squared = ((x[:, None] - x) ** 2).sum(axis=2)
    bank = MemoryBank.from_grams(np.array([np.exp(-squared / s) for s in (0.5, 2.0, 8.0)]))
    y = np.where(np.arange(N_POINTS) % 2, 1.0, -1.0)
    method = METHODS[run.method]
    laplacian = N_POINTS * np.eye(N_POINTS) - 1.0 if method.needs_laplacian else None
    problem = Problem(y=y, n_kernels=3, laplacian=laplacian)
    params = method.params(**{**run.params, "tol": SEVERAL_STEPS})
    [view] = make_views(bank, [None], ())
    solve_alone(bank, Job("warm-up", view, problem, method.solve(problem, params)))
