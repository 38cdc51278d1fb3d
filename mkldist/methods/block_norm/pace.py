"""The pace of block-norm MKL: how exact and how smooth its minimisations are, how fast it goes.

A larger penalty means fewer outer iterations and harder minimisations: it grows with the pace,
not at all after a hard minimisation.
"""

from __future__ import annotations

import math

INNER_SHARE = 0.1  # of the present gap, that a minimisation may leave at first
SLOW = 0.5  # ratio of gaps above which the minimisations are made more accurate
EASY, HARD = 20, 40  # Newton steps of a minimisation
HURRY = 2  # power of the penalty's growth after an easy minimisation that gained little
STANDSTILL = 0.99  # ratio of gaps above which nothing was gained
PATIENCE = 20  # iterations without gain after which rounding forbids more
GAMMA_LIMIT = 1e7  # on gamma max_i |rho_i|: beyond, rounding of rho moves the multipliers
COOLING, SOONER = 0.5, 1.5  # share and power of the gap that the entropy may account for
FAR = 1e4  # times more than that is allowed where the gap is one


class Pace:
    """What the last outer iterations say of the next.

    Parameters
    ----------
    tol : float
        Relative duality gap asked for.

    Attributes
    ----------
    temperature : float
        Factor of the entropy that rounds off a polyhedral loss.
    """

    def __init__(self, tol: float) -> None:
        self._tol, self._share = tol, INNER_SHARE
        self.temperature = math.inf
        self._power, self._idle = 1, 0
        self._gap, self._lower, self._newton_steps = math.inf, 0.0, 0

    @property
    def stalled(self) -> bool:
        """Whether nothing has been gained for long."""
        return self._idle >= PATIENCE

    def accuracy(self, gap: float, upper: float) -> float:
        """Return how far from its minimum an inner objective may be left.

        Parameters
        ----------
        gap, upper : float
            Relative gap of the bounds, and the upper one.
        """
        last = gap if math.isinf(self._gap) else self._gap
        return self._share * max(min(last, 1.0), self._tol) * abs(upper)

    def cool(self, gap: float, upper: float, entropy: float) -> None:
        """Lower the temperature that rounds off a polyhedral loss, as the gap closes.

        Parameters
        ----------
        gap, upper : float
            Relative gap on the working set, and the upper bound.
        entropy : float
            What a temperature of one accounts for.
        """
        allowed = COOLING * min(gap, 1.0) ** SOONER * abs(upper)
        self.temperature = min(self.temperature, allowed / entropy if entropy > 0.0 else 0.0)

    def begin_anew(self) -> None:
        """Forget the last gap, which was that of another working set."""
        self._gap = math.inf

    def judge(self, gap: float, lower: float, newton_steps: int) -> None:
        """Compare an outer iteration with the last one.

        Parameters
        ----------
        gap, lower : float
            Relative gap on the working set, and the lower bound there.
        newton_steps : int
            All steps so far.
        """
        slow = gap > SLOW * self._gap
        steps = newton_steps - self._newton_steps
        self._power = 0 if steps > HARD else HURRY if slow and steps <= EASY else 1
        gained = lower - self._lower > (1.0 - STANDSTILL) * abs(lower)
        still = gap > STANDSTILL * self._gap and not gained
        self._idle = self._idle + 1 if still else 0
        if slow:
            self._share *= INNER_SHARE
        self._gap, self._lower, self._newton_steps = gap, lower, newton_steps

    def grown(self, gamma: float, growth: float, gap: float, size: float) -> float:
        """Return the next penalty, at most what rounding allows.

        Parameters
        ----------
        gamma, growth : float
            The penalty, and its usual factor.
        gap : float
            Relative gap of the bounds; rounding allows less as it closes.
        size : float
            ``max_i |rho_i|``.
        """
        limit = GAMMA_LIMIT * (1.0 + FAR * min(gap, 1.0))
        return min(growth**self._power * gamma, limit / size)
