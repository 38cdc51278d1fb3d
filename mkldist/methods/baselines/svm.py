"""Support vector machine on one kernel; cross-validation chooses the kernel and C together.

The usual baseline of multiple kernel learning: an SVM whose kernel, say the width of a Gaussian,
and whose C have the least cross-validated error.  Stratified k-fold cross-validation inside the
training part scores every kernel of the bank at every C of the geometric series from ``C_min`` to
``C_max``.  The best pair (ties: with the least mean hinge loss, then the smallest C, then the least
index) is trained on the whole training part:

    max_alpha 1'alpha - 1/2 (alpha*y)' K_m (alpha*y)   s.t.  0 <= alpha <= C, y'alpha = 0.

Its value at the solution's ``dual_variables`` alpha is the lower bound; C is ``extra["chosen_C"]``.

Where the parameter ``kernel_number`` is m, kernel m alone is scored: several m are a list of
machines, each with a C of its own.  Here C is learned.  In :mod:`.best_single` it is a parameter.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from mkldist.methods.baselines.cross_validation import CrossValidatedParams, train_chosen
from mkldist.solvers.base import Method, Problem, Steps
from mkldist.solvers.queries import fixed_weights_bound


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


def solve(problem: Problem, params: SvmParams) -> Steps:
    """Choose one kernel and C by cross-validation and train on all points.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : SvmParams
        Values of C to try, and number of folds; the size of the smaller class if that is less.

    Yields
    ------
    Combine

    Returns
    -------
    Solution
        ``extra`` holds ``chosen_kernel``, ``chosen_C`` and ``cv_error``; the bounds are those of
        the final machine.
    """
    return (yield from train_chosen(problem, params, params.Cs, params.folds))


METHOD = Method(
    name="svm",
    solve=solve,
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
