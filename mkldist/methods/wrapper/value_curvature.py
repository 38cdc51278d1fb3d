"""Second derivatives of the support vector machine's value with respect to kernel weights.

With ``J(d) = max_alpha { 1'alpha - 1/2 beta' K beta }``, ``beta = alpha*y``, ``K = sum_m d_m K_m``,
the first derivative is ``-1/2 beta' K_m beta``.  As long as the same alpha are free, i.e. strictly
between 0 and C, the machine solves the linear system

    [[K_FF, 1], [1', 0]] [beta_F, b] = [y_F - K_FB beta_B, -1'beta_B]

on the free set F, B the rest.  Its derivative gives ``d beta_F / d d_m = -P u_m`` with
``u_m = (K_m beta)_F`` and P the leading block of the system's inverse, hence

    d2 J / dd_m dd_l = u_m' P u_l,    P = K_FF^-1 - K_FF^-1 1 1' K_FF^-1 / (1' K_FF^-1 1)

as Chapelle & Rakotomamonjy (2008) derive for the hinge loss with bias.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from mkldist.arrays import Floats

_RIDGE_SHARE = 1e-12  # of the mean diagonal, keeps dependent columns apart
_DAMPING_FLOOR = 1e-10
_REACH = 10.0  # multiple of the weights' size
_SHORT = 0.1  # length of a step


def hessian_root(K: Floats, alpha: Floats, C: float, products: Floats) -> Floats:
    """Return a root of the Hessian: ``root' root`` is the second derivative of J.

    Parameters
    ----------
    K : (n, n) float64
        Combined kernel.
    alpha : (n,) or (n, k) float64
        Dual variables of the machine on it, or of those of k classes, whose J are added up.
    C : float
        Their bound.
    products : (S, n) or (S, n, k) float64
        ``K_m (alpha*y)`` for the S kernels whose weights vary.

    Returns
    -------
    (k, S) float64
        The root, one row a free variable; empty when fewer than two are free, where J is linear,
        and at ``K = 0``, where it has no second derivative.
    """
    if alpha.ndim == 2:
        machines = zip(alpha.T, np.moveaxis(products, 2, 0), strict=True)
        return np.concatenate([hessian_root(K, one, C, images) for one, images in machines])
    free = np.flatnonzero((alpha > 0.0) & (alpha < C))
    none = np.empty((0, len(products)))
    block = K[np.ix_(free, free)]
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


class Damping:
    """Weight of a model's proximal term, relative to the model's curvature."""

    def __init__(self) -> None:
        self._share = _DAMPING_FLOOR

    def ridge(self, root: Floats, slopes: Floats, size: float) -> float:
        """Return the weight.

        It bounds the step where the model is flat by a multiple of the weights, and fades with
        the slopes, so that the last steps are Newton's.

        Parameters
        ----------
        root : (k, S) float64
            Root of the Hessian.
        slopes : (S,) float64
            Reduced gradient: what vanishes at the optimum.
        size : float
            Size of the weights, positive.
        """
        curvature = float(np.einsum("ks,ks->s", root, root).max(initial=0.0))
        steepest = float(np.abs(slopes).max(initial=0.0))
        return max(self._share * curvature, steepest / (_REACH * size))

    def adapt(self, length: float) -> None:
        """Trust the model more after a full step, less after a short one."""
        if length >= 1.0:
            self._share = max(0.1 * self._share, _DAMPING_FLOOR)
        elif length < _SHORT:
            self._share = min(100.0 * self._share, 1.0)
