"""Growth of a cost with a size: ``cost = a size^k``, fitted on logarithms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from mkldist.arrays import Floats


class PowerLaw(NamedTuple):
    """A fitted power law.

    Parameters
    ----------
    factor : float
        Cost a at size 1, in the units of the costs.
    exponent : float
        The exponent k.
    low, high : float
        Confidence interval of the exponent; infinite where there are no more than two sizes and
        no repetition.
    n_sizes : int
        Number of different sizes.
    """

    factor: float
    exponent: float
    low: float
    high: float
    n_sizes: int

    def at(self, size: float) -> float:
        """Return the cost that the law predicts at a size."""
        return float(self.factor * size**self.exponent)


def fit_power_law(sizes: Floats, costs: Floats, level: float = 0.95) -> PowerLaw:
    """Fit ``cost = a size^k`` by least squares of logarithms, with an interval of k.

    The residuals of logarithms are taken to be independent and normal, so that errors are relative.

    Parameters
    ----------
    sizes, costs : (q,) float64
        Sizes and costs, all above zero; a size may repeat.
    level : float
        Confidence level, between 0 and 1.

    Raises
    ------
    ValueError
        If a value is not above zero, or there is only one size.
    """
    sizes, costs = np.asarray(sizes, dtype=np.float64), np.asarray(costs, dtype=np.float64)
    if not (np.all(sizes > 0.0) and np.all(costs > 0.0)):
        raise ValueError("found a size or cost that is not above zero; expected positive numbers")
    n_sizes = len(np.unique(sizes))
    if n_sizes < 2:
        raise ValueError(f"found {n_sizes} size; expected at least two, to tell a growth")
    fit = scipy.stats.linregress(np.log(sizes), np.log(costs))
    freedom = len(sizes) - 2
    quantile = float(scipy.stats.t.ppf(0.5 + 0.5 * level, freedom)) if freedom else np.inf
    half = quantile * float(fit.stderr) if freedom else np.inf
    slope = float(fit.slope)
    return PowerLaw(float(np.exp(fit.intercept)), slope, slope - half, slope + half, n_sizes)
