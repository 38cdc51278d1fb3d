"""The Level method from good libraries and no thought of structure: the yardstick.

scikit-learn's SVC for the machine, HiGHS for the lower bound, Clarabel for the projection, dense
float64 Gram matrices, one vector a pass.
"""

import clarabel
import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.svm import SVC


def minimum_of_cuts(slopes: np.ndarray, heights: np.ndarray) -> float:
    n_cuts, n_kernels = slopes.shape
    result = linprog(
        np.r_[np.zeros(n_kernels), 1.0],
        A_ub=np.column_stack([slopes, -np.ones(n_cuts)]),
        b_ub=-heights,
        A_eq=np.r_[np.ones(n_kernels), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, 1)] * n_kernels + [(None, None)],
        method="highs",
    )
    return float(result.fun)


def project(centre: np.ndarray, slopes: np.ndarray, heights: np.ndarray, level: float):
    n_cuts, n_kernels = slopes.shape
    rows = sp.vstack([np.ones((1, n_kernels)), -sp.eye(n_kernels), slopes]).tocsc()
    right = np.r_[1.0, np.zeros(n_kernels), level - heights]
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n_kernels + n_cuts)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    quadratic = sp.eye(n_kernels, format="csc")
    solver = clarabel.DefaultSolver(quadratic, -centre, rows, right, cones, settings)
    point = np.maximum(np.array(solver.solve().x), 0.0)
    return point / point.sum()


def level(grams: np.ndarray, y: np.ndarray, C: float, tol: float = 0.01, max_iter: int = 500):
    """Return (objective, relative gap, iterations)."""
    n_kernels, n, _ = grams.shape
    flat = grams.reshape(n_kernels, -1)
    p, share, upper = np.full(n_kernels, 1 / n_kernels), 0.9, np.inf
    slopes, heights = [], []
    for iteration in range(1, max_iter + 1):  # noqa: B007
        K = (p @ flat).reshape(n, n)
        machine = SVC(C=C, kernel="precomputed", tol=1e-4).fit(K, y)
        signed = np.zeros(n)
        signed[machine.support_] = machine.dual_coef_[0]
        q = flat @ np.outer(signed, signed).ravel()
        value = np.abs(signed).sum() - 0.5 * p @ q
        upper = min(upper, value)
        gap = 0.5 * (q.max() - p @ q) / abs(value)
        if gap < tol:
            break
        slopes.append(-0.5 * q)
        heights.append(np.abs(signed).sum())
        cuts = np.array(slopes), np.array(heights)
        lower = minimum_of_cuts(*cuts)
        threshold = share * upper + (1 - share) * lower
        p = project(p, *cuts, threshold)
    return upper, gap, iteration
