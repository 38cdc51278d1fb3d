"""Choice of one kernel, and of C, by cross-validation inside the training part.

Stratified k-fold cross-validation scores every kernel at every C by two numbers: the held-out error
rate and the held-out mean hinge loss of the support vector machine, in which points count by their
weights.  The least error wins.  Ties go
to the least hinge loss, rounded to four decimals because the machines are not solved more exactly,
then to the smallest C, then to the first kernel.

The folds after the first need not score a kernel that has already made more errors at every C than
the best one makes on all folds.  It cannot win, and the choice is the same as if it were scored.

:mod:`.best_single` and :mod:`.svm` share this module.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from mkldist.bank.requests import Combine
from mkldist.core.arrays import Floats, Ints
from mkldist.core.counters import Counters
from mkldist.optim.factored_matrix import FactoredMatrix, Gram
from mkldist.solvers.base import Problem, Solution
from mkldist.solvers.queries import check_kernel_number, gram_operators
from mkldist.solvers.solver_params import SolverParams
from mkldist.solvers.svm import solve_svm
from mkldist.solvers.svm_solution import fixed_weights_solution

Mask = npt.NDArray[np.bool_]
Masks = list[Mask]

CHUNK = 3  # kernels held at once; with the rows of a fold, four matrices
SELECTION_TOL = 1e-3  # largest duality gap of the machines that are compared
ROUNDING = 1e-12  # of sums of weights
HINGE_DECIMALS = 4  # further digits depend on how exactly the machines are solved


class CrossValidatedParams(SolverParams):
    """Parameters of methods that choose by cross-validation."""

    folds: int = Field(5, ge=2, description="folds of the inner cross-validation")

    @property
    def chosen_folds(self) -> int:
        """Folds that the user chose; 0 for the default, which is cut to the smaller class."""
        return self.folds if "folds" in self.model_fields_set else 0


@dataclass(frozen=True)
class Choice:
    """The best kernel and C by cross-validation.

    Parameters
    ----------
    kernel : int
        Index of the kernel.
    C : float
        Bound of the dual variables.
    error, hinge : float
        Held-out error rate and mean hinge loss, the latter rounded.
    complete : bool
        False if the time limit came before every kernel was scored.
    """

    kernel: int
    C: float
    error: float
    hinge: float
    complete: bool = True


def train_chosen(
    problem: Problem, params: SolverParams, Cs: Sequence[float], n_folds: int
) -> Generator[Combine, Any, Solution]:
    """Choose a kernel and a C by cross-validation, and train on all points.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : SolverParams
        Tolerance of the final machine; the kernel if the user chose it; and the time limit, after
        which no kernel is scored.
    Cs : sequence of float
        Bounds of the dual variables to choose from, increasing.
    n_folds : int
        Number of folds; the size of the smaller class if that is less.

    Yields
    ------
    Combine
        Each single kernel to choose from once, and the chosen one again.

    Returns
    -------
    Solution
        ``extra`` holds ``chosen_kernel``, ``chosen_C`` and ``cv_error``.
    """
    counters = Counters(outer_iterations=1)
    choice = yield from _choose(problem, params, Cs, n_folds, counters)
    weights = np.zeros(problem.n_kernels)
    weights[choice.kernel] = 1.0
    K = yield Combine(weights, thin=True)
    svm = solve_svm(K, problem.y, problem.bound(choice.C), tol=params.tol)
    counters.count_svm(svm.iterations, svm.newton_steps)
    extra = {
        "chosen_kernel": float(choice.kernel),
        "chosen_C": choice.C,
        "cv_error": choice.error,
    }
    return fixed_weights_solution(
        problem, params, weights, svm, counters, extra, complete=choice.complete
    )


def _choose(
    problem: Problem,
    params: SolverParams,
    Cs: Sequence[float],
    n_folds: int,
    counters: Counters,
) -> Generator[Combine, Any, Choice]:
    """Score every kernel, at least one, and return the best."""
    y, numbers = problem.y, _numbers(problem, params)
    folds = stratified_folds(y, n_folds)
    tol = min(SELECTION_TOL, params.tol)
    best = Choice(kernel=int(numbers[0]), C=Cs[0], error=1.0, hinge=np.inf)
    for first in range(0, len(numbers), CHUNK):
        some = numbers[first : first + CHUNK]
        few = yield from gram_operators(some)
        for kernel, K in zip(some.tolist(), few, strict=True):
            if kernel != numbers[0] and problem.clock.past(params.time_limit):
                return replace(best, complete=False)
            scores = cross_validate(
                K, y, Cs, folds, tol, counters, weights=problem.weights, worst=best.error
            )
            if scores is None:
                continue
            for C, (error, exact) in zip(Cs, scores.tolist(), strict=True):
                hinge = round(exact, HINGE_DECIMALS)
                if (error, hinge, C) < (best.error, best.hinge, best.C):
                    best = Choice(kernel, C, error, hinge)
    return best


def _numbers(problem: Problem, params: SolverParams) -> Ints:
    """Return the numbers of the kernels to choose from: all, or the one that the user chose."""
    if params.chosen_kernel is None:
        return np.arange(problem.n_kernels)
    check_kernel_number(params.chosen_kernel, problem.n_kernels)
    return np.array([params.chosen_kernel])


def stratified_folds(y: Floats, n_folds: int) -> Masks:
    """Return masks of held-out points; the points of each class go to the folds in turn.

    Parameters
    ----------
    y : (n,) float64
        Labels in {-1, +1}.
    n_folds : int
        Number of folds; the size of the smaller class if that is less.

    Returns
    -------
    list of (n,) bool
        One mask for each fold; an empty list if a class has fewer than two points.
    """
    smaller = int(min((y > 0).sum(), (y < 0).sum()))
    n_folds = min(n_folds, smaller)
    if n_folds < 2:
        return []
    fold = np.empty(len(y), dtype=np.intp)
    for label in (-1.0, 1.0):
        members = np.flatnonzero(y == label)
        fold[members] = np.arange(len(members)) % n_folds
    return [fold == k for k in range(n_folds)]


def cross_validate(
    K: Gram,
    y: Floats,
    Cs: Sequence[float],
    folds: Masks,
    tol: float,
    counters: Counters,
    *,
    weights: Floats | None = None,
    worst: float = np.inf,
) -> Floats | None:
    """Return held-out error rates and mean hinge losses of one kernel along a path of C.

    Parameters
    ----------
    K : (n, n) float64 or FactoredMatrix
        Gram matrix, or its operator.
    y : (n,) float64
        Labels in {-1, +1}.
    Cs : sequence of float
        Bounds of the dual variables, increasing.
    folds : list of (n,) bool
        Held-out points; with an empty list, one machine trains on all points and scores them.
    tol : float
        Duality gap of each machine.
    counters : Counters
        Counts the machines.
    weights : (n,) float64, optional
        Weights of the points' losses, in training and in scores.
    worst : float
        Error rate beyond which the kernel is given up.

    Returns
    -------
    (len(Cs), 2) float64 or None
        None for a kernel whose error exceeds `worst` at every C.
    """
    weight = np.ones(len(y)) if weights is None else weights
    wrong, most = np.zeros(len(Cs)), worst * weight.sum() * (1.0 + ROUNDING)
    decisions = np.empty((len(Cs), len(y)))
    neighbour = np.zeros(len(y))
    for held_out in folds or [np.zeros(len(y), dtype=bool)]:
        kept = ~held_out
        scored = held_out if folds else kept
        part, values = _split(K, kept, scored)
        start = neighbour[kept]
        own = 1.0 if weights is None else weights[kept]
        bounds: list[Any] = [C * own for C in Cs]
        for c, bound in enumerate(bounds):
            svm = solve_svm(part, y[kept], bound, tol=tol, start=start)
            counters.count_svm(svm.iterations, svm.newton_steps)
            decisions[c, scored] = values(svm.coefficients) + svm.bias
            if c == 0:
                neighbour[kept] = svm.alpha
            if c + 1 < len(Cs):  # dual variables at their bound mostly stay at it
                start = np.where(svm.alpha >= bound, bounds[c + 1], svm.alpha)
        wrong += ((decisions[:, scored] >= 0) != (y[scored] > 0)) @ weight[scored]
        if wrong.min() > most:
            return None
    errors = wrong / weight.sum()
    hinges = np.average(np.maximum(0.0, 1.0 - y * decisions), axis=1, weights=weight)
    return np.column_stack([errors, hinges])


def _split(K: Gram, kept: Mask, scored: Mask) -> tuple[Gram, Callable[[Floats], Floats]]:
    """Return K on the points kept, and the function from coefficients there to values at others."""
    if not isinstance(K, FactoredMatrix):
        columns = K[:, kept]  # then rows: both at once take more than twice as long
        part, across = columns[kept], columns[scored]
        return part, lambda coefficients: across @ coefficients

    def values(coefficients: Floats) -> Floats:
        padded = np.zeros(len(kept))
        padded[kept] = coefficients
        return (K @ padded)[scored]

    return K.on(np.flatnonzero(kept)), values
