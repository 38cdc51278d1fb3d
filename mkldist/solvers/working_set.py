"""Working sets and screening: the few kernels on which a method works between its passes.

Of thousands of kernels some dozens get a weight.  A method solves its problem on a working set of
kernels, which costs only these, and then makes a pass over the bank to find kernels that the
working set lacks.  For a dual point alpha of the inner machine,

    1'alpha - 1/2 max_m q_m(alpha*y) <= optimum,

so that the same pass certifies the solution if it finds none.

Gap-safe screening proves kernels inactive, and passes then visit the others only.  A dual
``D(rho)`` that is strongly concave with modulus mu has one maximiser rho*, and a primal value P
bounds its distance from rho (Ndiaye, Fercoq, Gramfort & Salmon 2017, Theorem 2):

    ||rho* - rho||^2 <= 2 (P - D(rho)) / mu.

The entries of rho and of rho* have the same sum.  With ``H = I - 11'/n`` and the largest
eigenvalue lambda_m of ``H K_m H``, therefore,

    | ||rho*||_{K_m} - ||rho||_{K_m} | <= sqrt(lambda_m) ||rho* - rho||.

A kernel has no weight at the optimum if these bounds place its dual norm at rho* below that of all
active kernels.  The problem without it has the same optimum, so that passes may leave it out for
good, and lower bounds that leave it out remain bounds.  The code uses the trace of ``H K_m H``,
which is at least lambda_m.

The duals of the hinge and the epsilon-insensitive loss are linear in rho between their kinks, so
that there is no such ball, and no kernel is screened.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from mkldist.bank.requests import Combine, Diagonal, Matvec, Quadratic, Request
from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.optim.accuracy import form_rounding
from mkldist.optim.factored_matrix import Gram

WORTH_VISITING_ALONE = 0.5  # share of the kernels above which a pass over all costs no more
WORTH_ASKING = 30.0  # gap, in units of the tolerance, above which the pass for radii may pay
KERNELS_AT_ONCE = 1000  # kernels in one request of a pass over the candidates alone
ROUNDING = 1e-9  # of dual norms, relative to the largest
VALUE_ROUNDING = 1e-14  # of the primal value, relative


class Candidates:
    """The kernels that are not proven inactive, with bounds of their dual norms."""

    def __init__(self, n_kernels: int) -> None:
        # True for kernels that are not proven inactive; the others are screened
        self.may_be_active: Bools = np.ones(n_kernels, dtype=bool)
        self._partial_passes = 0
        # The dual point of the last pass, the centre of the ball; empty before the first pass
        self.centre: Floats = np.empty(0)
        # Upper bounds of the dual norms there, exact for the kernels that the last pass visited
        self.bounds: Floats = np.full(n_kernels, np.inf)
        self.radii: Floats | None = None  # ``sqrt(trace(H K_m H))``, once they can help
        self._exact: Bools = np.zeros(n_kernels, dtype=bool)

    @property
    def report(self) -> dict[str, float]:
        """Number of kernels proven inactive, and of passes over the others alone."""
        screened = float((~self.may_be_active).sum())
        return {"screened": screened, "partial_passes": float(self._partial_passes)}

    def go_on(self, start: Candidates) -> None:
        """Take over the centre, bounds and radii of another problem, but no screened kernel."""
        self.centre, self.bounds = start.centre, start.bounds
        self.radii, self._exact = start.radii, start._exact

    def shrink(self, factor: float) -> None:
        """Multiply the centre and the bounds by a positive factor."""
        self.centre, self.bounds = factor * self.centre, factor * self.bounds

    @property
    def n_visited(self) -> int:
        """Number of kernels that a pass visits: all, unless the others are worth leaving out."""
        left = int(self.may_be_active.sum())
        n_kernels = len(self.may_be_active)
        return n_kernels if left > WORTH_VISITING_ALONE * n_kernels else left

    def quadratic(self, vectors: Floats) -> Generator[Request, Any, Floats]:
        """Ask for ``v'K_m v`` of all kernels for (n, R) vectors, (M, R); zero where screened."""
        if self.n_visited == len(self.may_be_active):
            q: Floats = yield Quadratic(vectors)
            q[~self.may_be_active] = 0.0
            return q
        self._partial_passes += 1
        q = np.zeros((len(self.may_be_active), vectors.shape[1]))
        left = np.flatnonzero(self.may_be_active)
        for start in range(0, len(left), KERNELS_AT_ONCE):
            kernels = left[start : start + KERNELS_AT_ONCE]
            products = yield Matvec(kernels, vectors)
            q[kernels] = np.einsum("nr,snr->sr", vectors, products)
        return q

    def visited(self, rho: Floats, norms: Floats) -> None:
        """Move the centre to the feasible dual point `rho` (n,) of a pass, and update the bounds.

        `norms` (M,) are ``||rho||_{K_m}``; entries of screened kernels are not read.
        """
        unseen = ~self.may_be_active
        self.bounds = np.where(unseen, self.bounds, norms)
        if unseen.any() and self.radii is not None:
            moved = float(np.linalg.norm(rho - self.centre))
            self.bounds[unseen] += moved * self.radii[unseen]
        self.centre, self._exact = rho, ~unseen

    def screen(
        self, distance: float, threshold: float | None = None, *, left: float = math.inf
    ) -> Generator[Request, Any, None]:
        """Screen the kernels whose dual norm is below a threshold in the ball of radius `distance`.

        The threshold is the dual norm of active kernels at the optimum, by default a lower bound in
        the ball of the largest dual norm of all kernels.  `left` is the ratio of the present gap to
        the tolerance: if it is small, few passes are left, and that for the radii would cost more
        than it saves.
        """
        if not math.isfinite(distance):
            return
        if self.radii is None:
            if left < WORTH_ASKING or not self._could_help(distance, threshold):
                return
            self.radii = yield from _centred_radii(len(self.centre))
        change = distance * self.radii
        if threshold is None:
            threshold = float((self.bounds - change)[self._exact].max())
        slack = ROUNDING * float(self.bounds.max())
        self.may_be_active &= self.bounds + change >= threshold - slack

    def _could_help(self, distance: float, threshold: float | None) -> bool:
        """Return True if passes would become cheaper with the smallest possible eigenvalues.

        ``||rho||_{K_m} <= sqrt(lambda_m) ||rho||`` bounds the eigenvalues from below.
        """
        length = float(np.linalg.norm(self.centre))
        if length == 0.0:
            return False
        least = self.bounds / length * distance
        bound = float((self.bounds - least).max()) if threshold is None else threshold
        return bool((self.bounds + least >= bound).mean() <= WORTH_VISITING_ALONE)


def _centred_radii(n_points: int) -> Generator[Request, Any, Floats]:
    """Ask for ``sqrt(trace(H K_m H)) = sqrt(trace(K_m) - 1'K_m 1 / n)``, or slightly more."""
    ones = np.ones((n_points, 1))
    totals = yield Quadratic(ones)
    traces = yield Diagonal(ones)
    squared = traces - totals / n_points + form_rounding(totals, traces, n_points) / n_points
    radii: Floats = np.sqrt(np.maximum(squared[:, 0], 0.0))
    return radii


def distance_to_optimum(upper: float, value: float, curvature: float) -> float:
    """Return a bound of ``||rho* - rho||``; infinite if the dual is not strongly concave.

    `upper` is a primal value, `value` the dual value of rho, and `curvature` the modulus mu of
    strong concavity; 0 if there is none.
    """
    if curvature == 0.0:
        return math.inf
    gap = max(upper - value, 0.0) + VALUE_ROUNDING * abs(upper)
    return math.sqrt(2.0 * gap / curvature)


FIRST_KERNELS = 20
# At most M / PASS_SHARE kernels join at once: solving for them costs little compared with a pass.
PASS_SHARE = 2000
SMALL = 40  # number of kernels up to which passes are cheap, and a working set saves nothing
# The working set is solved to the first share of the gap that the last pass found before the next
# pass, but never to less than the second share of the tolerance.
SOLVED = 0.3
SOLVED_TOL = 0.7


class WorkingSet:
    """The S of a bank's M kernels on which a method works: `everything`, or those that joined."""

    def __init__(self, n_kernels: int, *, everything: bool) -> None:
        self._n_kernels = n_kernels
        # False for a working set that has grown to all kernels
        self.everything = everything or n_kernels <= SMALL
        # Indices (S,) of the kernels at work, in the order in which they joined
        self.kernels: Ints = np.arange(n_kernels if self.everything else 0)
        self.candidates = Candidates(n_kernels)  # the passes visit these

    def __len__(self) -> int:
        return len(self.kernels)

    def spread(self, weights: Floats) -> Floats:
        """Return weights (S,) of the working set as weights (M,) of all kernels."""
        if self.everything:
            return weights
        dense = np.zeros(self._n_kernels)
        dense[self.kernels] = weights
        return dense

    def combination(
        self, weights: Floats, *, thin: bool = False, former: Gram | None = None
    ) -> Combine:
        """Return the request for the sum of the working set's kernels with weights (S,).

        With `thin`, an operator may answer it, see :class:`~mkldist.bank.requests.Combine`.  The
        matrix of a `former` answer is overwritten.
        """
        memory = former if isinstance(former, np.ndarray) else None
        return Combine(weights, None if self.everything else self.kernels, memory, thin)

    def quadratic(self, point: Floats) -> Generator[Request, Any, Floats]:
        """Ask for ``q_m(alpha*y)`` (S,) at a point (n,) or (n, k), added up over classes."""
        if self.everything:
            q = yield from self.visit_all(point[None])
            return q[:, 0]
        q = yield Quadratic(point.reshape(len(point), -1), self.kernels)
        forms: Floats = q.sum(axis=1)
        return forms

    def visit_all(self, points: Floats) -> Generator[Request, Any, Floats]:
        """Ask for ``q_m(alpha_j*y)`` (M, J) of all kernels at `points` (J, n) or (J, n, k).

        It takes one pass; the forms of kernels that are proven inactive are zero.
        """
        columns = np.moveaxis(points, 1, 0).reshape(points.shape[1], -1)
        q = yield from self.candidates.quadratic(columns)
        by_point: Floats = q.reshape(self._n_kernels, len(points), -1).sum(axis=2)
        return by_point

    def newcomers(self, q: Floats, threshold: float) -> Ints:
        """Return the kernels outside whose q_m (M,) exceeds a threshold, largest q_m first.

        At most :func:`most_newcomers` are returned.
        """
        outside = q > threshold
        outside[self.kernels] = False
        candidates = np.flatnonzero(outside)
        order = np.argsort(-q[candidates], kind="stable")
        return candidates[order[: most_newcomers(self._n_kernels, len(self.kernels))]]

    def take_first(self, y: Floats, ridges: Floats | float = 0.0) -> Generator[Request, Any, None]:
        """Take the kernels of the largest q_m where alpha is equal within each class, by one pass.

        `ridges`, one or (M,), are added to the diagonals of the kernels.
        """
        positive = y > 0
        alpha = np.where(positive, 1.0 / positive.sum(axis=0), 1.0 / (~positive).sum(axis=0))
        q = yield from self.visit_all(alpha[None] * y)
        self.take(self.newcomers(q[:, 0] + ridges * float(np.vdot(alpha, alpha)), -math.inf))

    def take(self, kernels: Ints) -> None:
        """Take kernels (S,) into the working set."""
        self.kernels = np.concatenate([self.kernels, kernels])

    def enlarge(self, kernels: Ints, points: Floats) -> Generator[Request, Any, Floats]:
        """Take kernels (K,); ask for their forms (J, K) at `points` (J, n) or (J, n, k)."""
        self.take(kernels)
        if not len(points):
            return np.zeros((0, len(kernels)))
        columns = np.moveaxis(points, 1, 0).reshape(points.shape[1], -1)
        q: Floats = yield Quadratic(columns, kernels)
        by_point: Floats = q.T.reshape(len(points), -1, len(kernels)).sum(axis=1)
        return by_point


def most_newcomers(n_kernels: int, size: int, first: int = FIRST_KERNELS) -> int:
    """Return the number of kernels that may join a working set of `size` at once.

    The working set may double.  If the bank has very many kernels, more of them may join, for
    their cost is small beside that of a pass over all.  `first` is the number that it starts from.
    """
    return max(first, n_kernels // PASS_SHARE, size)


def solved(tol: float, gap_of_pass: float, share: float = SOLVED) -> float:
    """Return the relative gap on the working set at which the next pass is due.

    Of the gap on all kernels that the last pass found, a `share` may be left on the working set.
    """
    return max(SOLVED_TOL * tol, share * gap_of_pass)
