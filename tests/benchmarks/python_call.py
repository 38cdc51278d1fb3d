"""The call from Python: from Gram matrices to a certificate, with and without a bank."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

import mkldist
from mkldist.fit import bank as parallel
from tests.benchmarks import problems
from tests.benchmarks.measuring import Measured, named, timed
from tests.benchmarks.straightforward_level import level as straightforward_level

N_KERNELS, FEW = 3000, 90
THREADS = 2


def python_call(data_dir: Path | None) -> Iterator[Measured]:
    """Solve on a stack and on a bank; ratios are of the processor, which others disturb least."""
    yield from _level(data_dir)
    yield from _spicymkl()
    yield _threads()


def _level(data_dir: Path | None) -> Iterator[Measured]:
    """Level on the problems of Xu et al. 2008 against a straightforward one."""
    names = problems.LEVEL_NAMES if data_dir is not None else (None,)
    stack = bank = theirs = 0.0
    for name in names:
        points = problems.xu2008(data_dir, name)
        grams, y = problems.dense(problems.built(points)), points.y
        mkldist.solve("level", grams, y, C=100.0)  # loads or compiles
        made = mkldist.KernelBank.from_grams(grams)
        stack += _cpu(lambda g=grams, y=y: mkldist.solve("level", g, y, C=100.0), 3)
        bank += _cpu(lambda b=made, y=y: mkldist.solve("level", b, y, C=100.0), 3)
        theirs += _cpu(lambda g=grams, y=y: straightforward_level(g, y, 100.0))
    work = f"solve('level'), {len(names)} problems of Xu et al. 2008"
    yield Measured(f"{work}, stack", stack, "8x", theirs, note="CPU")
    yield Measured(f"{work}, bank", bank, "18x", theirs, note="CPU")


def _spicymkl() -> Iterator[Measured]:
    """SpicyMKL on many kernels, by the check of the stack, and on a bank."""
    points = problems.ring(N_KERNELS)
    grams, y = problems.dense(problems.built(points)), points.y
    made = mkldist.KernelBank.from_grams(grams)
    mkldist.solve("spicymkl", made, y, C=20.0)
    work = f"solve('spicymkl'), {N_KERNELS} kernels, 200 points"
    for check, reach in (("full", "0.8 s"), ("none", "")):
        yield _called(
            f"{work}, stack, check {check}",
            lambda c=check: mkldist.solve("spicymkl", grams, y, C=20.0, check=c),
            reach,
        )
    yield _called(f"{work}, bank", lambda: mkldist.solve("spicymkl", made, y, C=20.0), "0.35 s")


def _called(work: str, function: Callable[[], Any], reach: str) -> Measured:
    """Return the time of a call, with the seconds of all processors beside it."""
    wall, cpu = np.inf, np.inf
    for _ in range(3):
        started = time.process_time()
        wall = min(wall, timed(function)[0])
        cpu = min(cpu, time.process_time() - started)
    return Measured(work, wall, reach, note=f"CPU {cpu:.2f} s")


def _threads() -> Measured:
    """Return the call on few matrices on two threads, and linear algebra on two, against one."""
    points = problems.ring(FEW)
    grams, y = problems.dense(problems.built(points)), points.y

    def seconds(threads: int) -> float:
        alone = patch.object(parallel, "n_processors", lambda: threads)
        with alone, threadpool_limits(limits=threads):
            return _cpu(lambda: mkldist.solve("level", grams, y, C=10.0), 9)

    one = seconds(1)
    return Measured(
        f"solve('level'), {FEW} kernels, {THREADS} threads", seconds(THREADS), "1x", one
    )


def _cpu(function: Callable[[], Any], repeats: int = 1) -> float:
    """Return the least seconds of the processor that some calls took, on all threads together."""
    best = np.inf
    for _ in range(repeats):
        started = time.process_time()
        function()
        best = min(best, time.process_time() - started)
    return float(best)


ROWS = named(python_call)
