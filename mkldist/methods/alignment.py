"""Centred alignment of kernels with the labels, each by itself or all together.

With ``K_c = H K H``, ``H = I - 11'/n``, the centred alignment of two kernels is the cosine
``<K_c, L_c>_F / (||K_c||_F ||L_c||_F)``.  Two methods of Cortes, Mohri & Rostamizadeh 2012 weight
kernels by their alignment with ``yy'``:

``align``
    d is proportional to each kernel's own alignment,
    ``rho_k = <K_kc, yy'>_F / (||K_kc||_F ||H yy' H||_F)``.  No weight depends on the other kernels:
    of equal kernels, each counts in full.  A negative alignment, which only a kernel that is not
    positive semi-definite has, counts as 0.
``alignf``
    d is proportional to v, the conic combination most aligned with ``yy'`` (Proposition 9),

        min_{v >= 0}  v' M v - 2 v' a,    M_kl = <H K_k H, K_l>_F,   a_k = (Hy)' K_k (Hy).

As in their two-stage method, the support vector machine

    max_alpha 1'alpha - 1/2 (alpha*y)' (sum_m d_m K_m) (alpha*y)  s.t. 0 <= alpha <= C, y'alpha = 0

is trained on the combination, and its bounds are reported, with ``dual_variables`` alpha.  The
kernels combined are those of the bank, not centred: a machine with a bias has the same decisions on
both.  The paper's weights have unit Euclidean norm; here d sums to one, so that C means the same as
for other methods with weights in the simplex.  Where all weights would be 0, d is uniform.

With several classes and labels Y (n, k), the kernels are aligned with ``YY'``, and each class has
its own machine on the shared combination.

``align`` reads each kernel once, a few at a time.  ``alignf`` computes a few columns of M at a
time, which costs n^2 multiplications for each of its entries, and one pass for every few columns.
If the time limit comes before all are read, those left get no weight.

On thin factors ``<H K_k H, K_l>_F`` is the squared norm of a product of two factors.  The weights
are then those of the factors, and the bounds those of the machine at these weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

from mkldist.bank.requests import Combine, Inner, Quadratic
from mkldist.bank.view import centred_matrices
from mkldist.core.arrays import Floats
from mkldist.optim.factored_matrix import FactoredMatrix, Gram, centred_inner
from mkldist.solvers.base import Counters, Method, Problem, Requesting, Solution, Steps
from mkldist.solvers.queries import fixed_weights_bound, gram_operators
from mkldist.solvers.solver_params import HingeParams
from mkldist.solvers.svm import fixed_weights_solution, train

CHUNK = 3  # kernels held at once, beside their copies in a pass
EPS = float(np.finfo(np.float64).eps)
NEARLY_CONSTANT = 0.01  # share of the norm of a kernel, below which it is centred entry by entry
RANK_TOL = 1e-15  # of the largest eigenvalue, below which an eigenvalue is rounding


class AlignParams(HingeParams):
    """Parameters of independent centred alignment."""


class AlignfParams(HingeParams):
    """Parameters of centred alignment."""


def align(problem: Problem, params: AlignParams) -> Steps:
    """Align each kernel with the labels, and train on the combination.

    ``extra`` holds ``alignment``, the centred alignment of the combination with the labels.
    """
    M, Hy = problem.n_kernels, _centred_labels(problem)
    found: list[float] = []  # rho of the first kernels: of all, unless the time limit comes first
    while len(found) < M and not (found and problem.clock.past(params.time_limit)):
        some = np.arange(len(found), min(len(found) + CHUNK, M))
        # Without a name the matrices are free before the next ones come.
        found += [_alignment(K, Hy) for K in (yield from gram_operators(some))]
    rho = np.zeros(M)
    rho[: len(found)] = np.maximum(found, 0.0)
    d = _on_simplex(rho)
    K = yield Combine(d, thin=True)
    alignment = _alignment(K if isinstance(K, FactoredMatrix) else K.copy(), Hy)
    return _trained(problem, params, d, K, alignment, complete=len(found) == M)


def alignf(problem: Problem, params: AlignfParams) -> Steps:
    """Align the kernels with the labels, and train on their combination.

    ``extra`` holds ``alignment``, the centred alignment of the combination with the labels.
    """
    Hy = _centred_labels(problem)
    forms = yield Quadratic(Hy.reshape(problem.y.shape))
    a = np.maximum(forms.reshape(problem.n_kernels, -1).sum(axis=1), 0.0)
    M = yield from _products(problem, params.time_limit)  # Combine, Inner
    a, v = a[: len(M)], np.zeros(problem.n_kernels)  # of fewer than all kernels if the time is up
    v[: len(M)] = w = nonnegative_quadratic(M, a)  # Proposition 9
    d = _on_simplex(v)
    K = yield Combine(d, thin=True)
    length = float(np.sqrt(max(float(w @ M @ w), 0.0)) * np.linalg.norm(Hy.T @ Hy))
    alignment = float(w @ a) / length if length > 0.0 else 0.0
    return _trained(problem, params, d, K, alignment, complete=len(M) == len(d))


def _centred_labels(problem: Problem) -> Floats:
    """Return ``H Y`` (n, k), one column a class."""
    centred: Floats = (problem.y - problem.y.mean(axis=0)).reshape(problem.n_points, -1)
    return centred


def _on_simplex(v: Floats) -> Floats:
    """Return weights that sum to one in proportion to v (M,), uniform ones where all are 0."""
    total = float(v.sum())
    return v / total if total > 0.0 else np.full(len(v), 1.0 / len(v))


def _trained(
    problem: Problem, params: HingeParams, d: Floats, K: Gram, alignment: float, *, complete: bool
) -> Solution:
    """Return the solution of the machine on the combination K at weights d (M,)."""
    counters = Counters()
    svm = train(K, problem.y, problem.bound(params.C), params.tol, counters)
    extra = {"alignment": alignment}
    return fixed_weights_solution(problem, params, d, svm, counters, extra, complete=complete)


def _alignment(K: Gram, Hy: Floats) -> float:
    """Return the centred alignment of a kernel, overwritten, with the labels; 0 if constant."""
    if isinstance(K, FactoredMatrix):
        rounding = EPS * K.n_points * float(K.diagonal.sum())
        length = math.sqrt(centred_inner(K, K))
    else:
        norm, means = float(np.linalg.norm(K)), K.mean(axis=0)
        rounding = EPS * len(K) * norm
        of_means = len(K) * (2.0 * float(means @ means) - len(K) * float(means.mean()) ** 2)
        length = math.sqrt(max(norm**2 - of_means, 0.0))
        if length <= NEARLY_CONSTANT * norm:  # of which the difference has few digits
            length = float(np.linalg.norm(centred_matrices(K)))
    if length <= rounding:
        return 0.0
    return float(np.vdot(Hy, K @ Hy)) / (length * float(np.linalg.norm(Hy.T @ Hy)))


def _products(problem: Problem, time_limit: float) -> Requesting[Floats]:
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

    M (s, s) is the positive semi-definite Gram matrix of some vectors, and a (s,) holds their inner
    products with another one, so that a is in the range of M.  v is zero where the diagonal is.
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


ALIGN = Method(
    name="align",
    solve=align,
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

ALIGNF = Method(
    name="alignf",
    solve=alignf,
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
