"""Centred alignment as a least-squares problem in the space of matrices, then the machine."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from tests.methods.instances import Instance
from tests.methods.references import Case, Params, with_C
from tests.methods.references.simplex_svm import EXTREMES, simplex_optimum, svm_value


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


def alignf_optimum(instance: Instance, y: np.ndarray, params: Params) -> float:
    K = np.einsum("m,mij->ij", aligned_weights(instance.grams, y), instance.grams)
    return simplex_optimum(Instance("aligned", K[None], y, params["C"]), y, params)


CASES = [Case("alignf", alignf_optimum, svm_value, with_C, extremes=EXTREMES, staged=True)]
