"""Centred alignment: the combination of kernels most similar to the labels' kernel ``yy'``.

With ``K_c = H K H``, ``H = I - 11'/n``, the centred alignment of two kernels is the cosine
``<K_c, L_c>_F / (||K_c||_F ||L_c||_F)``.  The conic combination most aligned with ``yy'`` is
proportional to the solution of (Cortes, Mohri & Rostamizadeh 2012, Proposition 9)

    min_{v >= 0}  v' M v - 2 v' a,    M_kl = <H K_k H, K_l>_F,   a_k = (Hy)' K_k (Hy),

As in their two-stage method, the support vector machine

    max_alpha 1'alpha - 1/2 (alpha*y)' (sum_m d_m K_m) (alpha*y)  s.t. 0 <= alpha <= C, y'alpha = 0

is trained on the combination, and its bounds are reported, with ``dual_variables`` alpha.  The
kernels combined are those of the bank, not centred: a machine with a bias has the same decisions on
both.  The paper's weights have unit Euclidean norm; here ``d = v / sum(v)``, so that C means the
same as for other methods with weights in the simplex.

With several classes and labels Y (n, k), the kernels are aligned with ``YY'``: a is summed over the
columns, and each class has its own machine on the shared combination.

The matrix M is computed a few columns at a time, which costs n^2 multiplications for each of its
entries, and one pass for every few columns.  If the time limit comes before all columns are
computed, the kernels with missing columns get no weight.

On thin factors, ``<H K_k H, K_l>_F`` is the squared norm of a product of two factors.  The weights
are then those of the factors, and the bounds those of the machine at these weights.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np
import scipy

from mkldist.bank.requests import Combine, Inner, Quadratic, Request
from mkldist.bank.view import centred_matrices
from mkldist.core.arrays import Floats
from mkldist.core.counters import Counters
from mkldist.optim.factored_matrix import FactoredMatrix, centred_inner
from mkldist.solvers.base import Method, Problem, Steps
from mkldist.solvers.queries import fixed_weights_bound, gram_operators
from mkldist.solvers.solver_params import HingeParams
from mkldist.solvers.svm import train
from mkldist.solvers.svm_solution import fixed_weights_solution

CHUNK = 3  # kernels held at once, beside their copies in a pass
RANK_TOL = 1e-15  # of the largest eigenvalue, below which an eigenvalue is rounding


class AlignfParams(HingeParams):
    """Parameters of centred alignment."""


def solve(problem: Problem, params: AlignfParams) -> Steps:
    """Align the kernels with the labels, and train on their combination.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : AlignfParams
        Regularisation and stopping rule.

    Yields
    ------
    Quadratic, Combine, Inner

    Returns
    -------
    Solution
        ``extra`` holds ``alignment``, the centred alignment of the combination with the labels.
    """
    y, n_kernels, counters = problem.y, problem.n_kernels, Counters(outer_iterations=1)
    Hy = y - y.mean(axis=0)
    a = np.maximum((yield Quadratic(Hy)).reshape(n_kernels, -1).sum(axis=1), 0.0)
    M = yield from _products(problem, params.time_limit)  # Combine, Inner
    done = len(M)  # fewer than all kernels if the time is up
    v = np.zeros(n_kernels)
    v[:done] = nonnegative_quadratic(M, a[:done])  # Proposition 9
    total = float(v.sum())
    d = v / total if total > 0.0 else np.full(n_kernels, 1.0 / n_kernels)
    K = yield Combine(d, thin=True)
    svm = train(K, y, problem.bound(params.C), params.tol, counters)
    extra = {"alignment": _alignment(v[:done], M, a[:done], Hy.reshape(len(y), -1))}
    complete = done == n_kernels
    return fixed_weights_solution(problem, params, d, svm, counters, extra, complete=complete)


def _alignment(v: Floats, M: Floats, a: Floats, Hy: Floats) -> float:
    """Return the centred alignment of ``sum_m v_m K_m`` with the labels."""
    target = float(np.linalg.norm(Hy.T @ Hy))
    length = np.sqrt(max(float(v @ M @ v), 0.0)) * target
    return float(v @ a) / float(length) if length > 0.0 else 0.0


def _products(problem: Problem, time_limit: float) -> Generator[Request, Any, Floats]:
    """Return the matrix M of the first kernels: of all, unless the time limit comes first."""
    n_kernels = problem.n_kernels
    columns = np.empty((n_kernels, n_kernels))
    done = 0
    while done < n_kernels and (done == 0 or not problem.clock.past(time_limit)):
        size = min(CHUNK, n_kernels - done)
        grams = yield from gram_operators(np.arange(done, done + size))
        if isinstance(grams, list):
            every = yield Combine(np.eye(n_kernels), thin=True)
            return _products_of_factors(every, problem, time_limit)
        columns[:, done : done + size] = yield Inner(centred_matrices(grams))
        done += size
    M = columns[:done, :done]
    return np.asarray(0.5 * (M + M.T))


def _products_of_factors(
    operators: Sequence[FactoredMatrix], problem: Problem, time_limit: float
) -> Floats:
    """Return the matrix M of the first operators: of all, unless the time limit comes first."""
    M, done = np.empty((len(operators), len(operators))), 0
    while done < len(operators) and (done == 0 or not problem.clock.past(time_limit)):
        row = [centred_inner(operators[done], other) for other in operators[: done + 1]]
        M[done, : done + 1] = M[: done + 1, done] = row
        done += 1
    return M[:done, :done]


def nonnegative_quadratic(M: Floats, a: Floats) -> Floats:
    """Return a minimiser over ``v >= 0`` of ``v' M v - 2 v' a`` (Proposition 9).

    Parameters
    ----------
    M : (s, s) float64
        Positive semi-definite Gram matrix of some vectors.
    a : (s,) float64
        Inner products of these vectors with another vector, so that a is in the range of M.

    Returns
    -------
    (s,) float64
        Zero where M has a zero diagonal.
    """
    scale = np.sqrt(np.maximum(np.diagonal(M), 0.0))
    kept = np.flatnonzero(scale > RANK_TOL * scale.max(initial=0.0))
    v = np.zeros(len(a))
    if not len(kept):
        return v
    scale = scale[kept]
    cosines, target = M[np.ix_(kept, kept)] / np.outer(scale, scale), a[kept] / scale
    values, vectors = scipy.linalg.eigh(cosines)
    roots = np.sqrt(values[values > RANK_TOL * values[-1]])
    vectors = vectors[:, -len(roots) :]
    factor, image = roots[:, None] * vectors.T, (vectors.T @ target) / roots
    try:
        w, _ = scipy.optimize.nnls(factor, image, maxiter=30 * len(kept))
    except RuntimeError:  # nnls cycles where the factor is singular up to rounding
        w = scipy.optimize.lsq_linear(factor, image, bounds=(0.0, np.inf), tol=1e-14).x
    v[kept] = np.maximum(w, 0.0) / scale
    return v


METHOD = Method(
    name="alignf",
    solve=solve,
    params=AlignfParams,
    title="Centred alignment (ALIGNF)",
    problem="SVM on the kernel most aligned with the labels",
    loss="hinge",
    regularizer="1/2 ||f||^2",
    reference="Cortes, Mohri & Rostamizadeh 2012, Proposition 9 (alignf)",
    joint_classes=True,
    weighs_points=True,
    typical_passes=lambda n_kernels: 2 + -(-n_kernels // CHUNK),
    memory=lambda size, _: size.memory(matrices=7, vectors=32 + size.n_kernels),
    exact_bound=fixed_weights_bound,
    hinge_machines=True,
)
