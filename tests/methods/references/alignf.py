"""Centred alignment in the space of matrices, of each kernel or of their sum, then the machine.

`align` needs the cosine of each kernel and the labels, `alignf` a least-squares problem.
"""

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


CASES = [
    Case(name, optimum, svm_value, with_C, extremes=EXTREMES, staged=True)
    for name, optimum in (("align", align_optimum), ("alignf", alignf_optimum))
]
