"""Many points: kernels as thin factors, and the certificate for the kernels themselves."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mkldist
from tests.benchmarks.measuring import Measured, named

WIDTHS = [0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12]
LOGISTIC_C = 1.0  # weight of the regulariser, with kernels of unit trace
GROUPS = {"a": [0, 1], "b": [2], "c": [3], "d": [0, 1, 2, 3]}


def many_points(data_dir: Path | None) -> Iterator[Measured]:
    """10,000 points, 50 Gaussians: factors, a solution, and the pass over the kernels."""
    n = 10_000
    for work, method, params in (
        ("Level", "level", {"C": n / 4}),
        ("SpicyMKL, logistic loss,", "spicymkl", {"loss": "logistic", "C": LOGISTIC_C}),
    ):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds, peak, note = pool.apply(_solve_on_factors, (n, method, params))
        note = f"{note}, peak {peak / 1e9:.2f} GB"
        work = f"{work} on factors, {n} points, 50 Gaussians"
        yield Measured(work, seconds, "90 s, 3 GB", note=note)


def points(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n points of ten features, of which four count, and their noisy labels."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 10))
    f = x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2]) + 0.5 * x[:, 3] ** 2 - 0.5
    return x, np.where(f + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)


def _solve_on_factors(n: int, method: str, params: dict[str, Any]) -> tuple[float, float, str]:
    """Return the seconds, the bytes at the peak and further figures; for a process of its own."""
    _solution(300, method, params)  # compiles
    started = time.perf_counter()
    solution = _solution(n, method, params)
    seconds = time.perf_counter() - started
    peak = 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    note = f"gap {solution.gap:.4f}, exact {solution.exact_gap:.4f}, "
    return seconds, peak, note + f"{len(solution.active())} active"


def _solution(n: int, method: str, params: dict[str, Any]) -> mkldist.Solution:
    x, y = points(n)
    kernels = [{"function": "gaussian", "widths": WIDTHS, "features": ["all", *GROUPS]}]
    with mkldist.KernelBank(
        x, kernels, groups=GROUPS, backend="factors", rank=700, tolerance=1e-3
    ) as bank:
        return mkldist.solve(method, bank, y, tol=0.005, **params)


ROWS = named(many_points)
