"""Means, deviations and ranges of columns, from blocks of their rows.

Blocks are merged by the update of Chan, Golub & LeVeque (1983, "Algorithms for computing the sample
variance", eq. 2.1), which adds squares of deviations from means, never squares of values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mkldist.arrays import Floats


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """Statistics of the known values of each column.

    Parameters
    ----------
    count : (d,) float64
        Known values.
    mean : (d,) float64
        Their means; NaN where there is no value, as the following.
    squares : (d,) float64
        Sums of squared deviations from the means.
    low, high : (d,) float64
        The least and the largest.
    """

    count: Floats
    mean: Floats
    squares: Floats
    low: Floats
    high: Floats

    @property
    def deviation(self) -> Floats:
        """Standard deviation of the population, (d,)."""
        with np.errstate(invalid="ignore"):
            found: Floats = np.sqrt(self.squares / self.count)
        return found

    def merged(self, other: ColumnStatistics) -> ColumnStatistics:
        """Return the statistics of the rows of both."""
        count = self.count + other.count
        with np.errstate(over="ignore", invalid="ignore"):
            difference = other.mean - self.mean
            mean = self.mean + difference * (other.count / count)
            between = difference**2 * (self.count * (other.count / count))
            squares = self.squares + other.squares + between
        first, second = self.count == 0.0, other.count == 0.0
        return ColumnStatistics(
            count,
            np.where(first, other.mean, np.where(second, self.mean, mean)),
            np.where(first, other.squares, np.where(second, self.squares, squares)),
            np.fmin(self.low, other.low),
            np.fmax(self.high, other.high),
        )


def column_statistics(blocks: Iterable[Floats], n_columns: int) -> ColumnStatistics:
    """Return the statistics of all rows of some blocks.

    Parameters
    ----------
    blocks : iterable of (r, d) float64
        Successive rows, NaN where a value is missing.
    n_columns : int
        Number d of columns.
    """
    nothing = np.full(n_columns, np.nan)
    found = ColumnStatistics(np.zeros(n_columns), nothing, nothing, nothing, nothing)
    for block in blocks:
        found = found.merged(_of_block(block))
    return found


def _of_block(block: Floats) -> ColumnStatistics:
    """Return the statistics of one block: sums of few values, then of their deviations."""
    missing = np.isnan(block)
    complete = not missing.any()
    count = np.full(block.shape[1], float(len(block)))
    known = block
    if not complete:
        count -= missing.sum(axis=0)
        known = np.where(missing, 0.0, block)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        mean = known.sum(axis=0) / count
        deviations = known - mean
        if not complete:
            deviations[missing] = 0.0
        np.multiply(deviations, deviations, out=deviations)
        squares = deviations.sum(axis=0)
    low, high = np.fmin.reduce(block), np.fmax.reduce(block)
    return ColumnStatistics(count, mean, squares, np.asarray(low), np.asarray(high))
