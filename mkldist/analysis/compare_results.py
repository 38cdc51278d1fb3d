"""Two methods, or one method in two sweeps, compared on the splits that they share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mkldist.analysis.comparison import number_of_settings
from mkldist.analysis.equal_settings import EqualSettings, at_equal_settings
from mkldist.analysis.over_data_sets import (
    holm,
    largest_of_series,
    pairwise_wilcoxon,
    signed_rank_posterior,
)
from mkldist.analysis.paired_losses import (
    ROPE,
    inference,
    is_share,
    only_shifted,
    overlap_of,
    region,
)
from mkldist.analysis.pairing import Pair, Results, Unpaired, matching, paired
from mkldist.analysis.points import PointCounts, point_counts
from mkldist.analysis.resampling import Overlap, Posterior, corrected_interval
from mkldist.core.arrays import Floats
from mkldist.core.metrics import metric_of_variable
from mkldist.errors import InputError
from mkldist.results.schema import DATASET_SERIES

FEWEST_DATA_SETS = 6
"""With fewer data sets, Wilcoxon's two-sided p-value exceeds 0.05 whatever they show."""
DEPTH = 2  # slashes in the path of a method, /DATASET/METHOD, in results of one bank
MEASURES = ("active_kernels", "seconds", "gap", "objective")


class Difference(NamedTuple):
    """Means of a number of two methods over the same splits, and the interval of the difference.

    Parameters
    ----------
    first, second : float
        Means over the splits.
    difference : float
        Mean of the first minus that of the second.
    low, high : float
        Corrected 95 % interval of the difference; NaN for a single split, and where every split has
        the same difference other than 0.
    """

    first: float
    second: float
    difference: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class PairComparison:
    """Two methods on one data set.

    Parameters
    ----------
    dataset, first, second : str
        Data set and methods; a method has its bank before it where banks differ.
    loss : str
        Name of the loss.
    first_setting, second_setting : dict of str to object
        Hyperparameters that were chosen: a value, or a list of one a split.
    validated : tuple of (bool, bool)
        True if validation chose the settings of the first, of the second.
    n_splits : int
        Splits that both have.
    left_out : tuple of (int, int)
        Splits that the first, the second has besides.
    losses : Difference
        Losses.
    p_value, p_holm : float
        Of the corrected resampled t-test, and adjusted for all pairs of the comparison; NaN where
        the interval is.
    rope : float
        Half the width of the region of practical equivalence.
    posterior : Posterior
        Probabilities that the first is better, that both are equivalent, that the second is better.
    measures : dict of str to Difference
        Active kernels, seconds and gap; the objective where both minimise the same function.
    points : PointCounts or None
        McNemar's tests; None for regression, and where predictions were not kept.
    equal_settings : EqualSettings or None
        Runs of one method at equal settings; None for two methods or other kernels.
    series : str
        Name that the data set shares with other sizes of it in a scaling study; else its own.
    n_train : float
        Mean number of training points.
    n_settings : tuple of (int, int)
        Settings from which those of the first, of the second were chosen.
    """

    dataset: str
    first: str
    second: str
    loss: str
    first_setting: dict[str, Any]
    second_setting: dict[str, Any]
    validated: tuple[bool, bool]
    n_splits: int
    left_out: tuple[int, int]
    losses: Difference
    p_value: float
    p_holm: float
    rope: float
    posterior: Posterior
    measures: dict[str, Difference]
    points: PointCounts | None
    equal_settings: EqualSettings | None
    series: str = ""
    n_train: float = math.nan
    n_settings: tuple[int, int] = (1, 1)

    @property
    def scores(self) -> Difference:
        """Values of the metric, whose losses may be 1 less these."""
        metric, (first, second, difference, low, high) = metric_of_variable(self.loss), self.losses
        if not metric.greater:
            return self.losses
        return Difference(metric.loss(first), metric.loss(second), -difference, -high, -low)


@dataclass(frozen=True)
class OverDataSets:
    """Two methods over several data sets of the same loss.

    Errors are compared as they are.  Losses of real values have the units of their labels, so each
    is divided by that of the second method, and differences are shares of it.

    Parameters
    ----------
    first, second, loss : str
        The methods and the loss.
    datasets : tuple of str
        The data sets; of several sizes of one, the largest.
    median_difference : float
        Median of the differences of mean losses, first minus second.
    p_value, p_holm : float
        Of Wilcoxon's signed-rank test, and adjusted for all such pairs; NaN with too few data sets.
    posterior : Posterior
        Of the Bayesian signed-rank test.
    rope : float
        Half the width of the region of practical equivalence.
    """

    first: str
    second: str
    loss: str
    datasets: tuple[str, ...]
    median_difference: float
    p_value: float
    p_holm: float
    posterior: Posterior
    rope: float


@dataclass(frozen=True, eq=False)
class ResultsComparison:
    """Everything that could be compared, and what could not.

    Parameters
    ----------
    pairs : tuple of PairComparison
        A pair of methods on a data set each.
    over : tuple of OverDataSets
        The same pairs over data sets; empty for single data sets.
    unpaired : tuple of Unpaired
        What takes no part.
    """

    pairs: tuple[PairComparison, ...]
    over: tuple[OverDataSets, ...]
    unpaired: tuple[Unpaired, ...]


def compare_results(
    first: Results,
    second: Results,
    matches: Callable[[dict[str, str], dict[str, str]], bool],
    rope: float | None = None,
) -> ResultsComparison:
    """Compare methods of two results on the splits that they share.

    Parameters
    ----------
    first, second : Results
        The results; the same object for two methods of one sweep.
    matches : callable
        As for :func:`mkldist.analysis.pairing.paired`.
    rope : float, optional
        Half the width of the region of practical equivalence, in units of the loss; by default 0.01
        of an error, and a hundredth of the mean loss for real values.

    Returns
    -------
    ResultsComparison
        Training parts of splits overlap, so tests within a data set are the corrected resampled
        t-test (Nadeau & Bengio 2003) and its Bayesian form (Benavoli et al. 2017).
    """
    pairs, unpaired = paired(first, second, matches)
    compared = [compare_pair(pair, rope) for pair in pairs]
    adjusted = holm(np.array([one.p_value for one in compared])).tolist()
    compared = [replace(one, p_holm=p) for one, p in zip(compared, adjusted, strict=True)]
    return ResultsComparison(tuple(compared), over_data_sets(compared, rope), tuple(unpaired))


def compare_pair(pair: Pair, rope: float | None = None) -> PairComparison:
    """Compare two methods on one data set; see :func:`compare_results`."""
    one, two = pair.first, pair.second
    splits = [i for i, _ in pair.splits], [j for _, j in pair.splits]
    overlap = overlap_of(one.data, splits[0])
    of_losses = _difference(one.losses[splits[0]], two.losses[splits[1]], overlap)
    rope = region(one.loss, of_losses.second, rope)
    differences = one.losses[splits[0]] - two.losses[splits[1]]
    p_value, posterior = inference(differences, overlap, rope)
    equal = at_equal_settings(pair)
    settings = one.settings(splits[0]), two.settings(splits[1])
    same_problem = equal is not None and settings[0] == settings[1]
    names = [name for name in MEASURES if name != "objective" or same_problem]
    measures = {
        name: _difference(one.values(name)[splits[0]], two.values(name)[splits[1]], overlap)
        for name in names
    }
    labels = _labels(pair)
    return PairComparison(
        dataset=one.place["dataset"],
        first=labels[0],
        second=labels[1],
        loss=one.loss,
        first_setting=settings[0],
        second_setting=settings[1],
        validated=(one.results.validated, two.results.validated),
        n_splits=len(differences),
        left_out=(len(one.losses) - len(differences), len(two.losses) - len(differences)),
        losses=of_losses,
        p_value=p_value,
        p_holm=p_value,
        rope=rope,
        posterior=posterior,
        measures=measures,
        points=point_counts(pair),
        equal_settings=equal,
        series=str(pair.first.node.attrs.get(DATASET_SERIES, one.place["dataset"])),
        n_train=overlap.n_train,
        n_settings=(number_of_settings(one.node), number_of_settings(two.node)),
    )


def _labels(pair: Pair) -> tuple[str, str]:
    """Return the names of both methods, with their banks where these differ or are several."""
    one, two = pair.first.place, pair.second.place
    depths = [side.node.path.count("/") for side in (pair.first, pair.second)]
    if one["bank"] == two["bank"] and max(depths) == DEPTH:
        return one["method"], two["method"]
    return f"{one['bank']}/{one['method']}", f"{two['bank']}/{two['method']}"


def _difference(first: Floats, second: Floats, overlap: Overlap) -> Difference:
    """Return means and the corrected interval of the difference, of values known in both."""
    known = ~np.isnan(first - second)
    first, second = first[known], second[known]
    if not len(first):
        return Difference(*(math.nan,) * 5)
    low = high = math.nan
    if len(first) > 1 and not only_shifted(first - second):
        _, low, high = corrected_interval(first - second, overlap)
    mean = float((first - second).mean())
    return Difference(float(first.mean()), float(second.mean()), mean, low, high)


def over_data_sets(
    compared: Sequence[PairComparison], rope: float | None = None
) -> tuple[OverDataSets, ...]:
    """Compare the pairs of methods that several data sets have, over these.

    Of several sizes of one data set the largest counts alone: the sizes share their points, and are
    no independent data sets.

    Parameters
    ----------
    compared : sequence of PairComparison
        Pairs on single data sets.
    rope : float, optional
        As for :func:`compare_results`; of losses other than errors always a hundredth.
    """
    import pandas as pd

    groups: dict[tuple[str, str, str], list[PairComparison]] = {}
    for one in compared:
        groups.setdefault((one.first, one.second, one.loss), []).append(one)
    found = []
    for (first, second, loss), of_all in groups.items():
        places = [(one.series or one.dataset, one.n_train) for one in of_all]
        members = [of_all[number] for number in largest_of_series(places)]
        if len(members) < 2:
            continue
        means = pd.DataFrame([[m.losses.first, m.losses.second] for m in members])
        if not is_share(loss):
            means = means.div(means[1], axis=0)
        row = pairwise_wilcoxon(means).iloc[0]
        enough = len(members) >= FEWEST_DATA_SETS
        p_value = float(row["p_value"]) if enough else math.nan
        width = rope if is_share(loss) and rope is not None else ROPE
        posterior = signed_rank_posterior((means[0] - means[1]).to_numpy(), width)
        datasets = tuple(member.dataset for member in members)
        median = float(row["median_difference"])
        found.append(
            OverDataSets(first, second, loss, datasets, median, p_value, p_value, posterior, width)
        )
    adjusted = holm(np.array([one.p_value for one in found])).tolist()
    return tuple(replace(one, p_holm=p) for one, p in zip(found, adjusted, strict=True))


def compare_sweeps(
    first: str | Path,
    second: str | Path | None = None,
    *,
    methods: tuple[str, str] | None = None,
    rope: float | None = None,
) -> ResultsComparison:
    """Compare the methods that two sweeps share, or two methods, on the splits that both have.

    ``mkldist compare`` prints what this returns.

    Parameters
    ----------
    first : str or Path
        Output folder of a sweep.
    second : str or Path, optional
        That of another sweep; by default the same, which needs `methods`.
    methods : (str, str), optional
        A method of the first and one of the second, each as METHOD or BANK/METHOD.  By default
        methods of equal names are compared, and where there is none, every two.
    rope : float, optional
        Half the width of the region of practical equivalence, in units of the loss; by default 0.01
        of an error, and a hundredth of the mean loss for real values.

    Returns
    -------
    ResultsComparison
        ``pairs`` of methods, their comparison ``over`` data sets, and what is ``unpaired``.

    Raises
    ------
    mkldist.errors.InputError
        For one sweep without `methods`.
    mkldist.errors.StoreError
        If there are no results or they are damaged.

    Examples
    --------
    >>> from mkldist import analysis
    >>> found = analysis.compare_sweeps(
    ...     "results/quickstart", methods=("level", "uniform")
    ... )  # doctest: +SKIP
    >>> found.pairs[0].losses.difference, found.pairs[0].p_holm  # doctest: +SKIP
    """
    if second is None and methods is None:
        raise InputError(
            "compare_sweeps", "one sweep without methods", "two sweeps, or methods = (A, B)"
        )
    one = Results.of(first)
    two = one if second is None else Results.of(second)
    return compare_results(one, two, matching(one, two, methods), rope)
