"""Majority class and cross-validated machines: choices by scikit-learn, optima by Clarabel.

At an extreme C scikit-learn's machine is stopped after many pair updates, or it would not end.

Centred alignment in the space of matrices, of each kernel or of their sum, then the machine.

`align` needs the cosine of each kernel and the labels, `alignf` a least-squares problem.

EasyMKL as two conic programs over pairs of probability vectors.
"""

import warnings
from typing import Any

import cvxpy as cp
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from tests.methods.instances import Instance, factors
from tests.methods.references import Case, Params, with_C
from tests.methods.references.simplex_svm import EXTREMES, simplex_optimum, svm_value

Scores = dict[tuple[int, float], tuple[float, float]]
PAIR_UPDATES = 1_000_000


def fold_of_each(y: np.ndarray, n_folds: int) -> np.ndarray:
    """Deal the points of each class out in turn; all into no fold where a class has one point."""
    n_folds = min(n_folds, int((y > 0).sum()), int((y < 0).sum()))
    fold = np.empty(len(y), dtype=int)
    for label in (-1, 1):
        members = np.flatnonzero(y == label)
        for place, member in enumerate(members):
            fold[member] = place % n_folds
    return fold


def cv_scores(grams: np.ndarray, y: np.ndarray, Cs: list[float], n_folds: int = 5) -> Scores:
    """Return held-out error and mean hinge loss of scikit-learn's machine by kernel and C."""
    fold = fold_of_each(y, n_folds)
    single = len(np.unique(fold)) == 1  # train on all points and score these
    scores: Scores = {}
    for m, K in enumerate(grams):
        for C in Cs:
            f = np.empty(len(y))
            for k in np.unique(fold):
                out, kept = fold == k, (fold != k) | single
                svc = SVC(C=C, kernel="precomputed", tol=1e-5, max_iter=PAIR_UPDATES)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    svc.fit(K[np.ix_(kept, kept)], y[kept])
                f[out] = svc.decision_function(K[np.ix_(out, kept)])
            error = float((np.where(f >= 0, 1, -1) != y).mean())
            scores[m, C] = (error, float(np.maximum(0, 1 - y * f).mean()))
    return scores


def choice(grams: np.ndarray, y: np.ndarray, Cs: list[float]) -> tuple[int, float]:
    """Return the kernel and C of least error, hinge loss (to four decimals), C and index."""
    scores = cv_scores(grams, y, Cs)
    return min(scores, key=lambda mC: (scores[mC][0], round(scores[mC][1], 4), mC[1], mC[0]))


def machine(instance: Instance, y: np.ndarray, kernel: int, C: float) -> float:
    return simplex_optimum(Instance("one", instance.grams[[kernel]], y, C), y, {"C": C})


def best_single_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    return machine(instance, y, *choice(instance.grams, y, [params["C"]]))


def svm_params(instance: Instance) -> Params:
    return {"C_min": 0.01 * instance.C, "C_max": instance.C, "C_num": 3}


def svm_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    Cs = [params["C_min"] * 10**k for k in range(3)]
    return machine(instance, y, *choice(instance.grams, y, Cs))


def chosen_value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    return svm_value(instance, y, {"C": solution.extra["chosen_C"]}, solution)


def majority_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    """Return the minimum over b of C sum of hinge: convex and piecewise linear, so at a kink."""
    return min(params["C"] * np.maximum(0, 1 - y * b).sum() for b in (-1.0, 1.0))


SVM_EXTREMES = ({"C_min": 1e-8, "C_max": 1e8}, {"C_num": 1})
CASES = [
    Case("majority", majority_optimum, svm_value, with_C, extremes=EXTREMES),
    Case(
        "best_single",
        best_single_optimum,
        svm_value,
        with_C,
        extremes=({"C": 1e-8}, {"C": 1e4}),  # at 1e8 scikit-learn's machine does not end
        folds=True,
        staged=True,
    ),
    Case(
        "svm", svm_optimum, chosen_value, svm_params, extremes=SVM_EXTREMES, folds=True, staged=True
    ),
]


def aligned_weights(grams: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return argmin over v >= 0 of ``||sum_m v_m H K_m H - H yy' H||_F``, made to sum to one.

    The columns are scaled to unit length and Clarabel's solution is made exact on its support.
    Where every centred kernel is zero all weights are equal.
    """
    n = len(y)
    H = np.eye(n) - 1 / n
    columns = np.array([(H @ K @ H).ravel() for K in grams]).T
    lengths = np.linalg.norm(columns, axis=0)
    kept = np.flatnonzero(lengths > 0)
    if not len(kept):
        return np.full(len(grams), 1.0 / len(grams))
    columns = columns[:, kept] / lengths[kept]
    target = np.outer(H @ y, H @ y).ravel()
    Q, R = np.linalg.qr(columns)
    v = cp.Variable(len(kept))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(R @ v - Q.T @ target / n)), [v >= 0])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    support = v.value > 1e-7 * v.value.max()
    weights = np.zeros(len(grams))
    exact = np.linalg.lstsq(columns[:, support], target, rcond=1e-14)[0]
    weights[kept[support]] = exact / lengths[kept[support]]
    return weights / weights.sum()


def centred_alignments(grams: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return ``<H K_m H, H yy' H>_F / (||H K_m H||_F ||H yy' H||_F)``, 0 for constant kernels."""
    H = np.eye(len(y)) - 1 / len(y)
    target = H @ np.outer(y, y) @ H
    centred = H @ grams @ H
    lengths = np.linalg.norm(centred, axis=(1, 2)) * np.linalg.norm(target)
    inner = np.einsum("mij,ij->m", centred, target)
    return np.divide(inner, lengths, out=np.zeros(len(grams)), where=lengths > 0)


def align_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    rho = centred_alignments(instance.grams, y)
    weights = rho if rho.any() else np.ones(len(rho))
    K = np.einsum("m,mij->ij", weights / weights.sum(), instance.grams)
    return simplex_optimum(Instance("aligned", K[None], y, params["C"]), y, params)


def alignf_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    K = np.einsum("m,mij->ij", aligned_weights(instance.grams, y), instance.grams)
    return simplex_optimum(Instance("aligned", K[None], y, params["C"]), y, params)


CASES += [
    Case(name, optimum, svm_value, with_C, extremes=EXTREMES, staged=True)
    for name, optimum in (("align", align_optimum), ("alignf", alignf_optimum))
]


def hull_points(K: np.ndarray, y: np.ndarray, lam: float) -> np.ndarray:
    """Return ``Y gamma`` that minimises (1 - lam) gamma'YKY gamma + lam ||gamma||^2.

    Clarabel's solution is made exact on its support by one linear system.
    """
    n, scale = len(y), np.trace(K) / len(y)
    root = factors(K[None] * (n / max(scale * (1 - lam) + lam, 1e-300)))[0]
    g = cp.Variable(n)
    ridge = lam * n / max(scale * (1 - lam) + lam, 1e-300)
    objective = ridge * cp.sum_squares(g)
    if len(root):
        objective += (1 - lam) * cp.sum_squares(root @ cp.multiply(y, g))
    constraints = [g >= 0, cp.sum(g[y > 0]) == 1, cp.sum(g[y < 0]) == 1]
    problem = cp.Problem(cp.Minimize(objective), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    gamma = np.maximum(g.value, 0)
    return y * _exact(K, y, lam, gamma)


def _exact(K: np.ndarray, y: np.ndarray, lam: float, gamma: np.ndarray) -> np.ndarray:
    """Solve the system of the first-order conditions on the support, if it stays positive."""
    s = np.flatnonzero(gamma > 1e-7)
    A = (1 - lam) * (y[:, None] * K * y)[np.ix_(s, s)] + lam * np.eye(len(s))
    B = np.array([y[s] > 0, y[s] < 0], dtype=float)
    system = np.block([[A, B.T], [B, np.zeros((2, 2))]])
    solved = np.linalg.lstsq(system, np.r_[np.zeros(len(s)), 1, 1], rcond=None)[0][: len(s)]
    if (solved < 0).any():
        return gamma
    exact = np.zeros(len(y))
    exact[s] = solved
    return exact


def weights(grams: np.ndarray, y: np.ndarray, lam: float) -> np.ndarray:
    signed = hull_points(grams.sum(axis=0), y, lam)
    shares = np.einsum("i,mij,j->m", signed, grams, signed)
    total = shares.sum()
    return shares / total if total > 0.0 else np.full(len(grams), 1.0 / len(grams))


def q_value(K: np.ndarray, signed: np.ndarray, lam: float) -> float:
    return float((1 - lam) * signed @ K @ signed + lam * signed @ signed)


def easymkl_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    lam = params["lam"]
    K = np.einsum("m,mij->ij", weights(instance.grams, y, lam), instance.grams)
    return q_value(K, hull_points(K, y, lam), lam)


def easymkl_value(instance: Instance, y: np.ndarray, params: Params, solution: Any) -> float:
    K = np.einsum("m,mij->ij", solution.kernel_weights, instance.grams)
    return q_value(K, solution.coefficients, params["lam"])


EXTREMES_EASYMKL = ({"lam": 0.0}, {"lam": 1e-8}, {"lam": 1.0})


CASES += [
    Case(
        "easymkl", easymkl_optimum, easymkl_value, lambda i: {"lam": 0.5}, extremes=EXTREMES_EASYMKL
    ),
    Case("easymkl", easymkl_optimum, easymkl_value, lambda i: {"lam": 0.01}, label="small lam"),
    Case("easymkl", easymkl_optimum, easymkl_value, lambda i: {"lam": 1.0}, label="means"),
]
