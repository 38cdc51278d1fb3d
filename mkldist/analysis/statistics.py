"""Tests, intervals and fits on plain arrays and tables of scores.

The errors of a method on overlapping splits are correlated, so their plain standard error is too
small.  Nadeau and Bengio (2003) correct the variance of the mean of J errors by the ratio of the
sizes of the test and training parts::

    Var(mean) ~ (1 / J + n_test / n_train) s²

Benavoli, Corani, Demšar & Zaffalon (2017) take the correlation ``rho = n_test / (n_train +
n_test)`` into the posterior of the mean difference, a Student distribution of the same scale.

Over several data sets, with one score on each, Demšar (2006) recommends Wilcoxon's signed-rank test
for two methods and Friedman's test on ranks for more.  Benavoli, Corani, Mangili & Zaffalon (2016)
object to mean ranks: whether two methods differ then depends on the other methods of the pool.
Pairwise signed-rank tests with Holm's correction do not have this defect, so verdicts rest on them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from mkldist.core.arrays import Floats
from mkldist.errors import InputError
from mkldist.results.schema import SPLIT

if TYPE_CHECKING:
    import pandas as pd


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

    Examples
    --------
    >>> from mkldist import analysis
    >>> analysis.Overlap(n_train=70, n_test=30).variance_factor(10)
    0.5285714285714286
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

    Examples
    --------
    >>> import numpy as np
    >>> from mkldist import analysis
    >>> errors = np.array([0.04, 0.06, 0.05, 0.03, 0.06])
    >>> found = analysis.corrected_interval(errors, analysis.Overlap(n_train=70, n_test=30))
    >>> round(found.low, 3), round(found.high, 3)
    (0.019, 0.077)
    """
    mean, scale, freedom = _student(values, overlap)
    half = scale * float(scipy.stats.t.ppf(0.5 + 0.5 * level, freedom))
    return Interval(mean, mean - half, mean + half)


def known_interval(values: Floats, overlap: Overlap) -> Interval:
    """Return what :func:`corrected_interval` does of the values that are not NaN.

    The ends are NaN for one value and for values that do not differ, whose spread tells nothing;
    the mean too for none.
    """
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    if len(known) and np.ptp(known) > 1e-12 * np.abs(known).max():
        return corrected_interval(known, overlap)
    return Interval(float(known.mean()) if len(known) else math.nan, math.nan, math.nan)


def loss_interval(losses: Floats, overlap: Overlap, n_rows: float, most: float) -> Interval:
    """Return the mean of a loss over the splits with a 95 % interval that keeps to its bounds.

    A loss between 0 and 1 has the interval of Clopper & Pearson for a share of ``n`` rows in the
    manner of Korn & Graubard (Survey Methodology 24, 1998): n is the number of rows at which a
    share p has the variance v of the mean by Nadeau & Bengio, ``p (1 - p) / v``, times
    ``(t_n / t_J)²`` for the few splits that tell v, and at most the `n_rows` that were tested.  So
    equal losses on all splits, or none at all, leave an interval too, and one split has that of its
    rows.  A loss without an upper bound (`most` is infinite) has Student's interval of its
    logarithm, and NaN for one split or a mean of 0.  Splits without a loss (NaN) do not count.
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

    Examples
    --------
    >>> import numpy as np
    >>> from mkldist import analysis
    >>> differences = np.array([0.01, 0.03, 0.02, 0.00, 0.02])
    >>> found = analysis.corrected_t_test(differences, analysis.Overlap(n_train=70, n_test=30))
    >>> round(found.p_value, 3)
    0.151
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

    Examples
    --------
    >>> import numpy as np
    >>> from mkldist import analysis
    >>> differences = np.array([0.01, 0.03, 0.02, 0.00, 0.02])
    >>> overlap = analysis.Overlap(n_train=70, n_test=30)
    >>> found = analysis.correlated_posterior(differences, overlap, rope=0.01)
    >>> round(found.equivalent, 2)
    0.25
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


def holm(p_values: Floats, tests: Sequence[Hashable] | None = None) -> Floats:
    """Return p-values adjusted for their number by Holm's (1979) step-down procedure.

    Parameters
    ----------
    p_values : (k,) float64
        P-values of k tests; NaN for one that does not apply, which does not count and stays NaN.
    tests : (k,) sequence, optional
        What each compares: of equal ones, which are copies of one test, the first counts.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    p_values = np.asarray(p_values, dtype=np.float64)
    if tests is not None:
        distinct = {test: number for number, test in enumerate(dict.fromkeys(tests))}
        place = np.array([distinct[test] for test in tests], dtype=np.intp)
        return holm(p_values[np.unique(place, return_index=True)[1]])[place]
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

    Examples
    --------
    >>> import pandas as pd
    >>> from mkldist import analysis
    >>> scores = pd.DataFrame(
    ...     {"a": [0.10, 0.20, 0.15], "b": [0.12, 0.22, 0.19]}, index=["heart", "liver", "sonar"]
    ... )
    >>> analysis.pairwise_wilcoxon(scores)[["first", "second", "p_value"]]
      first second  p_value
    0     a      b     0.25
    """
    import pandas as pd

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
    """Friedman's test of equal ranks."""

    mean_ranks: pd.Series  # Mean rank of each method over the data sets; 1 is best
    # Iman and Davenport's (1980) F statistic, less conservative than Friedman's chi-squared
    statistic: float
    p_value: float  # Its p-value
    critical_difference: float  # Nemenyi's critical difference of mean ranks at the level asked for


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

    Examples
    --------
    >>> import pandas as pd
    >>> from mkldist import analysis
    >>> scores = pd.DataFrame(
    ...     {"a": [0.10, 0.20, 0.15], "b": [0.12, 0.22, 0.18], "c": [0.11, 0.25, 0.20]},
    ...     index=["heart", "liver", "sonar"],
    ... )
    >>> found = analysis.friedman(scores)
    >>> round(found.p_value, 2)
    0.05
    """
    _check(scores, 3)
    n, k = scores.shape
    if n < 2:
        raise ValueError(f"found {n} data set; expected at least two")
    ranks = scores.rank(axis=1, ascending=smaller_is_better)
    means = ranks.mean()
    # scipy corrects for ties; ranks that are all tied have no variance.
    tied = bool((ranks.nunique(axis=1) == 1).all())
    columns = [scores[name].to_numpy(float) for name in scores]
    chi_squared = 0.0 if tied else float(scipy.stats.friedmanchisquare(*columns).statistic)
    room = n * (k - 1) - chi_squared
    statistic = (n - 1) * chi_squared / room if room > 1e-12 * n * k else math.inf
    p_value = float(scipy.stats.f.sf(statistic, k - 1, (k - 1) * (n - 1)))
    quantile = float(scipy.stats.studentized_range.ppf(1.0 - significance, k, np.inf))
    difference = quantile / math.sqrt(2.0) * math.sqrt(k * (k + 1) / (6.0 * n))
    return Friedman(means, statistic, p_value, difference)


def _check(scores: pd.DataFrame, least: int) -> None:
    """Raise unless rows are data sets, with a value everywhere and enough methods."""
    if scores.index.name == SPLIT:
        raise InputError(
            "a test over data sets",
            "a row for each split of one data set",
            "a row for each data set: the training parts of splits overlap, so that a test which "
            "takes them for independent is too sure",
            "corrected_t_test and correlated_posterior count the overlap, as does compare_methods",
        )
    missing = scores.isna()
    if missing.to_numpy().any():
        row, column = np.argwhere(missing.to_numpy())[0]
        raise ValueError(
            f"found no score of {scores.columns[column]!r} on {scores.index[row]!r}; expected one "
            f"of each method on each data set"
        )
    if scores.shape[1] < least:
        raise ValueError(f"found {scores.shape[1]} methods; expected at least {least}")


FEWEST_SPLITS = 5
"""With fewer splits, the large-sample interval of the measure means nothing."""


def frequencies(selected: npt.NDArray[np.bool_]) -> list[Interval]:
    """Return the share of the splits that select each of G sets, and its 95 % interval by Wilson.

    The interval takes the splits for independent; they share training rows.  Its ends are NaN for
    one split.

    Shapes: selected (J, G).
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
    ``FEWEST_SPLITS`` there is none, because their own scatter then tells nothing of its width.

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

    Examples
    --------
    >>> import numpy as np
    >>> from mkldist import analysis
    >>> selected = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]]) > 0
    >>> round(analysis.selection_stability(selected).mean, 2)
    0.33
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
