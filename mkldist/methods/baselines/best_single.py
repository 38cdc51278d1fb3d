"""Best single kernel by cross-validation (the baseline BK of Do et al. 2009).

For every kernel m, stratified k-fold cross-validation inside the training part estimates the error
of the support vector machine on K_m.  The kernel with the least error (ties: with the least mean
hinge loss, then with the least index) is trained on the whole training part:

    max_alpha 1'alpha - 1/2 (alpha*y)' K_m (alpha*y)   s.t.  0 <= alpha <= C, y'alpha = 0.

Its value at the solution's ``dual_variables`` alpha is the lower bound.

Do et al. choose the kernel on all data, test part included, and therefore call their BK
optimistically biased.  Here the choice never uses the test part.  :mod:`.svm` chooses C too.
"""

from __future__ import annotations

from dataclasses import replace

from mkldist.methods.baselines.cross_validation import CrossValidatedParams, train_chosen
from mkldist.solvers.base import Method, Problem, Steps
from mkldist.solvers.queries import fixed_weights_bound
from mkldist.solvers.solver_params import HingeParams


class BestSingleParams(HingeParams, CrossValidatedParams):
    """Parameters of the best single kernel."""


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
        ``extra`` holds ``chosen_kernel``, its index, and ``cv_error``, its cross-validation error.
    """
    solution = yield from train_chosen(problem, params, [params.C], params.folds)
    told = {name: value for name, value in solution.extra.items() if name != "chosen_C"}
    return replace(solution, extra=told)  # C is the given one


METHOD = Method(
    name="best_single",
    solve=solve,
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
