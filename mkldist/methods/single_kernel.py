"""Baselines: the machine on one kernel, which cross-validation chooses, and that without any.

The usual baselines of multiple kernel learning.  Stratified k-fold cross-validation, which keeps
groups of points together, scores every kernel m at every C, and the best is trained on the whole
training part:

    max_alpha 1'alpha - 1/2 (alpha*y)' K_m (alpha*y)   s.t.  0 <= alpha <= C, y'alpha = 0.

Its value at the solution's ``dual_variables`` alpha is the lower bound.

``best_single``
    C is a parameter (the baseline BK of Do et al. 2009).  Do et al. choose the kernel on all data,
    test part included, and therefore call their BK optimistically biased.  Here the choice never
    uses the test part.
``svm``
    C is one of the geometric series from ``C_min`` to ``C_max``, and ``extra["chosen_C"]``.  Where
    the parameter ``kernel_number`` is m, kernel m alone is scored: several m are a list of
    machines, each with a C of its own.

Scores are the held-out error rate and the held-out mean hinge loss, in which points count by their
weights.  The least error wins.  Ties go to the least hinge loss, rounded to four decimals because
the machines are not solved more exactly, then to the smallest C, then to the first kernel.

The folds after the first need not score a kernel that has already made more errors at every C than
the best one makes on all folds.  It cannot win, and the choice is the same as if it were scored.

``majority``
    The machine without a kernel (the baseline MC of Do et al. 2009).  With all weights zero,
    ``min_b C sum_i w_i max(0, 1 - y_i b)`` is ``2 C min(w_+, w_-)``, attained where b has the sign
    of the class whose points weigh more, w_+ or w_- together; the dual, ``max 1'alpha`` s.t. ``0 <=
    alpha_i <= C w_i`` and ``y'alpha = 0``, has the same value at ``dual_variables`` alpha.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pydantic import Field

from mkldist.bank.requests import Combine, Request
from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.optim.factored_matrix import Gram
from mkldist.solvers.base import (
    Counters,
    Method,
    Problem,
    Requesting,
    Solution,
    Steps,
    direct_solution,
)
from mkldist.solvers.queries import check_kernel_number, fixed_weights_bound, gram_operators
from mkldist.solvers.solver_params import HingeParams, SolverParams
from mkldist.solvers.svm import fixed_weights_solution, matrix_if_small, train

CHUNK = 3  # kernels held at once; of factored ones, one is multiplied out
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


class BestSingleParams(HingeParams, CrossValidatedParams):
    """Parameters of the best single kernel."""


class SvmParams(CrossValidatedParams):
    """Parameters of the cross-validated machine."""

    C_min: float = Field(0.01, gt=0, allow_inf_nan=False, description="one end of the C tried")
    C_max: float = Field(100.0, gt=0, allow_inf_nan=False, description="the other end")
    C_num: int = Field(
        5, ge=1, description="number of C tried, from C_min to C_max by equal ratios"
    )
    kernel_number: int | None = Field(
        None, ge=0, description="number of the one kernel, from 0; by default it is chosen too"
    )

    @property
    def chosen_kernel(self) -> int | None:
        """Number of the kernel; None if cross-validation chooses it."""
        return self.kernel_number

    @property
    def Cs(self) -> list[float]:
        """Values of C to try, increasing and distinct."""
        series = np.geomspace(self.C_min, self.C_max, self.C_num)
        return sorted(set(series.tolist()))


def best_single(problem: Problem, params: BestSingleParams) -> Steps:
    """Choose one kernel by cross-validation and train on it.

    ``extra`` holds ``chosen_kernel``, its index, and ``cv_error``, its cross-validation error.
    """
    solution = yield from train_chosen(problem, params, [params.C])
    extra = {name: value for name, value in solution.extra.items() if name != "chosen_C"}
    return replace(solution, extra=extra)


def svm(problem: Problem, params: SvmParams) -> Steps:
    """Choose one kernel and C by cross-validation and train on all points.

    ``extra`` holds ``chosen_kernel``, ``chosen_C`` and ``cv_error``; the bounds are those of the
    final machine.
    """
    return (yield from train_chosen(problem, params, params.Cs))


@dataclass(frozen=True)
class Choice:
    """The best kernel and C; not complete if the time limit came before all were scored."""

    kernel: int
    C: float
    error: float = 1.0  # held-out error rate
    hinge: float = np.inf  # held-out mean hinge loss, rounded
    complete: bool = True


def train_chosen(problem: Problem, params: CrossValidatedParams, Cs: Sequence[float]) -> Steps:
    """Choose a kernel and one of the increasing `Cs`, and train on all points."""
    counters = Counters()
    choice = yield from _choose(problem, params, Cs, counters)
    weights = np.zeros(problem.n_kernels)
    weights[choice.kernel] = 1.0
    K = yield Combine(weights, thin=True)
    svm = train(K, problem.y, problem.bound(choice.C), params.tol, counters)
    extra = {"chosen_kernel": float(choice.kernel), "chosen_C": choice.C, "cv_error": choice.error}
    return fixed_weights_solution(
        problem, params, weights, svm, counters, extra, complete=choice.complete
    )


def _choose(
    problem: Problem, params: CrossValidatedParams, Cs: Sequence[float], counters: Counters
) -> Requesting[Choice]:
    """Score every kernel, or the one that the user chose, and return the best."""
    y, numbers = problem.y, np.arange(problem.n_kernels)
    if params.chosen_kernel is not None:
        check_kernel_number(params.chosen_kernel, problem.n_kernels)
        numbers = np.array([params.chosen_kernel])
    folds = stratified_folds(y, params.folds, problem.row_groups)
    tol = min(SELECTION_TOL, params.tol)
    best = Choice(kernel=int(numbers[0]), C=Cs[0])
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


def stratified_folds(y: Floats, n_folds: int, row_groups: Ints | None = None) -> list[Bools]:
    """Return masks (n,) of held-out points; the points of each class go to the folds in turn.

    There are as many folds as the smaller class has points if that is less, and none if a class has
    fewer than two points.  Points in groups (n,) go to :func:`mkldist.data.splits.group_folds`, at
    most as many as there are groups.
    """
    n_folds = min(n_folds, int((y > 0).sum()), int((y < 0).sum()))
    if row_groups is not None:
        n_folds = min(n_folds, len(np.unique(row_groups)))
    if n_folds < 2:
        return []
    if row_groups is not None:
        from mkldist.data.splits import group_folds  # with scikit-learn, which few problems need

        parts = group_folds(n_folds, 1, 0, row_groups, y)
        return [np.isin(np.arange(len(y)), part) for part in parts if len(part)]
    fold = np.empty(len(y), dtype=np.intp)
    for label in (-1.0, 1.0):
        members = np.flatnonzero(y == label)
        fold[members] = np.arange(len(members)) % n_folds
    return [fold == k for k in range(n_folds)]


def cross_validate(
    K: Gram,
    y: Floats,
    Cs: Sequence[float],
    folds: Sequence[Bools],
    tol: float,
    counters: Counters,
    *,
    weights: Floats | None = None,
    worst: float = np.inf,
) -> Floats | None:
    """Return held-out error rates and mean hinge losses of one kernel along a path of C.

    The result is (len(Cs), 2), or None for a kernel whose error exceeds `worst` at every C.  `Cs`
    increase; `tol` is the gap of each machine.  Without folds one machine trains on all points and
    scores them.  The weights (n,) of the points count in training and in scores.
    """
    K, weight = matrix_if_small(K), np.ones(len(y)) if weights is None else weights
    wrong, most = np.zeros(len(Cs)), worst * weight.sum() * (1.0 + ROUNDING)
    decisions = np.empty((len(Cs), len(y)))
    neighbour = np.zeros(len(y))
    for held_out in folds or [np.zeros(len(y), dtype=bool)]:
        scored = held_out if folds else ~held_out
        bounds = np.multiply.outer(Cs, np.where(held_out, 0.0, weight))  # held-out points weigh 0
        start = neighbour
        for c, bound in enumerate(bounds):
            svm = train(K, y, bound, tol, counters, start)
            decisions[c, scored] = svm.values[scored]
            if c == 0:
                neighbour = svm.alpha
            if c + 1 < len(Cs):  # dual variables at their bound mostly stay at it
                start = np.where(svm.alpha >= bound, bounds[c + 1], svm.alpha)
        wrong += ((decisions[:, scored] >= 0) != (y[scored] > 0)) @ weight[scored]
        if wrong.min() > most:
            return None
    errors = wrong / weight.sum()
    hinges = np.average(np.maximum(0.0, 1.0 - y * decisions), axis=1, weights=weight)
    return np.column_stack([errors, hinges])


BEST_SINGLE = Method(
    name="best_single",
    solve=best_single,
    params=BestSingleParams,
    title="Best single kernel by cross-validation",
    problem="SVM on one kernel",
    loss="hinge",
    regularizer="1/2 ||f||^2",
    reference="Do, Kalousis, Woznica & Hilario 2009, Table 2 (BK)",
    weighs_points=True,
    typical_passes=lambda n_kernels: 1,
    exact_bound=fixed_weights_bound,
    hinge_machines=True,
)

SVM = Method(
    name="svm",
    solve=svm,
    params=SvmParams,
    title="Support vector machine, kernel and C by cross-validation",
    problem="SVM on one kernel",
    loss="hinge",
    regularizer="1/2 ||f||^2",
    reference="Suzuki & Tomioka 2011, Hao, Yuan, Yang & Chen 2012: the single-kernel SVM compared",
    hyperparameters=(),
    weighs_points=True,
    typical_passes=lambda n_kernels: 1,
    exact_bound=fixed_weights_bound,
)


EQUAL_WEIGHTS = 1e-9  # relative difference of sums of weights that is rounding


class MajorityParams(SolverParams):
    """Parameters of the majority class."""

    C: float = Field(1.0, gt=0, allow_inf_nan=False, description="scale of the objective")


def majority(problem: Problem, params: MajorityParams) -> Generator[Request, None, Solution]:
    """Predict the class of the training part that weighs more.

    Where both weigh the same, as balanced classes do, it is that of more points, at last +1.

    Its gap is 0.  The solver makes no request of the bank.
    """
    y = problem.y
    weight = np.ones(len(y)) if problem.weights is None else problem.weights
    positives, negatives = float(weight[y > 0].sum()), float(weight[y < 0].sum())
    smaller = min(positives, negatives)
    alpha = params.C * weight * np.where(y > 0, smaller / positives, smaller / negatives)
    sign = positives - negatives
    if abs(sign) <= EQUAL_WEIGHTS * smaller:
        sign = (y > 0).sum() - (y < 0).sum()
    weights, value = np.zeros(problem.n_kernels), 2.0 * params.C * smaller
    yield from ()
    return direct_solution(
        problem, params, value, value, kernel_weights=weights, coefficients=np.zeros(len(y)),
        bias=1.0 if sign >= 0 else -1.0, dual_variables=alpha,
    )  # fmt: skip


MAJORITY = Method(
    name="majority",
    solve=majority,
    params=MajorityParams,
    title="Majority class",
    problem="SVM without a kernel",
    loss="hinge",
    regularizer="none",
    reference="Do, Kalousis, Woznica & Hilario 2009, Table 2 (MC)",
    hyperparameters=(),
    weighs_points=True,
    typical_passes=lambda n_kernels: 0,
)
