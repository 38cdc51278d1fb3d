"""Comparison of methods over several data sets, by one score on each.

Demšar (2006) recommends Wilcoxon's signed-rank test for two methods and Friedman's test on ranks
for more.  Benavoli, Corani, Mangili & Zaffalon (2016) object to mean ranks: whether two methods
differ then depends on the other methods of the pool.  Pairwise signed-rank tests with Holm's
correction do not have this defect, so :func:`pairwise_wilcoxon` is what verdicts rest on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy

from mkldist.analysis.resampling import Posterior
from mkldist.core.arrays import Floats
from mkldist.errors import InputError
from mkldist.results.schema import SPLIT


def holm(p_values: Floats) -> Floats:
    """Return p-values adjusted for their number by Holm's (1979) step-down procedure.

    Parameters
    ----------
    p_values : (k,) float64
        P-values of k tests; NaN for one that does not apply, which does not count and stays NaN.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    p_values = np.asarray(p_values, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    steps = p_values[order] * np.arange(len(order), 0, -1)
    adjusted = np.full_like(p_values, np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def largest_of_series(places: Sequence[tuple[str, float]]) -> list[int]:
    """Return the positions of the largest data set of each series, in order.

    The sizes of a scaling study are nested samples of one data set, and no test over data sets may
    count them as several.

    Parameters
    ----------
    places : sequence of (str, float)
        Name of the series and number of training points of each data set.

    Examples
    --------
    >>> largest_of_series([("wdbc", 100), ("wdbc", 400), ("heart", 200)])
    [1, 2]
    """
    largest: dict[str, int] = {}
    for number, (series, size) in enumerate(places):
        if series not in largest or size > places[largest[series]][1]:
            largest[series] = number
    return sorted(largest.values())


def pairwise_wilcoxon(scores: pd.DataFrame) -> pd.DataFrame:
    """Compare every two methods by Wilcoxon's signed-rank test, with Holm's correction.

    Parameters
    ----------
    scores : DataFrame
        A row a data set, a column a method; no value is missing.

    Returns
    -------
    DataFrame
        Columns ``first``, ``second``, ``median_difference`` (first minus second), ``p_value`` and
        ``p_holm``; a row a pair.  Data sets without difference count half to each side, as in
        Demšar's procedure (``zsplit``).

    Raises
    ------
    ValueError
        If a value is missing or there are fewer than two methods.
    mkldist.errors.InputError
        If the rows are splits of one data set, whose training parts overlap.
    """
    _check(scores, 2)
    names = list(scores.columns)
    rows = []
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            differences = scores[first].to_numpy(float) - scores[second].to_numpy(float)
            p_value = 1.0
            if np.any(differences != 0.0):
                p_value = float(scipy.stats.wilcoxon(differences, zero_method="zsplit").pvalue)
            rows.append((first, second, float(np.median(differences)), p_value))
    table = pd.DataFrame(rows, columns=["first", "second", "median_difference", "p_value"])
    return table.assign(p_holm=holm(table["p_value"].to_numpy()))


class Friedman(NamedTuple):
    """Friedman's test of equal ranks.

    Parameters
    ----------
    mean_ranks : Series
        Mean rank of each method over the data sets; 1 is best.
    statistic : float
        Iman and Davenport's (1980) F statistic, less conservative than Friedman's chi-squared.
    p_value : float
        Its p-value.
    critical_difference : float
        Nemenyi's critical difference of mean ranks at the level asked for.
    """

    mean_ranks: pd.Series
    statistic: float
    p_value: float
    critical_difference: float


def friedman(
    scores: pd.DataFrame, *, significance: float = 0.05, smaller_is_better: bool = True
) -> Friedman:
    """Test whether methods have equal mean ranks over data sets (Demšar 2006, section 3.2.2).

    Parameters
    ----------
    scores : DataFrame
        A row a data set, a column a method; no value is missing.
    significance : float
        Level of the critical difference.
    smaller_is_better : bool
        True for errors, False for accuracies.

    Raises
    ------
    ValueError
        If a value is missing, or there are fewer than three methods or two data sets.
    mkldist.errors.InputError
        If the rows are splits of one data set, whose training parts overlap.
    """
    _check(scores, 3)
    n, k = scores.shape
    if n < 2:
        raise ValueError(f"found {n} data set; expected at least two")
    ranks = scores.rank(axis=1, ascending=smaller_is_better)
    means = ranks.mean()
    # Ties lower the variance of ranks, so the variance that occurs takes the place of (k³ - k)/12.
    between = n * float(((means - 0.5 * (k + 1)) ** 2).sum())
    within = float(((ranks - 0.5 * (k + 1)) ** 2).to_numpy().sum()) / (n * (k - 1))
    chi_squared = between / within if within > 0.0 else 0.0
    room = n * (k - 1) - chi_squared
    statistic = (n - 1) * chi_squared / room if room > 1e-12 * n * k else math.inf
    p_value = float(scipy.stats.f.sf(statistic, k - 1, (k - 1) * (n - 1)))
    quantile = float(scipy.stats.studentized_range.ppf(1.0 - significance, k, np.inf))
    difference = quantile / math.sqrt(2.0) * math.sqrt(k * (k + 1) / (6.0 * n))
    return Friedman(means, statistic, p_value, difference)


def signed_rank_posterior(
    differences: Floats, rope: float, *, draws: int = 50_000, seed: int = 0
) -> Posterior:
    """Return the posterior of the Bayesian signed-rank test (Benavoli et al. 2014, 2017).

    Data sets have Dirichlet weights with a pseudo-observation at difference zero of weight ½.  A
    draw asks where most of the weighted sums of two differences lie: below the region of practical
    equivalence, within, or above.  The probabilities are shares of draws.

    Parameters
    ----------
    differences : (q,) float64
        Difference of two methods' scores on each of q data sets.
    rope : float
        Half the width of the region of practical equivalence, in the units of the scores.
    draws : int
        Draws from the posterior; their standard error is at most ``0.5 / sqrt(draws)``.
    seed : int
        Seed of the draws.

    Raises
    ------
    ValueError
        If there is no difference, or `rope` is negative.
    """
    differences = np.asarray(differences, dtype=np.float64)
    if len(differences) == 0 or rope < 0.0:
        raise ValueError(
            f"found {len(differences)} data sets and rope = {rope}; expected at least one data "
            f"set, and rope of at least 0"
        )
    values = np.concatenate([[0.0], differences])
    pairs = values[:, None] + values
    low, high = pairs < -2.0 * rope, pairs > 2.0 * rope
    weights = np.random.default_rng(seed).dirichlet(np.r_[0.5, np.ones(len(differences))], draws)
    below = np.einsum("si,ij,sj->s", weights, low, weights, optimize=True)
    above = np.einsum("si,ij,sj->s", weights, high, weights, optimize=True)
    shares = np.column_stack([below, 1.0 - below - above, above])
    most = shares == shares.max(axis=1, keepdims=True)
    won = (most / most.sum(axis=1, keepdims=True)).mean(axis=0)
    return Posterior(*map(float, won))


def refuse_splits(scores: pd.DataFrame) -> None:
    """Refuse a table whose rows are splits, which a test over data sets would take for independent.

    Parameters
    ----------
    scores : DataFrame
        The table; its index has the name ``"split"`` where its rows are splits, as in
        :attr:`mkldist.analysis.comparison.Compared.losses`.

    Raises
    ------
    mkldist.errors.InputError
        With the reason.
    """
    if scores.index.name == SPLIT:
        raise InputError(
            "a test over data sets",
            "a row for each split of one data set",
            "a row for each data set: the training parts of splits overlap, so that a test which "
            "takes them for independent is too sure",
            "corrected_t_test and correlated_posterior count the overlap, as does compare_methods",
        )


def _check(scores: pd.DataFrame, least: int) -> None:
    """Raise unless rows are data sets, with a value everywhere and enough methods."""
    refuse_splits(scores)
    missing = scores.isna()
    if missing.to_numpy().any():
        row, column = np.argwhere(missing.to_numpy())[0]
        raise ValueError(
            f"found no score of {scores.columns[column]!r} on {scores.index[row]!r}; expected one "
            f"of each method on each data set"
        )
    if scores.shape[1] < least:
        raise ValueError(f"found {scores.shape[1]} methods; expected at least {least}")
