"""Accuracy, smoothing and penalty of the outer iterations of block-norm MKL.

Each outer iteration minimises an inner objective.  These rules choose, from the gaps and the
Newton steps of the last iterations,

* how exactly it is minimised: to a share of the gap, a smaller share after each slow iteration;
* how strongly an entropy rounds off the corners of a polyhedral loss: less and less;
* the penalty gamma.  A larger one means fewer outer iterations and harder minimisations, so it
  does not grow after a hard minimisation, and grows twice as fast after an easy one that gained
  little.

Newton's method on a polyhedral loss takes the more steps, the more the penalty and the entropy
change at once, and the less exact the last minimisation was.  There each minimisation is more exact
from the start, and the penalty grows by less, but where nothing was gained or the gap is near 1.
"""

from __future__ import annotations

import math

from mkldist.optim.accuracy import relative_gap

INNER_SHARE = 0.1  # of the present gap, that a minimisation may leave at first
SLOW = 0.5  # ratio of gaps above which the minimisations are made more accurate
EASY, HARD = 20, 40  # Newton steps of a minimisation
HURRY = 2.0  # power of the penalty's growth after an easy minimisation that gained little
POLYHEDRAL_SHARE, POLYHEDRAL_HURRY = 0.03, 1.2  # the same two for a polyhedral loss
DISTANT = 0.9  # gap above which only a far larger penalty helps, whatever the loss
STANDSTILL = 0.99  # ratio to the least gap above which nothing was gained
PATIENCE = 20  # iterations without gain after which rounding forbids more
GAMMA_LIMIT = 1e7  # on gamma max_i |rho_i|: beyond, rounding of rho moves the multipliers
COOLING, SOONER = 0.5, 1.5  # share and power of the gap that the entropy may account for
FAR = 1e4  # factor by which a gap of one raises the limit on gamma


class Pace:
    """Rules for the next outer iteration, from the last ones.

    Parameters
    ----------
    tol : float
        Relative duality gap asked for.
    gap : float
        Relative gap of the first bounds.
    polyhedral : bool
        True for the rules of a polyhedral loss.
    """

    def __init__(self, tol: float, gap: float, *, polyhedral: bool = False) -> None:
        self._tol, self._gap = tol, gap
        self._share = POLYHEDRAL_SHARE if polyhedral else INNER_SHARE
        self._hurry = POLYHEDRAL_HURRY if polyhedral else HURRY
        self._temperature = math.inf
        self._power, self._idle = 1.0, 0
        self._last_gap, self._last_steps = math.inf, 0
        self._anew = False
        self._least_gap, self._highest_lower = math.inf, 0.0  # those that an iteration gains upon

    @property
    def stalled(self) -> bool:
        """True if many iterations in a row gained nothing."""
        return self._idle >= PATIENCE

    def accuracy(self, gap: float, upper: float) -> float:
        """Return how far from its minimum an inner objective may be left.

        Parameters
        ----------
        gap, upper : float
            Relative gap of the bounds, and the upper one.
        """
        last = gap if math.isinf(self._last_gap) else self._last_gap
        return self._share * max(min(last, 1.0), self._tol) * abs(upper)

    def cooled(self, upper: float, entropy: float) -> float:
        """Return the factor of the entropy that rounds off a polyhedral loss; it never rises.

        Parameters
        ----------
        upper : float
            Upper bound.
        entropy : float
            Largest decrease of the inner objective that the entropy causes at factor 1.
        """
        allowed = COOLING * min(self._gap, 1.0) ** SOONER * abs(upper)
        self._temperature = min(self._temperature, allowed / entropy if entropy > 0.0 else 0.0)
        return self._temperature

    def begin_anew(self) -> None:
        """Forget the last gap: it, and the bounds judged next, are those of another working set."""
        self._last_gap, self._anew = math.inf, True

    def judge(self, upper: float, lower: float, newton_steps: int) -> None:
        """Compare an outer iteration with the last one.

        Parameters
        ----------
        upper, lower : float
            Bounds of the optimum over the kernels at hand.
        newton_steps : int
            Newton steps of all iterations so far.
        """
        self._gap = gap = relative_gap(upper, lower)
        slow = gap > SLOW * self._last_gap
        steps = newton_steps - self._last_steps
        # Gains count from the best so far: rounding alone makes a gap rise and fall for ever.
        self._idle += 1
        if gap <= STANDSTILL * self._least_gap:
            self._least_gap, self._idle = gap, 0
        if lower - self._highest_lower > (1.0 - STANDSTILL) * abs(lower):
            self._highest_lower, self._idle = lower, 0
        hurry = HURRY if self._idle or gap > DISTANT else self._hurry
        self._power = 0.0 if steps > HARD else hurry if slow and steps <= EASY else 1.0
        if self._anew:
            self._least_gap, self._highest_lower = math.inf, 0.0
            self._idle, self._anew = 0, False
        if slow:
            self._share *= INNER_SHARE
        self._last_gap, self._last_steps = gap, newton_steps

    def grown(self, gamma: float, growth: float, size: float) -> float:
        """Return the next penalty, at most what rounding allows, which is less as the gap closes.

        Parameters
        ----------
        gamma, growth : float
            The penalty, and its usual factor.
        size : float
            ``max_i |rho_i|``.
        """
        limit = GAMMA_LIMIT * (1.0 + FAR * min(self._gap, 1.0))
        factor: float = growth**self._power
        return min(factor * gamma, limit / size)
