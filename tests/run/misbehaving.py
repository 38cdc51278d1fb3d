"""Methods that misbehave; a file of its own because workers preload it by its path."""

import os
import signal
import time

import numpy as np

from mkldist.bank.requests import Quadratic
from mkldist.methods import uniform
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Method

SECONDS = float(os.environ.get("MKLDIST_TEST_SECONDS", "0.4"))


def raising(problem, params):
    yield Quadratic(problem.y)
    if params.C > 5:
        raise ArithmeticError(f"no solution for C = {params.C:g}")
    return (yield from uniform.solve(problem, params))


def killing(problem, params):
    yield Quadratic(problem.y)
    if params.C > 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return (yield from uniform.solve(problem, params))


def slow(problem, params):
    yield Quadratic(np.abs(problem.y))
    time.sleep(SECONDS)
    return (yield from uniform.solve(problem, params))


def busy(problem, params):
    """Compute until the thread has had its seconds of a processor, however long that takes."""
    yield Quadratic(np.abs(problem.y))
    end = time.thread_time() + SECONDS
    while time.thread_time() < end:
        np.exp(problem.y)
    return (yield from uniform.solve(problem, params))


for solve in (raising, killing, slow, busy):
    METHODS[solve.__name__] = Method(
        name=solve.__name__,
        solve=solve,
        params=uniform.METHOD.params,
        title=solve.__name__,
        problem="test",
        loss="hinge",
        regularizer="none",
        reference="none",
        hyperparameters=uniform.METHOD.hyperparameters,
    )
