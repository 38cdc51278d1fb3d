"""Quadratic programmes with a Hessian of low rank over the simplex or the non-negative orthant.

    min_x 1/2 ||root x||^2 + 1/2 ridge ||x||^2 + linear'x   s.t.  x >= 0  (and 1'x = 1)

An active-set method: on a support it solves the small system of the equality-constrained problem,
drops what would turn negative, and adds the variable of the most negative multiplier.  Only the
block of the Hessian on the support is ever formed, so that thousands of variables cost a product
with the root a step.  The ridge makes the minimiser unique where variables are alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

_RIDGE_SHARE = 1e-14  # of the largest diagonal entry, below which systems are not solvable
_TOLERANCE = 1e-12  # of the gradient, that a multiplier may be negative by


@dataclass(frozen=True, eq=False)
class Quadratic:
    """``1/2 ||root x||^2 + 1/2 ridge ||x||^2 + linear'x``.

    Parameters
    ----------
    root : (k, S) float64
        Root of the Hessian.
    linear : (S,) float64
        Linear term.
    ridge : float
        What is added to the Hessian's diagonal, at least 0; raised to rounding level.
    """

    root: Floats
    linear: Floats
    ridge: float = 0.0

    @classmethod
    def around(cls, point: Floats, gradient: Floats, root: Floats, ridge: float) -> Quadratic:
        """Return the second-order model of a function, less a constant.

        Parameters
        ----------
        point, gradient : (S,) float64
            Where the model touches the function, and the gradient there.
        root : (k, S) float64
            Root of the Hessian there.
        ridge : float
            Weight of the proximal term ``1/2 ||x - point||^2``, which leaves the gradient there.
        """
        curved = (root @ point) @ root + ridge * point
        return cls(root, gradient - curved, ridge)

    def gradient(self, x: Floats) -> Floats:
        """Return the gradient at `x`."""
        support = np.flatnonzero(x)
        curved: Floats = (self.root[:, support] @ x[support]) @ self.root
        return curved + self.ridge * x + self.linear

    def value(self, x: Floats) -> float:
        """Return the value at `x`."""
        image = self.root @ x
        return 0.5 * float(image @ image + self.ridge * (x @ x)) + float(self.linear @ x)


def minimise_over_simplex(objective: Quadratic, support: Ints) -> Floats:
    """Minimise over ``{x >= 0, 1'x = 1}``.

    Parameters
    ----------
    objective : Quadratic
        What to minimise, of S variables.
    support : (s,) intp
        Variables expected to be positive; empty when nothing is known.

    Returns
    -------
    (S,) float64
        The minimiser; exactly zero off its support, summing to 1.
    """
    diagonal = _diagonal(objective)
    if not len(support):
        support = np.array([int(np.argmin(objective.linear + 0.5 * diagonal))])
    x = np.zeros(len(objective.linear))
    x[support] = 1.0 / len(support)
    x = _active_set(objective, x, float(diagonal.max()), sums_to_one=True)
    normalised: Floats = x / x.sum()
    return normalised


def minimise_over_orthant(objective: Quadratic, support: Ints) -> Floats:
    """Minimise over ``{x >= 0}``; the ridge keeps the minimiser bounded.

    Parameters
    ----------
    objective : Quadratic
        What to minimise, of S variables.
    support : (s,) intp
        Variables expected to be positive; may be empty.

    Returns
    -------
    (S,) float64
        The minimiser; exactly zero off its support.
    """
    diagonal = _diagonal(objective)
    x = np.zeros(len(objective.linear))
    x[support] = 1.0
    return _active_set(objective, x, float(diagonal.max()), sums_to_one=False)


def _diagonal(objective: Quadratic) -> Floats:
    """Return the Hessian's diagonal."""
    diagonal: Floats = np.einsum("ks,ks->s", objective.root, objective.root) + objective.ridge
    return diagonal


def _active_set(objective: Quadratic, x: Floats, scale: float, *, sums_to_one: bool) -> Floats:
    """Move from a feasible `x` to the minimiser."""
    ridge = max(objective.ridge, _RIDGE_SHARE * scale, float(np.finfo(np.float64).tiny))
    objective = Quadratic(objective.root, objective.linear, ridge)
    support, entered = x > 0.0, -1
    gradient = objective.gradient(x)
    for _ in range(20 * len(x) + 100):
        kept = np.flatnonzero(support)
        step = _newton_step(objective, kept, gradient[kept], sums_to_one=sums_to_one)
        blocked = x[kept] + step < 0.0
        room = np.where(blocked, x[kept] / np.where(blocked, -step, 1.0), np.inf)
        length = min(1.0, float(room.min(initial=np.inf)))
        leaving = kept[room <= length]
        if length == 0.0 and entered in leaving:
            break  # rounding sends back what has just entered
        x[kept] = np.maximum(x[kept] + length * step, 0.0)
        x[leaving] = 0.0
        support[leaving] = False
        gradient = objective.gradient(x)
        if len(leaving):
            continue
        multiplier = float(gradient @ x) if sums_to_one else 0.0
        reduced = np.where(support, np.inf, gradient - multiplier)
        entered = int(np.argmin(reduced))
        if reduced[entered] >= -_TOLERANCE * (np.abs(gradient).max() + abs(multiplier)):
            break
        support[entered] = True
    return x


def _newton_step(
    objective: Quadratic, kept: Ints, gradient: Floats, *, sums_to_one: bool
) -> Floats:
    """Return the step to the stationary point on a support, without regard to signs."""
    if not len(kept):
        return np.empty(0)
    root = objective.root[:, kept]
    block = root.T @ root
    block[np.diag_indices_from(block)] += objective.ridge
    centred = gradient - gradient.mean() if sums_to_one else gradient
    rights = np.column_stack([-centred, np.ones(len(kept))])
    try:
        factor = scipy.linalg.cho_factor(block, check_finite=False)
        solved = scipy.linalg.cho_solve(factor, rights, check_finite=False)
    except scipy.linalg.LinAlgError:
        solved = scipy.linalg.lstsq(block, rights, check_finite=False)[0]
    step: Floats = solved[:, 0]
    if not sums_to_one:
        return step
    step = step - solved[:, 1] * (step.sum() / solved[:, 1].sum())
    centred_step: Floats = step - step.mean()
    return centred_step
