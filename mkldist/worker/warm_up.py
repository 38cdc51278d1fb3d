"""Compilation of the functions that runs call, before the clocks of the runs start.

A function is compiled when a process first calls it.  That takes seconds where no compiled code is
cached on disk yet, and some milliseconds where it is.  Each method therefore solves a problem of a
few points first, which calls what its runs will call; otherwise its first run would be charged for
the compilation.

The processes of a machine take turns.  The first one compiles and writes to the cache on disk, and
the others read what it wrote instead of compiling the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.arrays import Floats
from mkldist.blas_threads import single_threaded
from mkldist.gram.bank import ArrayBank, Bank, MemoryBank
from mkldist.gram.cache import default_directory
from mkldist.gram.kept_rows import MemoryBudget
from mkldist.gram.layout import TileLayout
from mkldist.gram.sources import BankSource, FeatureSource
from mkldist.gram.view import make_views
from mkldist.methods.registry import METHODS
from mkldist.plan.model import BankPlan, RunPlan
from mkldist.solvers.base import Method, Problem
from mkldist.solvers.lockstep import Job, solve_alone

OWN_METHODS = "mkldist.methods."  # a method from elsewhere may do anything, at any cost
N_POINTS = 24
N_KERNELS = 6
N_CLASSES = 3
TOLERANCE = 1e-6  # small, so that a solver takes several steps and enters all of its branches
COPIES_BYTES = 2**20
LOCK_SECONDS = 300.0  # after which a process compiles for itself rather than wait for another

_warm: set[Specimen] = set()
_warm_sources: set[str] = set()


@dataclass(frozen=True)
class Specimen:
    """Small problem that calls the functions which some runs of a method call.

    Compiled code depends on the types of arrays.  It does not depend on numbers such as C, so runs
    that differ in numbers alone have one specimen.

    Parameters
    ----------
    method : str
        Name of the method.
    choices : tuple of (str, str)
        Its parameters that are no real numbers.
    dtype : str
        Type of the bank's entries.
    read_only : bool
        True for a bank that is mapped from a file.
    normalisations : tuple of str
        Normalisations of the bank.
    several_classes : bool
        True if classes share kernel weights.
    """

    method: str
    choices: tuple[tuple[str, str], ...]
    dtype: str
    read_only: bool
    normalisations: tuple[str, ...]
    several_classes: bool

    @classmethod
    def of(cls, run: RunPlan, bank: BankPlan) -> Specimen:
        """Return the specimen of a run on a bank."""
        return cls(
            run.method,
            tuple(sorted((k, repr(v)) for k, v in run.params.items() if not isinstance(v, float))),
            bank.dtype,
            bank.backend == "mmap",
            tuple(name for name in bank.spec.normalisations if name != "cosine"),
            run.shared_weights,
        )


def specimens(runs: Iterable[RunPlan], bank: BankPlan) -> dict[Specimen, dict[str, Any]]:
    """Return the specimens of some runs on a bank, each with the parameters of one of its runs.

    Methods that do not come with mkldist have none.
    """
    found: dict[Specimen, dict[str, Any]] = {}
    for run in runs:
        if METHODS[run.method].solve.__module__.startswith(OWN_METHODS):
            found.setdefault(Specimen.of(run, bank), run.params)
    return found


def warm_up(wanted: dict[Specimen, dict[str, Any]]) -> None:
    """Solve specimens that this process has not solved yet.

    Parameters
    ----------
    wanted : dict of Specimen to dict
        Specimens, each with parameters of its method; see :func:`specimens`.
    """
    for specimen, params in wanted.items():
        if specimen not in _warm:
            with (
                _taking_turns("solvers"),
                suppress(Exception),
            ):  # the run will report the same error
                solve_specimen(specimen, params)
            _warm.add(specimen)


@contextmanager
def _taking_turns(what: str) -> Iterator[None]:
    """Hold the lock that one process of this machine has at a time while it compiles something.

    A lock that cannot be had, for instance on a file system without locks, only costs time.
    """
    from filelock import FileLock

    folder = default_directory()
    lock = FileLock(folder / f"compiling-{what}.lock", timeout=LOCK_SECONDS)
    with suppress(OSError, NotImplementedError):  # filelock's Timeout is an OSError
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def compile_ahead(wanted: dict[Specimen, dict[str, Any]]) -> None:
    """Solve specimens in a process that does nothing else, so that workers find compiled code."""
    with single_threaded():
        warm_up(wanted)


def warm_up_source(source: BankSource, dtype: str) -> None:
    """Compute a few values of a source of kernels, once for each type of values in this process.

    Parameters
    ----------
    source : BankSource
        The source.  Given Gram matrices need no compiled code.
    dtype : str
        Type of the bank's entries.
    """
    if not isinstance(source, FeatureSource) or dtype in _warm_sources:
        return
    few = slice(0, N_KERNELS)
    small = FeatureSource(source.points[:N_POINTS], source.kernels.select(few), source.cosine)
    layout = TileLayout.for_points(small.n_points)
    shape = (small.n_kernels, layout.n_tiles, layout.tile, layout.tile)
    with (
        _taking_turns("kernels"),
        suppress(Exception),
    ):  # the bank itself will report the same error
        small.fill(few, slice(0, layout.n_tiles), layout, np.empty(shape, dtype))
        small.diagonals(few)
    _warm_sources.add(dtype)


def solve_specimen(specimen: Specimen, params: dict[str, Any]) -> None:
    """Solve a specimen on all points of a small bank, and on some of them."""
    method, bank = METHODS[specimen.method], _bank(specimen)
    indices = [None, np.arange(0, N_POINTS, 2)]
    budget = MemoryBudget(COPIES_BYTES)
    for view in make_views(bank, indices, specimen.normalisations, budget):
        problem = _problem(method, view.n_points, specimen)
        settings = method.params(**{**params, "tol": TOLERANCE})
        solve_alone(bank, Job("warm-up", view, problem, method.solve(problem, settings)))


def _bank(specimen: Specimen) -> Bank:
    """Return a bank of some Gaussian kernels."""
    x = np.random.default_rng(0).normal(size=(N_POINTS, 2))
    squared = ((x[:, None] - x) ** 2).sum(axis=2)
    widths = np.geomspace(0.1, 10.0, N_KERNELS)
    memory = MemoryBank.from_grams([np.exp(-squared / s) for s in widths], specimen.dtype)
    if not specimen.read_only:
        return memory
    [rows] = memory.rows(np.arange(N_KERNELS))
    rows.values.flags.writeable = False
    return ArrayBank(rows.values, memory.layout)


def _problem(method: Method, n: int, specimen: Specimen) -> Problem:
    """Return a problem of n points with labels as the method takes them."""
    laplacian = n * np.eye(n) - 1.0 if method.needs_laplacian else None
    return Problem(y=_labels(n, specimen), n_kernels=N_KERNELS, laplacian=laplacian)


def _labels(n: int, specimen: Specimen) -> Floats:
    """Return labels -1 and +1, in a column for each class if several share their weights."""
    classes = np.arange(n) % N_CLASSES
    columns = np.where(classes[:, None] == np.arange(N_CLASSES), 1.0, -1.0)
    return columns if specimen.several_classes else np.ascontiguousarray(columns[:, 0])
