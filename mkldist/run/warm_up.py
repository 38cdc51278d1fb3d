"""Compilation of the functions that runs call, before the clocks of the runs start.

A function is compiled when a process first calls it.  That takes seconds where no compiled code is
cached on disk yet, and some milliseconds where it is.  Each method therefore solves a problem of a
few points first, which calls what its runs will call; otherwise its first run would be charged for
the compilation.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.bank.bank import Bank, MemoryBank, MemoryBudget, TileLayout
from mkldist.bank.factor_bank import FactorBank
from mkldist.bank.passes import answer
from mkldist.bank.recomputed import PointBank, has_point_products
from mkldist.bank.requests import Combine, Matvec, Quadratic, Request
from mkldist.bank.sources import BankSource, FeatureSource
from mkldist.bank.view import BankView, answer_views, make_views
from mkldist.core.arrays import Floats
from mkldist.core.threads import limit_new_libraries
from mkldist.fit.engine import problem_on
from mkldist.methods.registry import METHODS, is_own
from mkldist.optim.pivoted_cholesky import PivotedFactor, pivoted_cholesky
from mkldist.planning.model import BankPlan, RunPlan
from mkldist.solvers.base import Method, Problem, Solution, Steps
from mkldist.solvers.lockstep import Job, solve_alone

N_POINTS = 40
WIDTHS = (0.1, 0.5, 2.0, 8.0)
N_SOURCE_KERNELS = 4
TOLERANCE = 1e-6  # small, so that a solver takes several steps and enters all of its branches
COPIES_BYTES = 2**20

_warm: set[Specimen] = set()
_warm_sources: set[tuple[str, bool]] = set()


@dataclass(frozen=True)
class Specimen:
    """Small problem that calls the functions which some runs of a method call.

    Compiled code depends on the types of arrays.  It does not depend on numbers such as C, so runs
    that differ in numbers alone have one specimen.
    """

    method: str  # name of the method
    choices: tuple[tuple[str, str], ...]  # its parameters that are no real numbers
    dtype: str  # type of the bank's entries
    normalisations: tuple[str, ...]  # normalisations of the bank
    several_classes: bool  # True if classes share kernel weights
    scored_on_bank: bool  # True if decision values are computed at points of the bank, too
    on_factors: bool = False  # true on a bank of factors

    @classmethod
    def of(cls, run: RunPlan, bank: BankPlan) -> Specimen:
        """Return the specimen of a run on a bank."""
        return cls(
            run.method,
            tuple(sorted((k, repr(v)) for k, v in run.params.items() if not isinstance(v, float))),
            bank.dtype,
            tuple(name for name in bank.spec.normalisations if name != "cosine"),
            run.shared_weights,
            run.graph is not None or run.selection is not None,
            bank.is_factored,
        )


def specimens(runs: Iterable[RunPlan], bank: BankPlan) -> dict[Specimen, dict[str, Any]]:
    """Return the specimens of some runs on a bank, each with the parameters of one of its runs."""
    found: dict[Specimen, dict[str, Any]] = {}
    for run in runs:
        if is_own(METHODS[run.method]):
            found.setdefault(Specimen.of(run, bank), run.params)
    return found


def warm_up(wanted: dict[Specimen, dict[str, Any]]) -> None:
    """Solve specimens that this process has not solved yet."""
    for specimen, params in wanted.items():
        if specimen not in _warm:
            with suppress(Exception):  # the run will report the same error
                solve_specimen(specimen, params)
            _warm.add(specimen)
    limit_new_libraries()  # which the solvers have imported


def warm_up_source(source: BankSource, dtype: str, *, is_factored: bool = False) -> None:
    """Compute a few values of a source of kernels, once for each type of values in this process."""
    if not isinstance(source, FeatureSource) or (dtype, is_factored) in _warm_sources:
        return
    few = slice(0, min(N_SOURCE_KERNELS, source.n_kernels))
    small = FeatureSource(source.points[:N_POINTS], source.kernels.select(few), source.cosine)
    layout = TileLayout.for_points(small.n_points)
    shape = (small.n_kernels, layout.n_tiles, layout.tile, layout.tile)
    with suppress(Exception):  # the bank itself will report the same error
        small.fill(few, slice(0, layout.n_tiles), layout, np.empty(shape, dtype))
        small.diagonals(few)
        if is_factored and has_point_products(small):  # for sums that are taken instead
            weights, vector = np.ones(small.n_kernels), np.ones(small.n_points)
            answer(PointBank(small, dense=True), [Combine(weights), Quadratic(vector)])
    _warm_sources.add((dtype, is_factored))


def solve_specimen(specimen: Specimen, params: dict[str, Any]) -> None:
    """Solve a specimen on all points of a small bank, and on some of them.

    Which kernels a solver asks for depends on the data.  So each view also answers, for one kernel,
    requests of the kinds that the solver has made.
    """
    method, bank = METHODS[specimen.method], _bank(specimen)
    indices = [None, np.arange(0, N_POINTS, 2)]
    views = make_views(bank, indices, specimen.normalisations, MemoryBudget(COPIES_BYTES))
    kinds: set[type[Request]] = {Matvec} if specimen.scored_on_bank else set()
    for view in views:
        problem = _problem(method, view, specimen)
        settings = method.params(**{**params, "tol": TOLERANCE})
        steps = _watched(method.solve(problem, settings), kinds)
        solve_alone(bank, Job("warm-up", view, problem, steps))
    for view in views:
        requests = (request for kind in kinds for request in _of_one_kernel(kind, view))
        answer_views([(view, request) for request in requests])


def _watched(steps: Steps, kinds: set[type[Request]]) -> Steps:
    """Run a solver, and collect the kinds of its requests."""
    reply: Any = None
    while True:
        try:
            request = steps.send(reply)
        except StopIteration as end:
            solution: Solution = end.value
            return solution
        kinds.add(type(request))
        reply = yield request


def _of_one_kernel(kind: type[Request], view: BankView) -> list[Request]:
    """Return requests of a kind that need one kernel, none if the kind needs all."""
    first, vectors = np.zeros(1, dtype=np.intp), np.ones((view.n_points, 2))
    if kind is Combine:
        return [Combine(np.ones(1), first)]
    if kind is Matvec:
        return [Matvec(first, vectors[:, 0])]
    if kind is Quadratic:
        return [Quadratic(vectors[:, 0], first), Quadratic(vectors, first)]
    return []


def _points() -> Floats:
    """Return the points of all specimens."""
    return np.random.default_rng(0).normal(size=(N_POINTS, 3))


def _bank(specimen: Specimen) -> Bank:
    """Return a bank of Gaussian kernels, some of them on features that tell nothing."""
    squared = (_points()[:, None] - _points()) ** 2
    distances = [squared.sum(axis=2), *np.moveaxis(squared, 2, 0)]
    grams = [np.exp(-d / width) for d in distances for width in WIDTHS]
    if specimen.on_factors:
        return FactorBank([_factor(gram) for gram in grams])
    return MemoryBank.from_grams(grams, specimen.dtype)


def _factor(gram: Floats) -> PivotedFactor:
    """Return a factor of half of the columns of a Gram matrix."""
    return pivoted_cholesky(
        gram.diagonal().copy(),
        lambda rows, columns: gram[rows][:, columns],
        rank=N_POINTS // 2,
        tolerance=0.0,
        seed=(0,),
    )


def _problem(method: Method, view: BankView, specimen: Specimen) -> Problem:
    """Return a problem on the points of a view, with labels as the method takes them."""
    n = view.n_points
    y = _labels(specimen) if view.index is None else _labels(specimen)[view.index]
    laplacian = n * np.eye(n) - 1.0 if method.needs_laplacian else None
    return problem_on(view, method, y, laplacian=laplacian)


def _labels(specimen: Specimen) -> Floats:
    """Return labels -1 and +1, some of them wrong, in columns if classes share their weights."""
    y = np.where(_points()[:, 0] > 0.0, 1.0, -1.0)
    y[::7] *= -1.0
    if not specimen.several_classes:
        return y
    other = np.where(_points()[:, 1] > 0.0, 1.0, -1.0)
    return np.column_stack([y, other, -y])
