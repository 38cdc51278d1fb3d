"""Sizes that the framework reaches: many kernels, banks larger than memory, growth of time."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.bank.bank import TileLayout
from mkldist.bank.build import build_blocks, open_bank
from mkldist.bank.recomputed import RecomputedBank
from mkldist.bank.store import GramStore
from mkldist.bank.view import make_views
from tests.benchmarks import problems
from tests.benchmarks.measuring import Measured, jobs, named, run, solved, timed
from tests.benchmarks.problems import Points
from tests.peak_memory import peak_resident_bytes

THREADS = 2


def hundred_thousand(data_dir: Path | None) -> Iterator[Measured]:
    """100,000 kernels on 200 points, nothing stored, from features to certificate."""
    yield _recomputed(100_000, "60 s, 3 GB")


def million(data_dir: Path | None) -> Iterator[Measured]:
    """1,000,000 kernels on 200 points, nothing stored, from features to certificate."""
    yield _recomputed(1_000_000, "600 s, 4 GB")


def _recomputed(n_kernels: int, reach: str) -> Measured:
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        seconds, peak, note = pool.apply(_solve_recomputed, (n_kernels,))
    note = f"{note}, peak {peak / 1e9:.2f} GB"
    return Measured(f"SpicyMKL, ring, {n_kernels} kernels recomputed", seconds, reach, note=note)


def _solve_recomputed(n_kernels: int) -> tuple[float, float, str]:
    """Return the seconds, the bytes at the peak and further figures; for a process of its own."""
    solved_small = RecomputedBank(problems.source(problems.ring(50)), 2**20)
    solved(solved_small, problems.ring(50).y, "spicymkl", C=20.0)  # compiles
    started = time.perf_counter()
    points = problems.ring(n_kernels)
    bank = RecomputedBank(problems.source(points), 2**28, THREADS)
    solution = solved(bank, points.y, "spicymkl", C=20.0)
    seconds = time.perf_counter() - started
    peak = peak_resident_bytes()
    note = f"gap {solution.gap:.4f}, {bank.counter.passes} passes, "
    return seconds, peak, note + f"{len(solution.active())} active"


def larger_than_memory(data_dir: Path | None) -> Iterator[Measured]:
    """Level on a bank of 4 GiB with 1 GiB of memory, against the bank in memory."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        points = problems.ring(6700, n=400)
        layout = TileLayout.for_points(400)
        store = GramStore.create(folder, "bank", len(points.kernels), layout, "float64")
        build_blocks(problems.source(points), store, store.blocks)
        results = {}
        for backend, limit in (("memory", None), ("mmap", 2**30), ("stream", 2**30)):
            with context.Pool(1) as pool:
                results[backend] = pool.apply(_solve_stored, (folder, backend, limit, points.y))
        theirs = results["memory"][0]
        for backend in ("mmap", "stream"):
            seconds, peak = results[backend]
            note = f"peak {peak / 2**30:.2f} GiB, in memory {results['memory'][1] / 2**30:.2f} GiB"
            work = f"Level, bank of {store.n_bytes / 2**30:.1f} GiB, 1 GiB of memory, {backend}"
            yield Measured(work, seconds, "2x the time, below 1 GiB", theirs, note=note)


def _solve_stored(
    folder: str, backend: Any, limit: int | None, y: np.ndarray
) -> tuple[float, float]:
    """Return seconds, without those of opening, and bytes at the peak; in its own process."""
    from mkldist.bank.cache import NodeCache

    store = GramStore.open(folder, "bank")
    bank = open_bank(store, backend, limit, NodeCache(Path(folder) / "cache"))
    solved(bank, y, "level", C=100.0)  # compiles and warms the page cache
    seconds, _ = timed(lambda: solved(bank, y, "level", C=100.0))
    return seconds, peak_resident_bytes()


def growth(data_dir: Path | None) -> Iterator[Measured]:
    """Exponents of SpicyMKL's time against the numbers of kernels and of points."""
    sizes = [50, 200, 750, 3000, 6000]
    seconds = [_spicymkl_seconds(problems.ring(m)) for m in sizes]
    note = ", ".join(f"{s:.3f} s" for s in seconds)
    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    yield Measured("time against M = 50 ... 6000", slope, "1.0", unit="exponent", note=note)
    sizes = [500, 1000, 2000, 3000]
    seconds = [_spicymkl_seconds(problems.ring(20, n=n)) for n in sizes]
    note = ", ".join(f"{s:.2f} s" for s in seconds)
    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    yield Measured("time against n = 500 ... 3000", slope, "2.3", unit="exponent", note=note)


def _spicymkl_seconds(points: Points) -> float:
    bank = problems.built(points)
    [view] = make_views(bank, [None], ("trace",))
    return timed(lambda: run(bank, jobs("spicymkl", view, points.y, [{"C": 20.0}])), 3)[0]


ROWS = named(hundred_thousand, million, larger_than_memory, growth)
