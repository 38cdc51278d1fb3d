"""Growth of a cost with a size: ``cost = a size^k``, fitted on logarithms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from mkldist.arrays import Floats, Ints


class PowerLaw(NamedTuple):
    """A fitted power law.

    Parameters
    ----------
    factor : float
        Cost a at size 1, in the units of the costs.
    exponent : float
        The exponent k.
    low, high : float
        Confidence interval of the exponent; infinite where two values alone are fitted.
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


def fit_repeated(sizes: Floats, splits: Ints, costs: Floats, level: float = 0.95) -> PowerLaw:
    """Fit a power law to costs that were measured at each size on several splits.

    The costs of the splits at one size are no independent values: what a size has of its own, such
    as a load of the machine or another number of iterations, all of them share.  So the law is that
    of the geometric means at each size, and its interval the wider of two: that of the line through
    the means of q sizes, with q - 2 degrees of freedom; and that of the mean of the exponents of s
    splits, with s - 1.

    Parameters
    ----------
    sizes, costs : (n,) float64
        As for :func:`fit_power_law`.
    splits : (n,) int
        Split of each cost; it has one cost at a size.
    level : float
        Confidence level, between 0 and 1.

    Raises
    ------
    ValueError
        As :func:`fit_power_law`.
    """
    levels, place, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    logarithms = np.log(costs)
    law = fit_power_law(levels, np.exp(np.bincount(place, logarithms) / counts), level)
    members = [splits == split for split in np.unique(splits)]
    exponents = np.array(
        [
            scipy.stats.linregress(np.log(sizes[own]), logarithms[own]).slope
            for own in members
            if own.sum() == len(levels)
        ]
    )
    if len(exponents) < 2:
        return law
    quantile = scipy.stats.t.ppf(0.5 + 0.5 * level, len(exponents) - 1)
    half = float(quantile * exponents.std(ddof=1) / np.sqrt(len(exponents)))
    low, high = min(law.low, law.exponent - half), max(law.high, law.exponent + half)
    return law._replace(low=low, high=high)


def lack_of_fit(sizes: Floats, costs: Floats) -> float:
    """Return the p-value of the F-test of lack of fit: small where a power law does not hold.

    The test compares the scatter of the mean logarithms around the fitted line with the scatter of
    repeated values around their mean, which it takes to be independent
    (Kutner et al. 2005, Applied Linear Statistical Models, 3.7).

    Parameters
    ----------
    sizes, costs : (q,) float64
        As for :func:`fit_power_law`.

    Returns
    -------
    float
        Between 0 and 1; NaN with fewer than three sizes, without a repeated size, or where repeated
        values do not differ.
    """
    x, y = np.log(np.asarray(sizes, dtype=np.float64)), np.log(np.asarray(costs, dtype=np.float64))
    levels, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    between, within = len(levels) - 2, len(x) - len(levels)
    if between < 1 or within < 1:
        return float("nan")
    means = np.bincount(place, y) / counts
    pure = float(((y - means[place]) ** 2).sum())
    if pure <= 0.0:
        return float("nan")
    fit = scipy.stats.linregress(x, y)
    lack = float((counts * (means - fit.intercept - fit.slope * levels) ** 2).sum())
    return float(scipy.stats.f.sf((lack / between) / (pure / within), between, within))
