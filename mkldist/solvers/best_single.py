"""Best single kernel by cross-validation (the baseline BK of Do et al. 2009).

For every kernel m, the error of the support vector machine on K_m is estimated by stratified
k-fold cross-validation inside the training part; the kernel of least error (ties: of least mean
hinge loss, then of least index) is trained on the whole training part:

    max_alpha 1'alpha - 1/2 (alpha*y)' K_m (alpha*y)   s.t.  0 <= alpha <= C, y'alpha = 0.

Do et al. choose the kernel on all data, test part included, and call their BK optimistically
biased for it; here the test part is never looked at.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from pydantic import Field

from mkldist.gram.requests import Combine
from mkldist.solvers.base import Counters, Floats, Method, Problem, SolverParams, Steps
from mkldist.solvers.inner_svm import svm_solution
from mkldist.solvers.svm import solve_svm

CHUNK = 16  # kernels asked for at once
SELECTION_TOL = 1e-2  # duality gap at which a machine's predictions are compared


class BestSingleParams(SolverParams):
    """Parameters of the best single kernel."""

    C: float = Field(1.0, gt=0, allow_inf_nan=False, description="bound of the dual variables")
    folds: int = Field(5, ge=2, description="folds of the inner cross-validation")


def solve(problem: Problem, params: BestSingleParams) -> Steps:
    """Choose one kernel by cross-validation and train on it.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : BestSingleParams
        Regularisation and number of folds, cut to the size of the smaller class.

    Yields
    ------
    Combine

    Returns
    -------
    Solution
        ``extra`` holds the chosen kernel's index and its cross-validation error.
    """
    y, n_kernels = problem.y, problem.n_kernels
    counters = Counters(outer_iterations=1, passes=1)
    folds = stratified_folds(y, params.folds)
    scores = np.empty((n_kernels, 2))
    for first in range(0, n_kernels, CHUNK):
        chunk = range(first, min(first + CHUNK, n_kernels))
        grams = yield Combine(np.eye(n_kernels)[chunk.start : chunk.stop])
        counters.combines += 1
        for m, K in zip(chunk, grams, strict=True):
            scores[m] = _cross_validation(K, y, params.C, folds, counters)
    best = int(np.lexsort((scores[:, 1], scores[:, 0]))[0])
    weights = np.zeros(n_kernels)
    weights[best] = 1.0
    K = yield Combine(weights)
    svm = solve_svm(K, y, params.C, tol=params.tol)
    counters.count_svm(svm.iterations, svm.newton_steps)
    solution = svm_solution(weights, svm, params.tol, counters)
    solution.extra.update(chosen_kernel=float(best), cv_error=float(scores[best, 0]))
    return solution


def stratified_folds(y: Floats, n_folds: int) -> list[npt.NDArray[np.bool_]]:
    """Return masks of held-out points; each class is dealt out in turn, in order of its points.

    Parameters
    ----------
    y : (n,) float64
        Labels in {-1, +1}.
    n_folds : int
        Folds wanted; cut to the size of the smaller class, at least 2 where it has 2 points.
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


def _cross_validation(
    K: Floats, y: Floats, C: float, folds: list[npt.NDArray[np.bool_]], counters: Counters
) -> tuple[float, float]:
    """Return error rate and mean hinge loss on held-out points (training points if no folds)."""
    decision = np.empty(len(y))
    start: Floats | None = None
    for held_out in folds or [np.zeros(len(y), dtype=bool)]:
        kept = ~held_out
        part = np.ascontiguousarray(K[np.ix_(kept, kept)])
        svm = solve_svm(
            part, y[kept], C, tol=SELECTION_TOL, start=None if start is None else start[kept]
        )
        counters.count_svm(svm.iterations, svm.newton_steps)
        start = np.zeros(len(y)) if start is None else start
        start[kept] = svm.alpha
        scored = held_out if folds else kept
        decision[scored] = K[np.ix_(scored, kept)] @ svm.signed + svm.bias
    error = float((np.where(decision >= 0, 1.0, -1.0) != y).mean())
    return error, float(np.maximum(0.0, 1.0 - y * decision).mean())


METHOD = Method(
    name="best_single",
    solve=solve,
    params=BestSingleParams,
    title="Best single kernel by cross-validation",
    problem="SVM on one kernel",
    loss="hinge",
    regularizer="1/2 ||f||^2",
    reference="Do, Kalousis, Woznica & Hilario 2009, Table 2 (BK)",
)
