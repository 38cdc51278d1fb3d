"""Stability of the selection of kernels over splits (Nogueira, Sechidis & Brown 2018)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import scipy

from mkldist.analysis.resampling import Interval

FEWEST_SPLITS = 5
"""With fewer splits, the large-sample interval of the measure means nothing."""


def frequencies(selected: npt.NDArray[np.bool_]) -> list[Interval]:
    """Return the share of the splits that select each of G sets, and its 95 % interval by Wilson.

    The interval takes the splits for independent; they share training rows.  Its ends are NaN for
    one split.

    Parameters
    ----------
    selected : (J, G) bool
        True where a split selects a set.
    """
    n_splits, counts = len(selected), np.asarray(selected).sum(axis=0).tolist()
    found = {count: Interval(count / n_splits, math.nan, math.nan) for count in counts}
    for count in found if n_splits > 1 else ():
        ends = scipy.stats.binomtest(count, n_splits).proportion_ci(method="wilson")
        found[count] = Interval(count / n_splits, float(ends.low), float(ends.high))
    return [found[count] for count in counts]


def selection_stability(selected: npt.NDArray[np.bool_]) -> Interval:
    """Return Nogueira's measure of the stability of selections, and its 95 % interval.

    The measure is 1 if all splits select the same kernels, 0 on average for random selections of
    the same sizes, and defined for selections of different sizes (their Definition 4)::

        Phi = 1 - mean_m s_m² / (kbar/M (1 - kbar/M)),   s_m² = J/(J-1) p_m (1 - p_m)

    with p_m the share of the J splits that select kernel m and kbar the mean number of kernels
    selected.  The interval is that of their Corollary 9, for a large number of splits; below
    :data:`FEWEST_SPLITS` there is none, because their own scatter then tells nothing of its width.

    Parameters
    ----------
    selected : (J, M) bool
        True where a split selects a kernel.

    Returns
    -------
    Interval
        NaN if all kernels or none are selected in every split, where stability has no meaning;
        its ends are NaN for too few splits.

    Raises
    ------
    ValueError
        If there are fewer than two splits.
    """
    z = np.asarray(selected, dtype=np.float64)
    n_splits, n_kernels = z.shape
    if n_splits < 2:
        raise ValueError(f"found {n_splits} split; expected at least two")
    shares, sizes = z.mean(axis=0), z.sum(axis=1)
    mean_size = float(sizes.mean())
    random = mean_size / n_kernels * (1.0 - mean_size / n_kernels)
    if random == 0.0:
        return Interval(math.nan, math.nan, math.nan)
    variances = n_splits / (n_splits - 1) * shares * (1.0 - shares)
    phi = 1.0 - float(variances.mean()) / random
    if n_splits < FEWEST_SPLITS:
        return Interval(phi, math.nan, math.nan)
    # Theorem 7: the contribution of each split.
    each = (
        z @ shares / n_kernels
        - sizes * mean_size / n_kernels**2
        + 0.5 * phi * (2 * mean_size * sizes / n_kernels**2 - (sizes + mean_size) / n_kernels + 1)
    ) / random
    variance = 4.0 / n_splits**2 * float(((each - each.mean()) ** 2).sum())
    half = float(scipy.stats.norm.ppf(0.975)) * math.sqrt(variance)
    return Interval(phi, phi - half, phi + half)
