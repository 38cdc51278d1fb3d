"""Many points: kernels as thin factors, and the certificate for the kernels themselves."""

import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import mkldist
from mkldist.bank.requests import Quadratic
from mkldist.errors import ConvergenceWarning
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Problem
from mkldist.solvers.lockstep import Job, solve_alone
from tests.benchmarks.measuring import Measured, named, timed
from tests.peak_memory import peak_resident_bytes

WIDTHS = [0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12]
MORE_WIDTHS = np.geomspace(0.25, 12, 20).tolist()
FEW_WIDTHS = [0.5, 1, 2, 4]
LOGISTIC = {"loss": "logistic", "C": 1.0}  # with kernels of unit trace
GROUPS = {"a": [0, 1], "b": [2], "c": [3], "d": [0, 1, 2, 3]}
SIZES = (5_000, 16_000, 50_000)  # of the row of growth
RANK = 100  # of that row
COMPONENTS = 300  # of Nystroem
N_TEST = 100_000  # points, of which an error of 7 % has a standard error of 0.08 %


def many_points(data_dir: Path | None) -> Iterator[Measured]:
    """10,000 points, 50 Gaussians: factors that grow until the exact gap is 1 %."""
    yield _certified(10_000, WIDTHS, "90 s, 3 GB")
    yield _certified(10_000, WIDTHS, "90 s, 3 GB", method="spicymkl", params=LOGISTIC)


def fifty_thousand_points(data_dir: Path | None) -> Iterator[Measured]:
    """50,000 points, 100 Gaussians, to an exact gap of 1 %."""
    yield _certified(50_000, MORE_WIDTHS, "900 s, 8 GB")


def hundred_thousand_points(data_dir: Path | None) -> Iterator[Measured]:
    """100,000 points, 20 Gaussians, to a gap of 1 % on factors of 100 columns."""
    yield _certified(100_000, FEW_WIDTHS, "1200 s, 10 GB", rank=RANK)


def growth_in_points(data_dir: Path | None) -> Iterator[Measured]:
    """Exponents of the time in the points, at one rank: without the exact pass, and its own."""
    fits, passes = zip(*(_in_process(_at_rank, n) for n in SIZES), strict=True)
    for work, seconds, reach in (
        ("Level on factors", fits, "1.2"),
        ("the same with the exact pass", np.add(fits, passes), "2.05"),
    ):
        slope = float(np.polyfit(np.log(SIZES), np.log(seconds), 1)[0])
        times = " ".join(f"{one:.3g}" for one in seconds)
        work = f"{work}, {SIZES[0]} to {SIZES[-1]} points, rank {RANK}: exponent"
        yield Measured(work, slope, reach, unit="", note=f"{times} s")


def points_against_nystroem(data_dir: Path | None, n: int = 50_000) -> Iterator[Measured]:
    """Level on 20 Gaussians against the best of them by cross-validation, with random pivots."""
    ours, wrong, gap = _in_process(_fit_and_test, n)
    theirs, their_wrong = _in_process(_nystroem, n)
    note = f"errors {100 * wrong.mean():.2f} and {100 * their_wrong.mean():.2f} %, "
    note += f"McNemar p = {_mcnemar(wrong, their_wrong):.2f}, exact gap {gap:.4f}"
    work = f"Level on factors, {n} points, 20 Gaussians; Nystroem and LinearSVC by 5-fold CV"
    yield Measured(work, ours, "faster, no larger error", theirs, note=note)


def points(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return n points of ten features, of which four count, and their noisy labels."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 10))
    f = x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2]) + 0.5 * x[:, 3] ** 2 - 0.5
    return x, np.where(f + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)


def bank_of(
    x: np.ndarray,
    widths: Sequence[float],
    rank: int | None = None,
    tolerance: float | None = None,
    backend: str = "factors",
    device: str = "cpu",
) -> mkldist.KernelBank:
    """Return Gaussians of each width on all features and on four groups of them."""
    kernels = [{"function": "gaussian", "widths": widths, "features": ["all", *GROUPS]}]
    return mkldist.KernelBank(
        x, kernels, groups=GROUPS, backend=backend, rank=rank, tolerance=tolerance, device=device
    )


def _in_process(function: Callable[..., Any], *arguments: object) -> Any:
    """Return what a function returns in a process of its own, whose memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def _certified(
    n: int,
    widths: Sequence[float],
    reach: str,
    rank: int | None = None,
    method: str = "level",
    params: dict[str, Any] | None = None,
) -> Measured:
    """Return the time of factors, solutions and certificates on n points."""
    params = params or {"C": n / 4}
    seconds, peak, note = _in_process(_solve_on_factors, n, widths, rank, method, params)
    work = f"{method} on factors, {n} points, {5 * len(widths)} Gaussians"
    return Measured(work, seconds, reach, note=f"{note}, peak {peak / 1e9:.2f} GB")


def _solve_on_factors(
    n: int, widths: Sequence[float], rank: int | None, method: str, params: dict[str, Any]
) -> tuple[float, float, str]:
    """Return the seconds, the bytes at the peak and further figures; for a process of its own."""
    _solution(300, widths, rank, method, params)  # compiles
    seconds, solution = timed(lambda: _solution(n, widths, rank, method, params))
    peak = peak_resident_bytes()
    note = f"gap {solution.gap:.4f}, exact {solution.exact_gap:.4f}, "
    note += f"largest rank {solution.extra['largest_rank']:.0f}, "
    return seconds, peak, note + f"{len(solution.active())} active"


def _solution(
    n: int, widths: Sequence[float], rank: int | None, method: str, params: dict[str, Any]
) -> mkldist.Solution:
    x, y = points(n)
    with warnings.catch_warnings(), bank_of(x, widths, rank) as bank:
        warnings.simplefilter("ignore", ConvergenceWarning)  # the note has the exact gap
        return mkldist.solve(method, bank, y, tol=0.01, **params)


def _at_rank(n: int) -> tuple[float, float]:
    """Return the seconds of a solution on factors of one rank, and of one pass over the kernels."""
    _fit_at_rank(300)  # compiles
    fit, (bank, solution) = timed(lambda: _fit_at_rank(n))
    assert bank.factored is not None
    request = Quadratic(solution.coefficients)
    seconds, _ = timed(lambda: bank.factored.exactly(request))
    return fit, seconds


def _fit_at_rank(n: int) -> tuple[mkldist.KernelBank, mkldist.Solution]:
    x, y = points(n)
    bank, method = bank_of(x, FEW_WIDTHS, RANK, 0.0), METHODS["level"]
    problem = Problem(y, len(bank))
    steps = method.solve(problem, method.params(C=n / 4, tol=0.01))
    return bank, solve_alone(bank.view.bank, Job("level", bank.view, problem, steps))


def _mcnemar(wrong: np.ndarray, others: np.ndarray) -> float:
    """Return the probability of as unequal numbers of points that one of two alone has wrong."""
    ours, theirs = int((wrong & ~others).sum()), int((others & ~wrong).sum())
    return float(binomtest(ours, max(ours + theirs, 1)).pvalue)


def _fit_and_test(n: int) -> tuple[float, np.ndarray, float]:
    """Return the seconds of Level on factors, the test points it has wrong, and its exact gap."""
    _solution(300, FEW_WIDTHS, None, "level", {"C": 75.0})  # compiles
    x, y = points(n)
    new, expected = points(N_TEST, seed=1)
    started = time.perf_counter()
    with bank_of(x, FEW_WIDTHS) as bank:
        solution = mkldist.solve("level", bank, y, C=n / 4, tol=0.01)
        values = solution.decision_function(bank.on(new))
    seconds = time.perf_counter() - started
    return seconds, np.sign(values) != expected, solution.exact_gap


def _nystroem(n: int) -> tuple[float, np.ndarray]:
    """Return the seconds of the best single kernel by cross-validation, and its wrong points."""
    x, y = points(n)
    new, expected = points(N_TEST, seed=1)
    subsets = [list(range(10)), *GROUPS.values()]
    started, best = time.perf_counter(), None
    for columns in subsets:
        pipeline = make_pipeline(
            Nystroem(n_components=COMPONENTS, random_state=0), LinearSVC(C=1.0, random_state=0)
        )
        grid = {"nystroem__gamma": [0.5 / width**2 for width in FEW_WIDTHS]}
        search = GridSearchCV(pipeline, grid, cv=5).fit(x[:, columns], y)
        if best is None or search.best_score_ > best[0]:
            best = search.best_score_, search, columns
    assert best is not None
    predicted = best[1].predict(new[:, best[2]])
    return time.perf_counter() - started, predicted != expected


ROWS = named(
    many_points,
    fifty_thousand_points,
    hundred_thousand_points,
    growth_in_points,
    points_against_nystroem,
)
