"""Inference from errors on resampled splits, whose training parts overlap.

The errors of a method on overlapping splits are correlated, so their plain standard error is too
small.  Nadeau and Bengio (2003) correct the variance of the mean of J errors by the ratio of the
sizes of the test and training parts::

    Var(mean) ~ (1 / J + n_test / n_train) s²

Benavoli, Corani, Demšar & Zaffalon (2017) take the correlation ``rho = n_test / (n_train +
n_test)`` into the posterior of the mean difference, a Student distribution of the same scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from mkldist.core.arrays import Floats


class Interval(NamedTuple):
    """A mean and its confidence interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Overlap:
    """How far the splits of an experiment share their training points.

    Parameters
    ----------
    n_train, n_test : float
        Points in a training and in a test part; means where they differ between splits.
    independent : bool
        True if no point is in the training parts, or in the test parts, of two splits.
    """

    n_train: float
    n_test: float
    independent: bool = False

    def variance_factor(self, n_splits: int) -> float:
        """Return the variance of the mean of one value a split, in units of that of a value."""
        correction = 0.0 if self.independent else self.n_test / self.n_train
        return 1.0 / n_splits + correction


def corrected_interval(values: Floats, overlap: Overlap, level: float = 0.95) -> Interval:
    """Return the mean of one value a split, and its corrected confidence interval.

    Parameters
    ----------
    values : (J,) float64
        A score on each of J >= 2 splits.
    overlap : Overlap
        Sizes of the parts.
    level : float
        Confidence level, between 0 and 1.

    Raises
    ------
    ValueError
        If there are fewer than two values.
    """
    mean, scale, freedom = _student(values, overlap)
    half = scale * float(scipy.stats.t.ppf(0.5 + 0.5 * level, freedom))
    return Interval(mean, mean - half, mean + half)


def known_interval(values: Floats, overlap: Overlap) -> Interval:
    """Return what :func:`corrected_interval` does of the values that are not NaN.

    The ends are NaN for one value, and the mean too for none.
    """
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    if len(known) > 1:
        return corrected_interval(known, overlap)
    return Interval(float(known[0]) if len(known) else math.nan, math.nan, math.nan)


def loss_interval(losses: Floats, overlap: Overlap, n_rows: float, most: float) -> Interval:
    """Return the mean of a loss over the splits with a 95 % interval that keeps to its bounds.

    A loss between 0 and 1 has the interval of Clopper & Pearson for a share of ``n`` rows in the
    manner of Korn & Graubard (1998): n is the number of rows at which a share p has the variance v
    of the mean by Nadeau & Bengio, ``p (1 - p) / v``, times ``(t_n / t_J)²`` for the few splits
    that tell v, and at most as many rows as were tested.  So equal losses on all splits, or none at
    all, leave an interval too, and one split has that of its rows.  A loss without an upper bound
    has Student's interval of its logarithm.

    Parameters
    ----------
    losses : (J,) float64
        Loss on each split; NaN for those without.
    overlap : Overlap
        Sizes of the parts.
    n_rows : float
        Number of rows that were tested, each counted once.
    most : float
        The greatest loss that there can be: 1 or infinity.

    Returns
    -------
    Interval
        The ends are NaN where nothing tells them: without rows, and for one split or a mean of 0
        of a loss without an upper bound.

    References
    ----------
    E. L. Korn and B. I. Graubard, "Confidence intervals for proportions with small expected number
    of positive counts estimated from survey data", Survey Methodology 24, 1998.
    """
    known = np.asarray(losses, dtype=np.float64)
    known = known[~np.isnan(known)]
    if not len(known):
        return Interval(math.nan, math.nan, math.nan)
    mean, scale, freedom = float(known.mean()), 0.0, len(known) - 1
    if freedom:
        # The rows bound what tests share.  Training parts smaller than these share less than they.
        fewer, more = sorted((overlap.n_train, overlap.n_test))
        mean, scale, _ = _student(known, Overlap(more, fewer, overlap.independent))
    if most == 1.0:
        return _share_interval(min(max(mean, 0.0), 1.0), scale, freedom, n_rows)
    if not freedom or mean <= 0.0 or n_rows < 2:
        return Interval(mean, math.nan, math.nan)
    # The spread of few splits may be 0 by chance; that of n errors is not.
    relative = max(scale / mean, math.sqrt(0.5 / n_rows))
    factor = math.exp(relative * float(scipy.special.stdtrit(freedom, 0.975)))
    return Interval(mean, mean / factor, mean * factor)


def _share_interval(share: float, scale: float, freedom: int, n_rows: float) -> Interval:
    """Return the interval of a mean share of this standard error; see :func:`loss_interval`."""
    if n_rows < 1:
        return Interval(share, math.nan, math.nan)
    n = n_rows
    if scale > 0.0:
        of_rows = float(scipy.special.stdtrit(max(n_rows - 1.0, 1.0), 0.975))
        of_splits = float(scipy.special.stdtrit(freedom, 0.975))
        n = min(n, share * (1.0 - share) / scale**2 * (of_rows / of_splits) ** 2)
    right, wrong = n * (1.0 - share), n * share
    low = float(scipy.special.betaincinv(wrong, right + 1.0, 0.025)) if wrong > 0.0 else 0.0
    high = float(scipy.special.betaincinv(wrong + 1.0, right, 0.975)) if right > 0.0 else 1.0
    return Interval(share, low, high)


class TTest(NamedTuple):
    """A paired t-test: the mean difference, its statistic and two-sided p-value."""

    mean: float
    statistic: float
    p_value: float


def corrected_t_test(differences: Floats, overlap: Overlap) -> TTest:
    """Test by Nadeau & Bengio's corrected resampled t-test that the mean difference is zero.

    Parameters
    ----------
    differences : (J,) float64
        Difference of two methods' scores on each of J >= 2 splits.
    overlap : Overlap
        Sizes of the parts.

    Returns
    -------
    TTest
        If all differences are equal, the statistic is infinite, or zero where they are zero.

    Raises
    ------
    ValueError
        If there are fewer than two differences.
    """
    mean, scale, freedom = _student(differences, overlap)
    if scale == 0.0:
        return TTest(mean, math.copysign(math.inf, mean) if mean else 0.0, 0.0 if mean else 1.0)
    statistic = mean / scale
    return TTest(mean, statistic, 2.0 * float(scipy.special.stdtr(freedom, -abs(statistic))))


class Posterior(NamedTuple):
    """Probabilities that a mean difference lies below, in and above a region of equivalence."""

    below: float
    equivalent: float
    above: float


def correlated_posterior(differences: Floats, overlap: Overlap, rope: float) -> Posterior:
    """Return the posterior of the mean difference by the Bayesian correlated t-test.

    Parameters
    ----------
    differences : (J,) float64
        Difference of two methods' scores on each of J >= 2 splits.
    overlap : Overlap
        Sizes of the parts.
    rope : float
        Half the width of the region of practical equivalence, in the units of the scores.

    Raises
    ------
    ValueError
        If there are fewer than two differences, or `rope` is negative.
    """
    if rope < 0.0:
        raise ValueError(f"found rope = {rope}; expected a number of at least 0")
    mean, scale, freedom = _student(differences, overlap)
    if scale == 0.0:
        return Posterior(float(mean < -rope), float(abs(mean) <= rope), float(mean > rope))
    below = float(scipy.stats.t.cdf((-rope - mean) / scale, freedom))
    above = float(scipy.stats.t.sf((rope - mean) / scale, freedom))
    return Posterior(below, max(1.0 - below - above, 0.0), above)


def _student(values: Floats, overlap: Overlap) -> tuple[float, float, int]:
    """Return the mean of the values, its corrected standard error, and the degrees of freedom."""
    values = np.asarray(values, dtype=np.float64)
    n_splits = len(values)
    if n_splits < 2:
        raise ValueError(f"found {n_splits} split; expected at least two, to tell a variance")
    spread = float(values.std(ddof=1)) if np.ptp(values) > 0.0 else 0.0
    return float(values.mean()), spread * math.sqrt(overlap.variance_factor(n_splits)), n_splits - 1
