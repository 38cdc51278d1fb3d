"""Independent centred alignment: each kernel is weighted by its own similarity to the labels.

With ``K_c = H K H``, ``H = I - 11'/n``, the centred alignment of a kernel with ``yy'`` is

    rho_k = <K_kc, yy'>_F / (||K_kc||_F ||H yy' H||_F),

and the combination is ``sum_k d_k K_k`` with d proportional to rho (Cortes, Mohri & Rostamizadeh
2012, the algorithm `align`).  No weight depends on the other kernels: of equal kernels, each counts
in full.  :mod:`.alignf` aligns the combination itself.  The support vector machine

    max_alpha 1'alpha - 1/2 (alpha*y)' (sum_k d_k K_k) (alpha*y)  s.t. 0 <= alpha <= C, y'alpha = 0

is trained on the combination, and its bounds are reported, with ``dual_variables`` alpha.  The
kernels combined are those of the bank, not centred: a machine with a bias has the same decisions on
both.  Here d sums to one, so that C means the same as for other methods with weights in the
simplex.  A negative alignment, which only a kernel that is not positive semi-definite has, counts
as 0.  Where all are 0, d is uniform.

With several classes and labels Y (n, k), the kernels are aligned with ``YY'``, and each class has
its own machine on the shared combination.

Each kernel is read once, a few at a time.  If the time limit comes before all are read, those left
get no weight.

On thin factors ``||K_kc||_F`` is that of a product of a factor with itself.  The weights are then
those of the factors, and the bounds those of the machine at these weights.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from mkldist.bank.requests import Combine
from mkldist.bank.view import centred_matrices
from mkldist.core.arrays import Floats
from mkldist.core.counters import Counters
from mkldist.optim.factored_matrix import FactoredMatrix, Gram, centred_inner
from mkldist.solvers.base import Method, Problem, Steps
from mkldist.solvers.queries import fixed_weights_bound, gram_operators
from mkldist.solvers.solver_params import HingeParams
from mkldist.solvers.svm import train
from mkldist.solvers.svm_solution import fixed_weights_solution

CHUNK = 3  # kernels held at once
EPS = float(np.finfo(np.float64).eps)


class AlignParams(HingeParams):
    """Parameters of independent centred alignment."""


def solve(problem: Problem, params: AlignParams) -> Steps:
    """Align each kernel with the labels, and train on the combination.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : AlignParams
        Regularisation and stopping rule.

    Yields
    ------
    Combine

    Returns
    -------
    Solution
        ``extra`` holds ``alignment``, the centred alignment of the combination with the labels.
    """
    y, n_kernels, counters = problem.y, problem.n_kernels, Counters(outer_iterations=1)
    Hy = (y - y.mean(axis=0)).reshape(len(y), -1)
    known = yield from _alignments(problem, Hy, params.time_limit)
    rho = np.zeros(n_kernels)
    rho[: len(known)] = np.maximum(known, 0.0)
    total = float(rho.sum())
    d = rho / total if total > 0.0 else np.full(n_kernels, 1.0 / n_kernels)
    K = yield Combine(d, thin=True)
    extra = {"alignment": _alignment(K if isinstance(K, FactoredMatrix) else K.copy(), Hy)}
    svm = train(K, y, problem.bound(params.C), params.tol, counters)
    complete = len(known) == n_kernels
    return fixed_weights_solution(problem, params, d, svm, counters, extra, complete=complete)


def _alignments(
    problem: Problem, Hy: Floats, time_limit: float
) -> Generator[Combine, Any, list[float]]:
    """Return rho of the first kernels: of all, unless the time limit comes first."""
    rho: list[float] = []
    while len(rho) < problem.n_kernels and not (rho and problem.clock.past(time_limit)):
        last = min(len(rho) + CHUNK, problem.n_kernels)
        grams = yield from gram_operators(np.arange(len(rho), last))
        rho += [_alignment(K, Hy) for K in grams]
    return rho


def _alignment(K: Gram, Hy: Floats) -> float:
    """Return the centred alignment of a kernel with the labels; 0 where it is constant.

    K is overwritten.  Hy are the centred labels (n, k), one column a class.
    """
    if isinstance(K, FactoredMatrix):
        rounding = EPS * K.n_points * float(K.diagonal.sum())
        length = math.sqrt(centred_inner(K, K))
    else:
        rounding = EPS * len(K) * float(np.linalg.norm(K))
        K = centred_matrices(K)
        length = float(np.linalg.norm(K))
    if length <= rounding:
        return 0.0
    return float(np.vdot(Hy, K @ Hy)) / (length * float(np.linalg.norm(Hy.T @ Hy)))


METHOD = Method(
    name="align",
    solve=solve,
    params=AlignParams,
    title="Independent centred alignment (ALIGN)",
    problem="SVM on the kernels, each weighted by its alignment with the labels",
    loss="hinge",
    regularizer="1/2 ||f||^2",
    reference="Cortes, Mohri & Rostamizadeh 2012 (align)",
    joint_classes=True,
    weighs_points=True,
    typical_passes=lambda n_kernels: 2,
    exact_bound=fixed_weights_bound,
    hinge_machines=True,
)
