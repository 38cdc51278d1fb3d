"""Goals of the framework, one a row, with the time or work that it and a yardstick took.

A row is a function of the folder of further data that yields :class:`Measured`; its name on the
command line is that of the function.
"""

import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

from mkldist.bank.bank import Bank, MemoryBudget, TileLayout
from mkldist.bank.build import build_blocks, open_bank
from mkldist.bank.passes import answer
from mkldist.bank.recomputed import RecomputedBank
from mkldist.bank.requests import Combine, Quadratic
from mkldist.bank.store import BankShape, BankStore
from mkldist.bank.view import BankView, make_views
from mkldist.core.memory import view_cache_bytes
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Problem, Solution
from mkldist.solvers.lockstep import Job, drive
from mkldist.solvers.svm import solve_svm
from tests.benchmarks import problems
from tests.benchmarks.measuring import TOL, Measured, jobs, named, run, solved, timed
from tests.benchmarks.problems import Points
from tests.benchmarks.straightforward_level import level as straightforward_level
from tests.peak_memory import peak_resident_bytes

THREADS = 2


def gram_build(data_dir: Path | None) -> Iterator[Measured]:
    """Build the kernels of Xu et al. 2008, against a loop over scikit-learn's functions."""
    points = problems.xu2008(data_dir)
    problems.built(points)
    theirs, _ = timed(lambda: one_kernel_at_a_time(points), 3)
    for threads in (1, THREADS):
        ours, _ = timed(lambda t=threads: problems.built(points, t), 5)
        work = f"Gram build, {points.name}, {len(points.kernels)} kernels"
        yield Measured(work, ours, "8x", theirs, note=f"threads: {threads}")


def one_kernel_at_a_time(points: Points) -> np.ndarray:
    """Return the kernels of Xu et al. 2008 by scikit-learn's functions, (M, n, n)."""
    features = [slice(None), *(slice(j, j + 1) for j in range(points.x.shape[1]))]
    grams = []
    for part in features:
        x = points.x[:, part]
        grams += [rbf_kernel(x, gamma=1 / (2 * 4.0**k)) for k in range(-3, 7)]
        grams += [polynomial_kernel(x, degree=k, gamma=1, coef0=1) for k in (1, 2, 3)]
    return np.array(grams)


def passes(data_dir: Path | None) -> Iterator[Measured]:
    """Answer forms and sums of kernels from a bank, against products of dense matrices by numpy."""
    bank, grams = problems.bank(data_dir), problems.grams(data_dir)
    flat = grams.reshape(len(grams), -1)
    for n_vectors in (1, 8, 64):
        vectors = np.random.default_rng(0).normal(size=(bank.n_points, n_vectors))
        ours, _ = timed(lambda v=vectors: answer(bank, [Quadratic(v)]), 5)
        theirs, _ = timed(lambda v=vectors: [flat @ np.outer(c, c).ravel() for c in v.T], 5)
        yield Measured(f"quadratic forms of {n_vectors} vectors", ours, "1x", theirs)
    for n_active in (bank.n_kernels, 20):
        weights = np.zeros(bank.n_kernels)
        weights[:n_active] = 1.0
        ours, _ = timed(lambda w=weights: answer(bank, [Combine(w)]), 5)
        theirs, _ = timed(lambda w=weights: w @ flat, 5)
        yield Measured(f"sum of {n_active} kernels", ours, "1x", theirs)


def svm_path(data_dir: Path | None) -> Iterator[Measured]:
    """Train along a path of 13 values of C, warm-started, against SVC anew for each."""
    K, y = problems.grams(data_dir).mean(axis=0), problems.xu2008(data_dir).y
    path = np.geomspace(1.0, 1000.0, 13)

    def warm() -> None:
        start = None
        for C in path:
            start = solve_svm(K, y, C, tol=1e-4, start=start).alpha

    def anew() -> None:
        for C in path:
            SVC(C=C, kernel="precomputed", tol=1e-4).fit(K, y)

    warm()
    ours, _ = timed(warm, 5)
    theirs, _ = timed(anew, 5)
    yield Measured("SVM along 13 values of C", ours, "3x", theirs)


def level(data_dir: Path | None) -> Iterator[Measured]:
    """Level on the problems of Xu et al. 2008, Table 1, against a straightforward one."""
    names = problems.LEVEL_NAMES if data_dir is not None else ("breast cancer",)
    ours = theirs = 0.0
    passes = []
    for name in names:
        points = problems.xu2008(data_dir, name if data_dir is not None else None)
        bank = problems.built(points)
        solved(bank, points.y, "level", C=100.0)
        [view] = make_views(bank, [None], ("trace",))

        def one(bank: Bank = bank, view: BankView = view, y: np.ndarray = points.y) -> Solution:
            [solution] = run(bank, jobs("level", view, y, [{"C": 100.0}]))
            return solution

        seconds, solution = timed(one, 2)
        ours += seconds
        passes.append(solution.counters.passes)
        grams = problems.dense(bank)
        seconds, _ = timed(lambda g=grams, y=points.y: straightforward_level(g, y, 100.0), 2)
        theirs += seconds
    work = f"Level, {len(names)} problems of Xu et al. 2008"
    yield Measured(work, ours, "8x", theirs, note=f"passes {passes}")


def spicymkl(data_dir: Path | None) -> Iterator[Measured]:
    """SpicyMKL at the C of its paper, here 20, on one core, bank built, against seconds."""
    banks = [(problems.xu2008(data_dir), "0.07 s"), (problems.ring(3000), "0.4 s")]
    for points, reach in [*banks, (problems.ring(6000), "0.5 s")]:
        bank = problems.built(points)
        [view] = make_views(bank, [None], ("trace",))
        for loss in ("logistic", "hinge"):
            grid = [{"C": 20.0, "loss": loss}]
            run(bank, jobs("spicymkl", view, points.y, grid))
            seconds, [solution] = timed(
                lambda b=bank, v=view, y=points.y, g=grid: run(b, jobs("spicymkl", v, y, g)), 3
            )
            note = f"gap {solution.gap:.4f}, {solution.counters.passes} passes"
            work = f"SpicyMKL {loss}, {points.name}, {len(points.kernels)} kernels"
            yield Measured(work, seconds, reach, note=note)


def shared_sweep(data_dir: Path | None) -> Iterator[Measured]:
    """20 halves × 13 values of C on one bank: together and along paths, against each run alone."""
    points = problems.xu2008(data_dir, half=False)
    bank, n = problems.built(points), len(points.y)
    rng = np.random.default_rng(0)
    halves = [np.sort(rng.permutation(n)[: n // 2]) for _ in range(20)]
    views = make_views(bank, halves, ("trace",), MemoryBudget(view_cache_bytes(None)))
    grid = [{"C": C} for C in np.geomspace(1.0, 1000.0, 13)]

    def alone() -> None:
        for half, view in zip(halves, views, strict=True):
            for job in jobs("level", view, points.y[half], grid):
                run(bank, [job])

    def together() -> None:
        run(bank, [
            Job(f"{number}/{job.key}", view, job.problem, job.steps)
            for number, (half, view) in enumerate(zip(halves, views, strict=True))
            for job in jobs("level", view, points.y[half], grid)
        ])  # fmt: skip

    def along_paths() -> None:
        drive_paths(bank, views, [points.y[half] for half in halves], grid)

    before = bank.counter.passes
    theirs, _ = timed(alone)
    apart = bank.counter.passes - before
    for words, function in (("in lockstep", together), ("along paths", along_paths)):
        before = bank.counter.passes
        ours, _ = timed(function)
        note = f"passes {bank.counter.passes - before} and {apart}"
        yield Measured(f"Level, 20 halves x 13 C, {words}", ours, "5x", theirs, note=note)


def drive_paths(
    bank: Bank, views: list[BankView], labels: list[np.ndarray], grid: list[dict[str, Any]]
) -> None:
    """Run a path on each view, all paths in lockstep, each point from the solution of the last."""
    entry = METHODS["level"]

    def job(number: int, point: int, start: Any) -> Job:
        problem = Problem(labels[number], bank.n_kernels, start=start)
        steps = entry.solve(problem, entry.params(tol=TOL, **grid[point]))
        return Job(f"{number}/{point}", views[number], problem, steps)

    def done(key: str, outcome: Solution | Exception, _: Any) -> Job | None:
        if isinstance(outcome, Exception):
            raise outcome
        number, point = map(int, key.split("/"))
        return job(number, point + 1, outcome.state) if point + 1 < len(grid) else None

    drive(bank, [job(number, 0, None) for number in range(len(views))], done)


def overhead(data_dir: Path | None) -> Iterator[Measured]:
    """Wall time of a sweep of the command line over the solvers' own time per worker."""
    from mkldist.results.journal import Journal
    from mkldist.run.cluster import ConnectOptions
    from mkldist.run.sweep import run_sweep
    from mkldist.spec.load import load_sweep

    file = Path(__file__).parents[2] / "sweeps" / "quickstart.toml"
    overrides = ("methods.level.C=[1,3,10,30,100,300,1000,3000]", "splits.repeats=20")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "quickstart"
        spec = load_sweep(file, (*overrides, f"outputs.banks={folder}/banks"))
        options = ConnectOptions(n_workers=THREADS)
        seconds, _ = timed(
            lambda: run_sweep(spec, origin=file, output=output, connect_options=options)
        )
        store = Journal(output / "records.journal")
        times = [record.times for record in map(store.read, store.states()) if record is not None]
        pure = sum(t["own_seconds"] + t["pass_seconds"] for t in times)
    note = f"{len(times)} runs, {seconds:.0f} s"
    work = f"quickstart, {THREADS} workers: wall time over solver time / workers"
    yield Measured(work, seconds / (pure / THREADS), "1.15", unit="ratio", note=note)


# Sizes that the framework reaches: many kernels, banks larger than memory, growth of time.


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
        store = BankStore.create(folder, "bank", BankShape(len(points.kernels), layout, "float64"))
        build_blocks(problems.source(points), store, store.numbers)
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

    store = BankStore.open(folder, "bank")
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


ROWS = named(
    gram_build,
    passes,
    svm_path,
    level,
    spicymkl,
    shared_sweep,
    overhead,
    hundred_thousand,
    million,
    larger_than_memory,
    growth,
)
