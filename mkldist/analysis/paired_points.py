"""Comparison of two methods on the test points of one split: McNemar's test, and points for it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

EXACT_LIMIT = 1000  # discordant points up to which the binomial sum is taken, as cheap as exact


class McNemar(NamedTuple):
    """Result of McNemar's test.

    Parameters
    ----------
    first_only, second_only : int
        Points that the first method alone has right, and the second alone.
    p_value : float
        Two-sided p-value of equal error rates.
    """

    first_only: int
    second_only: int
    p_value: float

    @classmethod
    def of(cls, first_only: int, second_only: int) -> McNemar:
        """Test by the numbers of points that one method alone has right."""
        b, c = first_only, second_only
        if b + c == 0:
            return cls(b, c, 1.0)
        if b + c <= EXACT_LIMIT:
            return cls(b, c, float(scipy.stats.binomtest(b, b + c).pvalue))
        statistic = max(abs(b - c) - 1, 0) ** 2 / (b + c)
        return cls(b, c, float(scipy.stats.chi2.sf(statistic, 1)))

    def points(self, significance: float = 0.05) -> tuple[float, float]:
        """Return the points of both methods: 1 to one that is better, 0 to the other, or ½ each.

        Do, Kalousis, Woznica & Hilario (2009) add them over data sets to rank methods.
        """
        if self.p_value >= significance or self.first_only == self.second_only:
            return 0.5, 0.5
        return (1.0, 0.0) if self.first_only > self.second_only else (0.0, 1.0)


def mcnemar(first_right: npt.NDArray[np.bool_], second_right: npt.NDArray[np.bool_]) -> McNemar:
    """Test whether two methods have the same error rate on the same points (McNemar 1947).

    Under equal rates the number of points that the first method alone has right is binomial with
    probability ½ among those that exactly one has right.  The test is exact up to a thousand such
    points, and the chi-squared approximation with continuity correction beyond.

    Parameters
    ----------
    first_right, second_right : (t,) bool
        True where a method predicts the point's class.

    Raises
    ------
    ValueError
        If the lengths differ.
    """
    first, second = np.asarray(first_right, bool), np.asarray(second_right, bool)
    if first.shape != second.shape:
        raise ValueError(f"found {len(first)} and {len(second)} points; expected the same points")
    return McNemar.of(int((first & ~second).sum()), int((second & ~first).sum()))
