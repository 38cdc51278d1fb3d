"""Second derivatives of the support vector machine's value with respect to kernel weights.

With ``J(d) = max_alpha { 1'alpha - 1/2 beta' K beta }``, ``beta = alpha*y``, ``K = sum_m d_m K_m``,
the first derivative is ``-1/2 beta' K_m beta``.  Alpha is free where it is strictly between 0 and
C.  Let F be the free points and B the others.  As long as F stays the same, the machine solves

    [[K_FF, 1], [1', 0]] [beta_F, b] = [y_F - K_FB beta_B, -1'beta_B].

With P the leading block of the inverse of that matrix and ``u_m = (K_m beta)_F``, its derivative
gives ``d beta_F / d d_m = -P u_m``, hence

    d2 J / dd_m dd_l = u_m' P u_l,    P = K_FF^-1 - K_FF^-1 1 1' K_FF^-1 / (1' K_FF^-1 1)

as Chapelle & Rakotomamonjy (2008) derive for the hinge loss with bias.
"""

from __future__ import annotations

import numpy as np
import scipy

from mkldist.core.arrays import Floats
from mkldist.optim.factored_matrix import Gram, block_of
from mkldist.solvers.svm import Bound

_RIDGE_SHARE = 1e-12  # of the mean diagonal; a ridge keeps dependent columns apart


def hessian_root(K: Gram, alpha: Floats, C: Bound, products: Floats) -> Floats:
    """Return a root of the Hessian: ``root' root`` is the second derivative of J.

    Parameters
    ----------
    K : (n, n) float64 or FactoredMatrix
        Combined kernel, or its operator.
    alpha : (n,) or (n, k) float64
        Dual variables of the machine on it, or of the machines of k classes; J is then their sum.
    C : float or (n,) float64
        Their bound, of all or of each point.
    products : (S, n) or (S, n, k) float64
        ``K_m (alpha*y)`` for the S kernels whose weights vary.

    Returns
    -------
    (f, S) float64
        The root, with a row for each free variable.  It is empty where fewer than two are free,
        for J is linear there, and at ``K = 0``, where J has no second derivative.
    """
    if alpha.ndim == 2:
        machines = zip(alpha.T, np.moveaxis(products, 2, 0), strict=True)
        return np.concatenate([hessian_root(K, one, C, images) for one, images in machines])
    free = np.flatnonzero((alpha > 0.0) & (alpha < C))
    none = np.empty((0, len(products)))
    block = block_of(K, free)
    trace = float(np.trace(block))
    if len(free) < 2 or trace <= 0.0:
        return none
    ridge = _RIDGE_SHARE * trace / len(free)
    block[np.diag_indices_from(block)] += ridge
    try:
        factor = scipy.linalg.cholesky(block, lower=True, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return none
    rights = np.column_stack([np.ones(len(free)), products[:, free].T])
    solved = scipy.linalg.solve_triangular(factor, rights, lower=True, check_finite=False)
    normal = solved[:, 0] / np.linalg.norm(solved[:, 0])
    root: Floats = solved[:, 1:] - np.outer(normal, normal @ solved[:, 1:])
    return root
