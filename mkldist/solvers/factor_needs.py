"""Which thin factors lack too much of their kernels for a solution, and how long they should be.

A kernel of which a factor lacks much at any rank is near its diagonal: a narrow one on many points.
Diagonals then help more than ranks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from mkldist.bank.factored_kernels import FIRST_RANK
from mkldist.core.arrays import Floats, Ints
from mkldist.optim.pivoted_cholesky import ThinFactor
from mkldist.solvers.base import Solution
from mkldist.solvers.exact_certificate import ExactForms

SLACK = 0.25  # of the tolerance: a kernel that lacks less of the largest form is not to blame
POWER = 0.5  # of the ratio of what is lacking to what may be, by which ranks grow
LEAST_GROWTH, MOST_GROWTH = 1.5, 4.0
NARROW = 0.2  # share of the trace, of which a kernel's factor lacks more if it is narrow
HOPELESS = 0.9  # share of the trace left, from which on more columns are no help
TINY = float(np.finfo(float).tiny)

Ranks = dict[int, int]
"""Wanted numbers of columns, by kernel."""


def longer(factors: Sequence[ThinFactor], kernels: Ints, ratios: Floats) -> Ranks:
    """Return ranks of kernels, each of which lacks `ratios` times what it may."""
    growth = np.clip(ratios**POWER, LEAST_GROWTH, MOST_GROWTH)
    wanted = zip(kernels.tolist(), growth.tolist(), strict=True)
    return {m: int(times * max(factors[m].rank, 1)) + 1 for m, times in wanted}


def lacked_by_norms(solution: Solution, active: Ints, lack: Floats, allowed: float) -> Floats:
    """Return how many times what it may each active kernel lacks in its norm, 0 for the blameless.

    Parameters
    ----------
    solution : Solution
        A solution on factors, with coefficients that its kernels share.
    active : (S,) intp
        The active kernels.
    lack : (S,) float64
        What quadratic forms of its coefficients lack.
    allowed : float
        What the objective may lack.
    """
    shares = 0.5 * unit_of_norms(solution) * solution.kernel_weights[active] * lack
    if float(shares.sum()) <= allowed:
        return np.zeros(len(active))
    blamed: Floats = np.where(shares > 0.5 * allowed / len(active), shares, 0.0)
    return len(active) * blamed / allowed


def blame_of_forms(solution: Solution, forms: ExactForms, tol: float) -> Floats:
    """Return what the factor of each kernel lacks (M,), of those that are to blame for a gap.

    To blame are kernels which are active, or would be if nothing lacked: on the simplex those of
    larger forms than all others.  Where these lack nothing, the method has another rule, such as a
    threshold, and all kernels may be to blame.

    Parameters
    ----------
    solution : Solution
        A certified solution.
    forms : ExactForms
        Forms of kernels and factors at its dual points.
    tol : float
        Relative gap asked for.
    """
    largest = np.maximum(forms.found.max(axis=0), TINY)
    with np.errstate(over="ignore"):  # where factors have no form at all
        lack = (forms.exact - forms.found) / largest
    concerned = (solution.kernel_weights > 0.0)[:, None] | (forms.exact > largest)
    blame: Floats = np.where(concerned, lack, 0.0).max(axis=1, initial=0.0)
    if blame.max(initial=0.0) <= SLACK * tol:
        blame = lack.max(axis=1, initial=0.0)
    return blame


def blame_of_diagonals(solution: Solution, factors: Sequence[ThinFactor]) -> Floats:
    """Return the shares (M,) of kernels in what the objective lost by diagonals."""
    lack = np.array([factor.left for factor in factors])
    shares: Floats = solution.kernel_weights * lack
    return shares / max(float(shares.sum()), TINY)


def most_blamed(blame: Floats, tol: float) -> Ints:
    """Return the kernels that lack more than a part of the tolerance, or of the most (M,)."""
    most = float(blame.max(initial=0.0))
    return np.flatnonzero(blame > min(SLACK * tol, most / 2))


def is_narrow(factor: ThinFactor) -> bool:
    """Return True if a factor lacks so much of its kernel that its diagonal may matter more."""
    return factor.left > NARROW


def may_help(factor: ThinFactor) -> bool:
    """Return True if a narrow kernel may lose most of what its factor lacks by more columns."""
    return factor.rank <= FIRST_RANK and factor.left < HOPELESS


def corrected_diagonals(times: Floats, forms: ExactForms, kernels: Collection[int]) -> Floats:
    """Return factors of diagonals (M,) with which some kernels have the forms that they lack.

    Where neighbours have like coefficients, the form of a narrow kernel exceeds its diagonal's.

    Parameters
    ----------
    times : (M,) float64
        The factors so far.
    forms : ExactForms
        Forms of kernels and factors, and what is due to the diagonals.
    kernels : collection of int
        The kernels whose diagonals change.
    """
    chosen = np.isin(np.arange(len(times)), list(kernels))
    lack, own = (forms.exact - forms.found).sum(1), forms.of_rests.sum(1)
    enough = own > np.finfo(float).eps * np.abs(lack)
    ratio = np.divide(lack, own, out=np.zeros_like(own), where=enough)
    corrected: Floats = times * np.where(chosen, np.clip(1.0 + ratio, 0.0, MOST_GROWTH), 1.0)
    return corrected


def used_points(solution: Solution) -> int:
    """Return the number of points whose coefficients are not zero, which passes are made of."""
    return int(np.atleast_2d(solution.coefficients.T).any(axis=0).sum())


def unit_of_norms(solution: Solution) -> float:
    """Return the unit of norms in the objective.

    Near the optimum the dual variables are the slopes of the loss at the function, and a multiple
    of its coefficients: 1 for the hinge loss with a norm of 1/2, lam for PrimalMKL, and one over
    the sum of the weights before they are normalised for block norms.
    """
    length = float(np.linalg.norm(solution.coefficients))
    return float(np.linalg.norm(solution.dual_variables)) / length if length > 0.0 else 0.0
